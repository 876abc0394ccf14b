//! Log lines are readable, bounded and not forgeable.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_core::Secret;

use super::{LINES, PERIOD, Rate, SHOWN, Writer};

fn readable(line: &[u8]) -> String {
    let environment = vec![
        ("TOKEN".to_owned(), Secret::new("one\ttwo-three".to_owned())),
        ("MODE".to_owned(), Secret::new("on".to_owned())),
    ];
    Writer { server: "s".into(), has_answered: Arc::default(), last: Arc::default(), environment }.readable(line)
}

#[test]
fn control_characters_are_escaped_and_long_lines_cut() {
    assert_eq!(readable("started é\r".as_bytes()), "started é");
    assert_eq!(readable(b"a\x1b[2Jb\r\tc\x00"), "a\\u{1b}[2Jb\\u{d}\\u{9}c\\u{0}");
    assert_eq!(readable("a\u{202e}b\u{200b}".as_bytes()), "a\\u{202e}b\\u{200b}");
    assert_eq!(readable(b"\xff"), "\u{fffd}");
    assert_eq!(readable(&vec![b'x'; SHOWN + 1]).len(), SHOWN + 3);
}

/// Whole, before it is cut or escaped.
#[test]
fn values_of_the_environment_are_not_shown() {
    assert_eq!(readable(b"x one\ttwo-three on"), "x [TOKEN] on");
    let long = format!("{}one\ttwo-three", "x".repeat(SHOWN - 5));
    assert!(!readable(long.as_bytes()).contains("one"));
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
