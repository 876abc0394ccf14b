//! Addresses a server may ask a person to open: secure, public, nobody's credentials in them.

use std::net::IpAddr;

use toolwarden_core::address::is_public;
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
        Host::Ipv4(address) => is_public(IpAddr::V4(*address)),
        Host::Ipv6(address) => is_public(IpAddr::V6(*address)),
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
