//! Log lines are readable, bounded and not forgeable.

use std::time::Duration;

use tokio::time::Instant;

use super::{LINES, PERIOD, Rate, SHOWN, readable};

#[test]
fn control_characters_are_escaped_and_long_lines_cut() {
    assert_eq!(readable("started é\r".as_bytes()), "started é");
    assert_eq!(readable(b"a\x1b[2Jb\r\tc\x00"), "a\\u{1b}[2Jb\\u{d}\tc\\u{0}");
    assert_eq!(readable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
    assert_eq!(readable(b"\xff"), "\u{fffd}");
    assert_eq!(readable(&vec![b'x'; SHOWN + 1]).len(), SHOWN + 3);
}

#[test]
fn a_flood_is_counted_and_not_shown() {
    let start = Instant::now();
    let mut rate = Rate::new(start);
    let shown = (0..LINES + 50).filter(|_| rate.count(start).0).count();
    assert_eq!(shown, LINES as usize);
    assert_eq!(rate.count(start + PERIOD), (true, 50));
    assert_eq!(rate.count(start + PERIOD + Duration::from_secs(1)), (true, 0));
}
