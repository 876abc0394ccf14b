//! Reads the facts a gateway needs from one JSON-RPC response while its bytes stream past.
//!
//! Takes chunks cut anywhere; gives `Facts` at the end. Refuses anything but one JSON object with either `result`
//! or `error`, repeated keys among those it reports, wrong nesting, trailing bytes, and depth over the limit.
//! Stricter parsers may still refuse what passes here, but none reads other facts from it. What passes:
//! repeated keys that are not reported, and `\u` escapes of half a surrogate pair. All else is checked.

mod key;
mod number;
mod text;

pub use key::OWN_WORDS;
use key::{KeyText, Level, Member};
use number::Number;
use text::Utf8;
use toolwarden_core::{Weakness, weak};

/// What a response says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// The id as written: a number, a quoted string or `null`; none if the member is missing.
    pub id: Option<Box<str>>,
    /// The `code` of an error.
    pub error_code: Option<i64>,
    pub outcome: Option<Outcome>,
    /// The text of `result.resultType`; none if missing or null.
    pub result_type: Option<Box<str>>,
    /// `result.isError`; none if missing or null.
    pub is_error: Option<bool>,
    /// Whether `result.inputRequests` is there, whatever it holds.
    pub has_input_requests: bool,
    /// Whether it says what only the gateway says.
    pub imitates: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Result,
    Error,
}

