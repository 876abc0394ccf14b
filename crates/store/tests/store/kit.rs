//! A data directory that vanishes afterwards, a key, and a clock that moves when asked.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::Timestamp;
use toolwarden_core::{AuditRecord, Clock, RecordKind, Status};
use toolwarden_store::journal::{Problem, Seen, verify};
use toolwarden_store::{Index, Journal, JournalError, JournalOptions, Recovery};
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

pub(crate) struct Place {
    root: tempfile::TempDir,
    pub(crate) keyring: Arc<FileKeyring>,
}

impl Place {
    pub(crate) fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let root = tempfile::tempdir()?;
        let keyring = Arc::new(FileKeyring::open(&root.path().join("config"))?);
        Ok(Self { root, keyring })
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

    pub(crate) async fn index(&self) -> Result<Index, toolwarden_store::IndexError> {
        Index::open(&self.root.path().join("audit.db")).await
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
