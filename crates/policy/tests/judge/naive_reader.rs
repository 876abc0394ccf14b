//! A second reader of command lines (SHELL-3), one character at a time.
//! Takes a text; gives its simple commands, inner ones first, or `None` where no shell would read it or it runs
//! nothing. It knows quotes, substitutions, redirections, groups, lists and pipelines: the grammar that `generate_lines`
//! writes. Nothing of it comes from the reader it is compared with.

/// A line that can be read.
#[derive(Debug, Default)]
pub struct Line {
    pub commands: Vec<Command>,
    /// Redirections of groups.
    pub redirections: Vec<Redirection>,
    /// A variable is set somewhere.
    pub assigns: bool,
    /// A comment stands behind a command, where some shells read it as words.
    pub has_comment: bool,
}

#[derive(Debug, Default)]
pub struct Command {
    pub words: Vec<Word>,
    pub redirections: Vec<Redirection>,
}

#[derive(Debug, Default, Clone)]
pub struct Word {
    /// The value, if the word is literal; otherwise the word as it is written.
    pub text: String,
    /// No part of it is expanded.
    pub is_literal: bool,
    /// A literal without quotes.
    pub is_plain: bool,
}

#[derive(Debug, Clone)]
pub struct Redirection {
    pub target: Word,
    pub writes: bool,
}

impl Line {
    pub fn all_redirections(&self) -> impl Iterator<Item = &Redirection> {
        self.commands.iter().flat_map(|command| &command.redirections).chain(&self.redirections)
    }
}

impl Command {
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or(&[])
    }

    /// The command word, if it is plain.
    pub fn name(&self) -> Option<&str> {
        self.words.first().filter(|word| word.is_plain).map(|word| word.text.as_str())
    }
}

/// Reads a line that runs something.
pub fn read(text: &str) -> Option<Line> {
    let mut reader = Reader { rest: text, line: Line::default() };
    reader.list(None)?;
    (!reader.line.commands.is_empty()).then_some(reader.line)
}

struct Reader<'a> {
    rest: &'a str,
    line: Line,
}