/// Why a response is refused, and the byte where that showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} near byte {position}")]
pub struct ScanError {
    pub fault: ScanFault,
    pub position: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScanFault {
    #[error("the response is not a JSON object")]
    NotAnObject,
    #[error("unexpected character")]
    Unexpected,
    #[error("text after the end of the response")]
    Trailing,
    #[error("the response ends too early")]
    End,
    #[error("nested deeper than the limit")]
    TooDeep,
    #[error("duplicate key")]
    DuplicateKey,
    #[error("invalid number")]
    Number,
    #[error("invalid escape in a string")]
    Escape,
    #[error("control character in a string")]
    Control,
    #[error("the text is not UTF-8")]
    Encoding,
    #[error("a member of the response has a value of the wrong kind")]
    WrongKind,
    #[error("the id or result type is too long")]
    TooLong,
    #[error("the response has both a result and an error, or a method")]
    Ambiguous,
    #[error("the response has neither a result nor an error")]
    Neither,
}

/// No real id or result type comes near this.
const LONGEST_CAPTURE: usize = 4096;

#[derive(Debug, Clone, Copy)]
enum State {
    Start,
    Value,
    /// A value, or the end of the array just opened.
    FirstItem,
    Key,
    /// A key, or the end of the object just opened.
    FirstKey,
    Colon,
    /// A comma, or the end of the innermost container.
    Separator,
    Text(Role),
    Escape(Role),
    Unicode(Role, u8),
    Number(Number),
    /// So much of a word was read.
    Word(Word, u8),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    True,
    False,
    Null,
}

impl Word {
    fn letters(self) -> &'static [u8] {
        match self {
            Self::True => b"true",
            Self::False => b"false",
            Self::Null => b"null",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Key,
    Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

/// Reads one response.
#[derive(Debug)]
pub struct Scanner {
    state: State,
    open: Vec<Container>,
    depth_limit: usize,
    position: u64,
    utf8: Utf8,
    key: KeyText,
    /// The member whose value comes next.
    member: Option<Member>,
    /// The member of the top level that is open, for keys one level down.
    section: Option<Member>,
    /// Whether the object where the gateway says what it decided is open, one level further down.
    in_words: bool,
    seen: u16,
    capture: Option<Member>,
    captured: Vec<u8>,
    facts: Facts,
}

impl Scanner {
    #[must_use]
    pub fn new(depth_limit: usize) -> Self {
        Self {
            state: State::Start,
            open: Vec::with_capacity(16),
            depth_limit,
            position: 0,
            utf8: Utf8::default(),
            key: KeyText::default(),
            member: None,
            section: None,
            in_words: false,
            seen: 0,
            capture: None,
            captured: Vec::with_capacity(32),
            facts: Facts::default(),
        }
    }

    /// Reads the next bytes.
    ///
    /// # Errors
    /// The response is refused; the scanner must not be used further.
    pub fn feed(&mut self, chunk: &[u8]) -> Result<(), ScanError> {
        let mut rest = chunk;
        let result = self.utf8.feed(chunk).and_then(|()| self.run(&mut rest));
        self.position += (chunk.len() - rest.len()) as u64;
        result.map_err(|fault| ScanError { fault, position: self.position })
    }

    /// The facts of the whole response.
    ///
    /// # Errors
    /// The response is not complete, or has neither a result nor an error.
    pub fn finish(self) -> Result<Facts, ScanError> {
        let fault = match (self.state, self.facts.outcome) {
            (State::End, Some(_)) => return Ok(self.facts),
            (State::End, None) => ScanFault::Neither,
            _ => ScanFault::End,
        };
        Err(ScanError { fault, position: self.position })
    }

    /// Reads until the chunk is empty; strings and numbers as far as they reach, all else byte by byte.
    fn run(&mut self, rest: &mut &[u8]) -> Result<(), ScanFault> {
        while let Some((byte, after)) = rest.split_first() {
            match self.state {
                State::Text(role) => self.text(role, rest)?,
                State::Number(number) => self.number(number, rest)?,
                state => {
                    *rest = after;
                    match state {
                        State::Escape(role) => self.escape(role, *byte)?,
                        State::Unicode(role, left) => self.unicode(role, left, *byte)?,
                        State::Word(word, read) => self.word(word, read, *byte)?,
                        _ if matches!(byte, b' ' | b'\t' | b'\n' | b'\r') => {}
                        _ => self.structure(*byte)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a byte between strings, numbers and words.
    fn structure(&mut self, byte: u8) -> Result<(), ScanFault> {
        match (self.state, byte) {
            (State::Start, b'{') => self.open(Container::Object),
            (State::Start, _) => Err(ScanFault::NotAnObject),
            (State::Separator, b',') => {
                let in_object = self.open.last() == Some(&Container::Object);
                self.state = if in_object { State::Key } else { State::Value };
                Ok(())
            }
            (State::Separator | State::FirstKey, b'}') => self.close(Container::Object),
            (State::Separator | State::FirstItem, b']') => self.close(Container::Array),
            (State::Key | State::FirstKey, b'"') => self.start_key(),
            (State::Colon, b':') => {
                self.state = State::Value;
                Ok(())
            }
            (State::Value | State::FirstItem, _) => self.value(byte),
            (State::End, _) => Err(ScanFault::Trailing),
            _ => Err(ScanFault::Unexpected),
        }
    }

    fn open(&mut self, container: Container) -> Result<(), ScanFault> {
        if self.open.len() >= weak::limit(self.depth_limit) {
            return Err(ScanFault::TooDeep);
        }
        self.open.push(container);
        self.state = if container == Container::Object { State::FirstKey } else { State::FirstItem };
        Ok(())
    }

    fn close(&mut self, container: Container) -> Result<(), ScanFault> {
        if self.open.pop() != Some(container) {
            return Err(ScanFault::Unexpected);
        }
        match self.open.len() {
            1 => self.section = None,
            2 => self.in_words = false,
            _ => {}
        }
        self.state = if self.open.is_empty() { State::End } else { State::Separator };
        Ok(())
    }

    fn start_key(&mut self) -> Result<(), ScanFault> {
        let level = match (self.open.len(), self.section) {
            (1, _) => Some(Level::Top),
            (2, Some(Member::Result)) => Some(Level::Result),
            (2, Some(Member::Error)) => Some(Level::Error),
            (3, _) if self.in_words => Some(Level::Words),
            _ => None,
        };
        self.key.start(level);
        self.state = State::Text(Role::Key);
        Ok(())
    }

    fn end_key(&mut self) -> Result<(), ScanFault> {
        self.state = State::Colon;
        self.member = self.key.end();
        let Some(member) = self.member else { return Ok(()) };
        if self.seen & member.bit() != 0 && member != Member::Own && !weak::is(Weakness::Json) {
            return Err(ScanFault::DuplicateKey);
        }
        self.seen |= member.bit();
        match member {
            Member::Result | Member::Error if self.facts.outcome.is_some() && !weak::is(Weakness::Json) => {
                Err(ScanFault::Ambiguous)
            }
            Member::Method => Err(ScanFault::Ambiguous),
            Member::Result => {
                self.facts.outcome = Some(Outcome::Result);
                Ok(())
            }
            Member::Error => {
                self.facts.outcome = Some(Outcome::Error);
                Ok(())
            }
            Member::InputRequests => {
                self.facts.has_input_requests = true;
                Ok(())
            }
            Member::Own => {
                self.facts.imitates = true;
                Ok(())
            }
            Member::Version | Member::Id | Member::ResultType | Member::IsError | Member::Code | Member::Words => {
                Ok(())
            }
        }
    }

    fn value(&mut self, byte: u8) -> Result<(), ScanFault> {
        if let Some(member) = self.member.take() {
            if !member.may_start_with(byte) {
                return Err(ScanFault::WrongKind);
            }
            match member {
                Member::Result | Member::Error => self.section = Some(member),
                Member::Id | Member::ResultType | Member::IsError | Member::Code => {
                    self.capture = Some(member);
                    self.captured.clear();
                    self.keep(&[byte])?;
                }
                Member::Words => self.in_words = byte == b'{',
                Member::Version | Member::Method | Member::InputRequests | Member::Own => {}
            }
        }
        match byte {
            b'{' => return self.open(Container::Object),
            b'[' => return self.open(Container::Array),
            b'"' => self.state = State::Text(Role::Value),
            b't' => self.state = State::Word(Word::True, 1),
            b'f' => self.state = State::Word(Word::False, 1),
            b'n' => self.state = State::Word(Word::Null, 1),
            _ => self.state = State::Number(Number::start(byte).ok_or(ScanFault::Unexpected)?),
        }
        Ok(())
    }

    fn word(&mut self, word: Word, read: u8, byte: u8) -> Result<(), ScanFault> {
        let letters = word.letters();
        if letters.get(usize::from(read)) != Some(&byte) {
            return Err(ScanFault::Unexpected);
        }
        self.keep(&[byte])?;
        self.state = State::Word(word, read + 1);
        if usize::from(read) + 1 == letters.len() { self.end_scalar() } else { Ok(()) }
    }

    fn number(&mut self, mut number: Number, rest: &mut &[u8]) -> Result<(), ScanFault> {
        let mut length = 0;
        for byte in *rest {
            match number.next(*byte) {
                Some(next) => number = next,
                None => break,
            }
            length += 1;
        }
        let (read, after) = rest.split_at(length);
        self.keep(read)?;
        *rest = after;
        self.state = State::Number(number);
        match (after.is_empty(), number.is_whole()) {
            // More digits may follow in the next chunk.
            (true, _) => Ok(()),
            (false, true) => self.end_scalar(),
            (false, false) => Err(ScanFault::Number),
        }
    }

    /// Remembers bytes of a value that will be reported.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), ScanFault> {
        if self.capture.is_some() {
            if self.captured.len() + bytes.len() > LONGEST_CAPTURE {
                return Err(ScanFault::TooLong);
            }
            self.captured.extend_from_slice(bytes);
        }
        Ok(())
    }

    /// After a string, number or word: reports it if it was captured.
    fn end_scalar(&mut self) -> Result<(), ScanFault> {
        // A string ends the section too: `"result": "x"` opens nothing.
        if self.open.len() == 1 {
            self.section = None;
        }
        self.state = State::Separator;
        let Some(member) = self.capture.take() else { return Ok(()) };
        let raw = std::str::from_utf8(&self.captured).map_err(|_| ScanFault::Encoding)?;
        match (member, raw) {
            (Member::Id, _) => self.facts.id = Some(raw.into()),
            (_, "null") => {}
            (Member::ResultType, _) => self.facts.result_type = Some(toolwarden_core::json::unescape(raw).into()),
            (Member::IsError, _) => self.facts.is_error = Some(raw == "true"),
            (Member::Code, _) => self.facts.error_code = Some(raw.parse().map_err(|_| ScanFault::WrongKind)?),
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
