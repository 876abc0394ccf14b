//! A data directory that vanishes afterwards, a key, and a clock that moves when asked.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use sqlx::{Connection as _, Row as _};
use toolwarden_core::{AuditRecord, Clock, RecordKind, Status};
use toolwarden_store::journal::{Problem, Seen, verify};
use toolwarden_store::{
    Database, DatabaseError, Index, Journal, JournalError, JournalOptions, Location, Recovery, State,
};
use toolwarden_test_postgres::Cluster;
use toolwarden_vault::FileKeyring;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Moves on by a microsecond with every look.
#[derive(Debug, Default)]
pub(crate) struct StepClock {
    microseconds: AtomicI64,
}

impl Clock for StepClock {
    fn now(&self) -> Timestamp {
        let now = self.microseconds.fetch_add(1, Ordering::Relaxed);
        Timestamp::from_microsecond(now).unwrap_or_default()
    }
}

/// The same tests on both databases.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> $crate::kit::Outcome {
                super::$test($crate::kit::Place::new()?).await
            })*
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() -> $crate::kit::Outcome {
                super::$test($crate::kit::Place::on_postgres()?).await
            })*
        }
    };
}

pub(crate) use on_both;

pub(crate) struct Place {
    /// None = a file.
    postgres: Option<Cluster>,
    root: tempfile::TempDir,
    pub(crate) keyring: Arc<FileKeyring>,
}

impl Place {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let keyring = Arc::new(FileKeyring::open(&root.path().join("config"))?);
        Ok(Self { postgres: None, root, keyring })
    }

    pub(crate) fn on_postgres() -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self { postgres: Some(Cluster::start()?), ..Self::new()? })
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.root.path().to_path_buf()
    }

    pub(crate) fn journal_root(&self) -> PathBuf {
        self.root.path().join("journal")
    }

    pub(crate) fn options(&self) -> JournalOptions {
        JournalOptions::new(self.journal_root(), "serve")
    }

    pub(crate) fn open(&self) -> Result<(Journal, Recovery), JournalError> {
        self.open_with(&self.options())
    }

    pub(crate) fn open_with(&self, options: &JournalOptions) -> Result<(Journal, Recovery), JournalError> {
        let keyring = Arc::clone(&self.keyring);
        Journal::open(options, keyring, Arc::new(StepClock::default()))
    }

    pub(crate) fn stop_database(&mut self) -> io::Result<()> {
        self.postgres.as_mut().map_or(Ok(()), Cluster::stop)
    }

    pub(crate) fn restart_database(&mut self) -> io::Result<()> {
        self.postgres.as_mut().map_or(Ok(()), Cluster::restart)
    }

    fn location(&self) -> Location {
        let file = Location::File(self.root.path().join("audit.db"));
        let Some(postgres) = &self.postgres else { return file };
        Location::parse(&postgres.url(), self.root.path()).unwrap_or(file)
    }

    pub(crate) async fn database(&self) -> Result<Database, DatabaseError> {
        Database::open(&self.location()).await
    }

    pub(crate) async fn index(&self) -> Result<Index, DatabaseError> {
        self.database().await.map(Index::over)
    }

    pub(crate) async fn state(&self) -> Result<State, DatabaseError> {
        Ok(State::over(self.database().await?, self.keyring.clone()))
    }

    /// What a thief of the database reads.
    pub(crate) async fn blobs(&self, sql: &'static str) -> Result<Vec<Vec<u8>>, sqlx::Error> {
        let mut connection = self.thief().await?;
        let rows = sqlx::query(sql).fetch_all(&mut connection).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    /// Does something to the database behind the back of the program.
    pub(crate) async fn execute(&self, sql: &'static str) -> Result<u64, sqlx::Error> {
        let mut connection = self.thief().await?;
        let done = sqlx::query(sql).execute(&mut connection).await?.rows_affected();
        connection.close().await?;
        Ok(done)
    }

    async fn thief(&self) -> Result<sqlx::AnyConnection, sqlx::Error> {
        sqlx::any::install_default_drivers();
        let url = match &self.postgres {
            Some(postgres) => postgres.url(),
            None => format!("sqlite://{}", self.root.path().join("audit.db").display()),
        };
        sqlx::AnyConnection::connect(&url).await
    }

    pub(crate) fn problem(&self, seen: &[Seen]) -> Result<Option<Problem>, JournalError> {
        let report = verify(&self.journal_root(), self.keyring.as_ref(), seen)?;
        assert_eq!(report.is_whole(), report.nodes.iter().all(|node| node.problem.is_none()));
        Ok(report.nodes.into_iter().find_map(|node| node.problem))
    }

    /// The segments of a node, in order.
    pub(crate) fn segments(&self, node: &str) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(self.journal_root().join(node))?.flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).filter(|path| is_segment(path)).collect();
        paths.sort();
        Ok(paths)
    }

    /// The whole chain of a node as text.
    pub(crate) fn text(&self, node: &str) -> io::Result<String> {
        self.segments(node)?.iter().map(fs::read_to_string).collect()
    }
}

fn is_segment(path: &std::path::Path) -> bool {
    path.extension().is_some_and(|extension| extension == "log")
}

pub(crate) fn intent(call: u64) -> AuditRecord<'static> {
    let mut record = AuditRecord::new(RecordKind::Intent, at(call), call);
    record.door = Some("http");
    record.server = Some("github");
    record.tool = Some("create_issue");
    record.user = Some("anna");
    record.decision = Some("allow");
    record.arguments_digest = Some("7d865e959b2466918c9863afca942d0fb89d7c9ac0c99bafc3749504ded97730");
    record
}

pub(crate) fn outcome(call: u64) -> AuditRecord<'static> {
    let mut record = AuditRecord::new(RecordKind::Outcome, at(call), call);
    record.status = Some(Status::Ok);
    record.duration_us = Some(call * 10);
    record.response_bytes = Some(512);
    record
}

pub(crate) fn refusal(call: u64) -> AuditRecord<'static> {
    let mut record = intent(call);
    record.kind = RecordKind::Refusal;
    record.decision = Some("deny");
    record.stage = Some("role");
    record.reason = Some("role_disallows");
    record.status = Some(Status::Denied);
    record
}

pub(crate) fn at(second: u64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + i64::try_from(second).unwrap_or_default()).unwrap_or_default()
}
