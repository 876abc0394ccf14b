//! Posts to real listeners: what arrives, what is given back, what is refused or cut off.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use toolwarden_core::Secret;

use super::{Bounds, NetError, Place};

type Outcome = Result<(), Box<dyn Error>>;

const BOUNDS: Bounds = Bounds { patience: Duration::from_secs(20), largest_answer: 1024 };

/// Says this to whoever comes, and gives what the first one said.
async fn says(answer: &str) -> Result<(String, tokio::task::JoinHandle<String>), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let answer = answer.to_owned();
    let heard = tokio::spawn(async move {
        let Ok((mut stream, _)) = listener.accept().await else { return String::new() };
        let mut heard = Vec::new();
        let mut piece = [0; 4096];
        while !heard.windows(4).any(|end| end == b"\r\n\r\n") || !heard.ends_with(b"}") {
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => break,
                Ok(count) => heard.extend(piece.iter().take(count)),
            }
        }
        let _ = stream.write_all(answer.as_bytes()).await;
        if answer.is_empty() {
            std::future::pending::<()>().await;
        }
        String::from_utf8_lossy(&heard).into_owned()
    });
    Ok((address, heard))
}

fn named(name: &str, value: &str) -> BTreeMap<String, Secret> {
    BTreeMap::from([(name.to_owned(), Secret::new(value.to_owned()))])
}

#[tokio::test]
async fn a_post_arrives_whole_and_its_answer_is_given_back() -> Outcome {
    let (address, heard) =
        says("HTTP/1.1 201 Created\r\ncontent-type: Application/JSON; charset=utf-8\r\ncontent-length: 2\r\n\r\nok")
            .await?;
    let place = Place::new(&format!("http://{address}/hook/a?b=c"), &named("authorization", "Bearer s3cret"))?;
    let answered = place.post_json("{\"a\":1}", &[("x-mark", "m")], BOUNDS).await?;
    assert_eq!((answered.status, &*answered.body, answered.is_json), (201, b"ok".as_slice(), true));
    let heard = heard.await?;
    for wanted in ["POST /hook/a?b=c HTTP/1.1", "authorization: Bearer s3cret", "x-mark: m", "application/json"] {
        assert!(heard.contains(wanted), "{wanted}: {heard}");
    }
    assert!(heard.ends_with("{\"a\":1}"), "{heard}");
    Ok(())
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_nobody_goes_there() -> Outcome {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await?;
    let there = elsewhere.local_addr()?;
    let (address, _heard) =
        says(&format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{there}/\r\ncontent-length: 0\r\n\r\n"))
            .await?;
    let place = Place::new(&format!("http://{address}/"), &BTreeMap::new())?;
    let answered = place.post_json("{}", &[], BOUNDS).await?;
    assert_eq!((answered.status, answered.is_json), (307, false));
    let came = tokio::time::timeout(Duration::from_millis(200), elsewhere.accept()).await;
    assert!(came.is_err(), "somebody went where the redirect points");
    Ok(())
}

#[tokio::test]
async fn answers_that_are_too_long_or_too_late_are_none() -> Outcome {
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 4000\r\n\r\n{}", "x".repeat(4000));
    let (address, _heard) = says(&long).await?;
    let place = Place::new(&format!("http://{address}/s3cret"), &BTreeMap::new())?;
    let refused = place.post_json("{}", &[], BOUNDS).await.err();
    assert_eq!(refused, Some(NetError::TooLong { place: address, most: 1024 }));

    let (address, silent) = says("").await?;
    let place = Place::new(&format!("http://{address}/s3cret"), &BTreeMap::new())?;
    let brief = Bounds { patience: Duration::from_millis(100), ..BOUNDS };
    let refused = place.post_json("{}", &[], brief).await.err();
    assert_eq!(refused, Some(NetError::Late { place: address }));
    silent.abort();
    Ok(())
}

#[tokio::test]
async fn whoever_is_not_there_or_has_no_trusted_name_is_named_by_host_and_port() -> Outcome {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    drop(listener);
    let place = Place::new(&format!("http://{address}/s3cret?key=s3cret"), &BTreeMap::new())?;
    let refused = place.post_json("{}", &[], BOUNDS).await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains(&address.to_string()) && !refused.contains("s3cret"), "{refused}");

    // A certificate that nobody trusts.
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let key = tokio_rustls::rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let provider = std::sync::Arc::new(tokio_rustls::rustls::crypto::aws_lc_rs::default_provider());
    let config = tokio_rustls::rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let said = tokio::spawn(async move {
        let (stream, _) = listener.accept().await?;
        let mut stream = acceptor.accept(stream).await?;
        let mut said = Vec::new();
        stream.read_to_end(&mut said).await?;
        std::io::Result::Ok(said)
    });
    let place = Place::new(&format!("https://{address}/s3cret"), &BTreeMap::new())?;
    assert!(place.is_secure());
    let refused = place.post_json("{}", &[], BOUNDS).await.err();
    assert!(matches!(refused, Some(NetError::Unreachable { .. })), "{refused:?}");
    assert!(!matches!(said.await?, Ok(said) if !said.is_empty()), "something was said to a stranger");
    Ok(())
}

#[test]
fn what_is_near_is_told_by_its_name() {
    for (address, is_near) in [
        ("http://127.0.0.1:1/a", true),
        ("http://127.9.9.9", true),
        ("http://[::1]:1", true),
        ("http://localhost:1", true),
        ("http://LOCALHOST", true),
        ("http://localhost.evil.example", false),
        ("http://127.0.0.1.evil.example", false),
        ("http://10.0.0.1", false),
        ("http://[::ffff:10.0.0.1]", false),
        ("http://0.0.0.0", false),
        ("https://example.com", false),
    ] {
        let place = Place::new(address, &BTreeMap::new()).map(|place| place.is_loopback());
        assert_eq!(place, Ok(is_near), "{address}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_without_being_repeated() {
    let none = BTreeMap::new();
    for address in ["nothing", "ftp://h", "http://user:p4ssword@h", "unix:/x", "file:///p4ssword"] {
        let refused = Place::new(address, &none).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!refused.is_empty() && !refused.contains("p4ssword"), "{address}: {refused}");
    }
    let refused = Place::new("http://h", &named("a header", "p4ssword")).err();
    assert_eq!(refused, Some(NetError::Header("a header".to_owned())));
    assert!(Place::new("http://h", &named("a", "p4ssword\r\nb: c")).is_err());
    let shown = format!("{:?}", Place::new("https://h/p4ssword?p4ssword", &named("a", "p4ssword")));
    assert!(shown.contains("h:443") && !shown.contains("p4ssword"), "{shown}");
}
