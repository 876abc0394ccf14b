//! Addresses a server may ask a person to open: secure, public, nobody's credentials in them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use toolwarden_core::name::is_deceptive;
use toolwarden_core::{Weakness, weak};
use url::{Host, Url};

/// The host of an address that may be shown; none where it may not.
pub(super) fn public_host(address: &str, own: &[String]) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let has_credentials = !url.username().is_empty() || url.password().is_some();
    if weak::is(Weakness::Questions) {
        return url.host_str().map(str::to_owned);
    }
    // What programs read in different ways: a browser takes `\` for `/` and leaves line breaks out.
    let is_odd = |character: char| character == '\\' || character.is_whitespace() || is_deceptive(character);
    if url.scheme() != "https" || has_credentials || address.contains(is_odd) {
        return None;
    }
    let host = url.host()?;
    let is_public = match &host {
        Host::Domain(name) => is_public_name(name.trim_end_matches('.')),
        Host::Ipv4(address) => is_public_v4(*address),
        Host::Ipv6(address) => is_public_v6(*address),
    };
    let host = plain(&host);
    // At every port: what else runs there is the gateway's neighbour, and not a server's to send people to.
    let is_own = own.iter().any(|own| own_host(own).is_some_and(|own| own == host));
    (is_public && !is_own).then(|| url.host_str().map(str::to_owned)).flatten()
}

/// The host of a name this gateway is called by, as a config may write it: with a port, in brackets, as an
/// address of a page.
fn own_host(own: &str) -> Option<String> {
    if let Ok(address) = own.parse::<IpAddr>() {
        return Some(address.to_canonical().to_string());
    }
    let address = if own.contains("://") { own.to_owned() } else { format!("https://{own}") };
    Url::parse(&address).ok()?.host().map(|host| plain(&host))
}

/// One way to write a host.
fn plain(host: &Host<&str>) -> String {
    match host {
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical().to_string(),
    }
}

fn is_public_name(name: &str) -> bool {
    const PRIVATE: [&str; 8] = ["localhost", "local", "internal", "intranet", "lan", "home", "corp", "home.arpa"];
    let is_private = PRIVATE.iter().any(|end| name == *end || name.ends_with(&format!(".{end}")));
    name.contains('.') && !is_private
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    // Shared addresses of carriers, benchmarks, protocol assignments.
    let is_special =
        matches!((first, second, third), (100, 64..=127, _) | (198, 18 | 19, _) | (192, 0, 0) | (240.., ..));
    !(address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_broadcast()
        || address.is_documentation()
        || address.is_multicast()
        || first == 0
        || is_special)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    // The same address in another dress.
    if let IpAddr::V4(inner) = IpAddr::V6(address).to_canonical() {
        return is_public_v4(inner);
    }
    let segments = address.segments();
    let [first, second, ..] = segments;
    let is_translated = first == 0x64 && second == 0xff9b;
    let is_old_form = segments.iter().take(6).all(|segment| *segment == 0);
    !(address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || is_translated
        || is_old_form
        || first & 0xfe00 == 0xfc00
        || first & 0xffc0 == 0xfe80
        || first == 0x2002
        || (first == 0x2001 && second == 0))
}
