//! Delivery: new lines of every node's journal become rows, each exactly once.
//!
//! Rows and the cursor behind them are one transaction that holds only if the cursor is still where
//! reading began, so two processes may deliver at once. A line that does not fit the chain stops the
//! delivery of its node.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use sqlx::{AnyConnection, Row as _};

use super::row::Row;
use super::{Index, IndexError, Writers, signed, unsigned};
use crate::database::DatabaseError;
use crate::journal::{ChainHash, Found, Position, SegmentReader, check_line, nodes, segment_path};

/// At most so many lines become one transaction.
const BATCH_LINES: u64 = 2000;
/// So many rows become one statement. Few sizes, because a connection keeps every statement it has seen, each with
/// its memory; and not more than 200, because SQL bounds the number of values.
const STATEMENT_ROWS: [usize; 3] = [200, 20, 1];

/// What a delivery did.
#[derive(Debug, Default)]
pub struct Delivered {
    pub lines: u64,
    /// How far each node is in the index now.
    pub nodes: Vec<(String, u64)>,
    /// Nodes that could not be delivered to their end. The others were.
    pub problems: Vec<IndexError>,
}

/// Where reading a node goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cursor {
    position: Position,
    segment: u64,
    offset: u64,
}

impl Cursor {
    const START: Self = Self { position: Position::START, segment: 1, offset: 0 };
}

/// Delivers what every node below a journal root has that the index has not.
///
/// # Errors
/// The root or the database cannot be used; what is wrong with single nodes is in the result.
pub async fn ship(root: &Path, index: &Index) -> Result<Delivered, IndexError> {
    ship_at_most(root, index, u64::MAX).await
}

/// The same for a background task: about so many lines of each node, the rest another time.
pub(super) async fn ship_at_most(root: &Path, index: &Index, most: u64) -> Result<Delivered, IndexError> {
    let names = {
        let root = root.to_path_buf();
        blocking("root", move || nodes(&root)).await?
    };
    let mut delivered = Delivered::default();
    for node in names {
        match ship_node(root.join(&node), &index.stored_name(&node), index, most).await {
            Ok((lines, sequence)) => {
                delivered.lines += lines;
                delivered.nodes.push((node, sequence));
            }
            Err(error @ IndexError::Database(_)) => return Err(error),
            Err(error) => delivered.problems.push(error),
        }
    }
    Ok(delivered)
}

async fn ship_node(directory: PathBuf, node: &str, index: &Index, most: u64) -> Result<(u64, u64), IndexError> {
    let mut lines = 0;
    loop {
        let cursor = {
            let mut connection = index.database.pool.acquire().await?;
            read_cursor(&mut connection, node).await?
        };
        let (directory, name) = (directory.clone(), node.to_owned());
        let batch = blocking(node, move || read_batch(&directory, &name, cursor)).await?;
        if batch.end != cursor && store(index, node, cursor, &batch).await? {
            lines += batch.lines;
        }
        if let Some(sentence) = batch.fault {
            let sequence = batch.end.position.sequence;
            return Err(IndexError::Broken { node: node.to_owned(), sequence, sentence });
        }
        if batch.end == cursor || lines >= most {
            return Ok((lines, batch.end.position.sequence));
        }
    }
}

async fn blocking<T: Send + 'static>(
    node: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, IndexError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
    done.map_err(|error| IndexError::Journal { node: node.to_owned(), error })
}

async fn read_cursor(connection: &mut AnyConnection, node: &str) -> Result<Cursor, IndexError> {
    let query = "SELECT sequence, hash, segment, byte_offset FROM shipped WHERE node = $1";
    let Some(row) = sqlx::query(query).bind(node).fetch_optional(connection).await? else { return Ok(Cursor::START) };
    let hash: String = row.try_get("hash")?;
    let hash = ChainHash::parse(hash.as_bytes()).ok_or(DatabaseError::Value(hash))?;
    let position = Position { sequence: unsigned(row.try_get("sequence")?), hash };
    let (segment, offset) = (unsigned(row.try_get("segment")?), unsigned(row.try_get("byte_offset")?));
    Ok(Cursor { position, segment, offset })
}

/// Lines read and not yet stored.
#[derive(Debug)]
struct Batch {
    rows: Vec<Row>,
    /// Outcomes whose calls are not among the rows.
    outcomes: Vec<Row>,
    lines: u64,
    end: Cursor,
    /// Why nothing after `end` can be delivered.
    fault: Option<String>,
}

