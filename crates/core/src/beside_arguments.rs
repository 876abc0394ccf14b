//! Members of a tool call beside its name and its arguments.
//!
//! They reach the server and are part of the call's digest (REVIEW-5), so limits and narrowed entries count them, and a
//! person who answers the call is shown them.

use crate::digest::LEFT_OUT_OF_META;
use crate::json::{Kind, Value, depth};

/// Members of params that are shown or counted elsewhere, or belong to the exchange; with their quotes.
const ELSEWHERE: [&str; 4] = ["\"name\"", "\"arguments\"", "\"inputResponses\"", "\"requestState\""];
const META: &str = "\"_meta\"";

/// One such member.
#[derive(Debug, Clone, Copy)]
pub struct MemberBeside<'a> {
    /// Whether it is a member of `_meta` rather than of params.
    pub is_in_meta: bool,
    /// As it was sent, with its quotes.
    pub key: &'a str,
    pub value: Value<'a>,
}

impl MemberBeside<'_> {
    /// Bytes of the key and the value.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.key.len() + self.value.raw().len()
    }

    /// How deep the value nests; a scalar has depth 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        depth(self.value)
    }
}

/// The members of a tool call's params beside its name and arguments. Members of `_meta` that the digest leaves out are
/// not among them: their form is bounded (`mcp::fitting_meta`).
#[must_use]
pub fn beside_arguments(params: Value<'_>) -> Vec<MemberBeside<'_>> {
    let mut found = Vec::new();
    for (key, value) in params.entries().filter(|(key, _)| !ELSEWHERE.contains(key)) {
        if key == META && value.kind() == Kind::Object {
            let own = value.entries().filter(|(key, _)| !LEFT_OUT_OF_META.contains(key));
            found.extend(own.map(|(key, value)| MemberBeside { is_in_meta: true, key, value }));
        } else {
            found.push(MemberBeside { is_in_meta: false, key, value });
        }
    }
    found
}
