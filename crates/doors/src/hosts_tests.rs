//! Only loopback and configured names are served.

use http::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Uri};

use super::{HostError, check, check_own};

fn checked(pairs: &[(HeaderName, &'static str)]) -> Result<(), HostError> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(name, HeaderValue::from_static(value));
    }
    check(&headers, &Uri::from_static("/mcp"), &["tools.example.com".to_owned()])
}

#[test]
fn hosts() {
    for host in ["localhost:8665", "LOCALHOST", "127.0.0.1:1", "[::1]:8665", "[::1]", "tools.example.com:443"] {
        assert_eq!(checked(&[(HOST, host)]), Ok(()), "{host}");
    }
    for host in
        ["evil.example.com", "localhost.evil.com", "127.0.0.1.evil.com", "", ":8665", "[::1", "[::1]x", "localhost:80x"]
    {
        assert_eq!(checked(&[(HOST, host)]), Err(HostError::Host), "{host}");
    }
    assert_eq!(checked(&[]), Err(HostError::Host));
    assert_eq!(checked(&[(HOST, "localhost"), (HOST, "localhost")]), Err(HostError::Host));
}

#[test]
fn origins() {
    let from = |origin| checked(&[(HOST, "localhost:8665"), (ORIGIN, origin)]);
    for origin in ["http://localhost:6274", "https://127.0.0.1", "https://tools.example.com"] {
        assert_eq!(from(origin), Ok(()), "{origin}");
    }
    for origin in ["null", "http://evil.example.com", "file://", "chrome-extension://abc", "http://localhost@evil.com"]
    {
        assert_eq!(from(origin), Err(HostError::Origin), "{origin}");
    }
}

#[test]
fn review_3_only_pages_of_its_own_speak_to_the_control_side() {
    let own = ["http://127.0.0.1:8665".to_owned(), "https://gate.example".to_owned()];
    let from = |origins: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(ORIGIN, HeaderValue::from_static(origin));
        }
        check_own(&headers, &own)
    };
    for origins in [&[][..], &["http://127.0.0.1:8665"], &["https://gate.example"], &["https://Gate.example"]] {
        assert_eq!(from(origins), Ok(()), "{origins:?}");
    }
    for origin in [
        "null",
        "",
        "http://127.0.0.1:8666",
        "http://127.0.0.1",
        "https://127.0.0.1:8665",
        "http://localhost:8665",
        "http://[::1]:8665",
        "http://127.0.0.1:8665.evil.example",
        "http://127.0.0.1:8665/",
        "http://evil@127.0.0.1:8665",
        "http://gate.example",
        "https://gate.example:8443",
        "https://sub.gate.example",
        "file://",
    ] {
        assert_eq!(from(&[origin]), Err(HostError::Origin), "{origin}");
    }
    assert_eq!(from(&["http://127.0.0.1:8665", "http://127.0.0.1:8665"]), Err(HostError::Origin));
}

#[test]
fn origins_of_its_own() {
    let of = |scheme: &str, address: &str, public: Option<&str>| {
        address.parse().map(|address| super::origins(scheme, address, public)).unwrap_or_default()
    };
    assert_eq!(of("http", "127.0.0.1:8665", None), ["http://127.0.0.1:8665", "http://localhost:8665"]);
    assert_eq!(of("https", "[::1]:443", None), ["https://[::1]", "https://localhost"]);
    assert_eq!(
        of("http", "10.0.0.7:80", Some("https://gate.example/tw/?x")),
        ["http://10.0.0.7", "https://gate.example"]
    );
    assert_eq!(
        of("http", "10.0.0.7:443", Some("https://gate.example:8443")),
        ["http://10.0.0.7:443", "https://gate.example:8443"]
    );
}
