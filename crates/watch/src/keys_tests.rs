//! Keys from bytes, whole and in parts.

use super::{Decoder, Key};

fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut decoder = Decoder::default();
    let mut keys = decoder.feed(bytes);
    keys.extend(decoder.idle());
    keys
}

#[test]
fn bytes_are_the_keys_that_terminals_send() {
    for (bytes, key) in [
        (&b"a"[..], Key::Char('a')),
        ("ü".as_bytes(), Key::Char('ü')),
        ("漢".as_bytes(), Key::Char('漢')),
        (b"\r", Key::Enter),
        (b"\x1b", Key::Escape),
        (b"\x7f", Key::Backspace),
        (b"\x1b[A", Key::Up),
        (b"\x1bOB", Key::Down),
        (b"\x1b[5~", Key::PageUp),
        (b"\x1b[6~", Key::PageDown),
        (b"\x1b[H", Key::Home),
        (b"\x1b[4~", Key::End),
        (b"\t", Key::Next),
        (b"\x1b[Z", Key::Previous),
        (b"\x03", Key::Interrupt),
        (b"\x1a", Key::Suspend),
        (b"\x1b[200~ay\r\x1b[201~", Key::Paste("ay\r".to_owned())),
    ] {
        assert_eq!(keys(bytes), vec![key.clone()], "{bytes:?}");
        // The same, byte by byte.
        let mut decoder = Decoder::default();
        let mut found: Vec<_> = bytes.iter().flat_map(|byte| decoder.feed(&[*byte])).collect();
        found.extend(decoder.idle());
        assert_eq!(found, vec![key], "{bytes:?}");
    }
}

/// A sequence nobody knows, a letter with Alt, a report of the mouse: none of its bytes is an answer.
#[test]
fn review_3_what_is_no_key_is_no_answer() {
    for bytes in
        [&b"\x1ba"[..], b"\x1b[1;5A", b"\x1b[<0;97;97M", b"\x1b[?97;97;97c", b"\x1bOa", b"\xff\xc3", b"\x1b[", b"\x01"]
    {
        assert_eq!(keys(bytes), Vec::new(), "{bytes:?}");
    }
    assert_eq!(keys(b"\x1b[97;\x1b[Aa"), vec![Key::Up, Key::Char('a')]);
    assert_eq!(keys(b"\x1b\x1b"), vec![Key::Escape, Key::Escape]);
    let endless = [&b"\x1b["[..], &[b'1'; 400]].concat();
    assert_eq!(keys(&endless), Vec::new());
    let mut decoder = Decoder::default();
    assert_eq!(decoder.feed(b"\x1b[200~aaaa"), Vec::new());
    assert!(!decoder.is_waiting());
    assert_eq!(decoder.feed(b"y\x1b[201~q"), vec![Key::Paste("aaaay".to_owned()), Key::Char('q')]);
}