fn read_batch(directory: &Path, node: &str, start: Cursor) -> io::Result<Batch> {
    let mut batch = Batch { rows: Vec::new(), outcomes: Vec::new(), lines: 0, end: start, fault: None };
    let mut calls = HashMap::new();
    let mut reader = match SegmentReader::open(&segment_path(directory, start.segment), start.offset) {
        Ok(reader) => reader,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A node that never wrote has no first segment; any other segment was there once.
            batch.fault = (start != Cursor::START).then(|| "the segment that was read last is gone".to_owned());
            return Ok(batch);
        }
        Err(error) => return Err(error),
    };
    while batch.lines < BATCH_LINES {
        match reader.advance()? {
            Found::Line => {}
            Found::Torn => break,
            Found::End => match next_segment(directory, &mut reader, &mut batch.end)? {
                Found::Line => {}
                Found::Torn | Found::End => break,
            },
        }
        if let Err(sentence) = batch.take_line(node, &reader, &mut calls) {
            batch.fault = Some(sentence);
            break;
        }
    }
    Ok(batch)
}

/// Goes on with the next segment, where there is one, and reads its first line.
fn next_segment(directory: &Path, reader: &mut SegmentReader, end: &mut Cursor) -> io::Result<Found> {
    let mut next = match SegmentReader::open(&segment_path(directory, end.segment + 1), 0) {
        Ok(next) => next,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::End),
        Err(error) => return Err(error),
    };
    // A segment is complete once there is a next one, but more may have come since we saw its end.
    match reader.advance()? {
        Found::End => {}
        more => return Ok(more),
    }
    let found = next.advance()?;
    if found == Found::Line {
        *reader = next;
        end.segment += 1;
    }
    Ok(found)
}

impl Batch {
    /// Takes the line the reader is at, if it fits.
    fn take_line(&mut self, node: &str, reader: &SegmentReader, calls: &mut HashMap<u64, usize>) -> Result<(), String> {
        let before = self.end.position;
        let sequence = before.sequence + 1;
        let (hash, json) = check_line(reader.line(), before.hash, sequence).map_err(|fault| fault.to_string())?;
        let row: Row = serde_json::from_slice(json).map_err(|error| format!("record {sequence}: {error}"))?;
        self.end.position = Position { sequence, hash };
        self.end.offset = reader.offset;
        self.lines += 1;
        self.take(Row { node: node.to_owned(), hash: hash.to_string(), ..row }, calls);
        Ok(())
    }

    /// `calls` says which row a call of this batch has.
    fn take(&mut self, row: Row, calls: &mut HashMap<u64, usize>) {
        match row.kind.as_str() {
            // The chain's own lines.
            "segment" | "checkpoint" => {}
            "outcome" => match calls.remove(&row.call).and_then(|place| self.rows.get_mut(place)) {
                Some(intent) => intent.complete(row),
                None => self.outcomes.push(row),
            },
            "intent" => {
                calls.insert(row.call, self.rows.len());
                self.rows.push(row);
            }
            _ => self.rows.push(row),
        }
    }
}

/// Stores a batch if nobody else did in the meantime; says whether it was stored here.
async fn store(index: &Index, node: &str, start: Cursor, batch: &Batch) -> Result<bool, IndexError> {
    let mut writing = index.database.begin_writing(Writers::OfJournals).await?;
    if read_cursor(writing.connection(), node).await? != start {
        writing.rollback().await?;
        return Ok(false);
    }
    let engine = index.database.engine();
    for rows in statements(&batch.rows) {
        Row::insertion(engine, rows).query().execute(writing.connection()).await?;
    }
    for outcome in &batch.outcomes {
        let completed = outcome.completion().execute(writing.connection()).await?.rows_affected();
        if completed == 0 {
            // Its call is not known: it stands for itself rather than being lost.
            Row::insertion(engine, std::slice::from_ref(outcome)).query().execute(writing.connection()).await?;
        }
    }
    let Cursor { position, segment, offset } = batch.end;
    sqlx::query(
        "INSERT INTO shipped (node, sequence, hash, segment, byte_offset) VALUES ($1, $2, $3, $4, $5) \
         ON CONFLICT (node) DO UPDATE SET sequence = excluded.sequence, hash = excluded.hash, \
         segment = excluded.segment, byte_offset = excluded.byte_offset",
    )
    .bind(node)
    .bind(signed(position.sequence))
    .bind(position.hash.to_string())
    .bind(signed(segment))
    .bind(signed(offset))
    .execute(writing.connection())
    .await?;
    writing.commit().await?;
    Ok(true)
}

/// The rows in portions of the sizes statements have.
fn statements(mut rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    std::iter::from_fn(move || {
        let size = STATEMENT_ROWS.into_iter().find(|size| *size <= rows.len())?;
        let (portion, rest) = rows.split_at_checked(size)?;
        rows = rest;
        Some(portion)
    })
}

#[cfg(test)]
#[path = "ship_tests.rs"]
mod tests;
