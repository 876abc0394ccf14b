//! The clerk: what operations work with. Built by a server around its own journal and index, or by
//! the command line for one operation with only what that one needs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use toolwarden_core::{AuditRecord, Clock, Keyring, RecordKind};
use toolwarden_sources::Locations;
use toolwarden_store::state::{Author, Feed};
use toolwarden_store::{Index, Journal, State, index};

use crate::actor::Actor;
use crate::changes::Changes;
use crate::error::ControlError;
use crate::servers::Servers;

/// What a clerk is made of.
#[derive(Debug)]
pub struct ClerkParts {
    pub locations: Locations,
    pub clock: Arc<dyn Clock>,
    pub keyring: Option<Arc<dyn Keyring>>,
    pub journal: Option<Journal>,
    pub index: Option<Index>,
    pub state: Option<State>,
    /// What a running gateway knows of the state.
    pub feed: Option<Arc<Feed>>,
    /// The servers of a running gateway.
    pub servers: Option<Arc<dyn Servers>>,
    /// Where a running gateway listens.
    pub address: Option<SocketAddr>,
}

/// One clerk.
#[derive(Debug)]
pub struct Clerk {
    pub(crate) parts: ClerkParts,
    changes: Changes,
}

impl Clerk {
    #[must_use]
    pub fn new(parts: ClerkParts) -> Self {
        Self { parts, changes: Changes::default() }
    }

    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The user whose data directory this is.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.parts.locations.user
    }

    pub(crate) fn journal_root(&self) -> PathBuf {
        self.parts.locations.data_dir.join("journal")
    }

    pub(crate) fn keyring(&self) -> Result<Arc<dyn Keyring>, ControlError> {
        self.parts.keyring.clone().ok_or(ControlError::Without("the key"))
    }

    pub(crate) fn state(&self) -> Result<&State, ControlError> {
        self.parts.state.as_ref().ok_or(ControlError::Without("the store"))
    }

    /// Who changes something, for the store.
    pub(crate) fn author(&self, actor: &Actor) -> Author {
        Author { user: actor.user.clone(), door: actor.door().to_owned(), time: self.parts.clock.now() }
    }

    /// What was changed in the store counts here before the answer goes out. Elsewhere it does soon; and so it does
    /// here where it cannot be read at the moment, for it is done.
    pub(crate) async fn caught_up(&self) {
        if let Some(feed) = &self.parts.feed
            && let Err(error) = feed.catch_up().await
        {
            tracing::error!("a change in the store is not seen yet: {error}");
        }
    }

    /// The index, with everything delivered that the journals hold by now; and what could not be.
    pub(crate) async fn index(&self) -> Result<(&Index, Vec<String>), ControlError> {
        let index = self.parts.index.as_ref().ok_or(ControlError::Without("the index"))?;
        let root = self.journal_root();
        // Before the first record there is nothing to deliver.
        if !root.is_dir() {
            return Ok((index, Vec::new()));
        }
        let delivered = index::ship(&root, index).await?;
        Ok((index, delivered.problems.iter().map(ToString::to_string).collect()))
    }

    /// Writes down who is about to change what. An operation that cannot be recorded is not done.
    pub(crate) async fn record(
        &self,
        actor: &Actor,
        operation: &'static str,
        detail: &str,
    ) -> Result<(), ControlError> {
        let journal = self.parts.journal.as_ref().ok_or(ControlError::Without("the journal"))?;
        let mut record = AuditRecord::new(RecordKind::Event, self.parts.clock.now(), journal.next_call());
        record.door = Some(actor.door());
        record.method = Some(operation);
        record.user = Some(&actor.user);
        record.detail = Some(detail);
        journal.record(&record).await?;
        Ok(())
    }

    /// Records, changes, and announces the change; a change that failed is recorded too. Gives what
    /// keeps the change from being in force, if anything.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        actor: &Actor,
        operation: &'static str,
        detail: &str,
        change: impl FnOnce() -> Result<T, ControlError> + Send + 'static,
    ) -> Result<(T, Option<String>), ControlError> {
        self.record(actor, operation, detail).await?;
        match blocking(change).await {
            Ok(done) => Ok((done, self.changes.announce().await)),
            Err(error) => {
                self.record(actor, operation, &format!("failed: {detail}")).await?;
                Err(error)
            }
        }
    }

    /// Writes down that what was asked for was so already.
    pub(crate) async fn nothing_changed(
        &self,
        actor: &Actor,
        operation: &'static str,
        detail: &str,
    ) -> Result<(), ControlError> {
        self.record(actor, operation, &format!("nothing changed: {detail}")).await
    }
}

/// Files are read and locks waited for outside the runtime's own threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ControlError> + Send + 'static,
) -> Result<T, ControlError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ControlError::Ended)?
}
