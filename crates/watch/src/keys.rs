//! Keys from the bytes a terminal sends.
//!
//! Sequences may arrive in parts. Unknown sequences and pasted text are never taken for answers.

/// The longest pasted text that is kept.
const LONGEST_PASTE: usize = 4_000;
/// The longest control sequence that is waited for.
const LONGEST_SEQUENCE: usize = 32;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U: empties a line of input.
    Clear,
    Next,
    Previous,
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// Ctrl-C and Ctrl-D.
    Interrupt,
    /// Ctrl-Z.
    Suspend,
    /// Ctrl-L.
    Redraw,
    Paste(String),
}

#[derive(Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    pasted: Option<Vec<u8>>,
}

/// One step: the key, if the bytes are one, and how many bytes were used. None where more bytes are needed.
type Step = Option<(Option<Key>, usize)>;

impl Decoder {
    /// Takes what arrived; gives the keys that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.bytes.extend_from_slice(bytes);
        self.keys(false)
    }

    /// Nothing arrived for a moment: a lone Escape is the key itself.
    pub fn idle(&mut self) -> Vec<Key> {
        self.keys(true)
    }

    /// Whether the end of something that began is still to come.
    pub fn is_waiting(&self) -> bool {
        !self.bytes.is_empty() && self.pasted.is_none()
    }

    /// Forgets what has not become a key yet.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    fn keys(&mut self, is_idle: bool) -> Vec<Key> {
        let mut keys = Vec::new();
        loop {
            if let Some(pasted) = &mut self.pasted {
                let Some(end) = self.bytes.windows(PASTE_ENDS.len()).position(|part| part == PASTE_ENDS) else {
                    // The end mark itself may be cut in two.
                    let kept = self.bytes.len().min(PASTE_ENDS.len() - 1);
                    pasted.extend(self.bytes.drain(..self.bytes.len() - kept));
                    pasted.truncate(LONGEST_PASTE);
                    return keys;
                };
                pasted.extend(self.bytes.drain(..end));
                pasted.truncate(LONGEST_PASTE);
                self.bytes.drain(..PASTE_ENDS.len());
                let text = self.pasted.take().unwrap_or_default();
                keys.push(Key::Paste(String::from_utf8_lossy(&text).into_owned()));
                continue;
            }
            if self.bytes.starts_with(PASTE_BEGINS) {
                self.bytes.drain(..PASTE_BEGINS.len());
                self.pasted = Some(Vec::new());
                continue;
            }
            match step(&self.bytes) {
                Some((_, 0)) => return keys,
                Some((key, used)) => {
                    self.bytes.drain(..used.min(self.bytes.len()));
                    keys.extend(key);
                }
                None if is_idle => {
                    let is_escape = self.bytes == b"\x1b";
                    self.bytes.clear();
                    keys.extend(is_escape.then_some(Key::Escape));
                    return keys;
                }
                None => return keys,
            }
        }
    }
}

fn step(bytes: &[u8]) -> Step {
    match bytes {
        [] => Some((None, 0)),
        [0x1b] | [0x1b, b'[' | b'O'] => None,
        [0x1b, 0x1b, ..] => Some((Some(Key::Escape), 1)),
        [0x1b, b'[', rest @ ..] => sequence(rest),
        [0x1b, b'O', last, ..] => Some((named(&[], *last), 3)),
        // A letter with Alt is no key here; neither the letter nor Escape is meant.
        [0x1b, _, ..] => Some((None, 2)),
        [first, ..] if *first < 0x20 || *first == 0x7f => Some((control(*first), 1)),
        [first, ..] if first.is_ascii() => Some((Some(Key::Char(char::from(*first))), 1)),
        _ => letter(bytes),
    }
}

fn control(byte: u8) -> Option<Key> {
    Some(match byte {
        b'\r' | b'\n' => Key::Enter,
        b'\t' => Key::Next,
        0x08 | 0x7f => Key::Backspace,
        0x15 => Key::Clear,
        0x03 | 0x04 => Key::Interrupt,
        0x1a => Key::Suspend,
        0x0c => Key::Redraw,
        _ => return None,
    })
}

/// The rest of `ESC [`: parameters up to a last byte.
fn sequence(rest: &[u8]) -> Step {
    match rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
        None if rest.len() > LONGEST_SEQUENCE => Some((None, rest.len() + 2)),
        None => None,
        Some(place) => {
            let parameters = rest.get(..place).unwrap_or_default();
            let last = rest.get(place).copied().unwrap_or_default();
            // An Escape begins anew.
            let used = if last == 0x1b { place + 2 } else { place + 3 };
            Some((named(parameters, last), used))
        }
    }
}

fn named(parameters: &[u8], last: u8) -> Option<Key> {
    Some(match (parameters, last) {
        ([], b'A') => Key::Up,
        ([], b'B') => Key::Down,
        ([], b'C') => Key::Next,
        ([], b'D' | b'Z') => Key::Previous,
        ([], b'H') | (b"1" | b"7", b'~') => Key::Home,
        ([], b'F') | (b"4" | b"8", b'~') => Key::End,
        (b"5", b'~') => Key::PageUp,
        (b"6", b'~') => Key::PageDown,
        _ => return None,
    })
}

/// A letter of more than one byte.
fn letter(bytes: &[u8]) -> Step {
    let most = bytes.get(..bytes.len().min(4)).unwrap_or_default();
    let text = match std::str::from_utf8(most) {
        Ok(text) => text,
        Err(error) if error.valid_up_to() > 0 => {
            most.get(..error.valid_up_to()).and_then(|valid| std::str::from_utf8(valid).ok()).unwrap_or_default()
        }
        Err(error) => return error.error_len().map(|length| (None, length)),
    };
    text.chars().next().map(|letter| (Some(Key::Char(letter)).filter(|_| !letter.is_control()), letter.len_utf8()))
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
