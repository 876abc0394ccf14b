//! Which addresses of the network are everybody's: not this machine's, its neighbours', or made for something special.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one of the public network.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
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
    // Also with `ffff` one place further left than where it is another dress.
    let is_old_form = segments.iter().take(4).all(|segment| *segment == 0);
    !(address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || is_translated
        || is_old_form
        || first & 0xfe00 == 0xfc00
        || first & 0xff80 == 0xfe80
        || first == 0x2002
        || (first == 0x2001 && second == 0))
}
