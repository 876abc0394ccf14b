//! The clerk: what operations work with. Built by a server around its own journal and index, or by
//! the command line for one operation with only what that one needs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use toolwarden_core::{AuditRecord, Clock, Keyring, RecordKind, Records};
use toolwarden_sources::Locations;
use toolwarden_store::state::{Approval, Author, Feed};
use toolwarden_store::{Index, Journal, State, index};

use crate::actor::Actor;
use crate::changes::Changes;
use crate::error::ControlError;
use crate::operation::Operation;
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
    /// Where persons find the pages of held calls, as they reach it: ends with a slash.
    pub page: Option<String>,
    pub answer_times: AnswerTimes,
}

/// How long answers to held calls count.
#[derive(Debug, Clone, Copy)]
pub struct AnswerTimes {
    /// A rejection.
    pub held: Duration,
    /// An approval, until its call is made.
    pub approved: Duration,
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

    /// Does an operation, where this one may ask for it. The only way in.
    ///
    /// # Errors
    /// They may not, or it cannot be done.
    pub async fn perform<O: Operation>(&self, actor: &Actor, request: O::Request) -> Result<O::Outcome, ControlError> {
        self.admit::<O>(actor).await?;
        let done = O::run(self, actor, request).await;
        if let (Err(ControlError::Forbidden(why)), true) = (&done, self.parts.journal.is_some()) {
            self.record(actor, O::PATH, &format!("refused: {why}")).await?;
        }
        done
    }

    /// Whether this one may ask for an operation at all, whatever the request says; a refusal is recorded.
    ///
    /// # Errors
    /// They may not.
    pub async fn admit<O: Operation>(&self, actor: &Actor) -> Result<(), ControlError> {
        if O::is_for(actor) {
            return Ok(());
        }
        let what = format!("refused: {}", actor.lacks_rights(&O::rights()));
        if self.parts.journal.is_some() {
            self.record(actor, O::PATH, &what).await?;
        }
        Err(ControlError::Forbidden(what))
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

    /// Whose things an actor means who names nobody. Root at the socket speaks for the owner.
    pub(crate) fn whom(&self, actor: &Actor) -> String {
        if actor.via.is_here() { self.owner().to_owned() } else { actor.user.clone() }
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

    /// What the store holds; nothing where there is no store yet.
    pub(crate) async fn records(&self) -> Result<Arc<Records>, ControlError> {
        if let Some(feed) = &self.parts.feed {
            return Ok(feed.known().records.clone());
        }
        match &self.parts.state {
            Some(state) => Ok(Arc::new(state.records().await?)),
            None => Ok(Arc::default()),
        }
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
        self.write_down(actor, operation, detail, None).await
    }

    /// The same for a change that makes a version of the policy.
    pub(crate) async fn record_version(
        &self,
        actor: &Actor,
        operation: &'static str,
        detail: &str,
        version: u64,
    ) -> Result<(), ControlError> {
        self.write_down(actor, operation, detail, Some(version)).await
    }

    /// The same for an answer to a held call. `event` tells the answer that was asked for from the one that counts.
    pub(crate) async fn record_approval(
        &self,
        actor: &Actor,
        (operation, event): (&'static str, &'static str),
        detail: &str,
        approval: &Approval,
    ) -> Result<(), ControlError> {
        let journal = self.parts.journal.as_ref().ok_or(ControlError::Without("the journal"))?;
        let mut record = AuditRecord::new(RecordKind::Event, self.parts.clock.now(), journal.next_call());
        (record.door, record.method, record.event) = (Some(actor.door()), Some(operation), Some(event));
        (record.user, record.detail) = (Some(actor.user.as_str()), Some(detail));
        (record.server, record.tool) = (Some(approval.call.server.as_str()), Some(approval.call.tool.as_str()));
        record.approval_id = Some(&approval.id);
        journal.record(&record).await?;
        Ok(())
    }

    async fn write_down(
        &self,
        actor: &Actor,
        operation: &'static str,
        detail: &str,
        version: Option<u64>,
    ) -> Result<(), ControlError> {
        let journal = self.parts.journal.as_ref().ok_or(ControlError::Without("the journal"))?;
        let mut record = AuditRecord::new(RecordKind::Event, self.parts.clock.now(), journal.next_call());
        record.door = Some(actor.door());
        record.method = Some(operation);
        record.user = Some(&actor.user);
        record.detail = Some(detail);
        record.policy_version = version;
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
            Ok(done) => Ok((done, self.changes.announce(self.author(actor)).await)),
            Err(error) => {
                self.record(actor, operation, &format!("failed: {detail}")).await?;
                Err(error)
            }
        }
    }

    /// What came of trying a change before it is recorded and made; one that cannot be made is recorded as that.
    pub(crate) async fn tried<T>(
        &self,
        actor: &Actor,
        operation: &'static str,
        detail: &str,
        tried: Result<T, ControlError>,
    ) -> Result<T, ControlError> {
        if tried.is_err() {
            self.record(actor, operation, &format!("failed: {detail}")).await?;
        }
        tried
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
