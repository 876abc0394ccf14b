//! What a modern HTTP request must carry, rung by rung; the first failure wins.
//!
//! Takes headers and a parsed request; gives what the request claims. The body is the truth, headers
//! only mirror it, so every mirror is compared.

use http::{HeaderMap, HeaderName};
use toolwarden_core::json::{Kind, Part, Value};
use toolwarden_core::{Weakness, weak};

use crate::headers::{self, Single};
use crate::message::Request;
use crate::versions::{Era, Version};

pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The extension that tasks are part of in the modern era.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The request that listens, in everything it hears.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// What is wrong with a modern request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rung {
    #[error("{0}")]
    Meta(&'static str),
    #[error("{0}")]
    Header(String),
    #[error("protocol version `{0}` is not served here")]
    Version(String),
}

/// What a modern request says of itself.
#[derive(Debug, Clone)]
pub struct Claims {
    pub version: Version,
    /// The client's capabilities on this request.
    pub capabilities: Part,
}

/// The version a body claims; its presence makes a request modern.
#[must_use]
pub fn claimed_version(params: Option<&Part>) -> Option<Value<'_>> {
    params?.value().get("_meta")?.get(META_VERSION)
}

/// The era of an HTTP POST, before anything else is known of it.
#[must_use]
pub fn era_of(headers: &HeaderMap, params: Option<&Part>) -> Era {
    if claimed_version(params).is_some() {
        return Era::Modern;
    }
    match headers::single(headers, &headers::VERSION) {
        Single::Absent => Era::Legacy,
        Single::One(text) => Version::parse(text).map_or(Era::Legacy, Version::era),
        // Two versions: the modern ladder has the words for it.
        Single::Unusable => Era::Modern,
    }
}

/// Checks `_meta`, as every transport demands.
///
/// # Errors
/// `_meta` or one of its required members is missing or of a wrong type, or the version is not served.
pub fn check_meta(params: Option<&Part>) -> Result<Claims, Rung> {
    let meta = params.and_then(|params| params.member("_meta"));
    let Some(meta) = meta.filter(|meta| meta.value().kind() == Kind::Object) else {
        return Err(Rung::Meta("`params._meta` is missing: a 2026-07-28 request carries it"));
    };
    let version = meta.value().get(META_VERSION).and_then(|value| value.as_str());
    let Some(version) = version else {
        return Err(Rung::Meta("`_meta[\"io.modelcontextprotocol/protocolVersion\"]` must be a string"));
    };
    let capabilities = meta.member(META_CAPABILITIES);
    let Some(capabilities) = capabilities.filter(|value| value.value().kind() == Kind::Object) else {
        return Err(Rung::Meta("`_meta[\"io.modelcontextprotocol/clientCapabilities\"]` must be an object"));
    };
    let served = Version::parse(&version).filter(|version| version.era() == Era::Modern);
    match served.or(weak::is(Weakness::Ladder).then_some(Version::LATEST_MODERN)) {
        Some(version) => Ok(Claims { version, capabilities }),
        None => Err(Rung::Version(version.into_owned())),
    }
}

/// Checks a modern request that came over HTTP.
///
/// # Errors
/// The first rung that fails.
pub fn check(headers: &HeaderMap, request: &Request) -> Result<Claims, Rung> {
    if weak::is(Weakness::Ladder) {
        return check_meta(request.params.as_ref());
    }
    no_duplicates(headers)?;
    let claims = match check_meta(request.params.as_ref()) {
        // The mirror comes before the verdict on the version.
        Err(Rung::Version(version)) => {
            mirror(headers, &headers::VERSION, &version)?;
            return Err(Rung::Version(version));
        }
        other => other?,
    };
    mirror(headers, &headers::VERSION, claims.version.as_str())?;
    mirror(headers, &headers::METHOD, &request.method)?;
    if let Some(key) = named_by(&request.method) {
        let params = request.params.as_ref().map(Part::value);
        let name = params.and_then(|params| params.get(key)).and_then(|name| name.as_str());
        mirror_name(headers, name.as_deref())?;
    }
    Ok(claims)
}

/// The member of params that `Mcp-Name` mirrors.
#[must_use]
pub fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

fn no_duplicates(headers: &HeaderMap) -> Result<(), Rung> {
    for name in headers.keys() {
        let mirrors = [headers::VERSION, headers::METHOD, headers::NAME, headers::SESSION].contains(name)
            || name.as_str().starts_with(headers::PARAMETER_PREFIX);
        if mirrors && headers::single(headers, name) == Single::Unusable {
            return Err(Rung::Header(format!("header `{name}` stands there twice, or is not plain text")));
        }
    }
    Ok(())
}

fn mirror(headers: &HeaderMap, name: &HeaderName, body: &str) -> Result<(), Rung> {
    match headers::single(headers, name) {
        Single::One(text) if text == body => Ok(()),
        Single::Absent => Err(Rung::Header(format!("header `{name}` is missing; the body says `{body}`"))),
        Single::One(text) => Err(Rung::Header(format!("header `{name}` says `{text}`, the body says `{body}`"))),
        Single::Unusable => Err(Rung::Header(format!("header `{name}` stands there twice, or is not plain text"))),
    }
}

fn mirror_name(headers: &HeaderMap, body: Option<&str>) -> Result<(), Rung> {
    // A body without the name is refused later, by whoever needs it.
    let Some(body) = body else { return Ok(()) };
    match headers::single(headers, &headers::NAME) {
        Single::One(text) if headers::decode(text).is_some_and(|name| name == body) => Ok(()),
        Single::Absent => Err(Rung::Header("header `mcp-name` is missing".to_owned())),
        Single::One(_) | Single::Unusable => {
            Err(Rung::Header("header `mcp-name` does not say what the body says".to_owned()))
        }
    }
}

#[cfg(test)]
#[path = "ladder_tests.rs"]
mod tests;
