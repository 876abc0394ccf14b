//! Where a database is: `sqlite:PATH`, or `postgres://USER:PASSWORD@HOST/NAME`.
//!
//! A server's address holds a password, so it is kept as a secret, and shown without user and options.

use std::fmt;
use std::path::{Path, PathBuf};

use toolwarden_core::Secret;
use toolwarden_core::name::shown;
use url::Url;

/// Where a database is.
#[derive(Debug, Clone)]
pub enum Location {
    File(PathBuf),
    Server(Server),
}

/// A PostgreSQL by its address.
#[derive(Debug, Clone)]
pub struct Server {
    url: Secret,
    shown: String,
}

/// A text that is no location. It is not repeated: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error("the address of a database is `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/NAME`")]
    Scheme,
    #[error("`sqlite:` needs the path of a file, as in `sqlite:toolwarden.sqlite`")]
    NoPath,
    #[error("the address after `postgres://` cannot be read; special characters in a password are written as `%40`")]
    Address,
}

impl Location {
    /// Reads a location; a path of a file counts from `base`.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str, base: &Path) -> Result<Self, LocationError> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() { Err(LocationError::NoPath) } else { Ok(Self::File(base.join(path))) };
        }
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(LocationError::Scheme);
        }
        let url = Url::parse(text).map_err(|_| LocationError::Address)?;
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let place = format!("postgres://{}{port}{}", url.host_str().unwrap_or_default(), url.path());
        let shown = shown(&place).into_owned();
        Ok(Self::Server(Server { url: Secret::new(text.to_owned()), shown }))
    }
}

impl Server {
    pub(super) fn url(&self) -> &str {
        self.url.reveal_to_upstream()
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(formatter, "sqlite:{}", shown(&path.to_string_lossy())),
            Self::Server(server) => server.fmt(formatter),
        }
    }
}

/// The address of a file for the driver, which reads percent signs and question marks in its own way.
pub(super) fn file_url(path: &Path) -> String {
    let mut url = "sqlite://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => url.push(char::from(*byte)),
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    url.push_str("?mode=rw");
    url
}

#[cfg(test)]
#[path = "location_tests.rs"]
mod tests;
