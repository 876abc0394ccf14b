//! The moment between two segments: nothing written in it is skipped.

use std::fs::{self, OpenOptions};
use std::io::Write;

use sqlx::Connection as _;

use super::{Batch, Cursor, Found, Index, Row, SegmentReader, next_segment, segment_path, store};

#[test]
fn lines_that_come_just_before_the_next_segment_are_read_first() -> Result<(), std::io::Error> {
    let directory = tempfile::tempdir()?;
    let first = segment_path(directory.path(), 1);
    fs::write(&first, "one\n")?;
    let mut reader = SegmentReader::open(&first, 0)?;
    let mut end = Cursor::START;
    assert_eq!((reader.advance()?, reader.advance()?), (Found::Line, Found::End));
    assert_eq!(next_segment(directory.path(), &mut reader, &mut end)?, Found::End, "there is no next one yet");
    // Between our seeing the end and our looking for the next segment, the writer did both.
    OpenOptions::new().append(true).open(&first)?.write_all(b"two\n")?;
    let second = segment_path(directory.path(), 2);
    fs::write(&second, "")?;
    assert_eq!(next_segment(directory.path(), &mut reader, &mut end)?, Found::Line);
    assert_eq!((reader.line(), end.segment), (b"two".as_slice(), 1));
    // A segment without a whole line is not gone into.
    assert_eq!(reader.advance()?, Found::End);
    assert_eq!(next_segment(directory.path(), &mut reader, &mut end)?, Found::End);
    assert_eq!(end.segment, 1);
    fs::write(&second, "three\n")?;
    assert_eq!(next_segment(directory.path(), &mut reader, &mut end)?, Found::Line);
    assert_eq!((reader.line(), end.segment, reader.offset), (b"three".as_slice(), 2, 6));
    Ok(())
}

/// Batches are of any size; a connection keeps a few statements, not one for each size.
#[tokio::test]
async fn batches_of_many_sizes_leave_few_statements_behind() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let index = Index::open(&directory.path().join("audit.sqlite")).await?;
    let (mut start, mut sequence) = (Cursor::START, 0);
    for size in 1..=40 {
        let mut row = || {
            sequence += 1;
            Row { node: "serve-1".to_owned(), sequence, kind: "event".to_owned(), ..Row::default() }
        };
        let rows: Vec<Row> = (0..size).map(|_| row()).collect();
        let end = Cursor { offset: start.offset + 1, ..start };
        let batch = Batch { lines: size, rows, outcomes: Vec::new(), end, fault: None };
        assert!(store(&index, "serve-1", start, &batch).await?);
        start = end;
    }
    let connection = index.pool.acquire().await?;
    assert!(connection.cached_statements_size() < 10, "{}", connection.cached_statements_size());
    Ok(())
}
