//! TLS of the HTTP door: a certificate chain and a key from PEM files.

use std::path::Path;
use std::sync::Arc;

pub use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why the files cannot be used. Says nothing of the key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("{path}: the certificate cannot be read: {reason}")]
    Certificate { path: String, reason: String },
    #[error("{path}: the private key cannot be read; it must be PEM, and readable by this user alone")]
    Key { path: String },
    #[error("certificate and key do not fit together: {0}")]
    Pair(String),
}

/// Reads both files.
///
/// # Errors
/// A file cannot be read, is no PEM, or the two do not fit.
pub fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor, TlsError> {
    let shown = |path: &Path| path.display().to_string();
    let unreadable = |reason: String| TlsError::Certificate { path: shown(certificate), reason };
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(certificate).map_err(|error| unreadable(error.to_string()))?.collect();
    let chain = chain.map_err(|error| unreadable(error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable("it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|_| TlsError::Key { path: shown(key) })?;
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(|error| TlsError::Pair(error.to_string()))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
