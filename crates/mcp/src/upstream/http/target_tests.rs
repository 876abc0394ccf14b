//! URLs and headers: what they become, and what is refused.

use toolwarden_core::Secret;

use super::{Address, HttpTarget, Place, TargetError, secret_headers};

fn shown(url: &str) -> Result<(String, String, String), TargetError> {
    let place = Place::parse(url)?;
    let host = place.host.to_str().unwrap_or_default().to_owned();
    Ok((place.shown.to_string(), host, place.path.to_string()))
}

#[test]
fn urls_are_taken_apart() {
    for (url, place, host, path) in [
        ("http://localhost:3000/mcp", "localhost:3000", "localhost:3000", "/mcp"),
        ("https://example.com", "example.com:443", "example.com", "/"),
        ("https://example.com:8443/a?key=1#f", "example.com:8443", "example.com:8443", "/a?key=1"),
        ("http://[::1]:80/mcp", "[::1]:80", "[::1]", "/mcp"),
        ("unix:///run/a%20b.sock", "unix:/run/a b.sock", "localhost", "/"),
        ("unix:///run/a.sock#/mcp", "unix:/run/a.sock", "localhost", "/mcp"),
    ] {
        let expected = (place.to_owned(), host.to_owned(), path.to_owned());
        assert_eq!(shown(url), Ok(expected), "{url}");
    }
    let address = Place::parse("http://[::1]:9/").map(|place| place.address);
    assert!(matches!(address, Ok(Address::Plain { host, port: 9 }) if host == "::1"));
}

#[test]
fn urls_that_are_refused() {
    assert_eq!(shown("ftp://a/"), Err(TargetError::Scheme("ftp".to_owned())));
    assert_eq!(shown("https://user:pass@a/"), Err(TargetError::Credentials));
    assert!(matches!(shown("/mcp"), Err(TargetError::Url(_))));
    assert_eq!(shown("unix://host/path"), Err(TargetError::Path));
    assert_eq!(shown("unix:///"), Err(TargetError::Path));
}

#[test]
fn endpoints_stay_on_their_server() {
    let at = |url: &str, reference: &str| Place::parse(url)?.at(reference).map(|place| place.path.to_string());
    let base = "http://localhost:3000/a/sse?key=1";
    assert_eq!(at(base, "/messages?session=2").as_deref(), Ok("/messages?session=2"));
    assert_eq!(at(base, "messages").as_deref(), Ok("/a/messages"));
    assert_eq!(at(base, "http://localhost:3000/b").as_deref(), Ok("/b"));
    for elsewhere in ["http://localhost:3001/b", "https://localhost:3000/b", "//evil/b", "http://u@localhost:3000/b"] {
        assert_eq!(at(base, elsewhere), Err(TargetError::OtherServer), "{elsewhere}");
    }
    assert_eq!(at("unix:///run/a.sock", "/messages?session=2").as_deref(), Ok("/messages?session=2"));
    assert_eq!(at("unix:///run/a.sock", "http://evil/"), Err(TargetError::OtherServer));
}

#[test]
fn secrets_are_marked_and_never_shown() {
    let headers = vec![("Authorization".to_owned(), Secret::new("Bearer hush".to_owned()))];
    let ready = secret_headers(&headers);
    assert!(ready.as_ref().is_ok_and(|ready| ready.iter().all(|(_, value)| value.is_sensitive())));
    assert!(!format!("{ready:?}").contains("hush"));
    let target = HttpTarget { headers, ..HttpTarget::new("https://a/?key=hush") };
    assert!(!format!("{target:?}").contains("hush"), "{target:?}");
}

#[test]
fn headers_of_the_connection_cannot_be_configured() {
    let with = |name: &str, value: &str| secret_headers(&[(name.to_owned(), Secret::new(value.to_owned()))]).err();
    assert_eq!(with("Host", "a"), Some(TargetError::Reserved("Host".to_owned())));
    assert_eq!(with("transfer-encoding", "chunked"), Some(TargetError::Reserved("transfer-encoding".to_owned())));
    assert_eq!(with("a b", "a"), Some(TargetError::HeaderName("a b".to_owned())));
    assert_eq!(with("X-Key", "hush\r\nX: y"), Some(TargetError::HeaderValue("X-Key".to_owned())));
    assert_eq!(with("Cookie", "a=b"), None);
}
