//! What the address of an MCP entrance may say behind its `?`: the mode a person chose, and nothing else (MODE-8).
//!
//! A mode narrows, so one that is meant and not understood would leave its caller with more than was asked for. No list of
//! misspellings is ever complete; therefore everything that is not exactly what is read here is refused.

use std::borrow::Cow;

use toolwarden_core::{Weakness, weak};
use toolwarden_gateway::Refusal;

/// As much of what nobody reads as is said back.
const LONGEST_SHOWN: usize = 40;

/// What an address says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Query<'a> {
    pub(crate) mode: Option<Cow<'a, str>>,
    /// The mode as the address has it.
    pub(crate) mode_pair: Option<&'a str>,
    /// The session of the oldest door, which is told to the client as part of an address.
    pub(crate) session: Option<&'a str>,
}

impl<'a> Query<'a> {
    /// Reads the query; sessions only where `names_sessions`, which are posts of the oldest door.
    ///
    /// # Errors
    /// There is anything in it but one mode, and one session where they are named.
    pub(crate) fn read(query: Option<&'a str>, names_sessions: bool) -> Result<Self, Refusal> {
        let mut said = Self::default();
        for pair in query.filter(|query| !query.is_empty()).into_iter().flat_map(|query| query.split('&')) {
            match pair.split_once('=') {
                Some(("mode", value)) if said.mode.is_none() => {
                    said.mode = Some(decoded(value).ok_or_else(|| unread(pair))?.into());
                    said.mode_pair = Some(pair);
                }
                Some(("session", id)) if names_sessions && said.session.is_none() && is_id(id) => {
                    said.session = Some(id)
                }
                _ if weak::is(Weakness::Modes) => {}
                _ => return Err(unread(pair)),
            }
        }
        Ok(said)
    }
}

/// An id as we write them; a mode that was written behind one in another way is none.
fn is_id(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn unread(pair: &str) -> Refusal {
    // What stands behind the name may be a secret that went to the wrong address.
    let name = pair.split('=').next().unwrap_or_default();
    Refusal::Query(name.get(..name.floor_char_boundary(LONGEST_SHOWN)).unwrap_or_default().to_owned())
}

/// Percent-decoding; none for what is no text.
pub(crate) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
