//! One line to a server on which everything travels: the pipes of a child, or the oldest HTTP transport.

use bytes::Bytes;
use tokio::sync::mpsc;
use toolwarden_mcp::Wire;
use toolwarden_mcp::upstream::child::{Child, Ending};
use toolwarden_mcp::upstream::event_pipe::{EventPipe, Said};

use crate::failure::Failure;

#[derive(Debug)]
pub(super) enum Pipe {
    Child(Child),
    Events(EventPipe),
}

/// What the server says on it.
#[derive(Debug)]
pub(super) enum Lines {
    Child(mpsc::Receiver<Bytes>),
    Events(mpsc::Receiver<Said>),
}

impl Lines {
    pub(super) async fn next(&mut self) -> Option<Said> {
        match self {
            Self::Child(lines) => lines.recv().await.map(Said::Message),
            Self::Events(events) => events.recv().await,
        }
    }
}

impl Pipe {
    pub(super) async fn send(&self, wire: Wire) -> Result<(), Failure> {
        match self {
            Self::Child(child) => child.send(wire).await.map_err(|error| Failure::Unreachable(error.to_string())),
            Self::Events(pipe) => pipe.send(wire).await.map_err(|error| Failure::Unreachable(error.to_string())),
        }
    }

    /// Says whether there was room for it.
    pub(super) fn send_now(&self, wire: Wire) -> bool {
        match self {
            Self::Child(child) => child.send_now(wire).is_ok(),
            Self::Events(pipe) => pipe.send_now(wire).is_ok(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Child(child) => child.exit().borrow().is_some(),
            Self::Events(pipe) => pipe.exit().borrow().is_some(),
        }
    }

    /// How a child ended, where it did.
    pub(super) async fn ending(&self) -> Option<Ending> {
        match self {
            Self::Child(child) => child.ending().await,
            Self::Events(_) => None,
        }
    }

    pub(super) async fn end(&self) {
        match self {
            Self::Child(child) => drop(child.end().await),
            Self::Events(pipe) => drop(pipe.end().await),
        }
    }
}
