//! `traceparent` and `tracestate` of W3C Trace Context: read strictly, written in one way.

use std::fmt;

/// Longest `traceparent` of a later version that is looked at.
const LONGEST_PARENT: usize = 256;
/// What the standard asks everybody to pass on.
const LONGEST_STATE: usize = 512;
const MOST_MEMBERS: usize = 32;

/// A place in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) flags: u8,
    pub(super) state: Option<String>,
}

impl TraceContext {
    pub(super) const SAMPLED: u8 = 1;

    /// What a client says; none where it says it wrongly. A wrong state is left out.
    #[must_use]
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Self> {
        if parent.len() > LONGEST_PARENT {
            return None;
        }
        let mut parts = parent.splitn(5, '-');
        let version = hex(parts.next()?, 2)?;
        let (trace, span, flags) = (hex(parts.next()?, 32)?, hex(parts.next()?, 16)?, hex(parts.next()?, 2)?);
        // Later versions may say more behind; this one may not.
        let says_more = parts.next().is_some();
        if version == 0xff || says_more && version == 0 || trace == 0 || span == 0 {
            return None;
        }
        let state = state.filter(|state| is_state(state)).map(str::to_owned);
        // Of flags only this one has a meaning we know.
        let flags = u8::try_from(flags).ok()? & Self::SAMPLED;
        Some(Self { trace, span: u64::try_from(span).ok()?, flags, state })
    }

    pub(super) fn is_sampled(&self) -> bool {
        self.flags & Self::SAMPLED != 0
    }

    /// `tracestate`, as the client gave it.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl fmt::Display for TraceContext {
    /// As `traceparent`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, self.flags)
    }
}

/// So many digits, small letters only.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

fn is_state(state: &str) -> bool {
    let members = state.split(',').map(|member| member.trim_matches([' ', '\t']));
    let is_member = |member: &str| {
        let pair = member.split_once('=');
        member.is_empty()
            || pair.is_some_and(|(key, value)| !key.is_empty() && !value.is_empty() && !value.contains('='))
    };
    !state.is_empty()
        && state.len() <= LONGEST_STATE
        && state.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && members.clone().count() <= MOST_MEMBERS
        && members.into_iter().all(is_member)
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
