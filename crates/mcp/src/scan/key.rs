//! Which keys of a response count, compared after their escapes are resolved.

use toolwarden_core::json::unescape;

/// A member that is reported, or that would make the response ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Member {
    Version,
    Id,
    Method,
    Result,
    Error,
    ResultType,
    IsError,
    InputRequests,
    Code,
    /// `_meta` of a result, `data` of an error: where the gateway says what it decided.
    Words,
    /// What only the gateway says.
    Own,
}

impl Member {
    pub(super) fn bit(self) -> u16 {
        1 << (self as u8)
    }

    /// Whether its value may be of the kind that starts with this byte.
    pub(super) fn may_start_with(self, byte: u8) -> bool {
        match self {
            Self::Id => matches!(byte, b'"' | b'n' | b'-' | b'0'..=b'9'),
            Self::ResultType => matches!(byte, b'"' | b'n'),
            Self::IsError => matches!(byte, b't' | b'f' | b'n'),
            Self::Code => matches!(byte, b'-' | b'0'..=b'9'),
            Self::Error => byte == b'{',
            Self::Version | Self::Method | Self::Result | Self::InputRequests | Self::Words | Self::Own => true,
        }
    }
}

/// The object a key stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Top,
    Result,
    Error,
    /// Inside of `Member::Words`.
    Words,
}

/// The longest key that counts, `inputRequests`, with every character written as `\uXXXX`.
const LONGEST: usize = 13 * 6;

/// Keys that begin like this, in the `_meta` of a result or the `data` of an error, are the gateway's own.
pub const OWN_WORDS: &str = "toolwarden/";

/// The text of a key as it arrives.
#[derive(Debug, Default)]
pub(super) struct KeyText {
    level: Option<Level>,
    raw: Vec<u8>,
}

impl KeyText {
    /// Begins a key; without a level its text does not matter.
    pub(super) fn start(&mut self, level: Option<Level>) {
        self.level = level;
        self.raw.clear();
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.level.is_none() {
            return;
        }
        let room = LONGEST - self.raw.len();
        if bytes.len() <= room {
            self.raw.extend_from_slice(bytes);
        } else if self.level == Some(Level::Words) {
            // How it begins is enough.
            self.raw.extend_from_slice(bytes.get(..room).unwrap_or_default());
        } else {
            self.level = None;
        }
    }

    pub(super) fn end(&self) -> Option<Member> {
        let text = match std::str::from_utf8(&self.raw) {
            Ok(text) => text,
            // Cut in the middle of a character.
            Err(error) => std::str::from_utf8(self.raw.get(..error.valid_up_to())?).ok()?,
        };
        let text = unescape(text);
        match (self.level?, &*text) {
            (Level::Top, "jsonrpc") => Some(Member::Version),
            (Level::Top, "id") => Some(Member::Id),
            (Level::Top, "method") => Some(Member::Method),
            (Level::Top, "result") => Some(Member::Result),
            (Level::Top, "error") => Some(Member::Error),
            (Level::Result, "resultType") => Some(Member::ResultType),
            (Level::Result, "isError") => Some(Member::IsError),
            (Level::Result, "inputRequests") => Some(Member::InputRequests),
            (Level::Error, "code") => Some(Member::Code),
            (Level::Result, "_meta") | (Level::Error, "data") => Some(Member::Words),
            (Level::Words, text) if text.starts_with(OWN_WORDS) => Some(Member::Own),
            _ => None,
        }
    }
}
