//! What the gateway left behind: the journal read as a file, and the index asked as a person asks it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Digest, Keyring, Purpose, Secret};
use toolwarden_vault::{Asking, KEY_FILE, KeySource, KeyState, Ring, StoredKey, Supplies};

use crate::caller::{ECHO, call_params};
use crate::house::House;

/// A record's place: node and sequence.
pub type Place = (String, u64);

/// Every record of every node.
#[derive(Debug)]
pub struct Records {
    records: BTreeMap<Place, Record>,
}

/// As much of a record as is looked at here.
#[derive(Debug, Deserialize)]
pub struct Record {
    pub seq: u64,
    pub kind: Box<str>,
    #[serde(default)]
    pub call: u64,
    #[serde(default)]
    pub tool: Box<str>,
    #[serde(default)]
    pub status: Box<str>,
    #[serde(default)]
    arguments_digest: Box<str>,
}

/// A row of the index, as it is exported.
#[derive(Debug, Deserialize)]
struct Row {
    node: String,
    sequence: u64,
    outcome_sequence: Option<u64>,
}

impl Records {
    /// Reads the journal of a home.
    pub fn of(house: &House) -> Self {
        let mut records = BTreeMap::new();
        for node in nodes(house) {
            let name = node.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text: String =
                segments(&node).iter().map(|segment| fs::read_to_string(segment).unwrap_or_default()).collect();
            for record in text.lines().filter_map(record) {
                let place = (name.clone(), record.seq);
                assert!(!records.contains_key(&place), "{place:?} is there twice");
                records.insert(place, record);
            }
        }
        Self { records }
    }

    fn of_kind(&self, kind: &'static str) -> impl Iterator<Item = (&Place, &Record)> {
        self.records.iter().filter(move |(_, record)| *record.kind == *kind)
    }

    pub fn count(&self, kind: &'static str) -> usize {
        self.of_kind(kind).count()
    }

    /// The calls of intents by the digest of what was called: each digest stands once.
    pub fn intents(&self) -> HashMap<&str, Place> {
        let mut intents = HashMap::new();
        for ((node, sequence), record) in self.of_kind("intent") {
            let call = (node.clone(), record.call);
            let before = intents.insert(&*record.arguments_digest, call);
            assert!(before.is_none(), "record {sequence} of {node} is a second intent of one call");
        }
        intents
    }

    /// How each call ended. Every intent has one outcome behind it, and no outcome is without an intent.
    pub fn outcomes(&self) -> HashMap<Place, &str> {
        let begun: BTreeMap<Place, u64> =
            self.of_kind("intent").map(|((node, sequence), record)| ((node.clone(), record.call), *sequence)).collect();
        let mut outcomes = HashMap::new();
        for ((node, sequence), record) in self.of_kind("outcome") {
            let call = (node.clone(), record.call);
            let is_behind = begun.get(&call).is_some_and(|intent| intent < sequence);
            assert!(is_behind, "record {sequence} of {node} is an outcome without an intent: {record:?}");
            let before = outcomes.insert(call, &*record.status);
            assert!(before.is_none(), "record {sequence} of {node} is a second outcome: {record:?}");
        }
        let open: Vec<_> = begun.iter().filter(|(call, _)| !outcomes.contains_key(*call)).collect();
        assert!(open.is_empty(), "{} calls have no outcome: {open:?}", open.len());
        outcomes
    }

    /// The statuses of the calls of one tool, in their order.
    pub fn statuses_of(&self, tool: &str) -> Vec<&str> {
        let outcomes = self.outcomes();
        let of_tool = self.of_kind("intent").filter(|(_, record)| *record.tool == *tool);
        of_tool.filter_map(|((node, _), record)| outcomes.get(&(node.clone(), record.call)).copied()).collect()
    }

