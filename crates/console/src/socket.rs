//! The control socket: a Unix socket in the owner-only data directory.
//!
//! Two doors behind each other: the modes of directory and file keep others from connecting, and
//! whoever connects all the same is asked of the kernel and closed without an answer.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt;

use crate::answering::Desk;
use crate::peer::Peer;

/// The socket's name in the data directory.
pub const SOCKET_NAME: &str = "control.sock";

/// What every system takes as the path of a socket.
const LONGEST_PATH: usize = 103;
const HEADER_TIME: Duration = Duration::from_secs(10);
const MOST_CONNECTIONS: usize = 64;
/// How long to pause when nobody can be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// How long answers on their way may take after the order to stop.
const GOODBYE: Duration = Duration::from_secs(5);

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("another toolwarden server answers at {0}")]
    InUse(String),
    #[error("{0} is too long for the path of a socket; choose a shorter --data-dir")]
    TooLong(String),
    #[error("{0} is not a socket; move it away")]
    NotASocket(String),
    #[error("the control socket {path} cannot be made: {error}")]
    Make { path: String, error: io::Error },
}

/// A socket that listens.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Held as long as the socket is ours: it tells a stale socket from one that is being made.
    _lock: File,
}

impl ControlSocket {
    /// Listens in a data directory that exists. A socket nobody answers at is replaced.
    ///
    /// # Errors
    /// Another server answers there, something else is in the way, or it cannot be made.
    pub fn bind(data_dir: &Path) -> Result<Self, SocketError> {
        let path = data_dir.join(SOCKET_NAME);
        let shown = || toolwarden_core::name::shown(&path.to_string_lossy()).into_owned();
        let failed = |error| SocketError::Make { path: shown(), error };
        if path.as_os_str().len() > LONGEST_PATH {
            return Err(SocketError::TooLong(shown()));
        }
        let lock = lock(&data_dir.join("control.lock")).map_err(failed)?;
        let Some(lock) = lock else { return Err(SocketError::InUse(shown())) };
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NotASocket(shown())),
            Ok(_) if std::os::unix::net::UnixStream::connect(&path).is_ok() => return Err(SocketError::InUse(shown())),
            _ => {}
        }
        // Made aside and moved into place, so that nobody meets it before its mode is right.
        let aside = path.with_extension("new");
        match fs::remove_file(&aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&aside).map_err(failed)?;
        fs::set_permissions(&aside, Permissions::from_mode(0o600)).map_err(failed)?;
        fs::rename(&aside, &path).map_err(failed)?;
        Ok(Self { listener, path, _lock: lock })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // What is left behind is replaced by the next server.
        let _ = fs::remove_file(&self.path);
    }
}

/// The lock, or none where another server holds it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Serves the desk to the owner and root until told to stop; then lets answers finish.
pub async fn serve_socket(socket: ControlSocket, desk: Desk, mut stop: watch::Receiver<bool>) {
    let router = desk.router();
    let own = rustix::process::geteuid().as_raw();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = socket.listener.accept() => accepted,
            _ = stop.changed() => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "the control socket cannot take a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Some(peer) = peer(&stream, own) else { continue };
        let (router, stop) = (router.clone(), stop.clone());
        tokio::spawn(async move {
            talk(stream, peer, router, stop).await;
            drop(place);
        });
    }
    let everybody = u32::try_from(MOST_CONNECTIONS).unwrap_or(u32::MAX);
    let _ = tokio::time::timeout(GOODBYE, room.acquire_many(everybody)).await;
}

/// Who connected, if they may. Others are closed without a word.
fn peer(stream: &UnixStream, own: u32) -> Option<Peer> {
    match stream.peer_cred() {
        Ok(credentials) => {
            let peer = Peer::admit(credentials.uid(), own);
            if peer.is_none() {
                tracing::warn!(user = credentials.uid(), "another user was turned away at the control socket");
            }
            peer
        }
        Err(error) => {
            tracing::warn!(%error, "somebody unknown was turned away at the control socket");
            None
        }
    }
}

async fn talk(stream: UnixStream, peer: Peer, router: Router, mut stop: watch::Receiver<bool>) {
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection at the control socket ended early");
    }
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
