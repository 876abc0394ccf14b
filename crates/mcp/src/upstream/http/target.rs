//! Where a server is and what is sent to it every time.
//!
//! Takes a URL and headers as configured; gives their parsed form. Refuses other schemes, credentials in the URL, and
//! headers that belong to the connection. What it shows of a URL has neither path nor query.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};
use tokio_rustls::rustls::pki_types::ServerName;
use toolwarden_core::Secret;
use url::Url;

use super::{Tls, WITHHELD};

/// A server as configured.
#[derive(Clone)]
pub struct HttpTarget {
    /// `http://`, `https://`, or `unix:///path/of/socket#/path/of/endpoint`.
    pub url: String,
    pub headers: Vec<(String, Secret)>,
    pub timeouts: Timeouts,
    /// So many unused connections are kept.
    pub max_idle: usize,
    /// A larger event ends its stream.
    pub max_event_bytes: usize,
    /// Whom to trust; the system's roots if none is given.
    pub tls: Option<Tls>,
    /// Only over TLS, at addresses of the public network: whoever named it has no say over this machine's neighbours.
    pub public_only: bool,
}

impl HttpTarget {
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Vec::new(),
            timeouts: Timeouts::DEFAULT,
            max_idle: 1024,
            max_event_bytes: 16 * 1024 * 1024,
            tls: None,
            public_only: false,
        }
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A URL may carry a key in its query, so only its place is shown.
        let shown = Place::parse(&self.url).map(|place| place.shown);
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        formatter.debug_struct("HttpTarget").field("place", &shown).field("headers", &names).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For a connection, its secure handshake included.
    pub connect: Duration,
    /// From sending a request to the head of the answer.
    pub head: Duration,
    /// An unused connection is closed after this; earlier if the server says so.
    pub idle: Duration,
}

impl Timeouts {
    pub const DEFAULT: Self =
        Self { connect: Duration::from_secs(10), head: Duration::from_secs(120), idle: Duration::from_secs(30) };
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    #[error("the URL cannot be read: {0}")]
    Url(#[from] url::ParseError),
    #[error("the URL starts with `{0}:`; use http, https or unix")]
    Scheme(String),
    #[error("the URL names no host")]
    NoHost,
    #[error("the URL contains a user or a password; put the credential into a header")]
    Credentials,
    #[error("the path of the URL cannot be sent")]
    Path,
    #[error("the endpoint is on another server")]
    OtherServer,
    #[error("`{0}` is not the name of a header")]
    HeaderName(String),
    #[error("the header `{0}` is set by the connection and cannot be configured")]
    Reserved(String),
    #[error("the value of the header `{0}` contains characters that cannot be sent")]
    HeaderValue(String),
}

/// A URL taken apart. No `Debug`: the query may hold a key.
pub(super) struct Place {
    url: Url,
    pub(super) address: Address,
    /// The path and query, as sent.
    pub(super) path: Uri,
    pub(super) host: HeaderValue,
    /// Host and port, or the socket.
    pub(super) shown: Arc<str>,
}

#[derive(Debug)]
pub(super) enum Address {
    Plain { host: String, port: u16 },
    Secure { host: String, port: u16, name: ServerName<'static> },
    Unix(PathBuf),
}

impl Place {
    pub(super) fn parse(text: &str) -> Result<Self, TargetError> {
        let url = Url::parse(text)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::Credentials);
        }
        match url.scheme() {
            "http" | "https" => Self::tcp(&url),
            "unix" => Self::unix(&url),
            other => Err(TargetError::Scheme(other.to_owned())),
        }
    }

    /// Another endpoint of the same server; a server cannot send its client elsewhere.
    pub(super) fn at(&self, reference: &str) -> Result<Self, TargetError> {
        if let Address::Unix(_) = &self.address {
            let mut url = self.url.clone();
            url.set_fragment(reference.starts_with('/').then_some(reference));
            return if url.fragment().is_some() { Self::unix(&url) } else { Err(TargetError::OtherServer) };
        }
        let url = self.url.join(reference)?;
        let has_credentials = !url.username().is_empty() || url.password().is_some();
        if url.origin() != self.url.origin() || has_credentials {
            return Err(TargetError::OtherServer);
        }
        Self::tcp(&url)
    }

    fn tcp(url: &Url) -> Result<Self, TargetError> {
        let written = url.host_str().filter(|host| !host.is_empty()).ok_or(TargetError::NoHost)?;
        let port = url.port_or_known_default().ok_or(TargetError::NoHost)?;
        // An IPv6 address has brackets in a URL and in `Host`, but not when it is looked up.
        let host = written.trim_start_matches('[').trim_end_matches(']').to_owned();
        let shown: Arc<str> = format!("{written}:{port}").into();
        let header = url.port().map_or_else(|| written.to_owned(), |port| format!("{written}:{port}"));
        let address = if url.scheme() == "https" {
            let name = ServerName::try_from(host.clone()).map_err(|_| TargetError::NoHost)?;
            Address::Secure { host, port, name }
        } else {
            Address::Plain { host, port }
        };
        let path = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let host = HeaderValue::try_from(header).map_err(|_| TargetError::NoHost)?;
        let path = path.parse().map_err(|_| TargetError::Path)?;
        Ok(Self { url: url.clone(), address, path, host, shown })
    }

    fn unix(url: &Url) -> Result<Self, TargetError> {
        let socket = url.to_file_path_of_socket().ok_or(TargetError::Path)?;
        let shown: Arc<str> = format!("unix:{}", socket.display()).into();
        let path = url.fragment().filter(|path| path.starts_with('/')).unwrap_or("/");
        let path = path.parse().map_err(|_| TargetError::Path)?;
        let host = HeaderValue::from_static("localhost");
        Ok(Self { url: url.clone(), address: Address::Unix(socket), path, host, shown })
    }
}

trait SocketUrl {
    fn to_file_path_of_socket(&self) -> Option<PathBuf>;
}

impl SocketUrl for Url {
    /// The socket's path with its percent signs resolved, as for a file.
    fn to_file_path_of_socket(&self) -> Option<PathBuf> {
        if self.host_str().is_some_and(|host| !host.is_empty()) {
            return None;
        }
        let as_file = Url::parse(&format!("file://{}", self.path())).ok()?;
        as_file.to_file_path().ok().filter(|path| path.as_os_str().len() > 1)
    }
}

/// Headers ready to send, marked so that nothing prints their values.
pub(super) fn secret_headers(headers: &[(String, Secret)]) -> Result<Arc<[(HeaderName, HeaderValue)]>, TargetError> {
    let ready = headers.iter().map(|(name, secret)| {
        let parsed: HeaderName = name.parse().map_err(|_| TargetError::HeaderName(name.clone()))?;
        let may_be_set = [http::header::AUTHORIZATION, http::header::COOKIE].contains(&parsed);
        if WITHHELD.contains(&parsed) && !may_be_set {
            return Err(TargetError::Reserved(name.clone()));
        }
        let value = HeaderValue::from_str(secret.reveal_to_upstream());
        let mut value = value.map_err(|_| TargetError::HeaderValue(name.clone()))?;
        value.set_sensitive(true);
        Ok((parsed, value))
    });
    ready.collect()
}

#[cfg(test)]
#[path = "target_tests.rs"]
mod tests;
