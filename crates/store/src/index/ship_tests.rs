//! The moment between two segments: nothing written in it is skipped.

use std::fs::{self, OpenOptions};
use std::io::Write;

use super::{Cursor, Found, Row, STATEMENT_ROWS, SegmentReader, next_segment, segment_path, statements};

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
#[test]
fn batches_of_every_size_are_made_of_few_statements() {
    for size in 0..=450_u64 {
        let rows: Vec<Row> = (0..size).map(|sequence| Row { sequence, ..Row::default() }).collect();
        assert!(statements(&rows).all(|portion| STATEMENT_ROWS.contains(&portion.len())), "{size}");
        assert!(statements(&rows).flatten().map(|row| row.sequence).eq(0..size), "{size}");
    }
}
