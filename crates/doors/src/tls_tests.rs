//! Files that fit are used, others are refused in words.

use super::acceptor;

#[test]
fn only_a_certificate_with_its_key_is_used() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let (one, other) = (rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?, rcgen::KeyPair::generate()?);
    let write = |name: &str, text: String| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).map(|()| path)
    };
    let certificate = write("cert.pem", one.cert.pem())?;
    let key = write("key.pem", one.signing_key.serialize_pem())?;
    let foreign = write("foreign.pem", other.serialize_pem())?;
    let nonsense = write("nonsense.pem", "nothing".to_owned())?;
    assert!(acceptor(&certificate, &key).is_ok());
    let said = |outcome: Result<_, super::TlsError>| outcome.map(|_| ()).map_err(|error| error.to_string());
    assert!(said(acceptor(&certificate, &foreign)).is_err_and(|text| text.contains("do not fit")));
    assert!(said(acceptor(&nonsense, &key)).is_err_and(|text| text.contains("no certificate")));
    assert!(said(acceptor(&certificate, &nonsense)).is_err_and(|text| text.contains("private key")));
    assert!(said(acceptor(&certificate, &directory.path().join("missing"))).is_err());
    Ok(())
}