impl Reader<'_> {
    /// Commands up to the closing character of a group or substitution, or to the end.
    fn list(&mut self, close: Option<char>) -> Option<()> {
        let mut open_words: Vec<&str> = Vec::new();
        // An operator such as `&&` needs a command behind it.
        let mut is_owed = false;
        loop {
            self.skip_blanks(true);
            match self.rest.chars().next() {
                None => return (close.is_none() && !is_owed && open_words.is_empty()).then_some(()),
                Some('\n') => self.take(1),
                Some(')') if close == Some(')') => {
                    self.take(1);
                    return (!is_owed && open_words.is_empty()).then_some(());
                }
                Some('}') if close == Some('}') => {
                    self.take(1);
                    return (!is_owed && open_words.is_empty()).then_some(());
                }
                Some(')') => return None,
                Some('(') => {
                    self.take(1);
                    self.group(')')?;
                    is_owed = self.operator(close)?;
                }
                Some('{') if self.rest.starts_with("{ ") => {
                    self.take(1);
                    self.group('}')?;
                    is_owed = self.operator(close)?;
                }
                Some(_) => match self.keyword(&mut open_words)? {
                    Keyword::Opens => is_owed = true,
                    Keyword::Closes => {
                        self.redirected()?;
                        is_owed = self.operator(close)?;
                    }
                    Keyword::None => {
                        self.command()?;
                        if is_owed {
                            self.share_redirections();
                        }
                        is_owed = self.operator(close)?;
                    }
                },
            }
        }
    }

    fn group(&mut self, close: char) -> Option<()> {
        let before = self.line.commands.len();
        self.list(Some(close))?;
        if self.line.commands.len() == before {
            return None;
        }
        self.redirected()
    }

    /// The redirections of a group.
    fn redirected(&mut self) -> Option<()> {
        loop {
            self.skip_blanks(false);
            match self.redirection()? {
                Some(redirection) => self.line.redirections.push(redirection),
                None => return Some(()),
            }
        }
    }

    /// `if`, `then`, `fi`: reads past one of them.
    fn keyword(&mut self, open: &mut Vec<&str>) -> Option<Keyword> {
        let word: String = self.rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let behind = self.rest.get(word.len()..)?.chars().next();
        if behind.is_some_and(|next| !" ;\n".contains(next)) {
            return Some(Keyword::None);
        }
        match (word.as_str(), open.last().copied()) {
            ("if", _) => open.push("if"),
            ("then", Some("if")) => {
                open.pop();
                open.push("then");
            }
            ("fi", Some("then")) => {
                open.pop();
                self.take(2);
                return Some(Keyword::Closes);
            }
            ("then" | "fi" | "else" | "do" | "done", _) => return None,
            _ => return Some(Keyword::None),
        }
        self.take(word.len());
        Some(Keyword::Opens)
    }

    /// The operator behind a command; whether another command must follow.
    fn operator(&mut self, close: Option<char>) -> Option<bool> {
        self.skip_blanks(false);
        for operator in ["&&", "||", "|"] {
            if self.rest.starts_with(operator) {
                self.take(operator.len());
                return Some(true);
            }
        }
        if self.rest.starts_with([';', '&', '\n']) {
            self.take(1);
            // `;;` and `; ;` are no list.
            self.skip_blanks(false);
            return (!self.rest.starts_with([';', '&', '|'])).then_some(false);
        }
        let is_closed = close.is_some_and(|close| self.rest.starts_with(close));
        (self.rest.is_empty() || (is_closed && close == Some(')'))).then_some(false)
    }

    fn command(&mut self) -> Option<()> {
        let mut command = Command::default();
        let mut assigns = false;
        loop {
            self.skip_blanks(false);
            if let Some(redirection) = self.redirection()? {
                command.redirections.push(redirection);
                continue;
            }
            if self.rest.starts_with('#') {
                self.line.has_comment = true;
                self.skip_blanks(true);
            }
            if self.rest.is_empty() || self.rest.starts_with(['\n', ';', '&', '|', ')']) {
                break;
            }
            if self.rest.starts_with('(') {
                return None;
            }
            let word = self.word()?;
            if command.words.is_empty() && is_assignment(&word.text) {
                (assigns, self.line.assigns) = (true, true);
            } else {
                command.words.push(word);
            }
        }
        let is_empty = command.words.is_empty() && command.redirections.is_empty();
        if is_empty {
            return assigns.then_some(());
        }
        self.line.commands.push(command);
        Some(())
    }

    /// `a && b > x`, `a | b > x`: the redirection counts for the whole list. That holds more than a shell would need, never
    /// less.
    fn share_redirections(&mut self) {
        let last = self.line.commands.last_mut().map(|command| std::mem::take(&mut command.redirections));
        self.line.redirections.extend(last.unwrap_or_default());
    }

    /// `> file`, `2>&1`, `< file`.
    fn redirection(&mut self) -> Option<Option<Redirection>> {
        let digits = self.rest.chars().take_while(char::is_ascii_digit).count();
        let Some(sign) = self.rest.get(digits..).filter(|rest| rest.starts_with(['<', '>'])) else { return Some(None) };
        let writes = sign.starts_with('>');
        let length = ["<<", ">>", ">&", "<&"].iter().find(|long| sign.starts_with(**long)).map_or(1, |long| long.len());
        let duplicates = sign.get(1..2) == Some("&");
        if sign.starts_with("<<") {
            return None;
        }
        self.take(digits + length);
        self.skip_blanks(false);
        if self.rest.is_empty() || self.rest.starts_with(['\n', ';', '&', '|', ')', '<', '>']) {
            return None;
        }
        let target = self.word()?;
        // A duplicate of a descriptor touches no file: it is the same as writing to nothing.
        let nothing = Word { text: "/dev/null".to_owned(), is_literal: true, is_plain: true };
        Some(Some(Redirection { target: if duplicates { nothing } else { target }, writes }))
    }

    fn word(&mut self) -> Option<Word> {
        let start = self.rest;
        let mut word = Word { text: String::new(), is_literal: true, is_plain: true };
        while let Some(next) = self.rest.chars().next().filter(|next| !" \t\n;&|()<>".contains(*next)) {
            match next {
                '\'' => {
                    let (inside, rest) = self.rest.get(1..)?.split_once('\'')?;
                    (word.text, word.is_plain, self.rest) = (word.text + inside, false, rest);
                }
                '"' => {
                    self.take(1);
                    word.is_plain = false;
                    self.double_quoted(&mut word)?;
                }
                '\\' => {
                    word.is_plain = false;
                    word.text.push(self.rest.chars().nth(1)?);
                    self.take(2);
                }
                '$' | '`' => {
                    word.is_literal = false;
                    self.expansion()?;
                }
                '*' | '?' | '[' => {
                    word.is_literal = false;
                    self.take(1);
                }
                '~' if word.text.is_empty() => {
                    word.is_literal = false;
                    self.take(1);
                }
                _ => {
                    word.text.push(next);
                    self.take(next.len_utf8());
                }
            }
        }
        if !word.is_literal {
            let written = start.len() - self.rest.len();
            word = Word { text: start.get(..written)?.to_owned(), is_literal: false, is_plain: false };
        }
        Some(word)
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        loop {
            match self.rest.chars().next()? {
                '"' => {
                    self.take(1);
                    return Some(());
                }
                '$' | '`' => {
                    word.is_literal = false;
                    self.expansion()?;
                }
                next => {
                    word.text.push(next);
                    self.take(next.len_utf8());
                }
            }
        }
    }

    /// `$x`, `$(..)`: the commands of a substitution are commands of the line.
    fn expansion(&mut self) -> Option<()> {
        if self.rest.starts_with("$(") {
            self.take(2);
            let before = self.line.commands.len();
            self.list(Some(')'))?;
            return (self.line.commands.len() > before).then_some(());
        }
        let name = self.rest.chars().skip(1).take_while(|next| next.is_ascii_alphanumeric() || *next == '_').count();
        (self.rest.starts_with('$') && name > 0).then_some(())?;
        self.take(1 + name);
        Some(())
    }

    fn skip_blanks(&mut self, may_be_comment: bool) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
        if may_be_comment && self.rest.starts_with('#') {
            self.rest = self.rest.find('\n').and_then(|end| self.rest.get(end..)).unwrap_or("");
        }
    }

    fn take(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or("");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keyword {
    /// Commands follow.
    Opens,
    Closes,
    None,
}

pub fn is_assignment(text: &str) -> bool {
    let name = text.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
}
