//! Gateways as far as the desk knows them: a journal each, one store, a clock that is set.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use toolwarden_core::{
    AnswerScope, ApprovalNeeds, ApprovalState, AuditRecord, Clock, HeldAnswer, HeldCall, HeldCaller, Payer, RecordKind,
    Status,
};
use toolwarden_review::{Desk, Marks, Parts, Raised, Taken, Times};
use toolwarden_store::index::ship;
use toolwarden_store::state::{Feed, Moved};
use toolwarden_store::{Database, Index, Journal, JournalOptions, Location, State};
use toolwarden_test_postgres::Cluster;
use toolwarden_vault::FileKeyring;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;
pub type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Seconds since the beginning, as the test says.
#[derive(Debug, Default)]
pub struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        // Every look is a little later, so that steps have an order.
        let microseconds = self.0.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_microsecond(microseconds).unwrap_or_default()
    }
}

impl SetClock {
    pub fn go_on(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

pub struct Place {
    cluster: Option<Cluster>,
    root: tempfile::TempDir,
    keyring: Arc<FileKeyring>,
    pub clock: Arc<SetClock>,
}

/// One gateway, as far as it matters here.
pub struct Node {
    pub desk: Arc<Desk>,
    pub state: State,
    pub journal: Journal,
    index: Index,
    root: PathBuf,
}

impl Place {
    pub fn new(on_postgres: bool) -> Fallible<Self> {
        let root = tempfile::tempdir()?;
        let keyring = Arc::new(FileKeyring::open(&root.path().join("config"))?);
        let cluster = if on_postgres { Some(Cluster::start()?) } else { None };
        Ok(Self { cluster, root, keyring, clock: Arc::default() })
    }

    /// The database is away; only one that is a server can be.
    pub fn stop_database(&mut self) -> Outcome {
        Ok(self.cluster.as_mut().ok_or("a file is always there")?.stop()?)
    }

    pub fn restart_database(&mut self) -> Outcome {
        Ok(self.cluster.as_mut().ok_or("a file is always there")?.restart()?)
    }

    /// Starts a gateway; one of the same name is the same after a restart.
    pub async fn node(&self, name: &str) -> Fallible<Node> {
        let location = match &self.cluster {
            Some(cluster) => Location::parse(&cluster.url(), self.root.path())?,
            None => Location::File(self.root.path().join("store.sqlite")),
        };
        let database = Database::open(&location).await?;
        let state = State::over(database.clone(), self.keyring.clone());
        let root = self.root.path().join(name);
        let options = JournalOptions::new(root.clone(), "serve");
        let (journal, _) = Journal::open(&options, self.keyring.clone(), self.clock.clone())?;
        let index = Index::over(database).of_origin(name);
        let desk = Desk::new(Parts {
            feed: Arc::new(Feed::start(state.clone()).await?),
            state: state.clone(),
            journal: journal.clone(),
            keyring: self.keyring.clone(),
            clock: self.clock.clone(),
            node: index.stored_name(journal.node()),
            times: Times::default(),
        });
        Ok(Node { desk, state, journal, index, root })
    }
}

/// What a process held that was killed: outside of any runtime nobody gives anything back.
pub fn gone(taken: Taken) {
    let dropping = std::thread::spawn(move || drop(taken));
    assert!(dropping.join().is_ok());
}

pub fn call(text: &str) -> HeldCall {
    HeldCall {
        server: "notes".to_owned(),
        tool: "write_note".to_owned(),
        method: "tools/call".to_owned(),
        params: format!(r#"{{"name":"write_note","arguments":{{"text":"{text}"}}}}"#),
        claims: None,
        caller: HeldCaller { user: Some("ada".to_owned()), ..HeldCaller::default() },
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        rule: None,
        candidates: Vec::new(),
        payers: vec![Payer::Person],
        policy_version: 1,
        anchor: None,
        definition: None,
        needs: ApprovalNeeds::default(),
        opinion: None,
        result: None,
    }
}

impl Node {
    /// Makes a call, which is held.
    pub async fn raise(&self, text: &str) -> Fallible<Raised> {
        let marks = Marks { caller: "ada", definition: "one", digest: text.as_bytes() };
        Ok(self.desk.raise(marks, &call(text)).await?)
    }

    /// Makes a call, which waits; gives its id.
    pub async fn held(&self, text: &str) -> Fallible<String> {
        match self.raise(text).await? {
            Raised::Waits(asking) => Ok(asking.id),
            other => Err(format!("{other:?}").into()),
        }
    }

    pub async fn approve(&self, id: &str, clock: &SetClock) -> Fallible<bool> {
        self.answer(id, true, clock).await
    }

    pub async fn reject(&self, id: &str, clock: &SetClock) -> Fallible<bool> {
        self.answer(id, false, clock).await
    }

    pub async fn take_back(&self, id: &str, clock: &SetClock) -> Fallible<bool> {
        let (answer, until) = Self::said(false, clock)?;
        Ok(matches!(self.state.take_back_approval(id, &answer, until).await?, Moved::Done(_)))
    }

    async fn answer(&self, id: &str, is_approval: bool, clock: &SetClock) -> Fallible<bool> {
        let (answer, until) = Self::said(is_approval, clock)?;
        Ok(matches!(self.state.answer_approval(id, &answer, until).await?, Moved::Done(_)))
    }

    fn said(is_approval: bool, clock: &SetClock) -> Fallible<(HeldAnswer, Timestamp)> {
        let at = clock.now();
        let answer = HeldAnswer {
            is_approval,
            by: "bob".to_owned(),
            groups: Vec::new(),
            door: "cli".to_owned(),
            at,
            scope: AnswerScope::Once,
            note: None,
            token: None,
        };
        Ok((answer, at.checked_add(std::time::Duration::from_secs(3_600))?))
    }

    /// Waits until the desk has told the store what it has to.
    pub async fn settled(&self, id: &str) -> Outcome {
        let telling = async {
            while self.desk.is_telling(id) {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        };
        Ok(tokio::time::timeout(std::time::Duration::from_secs(20), telling).await?)
    }

    /// The methods of the journal's records, in their order.
    pub fn recorded(&self) -> Fallible<Vec<String>> {
        let mut methods = Vec::new();
        for file in std::fs::read_dir(self.root.join(&**self.journal.node()))? {
            for line in std::fs::read_to_string(file?.path())?.lines() {
                let record = line.split_once(' ').map(|(_, record)| record).unwrap_or_default();
                let record: serde_json::Value = serde_json::from_str(record).unwrap_or_default();
                methods.extend(record.get("method").and_then(serde_json::Value::as_str).map(str::to_owned));
            }
        }
        Ok(methods)
    }

    pub async fn state_of(&self, id: &str) -> Fallible<ApprovalState> {
        Ok(self.state.approval(id).await?.ok_or("it is kept")?.state)
    }

    /// Writes the intent of a call that leaves under an approval; gives its number.
    pub async fn intends(&self, id: &str, clock: &SetClock) -> Fallible<u64> {
        let number = self.journal.next_call();
        let mut record = AuditRecord::new(RecordKind::Intent, clock.now(), number);
        record.approval_id = Some(id);
        self.journal.record(&record).await?;
        Ok(number)
    }

    pub fn ends(&self, id: &str, number: u64, status: Status, clock: &SetClock) -> Outcome {
        let mut record = AuditRecord::new(RecordKind::Outcome, clock.now(), number);
        (record.approval_id, record.status) = (Some(id), Some(status));
        Ok(self.journal.note(&record)?)
    }

    /// Ends as a process does that is killed: what it holds in memory is gone, what it wrote is there.
    pub async fn dies(self) -> Outcome {
        self.journal.close().await?;
        Ok(())
    }

    /// What a start does first.
    pub async fn recovers(&self) -> Fallible<usize> {
        ship(&self.root, &self.index).await?;
        Ok(self.desk.recover(&self.index).await?)
    }

    /// The methods of everything this gateway recorded of an approval.
    pub async fn told(&self, id: &str) -> Fallible<Vec<String>> {
        self.journal.flush().await?;
        let mut told = Vec::new();
        let files = std::fs::read_dir(self.root.join(&**self.journal.node()))?;
        for file in files {
            let text = std::fs::read_to_string(file?.path()).unwrap_or_default();
            for line in text.lines().filter(|line| line.contains(id)) {
                let method = line.split("\"method\":\"").nth(1).and_then(|rest| rest.split('"').next());
                told.extend(method.map(str::to_owned));
            }
        }
        Ok(told)
    }
}
