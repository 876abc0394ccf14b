//! Opens connections: TCP, TLS over TCP, or a Unix socket.
//!
//! TLS trusts the system's roots, or those given; it speaks 1.2 and 1.3 and checks the server's name.

use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use toolwarden_core::address::is_public;

use super::connection::Live;
use super::pool::Pool;
use super::target::{Address, Place};
use crate::upstream::UpstreamError;

/// Whom secure connections trust. Clones share their sessions.
#[derive(Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trusts these certificates only.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn trusting(roots: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(CertificateDer::from(root)).map_err(|error| error.to_string())?;
        }
        Self::over(store)
    }

    /// Trusts what the system trusts. Reads files: slow the first time, shared afterwards.
    fn system() -> Result<Self, String> {
        static SYSTEM: OnceLock<Result<Tls, String>> = OnceLock::new();
        let load = || {
            let mut store = RootCertStore::empty();
            let found = rustls_native_certs::load_native_certs();
            let (added, _) = store.add_parsable_certificates(found.certs);
            if added == 0 {
                return Err("this machine has no trusted root certificates; install `ca-certificates`".to_owned());
            }
            Self::over(store)
        };
        SYSTEM.get_or_init(load).clone()
    }

    fn over(roots: RootCertStore) -> Result<Self, String> {
        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls")
    }
}

const NOT_PUBLIC: &str = "a user's own server is reached by https, at an address of the public network";

/// Opens a connection and makes it ready for a request.
pub(super) async fn connect(place: &Place, pool: &Pool, within: Duration) -> Result<Box<Live>, UpstreamError> {
    let timeout = || UpstreamError::Timeout { place: place.shown.clone(), what: "did not accept a connection", within };
    // Boxed: a handshake is rare, and its state would make every call's future large.
    let opened = tokio::time::timeout(within, Box::pin(open(place, pool))).await;
    let stream = opened.map_err(|_| timeout())??;
    Live::over(stream, &place.shown).await
}

async fn open(place: &Place, pool: &Pool) -> Result<Stream, UpstreamError> {
    let unreachable =
        |error: io::Error| UpstreamError::Unreachable { place: place.shown.clone(), reason: error.to_string() };
    let public_only = pool.is_public_only();
    match &place.address {
        Address::Unix(_) | Address::Plain { .. } if public_only => Err(unreachable(io::Error::other(NOT_PUBLIC))),
        Address::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix).map_err(unreachable),
        Address::Plain { host, port } => open_tcp(host, *port, false).await.map(Stream::Plain).map_err(unreachable),
        Address::Secure { host, port, name } => {
            let stream = open_tcp(host, *port, public_only).await.map_err(unreachable)?;
            let refused = |reason: String| UpstreamError::Tls { place: place.shown.clone(), reason };
            secure(stream, name, pool.tls()).await.map(|stream| Stream::Secure(Box::new(stream))).map_err(refused)
        }
    }
}

async fn open_tcp(host: &str, port: u16, public_only: bool) -> io::Result<TcpStream> {
    let stream = if public_only {
        // Judged is what the name stands for now, and that very address is the one that is reached.
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port)).await?.collect();
        if found.iter().any(|address| !is_public(address.ip())) {
            return Err(io::Error::other(NOT_PUBLIC));
        }
        TcpStream::connect(found.as_slice()).await?
    } else {
        TcpStream::connect((host, port)).await?
    };
    // Head and body are written together; waiting for more would only delay them.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn secure(
    stream: TcpStream,
    name: &ServerName<'static>,
    tls: Option<&Tls>,
) -> Result<TlsStream<TcpStream>, String> {
    let tls = match tls {
        Some(tls) => tls.clone(),
        None => tokio::task::spawn_blocking(Tls::system).await.map_err(|error| error.to_string())??,
    };
    TlsConnector::from(tls.0).connect(name.clone(), stream).await.map_err(|error| error.to_string())
}

/// One open connection, whatever carries it.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Secure(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Secure(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Secure(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Secure(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
