//! One question over the control socket: HTTP on a Unix stream.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use toolwarden_control::{Fault, Kind, Operation};

/// Verifying a large record takes a while.
const PATIENCE: Duration = Duration::from_secs(600);

/// A stream to a running server; none where nobody listens.
pub async fn connect(socket: &Path) -> Result<Option<UnixStream>> {
    match UnixStream::connect(socket).await {
        Ok(stream) => {
            // Root may speak to anybody's server; everybody else only to their own.
            let (own, peer) = (rustix::process::geteuid().as_raw(), stream.peer_cred()?.uid());
            if own != 0 && peer != own {
                return Err(anyhow!("the server at {} belongs to user {peer}, not to you", socket.display()));
            }
            Ok(Some(stream))
        }
        // No socket, one left behind, or a path no server could have listened at either.
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::InvalidInput) =>
        {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("the control socket {} cannot be used", socket.display())),
    }
}

/// Asks and waits for the outcome, or for the server's reason why there is none.
pub async fn ask<O: Operation>(
    stream: UnixStream,
    request: &O::Request,
    socket: &Path,
) -> Result<Result<O::Outcome, Fault>> {
    let silent = || format!("the server at {} does not answer; see its log, or stop it", socket.display());
    let exchange = tokio::time::timeout(PATIENCE, exchange(stream, compose::<O>(request)?));
    let (is_done, body) = exchange.await.with_context(silent)?.with_context(silent)?;
    let unreadable = || format!("the server at {} answers in another way; is it of another version?", socket.display());
    if is_done {
        return Ok(Ok(serde_json::from_slice(&body).with_context(unreadable)?));
    }
    let failed: Failed = serde_json::from_slice(&body).with_context(unreadable)?;
    Ok(Err(failed.error))
}

#[derive(Deserialize)]
struct Failed {
    error: Fault,
}

async fn exchange(stream: UnixStream, request: Request<Full<Bytes>>) -> Result<(bool, Bytes)> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let connection = tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    let is_done = response.status().is_success();
    let body = response.into_body().collect().await?.to_bytes();
    connection.abort();
    Ok((is_done, body))
}

fn compose<O: Operation>(request: &O::Request) -> Result<Request<Full<Bytes>>> {
    let builder = Request::builder().header(header::HOST, "toolwarden");
    Ok(match O::KIND {
        Kind::Read => {
            let uri = format!("{}?{}", O::PATH, query(request)?);
            builder.method(Method::GET).uri(uri).body(Full::default())?
        }
        Kind::Post => {
            let body = serde_json::to_vec(request).map_err(|error| anyhow!("this cannot be sent: {error}"))?;
            builder.method(Method::POST).uri(O::PATH).body(Full::new(Bytes::from(body)))?
        }
    })
}

/// A flat request as a query string; what it does not say is left out.
fn query(request: &impl Serialize) -> Result<String> {
    let value = serde_json::to_value(request)?;
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in value.as_object().into_iter().flatten() {
        let text = match value {
            serde_json::Value::Null => continue,
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        pairs.append_pair(name, &text);
    }
    Ok(pairs.finish())
}
