//! The collector: one POST of JSON at a time, over HTTP or HTTPS, with bounds on everything it may say.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use http::{Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use toolwarden_core::Secret;
use url::Url;

/// How long one delivery may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Largest answer that is read.
const LARGEST_ANSWER: usize = 64 * 1024;
const PATH: &str = "v1/traces";

/// Why a collector cannot be used. Says nothing of its address but host and port, nothing of headers' values.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    #[error("its address cannot be used; write it as http://127.0.0.1:4318")]
    Address,
    #[error("the header `{0}` cannot be sent")]
    Header(String),
    #[error("{place} cannot be reached: {reason}")]
    Unreachable { place: String, reason: String },
    #[error("{place} answers {status}")]
    Status { place: String, status: u16 },
    #[error("{place} does not answer in time")]
    Late { place: String },
}

/// Where spans go.
#[derive(Debug)]
pub struct Collector {
    host: String,
    port: u16,
    is_secure: bool,
    path: String,
    headers: HeaderMap,
}

impl Collector {
    /// At this base address, with these headers.
    ///
    /// # Errors
    /// The address or a header cannot be used.
    pub fn new<'a>(
        address: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a Secret)>,
    ) -> Result<Self, CollectorError> {
        let url = Url::parse(address).map_err(|_| CollectorError::Address)?;
        let is_secure = url.scheme() == "https";
        let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(CollectorError::Address);
        };
        if !is_plain || !is_secure && url.scheme() != "http" {
            return Err(CollectorError::Address);
        }
        let base = url.path().trim_end_matches('/');
        let path = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}/{PATH}") };
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            let unusable = || CollectorError::Header(toolwarden_core::name::shown(name).into_owned());
            let header = HeaderName::try_from(name.as_str()).map_err(|_| unusable())?;
            let mut value = HeaderValue::from_str(value.reveal_to_upstream()).map_err(|_| unusable())?;
            value.set_sensitive(true);
            sent.append(header, value);
        }
        Ok(Self { host: host.to_owned(), port, is_secure, path, headers: sent })
    }

    fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Delivers one batch.
    pub(super) async fn deliver(&self, body: String) -> Result<(), CollectorError> {
        let delivering = tokio::time::timeout(PATIENCE, self.post(body));
        delivering.await.unwrap_or_else(|_| Err(CollectorError::Late { place: self.place() }))
    }

    async fn post(&self, body: String) -> Result<(), CollectorError> {
        let unreachable = |reason: String| CollectorError::Unreachable { place: self.place(), reason };
        let bare = self.host.trim_matches(['[', ']']);
        let stream = TcpStream::connect((bare, self.port)).await.map_err(|error| unreachable(error.to_string()))?;
        let status = if self.is_secure {
            let stream = secure(stream, bare).await.map_err(unreachable)?;
            self.exchange(stream, body).await
        } else {
            self.exchange(stream, body).await
        };
        match status.map_err(unreachable)? {
            200..=299 => Ok(()),
            status => Err(CollectorError::Status { place: self.place(), status }),
        }
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        body: String,
    ) -> Result<u16, String> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        let connection = Driving(tokio::spawn(async move { drop(connection.await) }));
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| "its path cannot be used".to_owned())?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::try_from(self.place()).map_err(|error| error.to_string())?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolwarden/", env!("CARGO_PKG_VERSION"))));
        headers.extend(self.headers.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        // What it says of it is of no use; it is read so that the connection ends well.
        drop(Limited::new(response.into_body(), LARGEST_ANSWER).collect().await);
        drop(connection);
        Ok(status)
    }
}

/// A connection that ends with whoever uses it.
struct Driving(tokio::task::JoinHandle<()>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// TLS with the roots the system trusts.
async fn secure(stream: TcpStream, host: &str) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let roots = || {
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        store
    };
    let roots = tokio::task::spawn_blocking(roots).await.map_err(|error| error.to_string())?;
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| error.to_string())
}
