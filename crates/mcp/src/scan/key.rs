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
    Decision,
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
            Self::Version | Self::Method | Self::Result | Self::InputRequests | Self::Words | Self::Decision => true,
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

/// The longest key that counts, `toolwarden/decision`, with every character written as `\uXXXX`.
const LONGEST: usize = DECISION.len() * 6;

/// Under this key the gateway says what it decided, in the `_meta` of a result or the `data` of an error.
pub const DECISION: &str = "toolwarden/decision";

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
        if self.raw.len() + bytes.len() > LONGEST {
            self.level = None;
        } else {
            self.raw.extend_from_slice(bytes);
        }
    }

    pub(super) fn end(&self) -> Option<Member> {
        let text = unescape(std::str::from_utf8(&self.raw).ok()?);
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
            (Level::Words, DECISION) => Some(Member::Decision),
            _ => None,
        }
    }
}
