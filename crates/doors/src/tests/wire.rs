//! What only shows over a real connection: TLS, threads that serve, streams that are come back for.

use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use toolwarden_mcp::headers::{LAST_EVENT, SESSION};

use super::house::{Given, House};
use super::patience::eventually;
use crate::{AnswerBody, Listener, Workers, serve, serve_request, tls};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

type Outcome = Result<(), Box<dyn Error>>;

async fn built(given: &Given) -> Result<House, Box<dyn Error>> {
    House::build(given).await.ok_or_else(|| "no gateway".into())
}

/// One request over an open connection; the whole answer as text.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, body: &str) -> String {
    let request = format!(
        "POST /mcp/notes HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut answer = Vec::new();
    // A port that speaks another language closes, sooner or later.
    let _ = stream.write_all(request.as_bytes()).await;
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn every_worker_serves() -> Outcome {
    let house = built(&Given::default()).await?;
    let listener = Listener::bind("127.0.0.1:0".parse()?).await?;
    let (address, workers) = (listener.address(), Arc::new(Workers::start(3)?));
    let (stop, stopping) = watch::channel(false);
    let (gateway, serves) = (house.gateway.clone(), workers.clone());
    let serving = tokio::spawn(async move { serve(gateway, listener, &serves, stopping).await });
    for turn in 0..6 {
        let said = exchange(TcpStream::connect(address).await?, HELLO).await;
        assert!(said.starts_with("HTTP/1.1 200") && said.contains("recorder"), "{turn}: {said}");
    }
    stop.send(true)?;
    serving.await?;
    assert!(TcpStream::connect(address).await.is_err(), "the port is closed");
    Ok(())
}

#[tokio::test]
async fn tls_is_spoken_over_the_wire_and_nothing_else() -> Outcome {
    let house = built(&Given::default()).await?;
    let directory = tempfile::tempdir()?;
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::write(&certificate, own.cert.pem())?;
    std::fs::write(&key, own.signing_key.serialize_pem())?;
    let listener = Listener::bind("127.0.0.1:0".parse()?).await?.with_tls(tls::acceptor(&certificate, &key)?);
    let (address, workers) = (listener.address(), Arc::new(Workers::start(1)?));
    let (_stop, stopping) = watch::channel(false);
    let (gateway, serves) = (house.gateway.clone(), workers.clone());
    tokio::spawn(async move { serve(gateway, listener, &serves, stopping).await });

    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(own.cert.der().to_vec()))?;
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let secure = connector.connect(ServerName::try_from("localhost")?, TcpStream::connect(address).await?).await?;
    let said = exchange(secure, HELLO).await;
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("recorder"), "{said}");

    let plain = exchange(TcpStream::connect(address).await?, HELLO).await;
    assert!(!plain.contains("HTTP/1.1"), "{plain}");
    Ok(())
}

/// A child that tells of progress three times before it answers a call.
const CHILD: &str = r#"
[auto_run]
mode = "run_everything"
[servers.child]
command = "sh"
args = ["-c", '''
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  token=$(printf %s "$line" | sed -n 's/.*"progressToken":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"walk","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
      for step in 1 2 3; do
        printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%s}}\n' "$token" "$step"
      done
      result='{"content":[{"type":"text","text":"arrived"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']
"#;

fn request(
    method: Method,
    body: &str,
    session: Option<&HeaderValue>,
    last_event: Option<&str>,
) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body.to_owned()));
    *request.method_mut() = method;
    *request.uri_mut() = http::Uri::from_static("/mcp/child");
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.extend(session.map(|session| (SESSION, session.clone())));
    headers.extend(last_event.and_then(|id| Some((LAST_EVENT, HeaderValue::try_from(id).ok()?))));
    request
}

/// Reads a stream until an event says this, or to its end.
async fn read_until(response: Response<AnswerBody>, what: &str) -> String {
    let mut body = response.into_body();
    let mut text = String::new();
    while let Some(Ok(frame)) = body.frame().await {
        text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap_or(&Bytes::new())));
        if text.contains(what) {
            break;
        }
    }
    text
}

#[tokio::test]
async fn a_client_whose_stream_broke_gets_the_rest() -> Outcome {
    let house = built(&Given { config: CHILD, ..Given::default() }).await?;
    let opened = serve_request(&house.gateway, request(Method::POST, HELLO, None, None)).await;
    let session = opened.headers().get(SESSION).cloned();
    assert!(session.is_some());
    let walk = r#"{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"walk","arguments":{},"_meta":{"progressToken":"p"}}}"#;
    let stream = serve_request(&house.gateway, request(Method::POST, walk, session.as_ref(), None)).await;
    // The connection is lost right after the first event.
    let first = read_until(stream, "\"progress\":1").await;
    let id = first.lines().find_map(|line| line.strip_prefix("id: ")).unwrap_or_default().to_owned();
    assert!(!id.is_empty() && !first.contains("arrived"), "{first}");
    let again = serve_request(&house.gateway, request(Method::GET, "", session.as_ref(), Some(&id))).await;
    let rest = read_until(again, "arrived").await;
    let seen: Vec<bool> = (1..=3).map(|step| rest.contains(&format!("\"progress\":{step}"))).collect();
    assert_eq!(seen, [false, true, true], "what was seen is not sent again: {rest}");
    assert!(rest.contains(r#""id":"w""#) && rest.contains("arrived"), "{rest}");
    let records = house.records().await;
    let outcomes = records.iter().filter(|record| record.get("status").is_some_and(|status| status == "ok"));
    assert_eq!(outcomes.count(), 1, "the call ran once and ended well: {records:?}");
    Ok(())
}

/// A child that is greeted and says nothing, and leaves the id of its process in a file.
fn silent_child(file: &std::path::Path) -> &'static str {
    let script = format!("echo $$ > {}; exec sleep 600", file.display());
    // A policy of a test lives as long as the test.
    Box::leak(format!("[servers.child]\ncommand = \"sh\"\nargs = [\"-c\", \"{script}\"]\n").into_boxed_str())
}

#[tokio::test]
async fn a_child_whose_opening_was_given_up_ends() -> Outcome {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("id");
    let house = built(&Given { config: silent_child(&file), ..Given::default() }).await?;
    let id = || std::fs::read_to_string(&file).ok().map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    let alive = || id().is_some_and(|id| std::path::Path::new("/proc").join(id).join("exe").exists());
    // A child of the session's own; one for all is opened for whoever comes next.
    let own = HELLO.replace(r#""capabilities":{}"#, r#""capabilities":{"elicitation":{}}"#);
    let opening = serve_request(&house.gateway, request(Method::POST, &own, None, None));
    tokio::select! {
        _ = opening => return Err("a child that says nothing was opened".into()),
        started = eventually(async || alive()) => assert!(started, "no child was started"),
    }
    assert!(eventually(async || !alive()).await, "its child is left behind");
    Ok(())
}
