//! Addresses to listen on, which are numbers: a name may be of several machines.

use std::net::SocketAddr;

/// What people mean who write something else.
#[must_use]
pub fn numeric(written: &str) -> String {
    let port = written.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
    format!("127.0.0.1:{}", port.unwrap_or(8665))
}

pub(crate) fn parse(written: &str) -> Result<SocketAddr, String> {
    written.parse().map_err(|_| format!("it is no address of numbers; write it as {}", numeric(written)))
}

#[cfg(test)]
#[test]
fn a_name_becomes_the_address_of_this_machine() {
    for (written, meant) in [
        ("localhost:18799", "127.0.0.1:18799"),
        ("9000", "127.0.0.1:9000"),
        ("localhost", "127.0.0.1:8665"),
        ("x:99999", "127.0.0.1:8665"),
    ] {
        assert_eq!(numeric(written), meant);
        assert!(parse(written).is_err_and(|said| said.ends_with(meant)), "{written}");
    }
    assert!(parse("[::1]:80").is_ok());
}
