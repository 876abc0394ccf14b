//! A copy of the sealed roots beside the record, so that a record can be checked and continued when its store is lost.
//!
//! The roots are sealed by the master key, in the copy as in the store. A copy that cannot be written is no reason to stop.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use toolwarden_core::digest::hex;
use toolwarden_sources::{Locations, stored};
use toolwarden_store::KeyRow;

const FILE: &str = "roots.json";

/// A row of the store, as the copy has it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: u32,
    state: String,
    master: String,
    sealed: String,
}

impl From<&KeyRow> for Row {
    fn from(row: &KeyRow) -> Self {
        Self { id: row.id, state: row.state.clone(), master: row.master.clone(), sealed: hex(&row.sealed) }
    }
}

/// The roots of the copy; none where there is none.
///
/// # Errors
/// It cannot be read, or others may read or change it.
pub fn read(locations: &Locations) -> Result<Option<Vec<KeyRow>>> {
    if !locations.data_dir.join(FILE).exists() {
        return Ok(None);
    }
    let rows: Option<Vec<Row>> = stored::read_at(locations, Path::new(FILE))?;
    let row = |row: Row| KeyRow { id: row.id, state: row.state, master: row.master, sealed: bytes(&row.sealed) };
    Ok(rows.map(|rows| rows.into_iter().map(row).collect()))
}

/// Makes the copy say what the store holds, where there is a data directory.
pub fn keep(locations: &Locations, rows: &[KeyRow]) {
    let known: Option<Vec<Row>> = stored::read_at(locations, Path::new(FILE)).ok().flatten();
    let rows: Vec<Row> = rows.iter().map(Row::from).collect();
    if rows.is_empty() || known.as_ref() == Some(&rows) || !locations.data_dir.is_dir() {
        return;
    }
    if let Err(error) = stored::replace_copy(locations, Path::new(FILE), &rows) {
        tracing::warn!("the copy of the sealed roots cannot be written: {error}");
    }
}

/// Digits that are none end the text: then the row does not open.
fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map_while(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
