//! Where a fetch goes, with its host in one form however it was written.
//!
//! Case, trailing dots, percent-encoding, internationalised names and the many spellings of an address all lead to
//! the same machine, so rules and domain denies see one text: lower case, punycode, no trailing dot, IPv4 in
//! dotted decimals (also where it is written as IPv6), IPv6 compressed and in brackets.

use url::{Host, Url};

/// What is known of the address of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// The call is no fetch.
    None,
    Known(Box<Target>),
    /// No URL, or one whose host nobody can tell.
    Unreadable,
}

/// An address that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The URL with its host in that form.
    pub(crate) url: Url,
    /// None where the scheme has none, as `data:`.
    pub(crate) host: Option<String>,
}

impl Address {
    pub(crate) fn read(text: &str) -> Self {
        let Ok(mut url) = Url::parse(text) else { return Self::Unreadable };
        let Some(written) = url.host_str() else {
            return Self::Known(Box::new(Target { url, host: None }));
        };
        let host = match normal(written) {
            Some(host) => host,
            // `file:///x` has an empty host.
            None if written.is_empty() => return Self::Known(Box::new(Target { url, host: None })),
            None => return Self::Unreadable,
        };
        // A host of a scheme that nobody knows is kept as it is written; rules read `context.host`.
        let _ = url.set_host(Some(&host));
        Self::Known(Box::new(Target { url, host: Some(host) }))
    }
}

/// The one form of a host.
pub(crate) fn normal(host: &str) -> Option<String> {
    // Full stops of other scripts count as dots only after decoding, so a name is read twice.
    let once = read(host.trim_end_matches('.'))?;
    read(once.trim_end_matches('.'))
}

fn read(host: &str) -> Option<String> {
    match Host::parse(host).ok()? {
        Host::Domain(name) => Some(name.to_ascii_lowercase()),
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(match address.to_ipv4_mapped() {
            Some(address) => address.to_string(),
            None => format!("[{address}]"),
        }),
    }
}

/// Whether a denied domain covers a host: the same, or one above it.
pub(crate) fn covers(domain: &str, host: &str) -> bool {
    host == domain || host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
