//! Names of hosts and the address a gateway is reached at: what no request could ever name is refused at start.

use toolwarden_core::name;

use crate::report::Report;
use crate::tree::{Node, Place};

/// `public_url`: links and origins of pages are made from it.
pub(super) fn public_url(report: &mut Report, node: &Node) -> Option<String> {
    let url = report.text("public_url", node)?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let authority = rest.and_then(|rest| rest.split('/').next());
    let is_whole = authority.is_some_and(is_authority) && !url.contains(|letter: char| letter.is_whitespace());
    if !is_whole || url.contains(['?', '#']) {
        let message = format!("`public_url` is no address that a browser could open: `{}`", name::shown(&url));
        report.error(node.place, "bad_address", message);
        report.help("write `https://HOST`, or `http://HOST:PORT`, with a path where there is one");
        return None;
    }
    Some(url)
}

/// `allowed_hosts`: compared with the Host of requests as it is written, so that addresses and patterns match nothing.
pub(super) fn allowed_hosts(report: &mut Report, node: &Node) -> Vec<String> {
    let hosts = report.texts("allowed_hosts", node).unwrap_or_default();
    for host in &hosts {
        if !is_authority(&host.value) {
            let place = Place { line: host.origin.line, column: host.origin.column };
            let message = format!("`{}` in `allowed_hosts` is no name of a host", name::shown(&host.value));
            report.error(place, "bad_address", message);
            report.help("write `HOST` or `HOST:PORT`, as requests name it: no address, no pattern");
        }
    }
    hosts.into_iter().map(|host| host.value).collect()
}

/// `HOST` or `HOST:PORT`, as the header says it.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, "")) => (address, None),
        Some((address, rest)) => match rest.strip_prefix(':') {
            Some(port) => (address, Some(port)),
            None => return false,
        },
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_named = match text.starts_with('[') {
        true => host.parse::<std::net::Ipv6Addr>().is_ok(),
        false => !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)),
    };
    is_named && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

#[cfg(test)]
#[test]
fn a_host_is_written_as_requests_name_it() {
    for good in ["box", "tools.example:8443", "10.0.0.7", "[::1]:8665", "[fe80::1]"] {
        assert!(is_authority(good), "{good}");
    }
    for bad in ["", ":80", "http://x", "*.example", "box/x", "a b", "::1", "[::1", "[box]", "box:0", "box:x", "[::1]8"]
    {
        assert!(!is_authority(bad), "{bad}");
    }
}
