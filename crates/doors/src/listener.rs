//! Accepting connections: one task each, with bounds on how long a client may take for its headers.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_rustls::TlsAcceptor;
use toolwarden_core::weak;
use toolwarden_gateway::Gateway;

use crate::beside::{self, Beside, is_meant};
use crate::http::serve_request;
use crate::workers::Workers;

/// How long a client may take to send its headers, and to be silent between two requests.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// How long a client may take to greet.
const TLS_TIME: Duration = Duration::from_secs(10);
const MOST_HEADERS: usize = 100;
/// What is read of a connection before somebody takes it: the whole head of a request, or the next bytes of its body. It is
/// taken before anybody is identified, by as many as there are connections.
const MOST_READ_AHEAD: usize = 32 * 1024;
const MOST_CONNECTIONS: usize = 16_384;
/// How long connections may take to go away once their time is over.
const SLACK: Duration = Duration::from_secs(1);

/// An open port.
pub struct Listener {
    tcp: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    beside: Option<Arc<dyn Beside>>,
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Listener({})", self.address)
    }
}

impl Listener {
    /// Opens a loopback port.
    ///
    /// # Errors
    /// The address is not on this machine's loopback, or is taken.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let tcp = TcpListener::bind(address).await?;
        let address = tcp.local_addr()?;
        Ok(Self { tcp, address, tls: None, beside: None })
    }

    /// The same port, speaking TLS only.
    #[must_use]
    pub fn with_tls(self, tls: TlsAcceptor) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// The same port, with the control side below `/api/`.
    #[must_use]
    pub fn with_beside(self, beside: Arc<dyn Beside>) -> Self {
        Self { beside: Some(beside), ..self }
    }

    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Serves until told to stop; then nobody new gets in, and answers on their way have their grace.
pub async fn serve(gateway: Arc<Gateway>, listener: Listener, workers: &Workers, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let Listener { tcp, tls, beside, .. } = listener;
    loop {
        let next = async { (room.clone().acquire_owned().await, tcp.accept().await) };
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = stop.changed() => break,
        };
        let Ok(place) = place else { return };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of descriptors, usually: pausing lets others end.
                tracing::warn!("a connection could not be accepted: {error}");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        // Out of this thread's hands: it is registered again where it is served.
        let Ok(stream) = stream.into_std() else { continue };
        let (gateway, stopping, tls) = (gateway.clone(), stop.clone(), tls.clone());
        let beside = beside.clone();
        workers.spawn(async move {
            let Ok(stream) = TcpStream::from_std(stream) else { return };
            match tls {
                None => converse((gateway, beside), stream, stopping).await,
                Some(tls) => match tokio::time::timeout(TLS_TIME, tls.accept(stream)).await {
                    Ok(Ok(stream)) => converse((gateway, beside), stream, stopping).await,
                    _ => tracing::debug!("a connection did not speak TLS"),
                },
            }
            drop(place);
        });
    }
    drop(tcp);
    let all = room.acquire_many(u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX));
    let _ = tokio::time::timeout(gateway.settings().grace + SLACK, all).await;
}

/// One connection, until it ends or everything does.
async fn converse(
    (gateway, beside): (Arc<Gateway>, Option<Arc<dyn Beside>>),
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    mut stopping: watch::Receiver<bool>,
) {
    let grace = gateway.settings().grace;
    let service = service_fn(move |request: Request<Incoming>| {
        let (gateway, beside) = (gateway.clone(), beside.clone());
        async move {
            Ok::<_, Infallible>(match beside {
                Some(beside) if is_meant(request.uri().path()) => beside::serve(&gateway, &*beside, request).await,
                _ => serve_request(&gateway, request).await,
            })
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_headers(weak::limit(MOST_HEADERS).min(10 * MOST_HEADERS))
        .max_buf_size(weak::limit(MOST_READ_AHEAD).min(16 * MOST_READ_AHEAD))
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!("a connection ended: {error}");
            }
        }
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(grace, connection).await;
        }
    }
}
