//! The journal of a long run, counted line by line: it may be larger than memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::caller::ECHO;
use crate::house::House;
use crate::journal::{nodes, record, segments};

/// Numbers of a whole journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Calls of `echo` that ended well.
    pub answered: u64,
    pub refused: u64,
    /// Records that have a row of their own in the index.
    pub rows: u64,
}

impl Tally {
    /// Counts, and holds every node to its order: no record is missing or there twice, every intent has one outcome
    /// behind it.
    pub fn of(house: &House) -> Self {
        let mut tally = Self::default();
        for node in nodes(house) {
            let (mut last, mut open) = (None, HashMap::new());
            for segment in segments(&node) {
                let lines = File::open(&segment).map(|file| BufReader::new(file).lines());
                for record in lines.into_iter().flatten().map_while(Result::ok).filter_map(|line| record(&line)) {
                    let is_next = last.is_none_or(|last| record.seq == last + 1);
                    assert!(is_next, "{} follows {last:?} in {}", record.seq, segment.display());
                    last = Some(record.seq);
                    tally.rows += u64::from(matches!(&*record.kind, "intent" | "refusal" | "event"));
                    match &*record.kind {
                        "refusal" => tally.refused += 1,
                        "intent" => assert!(open.insert(record.call, &*record.tool == ECHO).is_none()),
                        "outcome" => {
                            let is_echo = open.remove(&record.call);
                            assert!(is_echo.is_some(), "record {} is an outcome without an intent", record.seq);
                            tally.answered += u64::from(is_echo == Some(true) && &*record.status == "ok");
                        }
                        _ => {}
                    }
                }
            }
            assert!(open.is_empty(), "{} calls have no outcome", open.len());
        }
        tally
    }

    /// Whether the index has as many rows.
    pub async fn is_indexed(&self, house: &House) {
        let told = house.run(&["audit", "stats", "--json"]).await;
        let total = serde_json::from_str::<Value>(&told.out).ok().and_then(|told| told.get("total")?.as_u64());
        assert_eq!(total, Some(self.rows), "{told:?}");
    }
}
