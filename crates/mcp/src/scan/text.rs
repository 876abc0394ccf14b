//! Strings and their encoding: long runs are passed over with vector instructions, escapes byte by byte.

use memchr::memchr2;

use super::{Role, ScanFault, Scanner, State};

impl Scanner {
    /// Passes over a string up to its end, an escape or the end of the chunk.
    pub(super) fn text(&mut self, role: Role, rest: &mut &[u8]) -> Result<(), ScanFault> {
        let (run, after) = rest.split_at(plain_length(rest)?);
        self.keep_text(role, run)?;
        let Some((byte, after)) = after.split_first() else {
            *rest = after;
            return Ok(());
        };
        *rest = after;
        match (*byte, role) {
            (0..0x20, _) => Err(ScanFault::Control),
            (b'\\', _) => {
                self.state = State::Escape(role);
                self.keep_text(role, b"\\")
            }
            (_, Role::Key) => self.end_key(),
            (_, Role::Value) => {
                self.keep(b"\"")?;
                self.end_scalar()
            }
        }
    }

    pub(super) fn escape(&mut self, role: Role, byte: u8) -> Result<(), ScanFault> {
        self.state = match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::Text(role),
            b'u' => State::Unicode(role, 4),
            _ => return Err(ScanFault::Escape),
        };
        self.keep_text(role, &[byte])
    }

    pub(super) fn unicode(&mut self, role: Role, left: u8, byte: u8) -> Result<(), ScanFault> {
        if !byte.is_ascii_hexdigit() {
            return Err(ScanFault::Escape);
        }
        self.state = if left > 1 { State::Unicode(role, left - 1) } else { State::Text(role) };
        self.keep_text(role, &[byte])
    }

    fn keep_text(&mut self, role: Role, bytes: &[u8]) -> Result<(), ScanFault> {
        match role {
            Role::Key => {
                self.key.push(bytes);
                Ok(())
            }
            Role::Value => self.keep(bytes),
        }
    }
}

/// How many bytes of a string come before its end, an escape or a control character. Most strings are short, and for
/// them a call into the vector search costs more than looking at a few bytes.
fn plain_length(rest: &[u8]) -> Result<usize, ScanFault> {
    let near = rest.get(..NEAR).unwrap_or(rest);
    if let Some(stop) = near.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        return Ok(stop);
    }
    let far = rest.get(NEAR..).unwrap_or_default();
    let run = far.get(..memchr2(b'"', b'\\', far).unwrap_or(far.len())).unwrap_or_default();
    // Without a branch inside, the compiler looks at many bytes at once.
    if run.iter().fold(false, |found, byte| found | (*byte < 0x20)) {
        return Err(ScanFault::Control);
    }
    Ok(near.len() + run.len())
}

const NEAR: usize = 16;

/// Checks that chunks cut anywhere are UTF-8 together.
#[derive(Debug, Default)]
pub(super) struct Utf8 {
    /// A character cut by the end of the last chunk: at most three bytes.
    pending: [u8; 4],
    length: usize,
}

impl Utf8 {
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<(), ScanFault> {
        let mut rest = chunk;
        while self.length > 0 {
            let Some((byte, after)) = rest.split_first() else { return Ok(()) };
            rest = after;
            if let Some(place) = self.pending.get_mut(self.length) {
                *place = *byte;
            }
            self.length += 1;
            match std::str::from_utf8(self.pending.get(..self.length).unwrap_or_default()) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(ScanFault::Encoding),
            }
        }
        match std::str::from_utf8(rest) {
            Ok(_) => Ok(()),
            Err(error) if error.error_len().is_none() => {
                let tail = rest.get(error.valid_up_to()..).unwrap_or_default();
                for (place, byte) in self.pending.iter_mut().zip(tail) {
                    *place = *byte;
                }
                self.length = tail.len();
                Ok(())
            }
            Err(_) => Err(ScanFault::Encoding),
        }
    }
}
