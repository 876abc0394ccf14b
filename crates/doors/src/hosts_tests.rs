//! Only loopback and configured names are served.

use http::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Uri};

use super::{HostError, check};

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