    /// Whether the index has every record once: those of calls and events as rows, outcomes in the rows of
    /// their calls.
    pub async fn are_indexed(&self, house: &House) {
        let exported = house.run(&["audit", "export"]).await;
        assert!(exported.succeeded && exported.err.is_empty(), "{}", exported.err);
        let (mut rows, mut outcomes) = (BTreeSet::new(), BTreeSet::new());
        for line in exported.out.lines() {
            let row = serde_json::from_str::<Row>(line);
            assert!(row.is_ok(), "{row:?}: {line}");
            let Ok(Row { node, sequence, outcome_sequence }) = row else { unreachable!("asserted") };
            assert!(rows.insert((node.clone(), sequence)), "the index has a record twice: {line}");
            let is_new = outcome_sequence.is_none_or(|sequence| outcomes.insert((node, sequence)));
            assert!(is_new, "the index has an outcome twice: {line}");
        }
        let of_kinds = |kinds: &[&'static str]| -> BTreeSet<Place> {
            kinds.iter().flat_map(|kind| self.of_kind(kind)).map(|(place, _)| place.clone()).collect()
        };
        assert_same(&of_kinds(&["intent", "refusal", "event"]), &rows);
        assert_same(&of_kinds(&["outcome"]), &outcomes);
    }
}

fn assert_same(journal: &BTreeSet<Place>, index: &BTreeSet<Place>) {
    let missing: Vec<_> = journal.difference(index).take(5).collect();
    let foreign: Vec<_> = index.difference(journal).take(5).collect();
    assert!(missing.is_empty() && foreign.is_empty(), "not in the index: {missing:?}; only in the index: {foreign:?}");
}

/// The directories of a home's journal.
pub fn nodes(house: &House) -> Vec<PathBuf> {
    list(&house.path("home/.local/share/toolwarden/journal")).into_iter().filter(|path| path.is_dir()).collect()
}

/// The files of a node, in their order.
pub fn segments(node: &Path) -> Vec<PathBuf> {
    list(node).into_iter().filter(|path| path.extension().is_some_and(|end| end == "log")).collect()
}

fn list(path: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A line is a hash and a record.
pub fn record(line: &str) -> Option<Record> {
    serde_json::from_str(line.split_once(' ')?.1).ok()
}

/// Says under which digest a call stands in the journal.
pub struct Digests(Ring);

/// The copy of the sealed roots in the data directory.
#[derive(Deserialize)]
struct Kept {
    id: u32,
    state: String,
    master: String,
    sealed: String,
}

/// Nothing but the key file is needed.
#[derive(Debug)]
struct FileAlone(PathBuf);

impl Supplies for FileAlone {
    fn variable(&self, _name: &str) -> Option<Secret> {
        None
    }

    fn passphrase(&self, _asking: Asking) -> Result<Secret, String> {
        Err("nobody is asked".to_owned())
    }

    fn directory(&self) -> &Path {
        &self.0
    }
}

impl Digests {
    pub fn of(house: &House) -> Self {
        let kept = fs::read(house.path("home/.local/share/toolwarden/roots.json")).unwrap_or_default();
        let kept: Vec<Kept> = serde_json::from_slice(&kept).unwrap_or_default();
        let bytes = |digits: &str| {
            let pairs = digits.as_bytes().chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
            pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok()).collect()
        };
        let stored = kept.iter().filter_map(|kept| {
            let (state, sealed) = (KeyState::from_word(&kept.state)?, bytes(&kept.sealed));
            Some(StoredKey { id: kept.id, state, master: kept.master.clone(), sealed })
        });
        let stored: Vec<StoredKey> = stored.collect();
        let supplies = FileAlone(house.path("home/.config/toolwarden"));
        let master = KeySource::File(KEY_FILE.into()).obtain(&supplies, &stored);
        let ring = master.ok().and_then(|master| Ring::open(&master, &stored).ok());
        assert!(ring.is_some(), "{stored:?}");
        let Some(ring) = ring else { unreachable!("asserted") };
        Self(ring)
    }

    /// The digest of an echo of this number.
    pub fn echo(&self, number: &str) -> String {
        let params = call_params(ECHO, &json!({ "number": number })).to_string();
        let document = Document::parse(params, Limits::DEFAULT);
        assert!(document.is_ok(), "{document:?}");
        let Ok(document) = document else { unreachable!("asserted") };
        let digest = Digest::of_part(&Part::whole(Arc::new(document)));
        Digest::from_bytes(self.0.mark(Purpose::ArgumentDigest, digest.as_bytes())).to_string()
    }
}
