//! A place that is posted to: its address, the headers it wants, and one exchange with it.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
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
use toolwarden_core::name::shown;
use url::Url;

/// Why something was not said or answered. Tells nothing of an address but host and port, nothing of headers' values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    #[error("its address cannot be used; write it as https://host/path, without user and password")]
    Address,
    #[error("the header `{0}` cannot be sent")]
    Header(String),
    #[error("{place} cannot be reached: {reason}")]
    Unreachable { place: String, reason: String },
    #[error("{place} does not answer in time")]
    Late { place: String },
    #[error("{place} answers more than {most} bytes")]
    TooLong { place: String, most: usize },
}

/// How long one exchange may take, and how much of an answer is read.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub patience: Duration,
    pub largest_answer: usize,
}

/// What was answered: a redirect as well.
#[derive(Debug, Clone)]
pub struct Answered {
    pub status: u16,
    /// It says of itself that it is JSON.
    pub is_json: bool,
    pub body: Bytes,
}

/// Where something is posted to.
pub struct Place {
    host: String,
    port: u16,
    is_secure: bool,
    /// With what is asked there: either may be a secret.
    path: String,
    headers: HeaderMap,
}

impl fmt::Debug for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Place").field(&self.name()).finish()
    }
}

impl Place {
    /// At this address, with these headers at every post.
    ///
    /// # Errors
    /// The address or a header cannot be used.
    pub fn new<'a>(
        address: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a Secret)>,
    ) -> Result<Self, NetError> {
        let url = Url::parse(address).map_err(|_| NetError::Address)?;
        let is_secure = url.scheme() == "https";
        let is_plain = url.username().is_empty() && url.password().is_none();
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(NetError::Address);
        };
        if !is_plain || !is_secure && url.scheme() != "http" {
            return Err(NetError::Address);
        }
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.append(header(name)?, sensitive(name, value)?);
        }
        Ok(Self { host: host.to_owned(), port, is_secure, path, headers: sent })
    }

    /// The address as it may be told: host and port.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Whether what is sent can be read on the way.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Whether it is this machine, as far as its name says.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let bare = self.host.trim_matches(['[', ']']);
        bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Posts JSON, once, with headers of this post alone.
    ///
    /// # Errors
    /// Nothing was answered within the bounds. It may have arrived all the same.
    pub async fn post_json(
        &self,
        body: impl Into<Bytes>,
        besides: &[(&str, &str)],
        bounds: Bounds,
    ) -> Result<Answered, NetError> {
        let mut request = Request::new(Full::new(body.into()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.parse().map_err(|_| NetError::Address)?;
        let headers = request.headers_mut();
        headers.insert(HOST, HeaderValue::try_from(self.name()).map_err(|_| NetError::Address)?);
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("toolwarden/", env!("CARGO_PKG_VERSION"))));
        headers.extend(self.headers.clone());
        for (name, value) in besides {
            let unusable = |_| NetError::Header(shown(name).into_owned());
            headers.insert(header(name)?, HeaderValue::from_str(value).map_err(unusable)?);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let exchanging = tokio::time::timeout(bounds.patience, self.exchange(request, bounds.largest_answer));
        exchanging.await.unwrap_or_else(|_| Err(NetError::Late { place: self.name() }))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>, most: usize) -> Result<Answered, NetError> {
        let bare = self.host.trim_matches(['[', ']']);
        let stream =
            TcpStream::connect((bare, self.port)).await.map_err(|error| self.unreachable(error.to_string()))?;
        if !self.is_secure {
            return self.over(stream, request, most).await;
        }
        let stream = secure(stream, bare).await.map_err(|reason| self.unreachable(reason))?;
        self.over(stream, request, most).await
    }

    async fn over(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        request: Request<Full<Bytes>>,
        most: usize,
    ) -> Result<Answered, NetError> {
        let unreachable = |error: hyper::Error| self.unreachable(error.to_string());
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(unreachable)?;
        let _driving = Driving(tokio::spawn(async move { drop(connection.await) }));
        let response = sender.send_request(request).await.map_err(unreachable)?;
        let status = response.status().as_u16();
        let is_json = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(says_json);
        let body = Limited::new(response.into_body(), most).collect().await.map_err(|error| {
            match error.is::<http_body_util::LengthLimitError>() {
                true => NetError::TooLong { place: self.name(), most },
                false => self.unreachable(error.to_string()),
            }
        })?;
        Ok(Answered { status, is_json, body: body.to_bytes() })
    }

    fn unreachable(&self, reason: String) -> NetError {
        NetError::Unreachable { place: self.name(), reason }
    }
}

fn says_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

fn header(name: &str) -> Result<HeaderName, NetError> {
    HeaderName::try_from(name).map_err(|_| NetError::Header(shown(name).into_owned()))
}

fn sensitive(name: &str, value: &Secret) -> Result<HeaderValue, NetError> {
    let mut value =
        HeaderValue::from_str(value.reveal_to_upstream()).map_err(|_| NetError::Header(shown(name).into_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A connection that ends with whoever uses it.
struct Driving(tokio::task::JoinHandle<()>);

impl Drop for Driving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// TLS with the roots the system trusts, read once: that takes longer than an exchange.
async fn secure(stream: TcpStream, host: &str) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + 'static, String> {
    static TRUSTED: OnceLock<Result<Arc<ClientConfig>, String>> = OnceLock::new();
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let trusted = tokio::task::spawn_blocking(|| TRUSTED.get_or_init(trusted));
    let config = trusted.await.map_err(|error| error.to_string())?.clone()?;
    TlsConnector::from(config).connect(name, stream).await.map_err(|error| error.to_string())
}

fn trusted() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = builder.map_err(|error| error.to_string())?.with_root_certificates(roots).with_no_client_auth();
    Ok(Arc::new(config))
}

#[cfg(test)]
#[path = "post_tests.rs"]
mod tests;
