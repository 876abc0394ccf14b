//! Which Host and Origin a request may name: a page on the internet must not reach a local gateway by
//! a name that points at loopback (DNS rebinding).

use std::net::SocketAddr;

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Uri};
use toolwarden_core::{Weakness, weak};

/// Why a request was turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("this gateway is not called by that host name; see `[gateway] allowed_hosts`")]
    Host,
    #[error("requests from that web page are not accepted")]
    Origin,
}

/// Checks the two headers against loopback and the names the config allows.
///
/// # Errors
/// A Host that is missing, given twice or not allowed; an Origin that is not allowed.
pub fn check(headers: &HeaderMap, uri: &Uri, allowed: &[String]) -> Result<(), HostError> {
    if weak::is(Weakness::Hosts) {
        return Ok(());
    }
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok(),
        (None, _) => uri.authority().map(http::uri::Authority::as_str),
        (Some(_), Some(_)) => None,
    };
    if !host.is_some_and(|host| is_allowed(host, allowed)) {
        return Err(HostError::Host);
    }
    for origin in headers.get_all(ORIGIN) {
        let rest = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")));
        if !rest.is_some_and(|host| is_allowed(host, allowed)) {
            return Err(HostError::Origin);
        }
    }
    Ok(())
}

/// The origins of pages at an address: by number and, on loopback, by name; and where they are reached besides.
#[must_use]
pub fn origins(scheme: &str, address: SocketAddr, public_url: Option<&str>) -> Vec<String> {
    let by_name = address.ip().is_loopback().then(|| format!("{scheme}://localhost:{}", address.port()));
    let urls = [Some(format!("{scheme}://{address}")), by_name, public_url.map(str::to_owned)];
    urls.iter().flatten().filter_map(|url| origin_of(url)).collect()
}

/// As browsers write it: without the port that a scheme has anyway.
fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let usual = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    Some(format!("{scheme}://{}", authority.strip_suffix(usual).unwrap_or(authority)))
}

/// Checks that a request to the control side comes from a page of its own, or from no page: every other page, also of
/// another port of this machine, belongs to somebody else.
///
/// # Errors
/// An Origin that is none of `own`, or several.
pub fn check_own(headers: &HeaderMap, own: &[String]) -> Result<(), HostError> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let is_own = match (origins.next(), origins.next()) {
        (None, _) => true,
        (Some(origin), None) => own.iter().any(|own| origin.as_bytes().eq_ignore_ascii_case(own.as_bytes())),
        (Some(_), Some(_)) => false,
    };
    if is_own || weak::is(Weakness::Hosts) { Ok(()) } else { Err(HostError::Origin) }
}

fn is_allowed(authority: &str, allowed: &[String]) -> bool {
    let Some(host) = host_of(authority) else { return false };
    let is_loopback = ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| host.eq_ignore_ascii_case(name));
    is_loopback || allowed.iter().any(|name| name.eq_ignore_ascii_case(host) || name.eq_ignore_ascii_case(authority))
}

/// The host without its port.
fn host_of(authority: &str) -> Option<&str> {
    if authority.starts_with('[') {
        let end = authority.find(']')?;
        let (host, rest) = authority.split_at_checked(end + 1)?;
        return is_port(rest).then_some(host);
    }
    match authority.split_once(':') {
        Some((host, port)) => (!host.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit())).then_some(host),
        None => (!authority.is_empty()).then_some(authority),
    }
}

fn is_port(rest: &str) -> bool {
    rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
