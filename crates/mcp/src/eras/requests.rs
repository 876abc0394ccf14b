//! What a request says of its sender: once in `initialize`, or in each request's `_meta`.

use toolwarden_core::json::{Kind, Value, unescape};

use super::is_per_hop;
use crate::compose::{object_with, quoted};
use crate::ladder::{META_CAPABILITIES, META_LOG_LEVEL, META_VERSION};
use crate::versions::Version;

const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// How a legacy client is introduced to a modern server, on each request anew. All of it raw JSON.
#[derive(Debug, Clone, Copy)]
pub struct Introduction<'a> {
    pub capabilities: &'a str,
    pub client: Option<&'a str>,
    pub log_level: Option<&'a str>,
}

/// `_meta` for a modern server, with what a legacy client put there.
#[must_use]
pub fn modern_meta(params: Option<Value<'_>>, introduction: Introduction<'_>) -> String {
    let version = quoted(Version::LATEST_MODERN.as_str());
    let mut changed = without_hops(meta_of(params));
    changed.push((META_VERSION.to_owned(), Some(version)));
    changed.push((META_CAPABILITIES.to_owned(), Some(introduction.capabilities.to_owned())));
    changed.push((META_CLIENT.to_owned(), introduction.client.map(str::to_owned)));
    changed.push((META_LOG_LEVEL.to_owned(), introduction.log_level.map(str::to_owned)));
    rebuilt(meta_of(params), &changed)
}

/// `_meta` for a legacy server; none where nothing of it is left.
#[must_use]
pub fn legacy_meta(params: Option<Value<'_>>) -> Option<String> {
    let meta = meta_of(params)?;
    let left = rebuilt(Some(meta), &without_hops(Some(meta)));
    (left != "{}").then_some(left)
}

/// What servers may ask clients for, and the forms of it that are known.
const ASKED: [(&str, &[&str]); 3] =
    [("elicitation", &["form", "url"]), ("sampling", &["context", "tools"]), ("roots", &["listChanged"])];

/// Of a client's capabilities, what servers may ask it for, written in one way only: conversations are
/// shared by it. All else has no form in the other era.
#[must_use]
pub fn asks_of_clients(capabilities: Option<Value<'_>>) -> String {
    let mut kept = Vec::new();
    for (name, forms) in ASKED {
        let offered = capabilities.and_then(|all| all.get(name)).filter(|offered| offered.kind() == Kind::Object);
        let Some(offered) = offered else { continue };
        let form = |form: &&str| match offered.get(form) {
            Some(value) if value.kind() == Kind::Object => Some(format!("\"{form}\":{{}}")),
            Some(value) if value.kind() == Kind::True => Some(format!("\"{form}\":true")),
            _ => None,
        };
        let forms: Vec<String> = forms.iter().filter_map(form).collect();
        kept.push(format!("\"{name}\":{{{}}}", forms.join(",")));
    }
    format!("{{{}}}", kept.join(","))
}

fn meta_of(params: Option<Value<'_>>) -> Option<Value<'_>> {
    params?.get("_meta").filter(|meta| meta.kind() == Kind::Object)
}

fn without_hops(meta: Option<Value<'_>>) -> Vec<(String, Option<String>)> {
    let keys = meta.into_iter().flat_map(Value::entries).map(|(key, _)| unescape(key).into_owned());
    keys.filter(|key| is_per_hop(key)).map(|key| (key, None)).collect()
}

fn rebuilt(meta: Option<Value<'_>>, changed: &[(String, Option<String>)]) -> String {
    let changed: Vec<(&str, Option<&str>)> =
        changed.iter().map(|(key, value)| (key.as_str(), value.as_deref())).collect();
    object_with(meta, &changed)
}
