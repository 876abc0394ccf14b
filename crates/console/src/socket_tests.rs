//! The socket's modes, its lock, what it replaces and what it leaves alone.

use std::os::unix::fs::PermissionsExt;

use super::{ControlSocket, SOCKET_NAME, SocketError};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::metadata(path).map(|found| found.permissions().mode() & 0o777).unwrap_or_default()
}

#[tokio::test]
async fn one_server_holds_it_and_a_stale_one_is_replaced() {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("a temporary directory can be made") };
    let path = directory.path().join(SOCKET_NAME);
    // Left behind by a process that was killed: bound once, nobody listens.
    drop(std::os::unix::net::UnixListener::bind(&path));
    assert!(path.exists());
    let first = ControlSocket::bind(directory.path());
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(mode(&path), 0o600);
    assert!(matches!(ControlSocket::bind(directory.path()), Err(SocketError::InUse(_))));
    drop(first);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_socket_somebody_answers_at_is_left_alone() {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("a temporary directory can be made") };
    let path = directory.path().join(SOCKET_NAME);
    let other = std::os::unix::net::UnixListener::bind(&path);
    assert!(other.is_ok());
    assert!(matches!(ControlSocket::bind(directory.path()), Err(SocketError::InUse(_))));
    assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
}

#[tokio::test]
async fn a_file_in_its_place_is_not_removed() {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("a temporary directory can be made") };
    let path = directory.path().join(SOCKET_NAME);
    assert!(std::fs::write(&path, "mine").is_ok());
    assert!(matches!(ControlSocket::bind(directory.path()), Err(SocketError::NotASocket(_))));
    assert_eq!(std::fs::read_to_string(&path).ok().as_deref(), Some("mine"));
}

#[tokio::test]
async fn a_path_no_socket_can_have_is_said() {
    let directory = std::path::PathBuf::from(format!("/{}", "long".repeat(30)));
    assert!(matches!(ControlSocket::bind(&directory), Err(SocketError::TooLong(_))));
}
