//! Lines: written and read alike, and every changed byte is seen.

use super::{ChainHash, LineFault, check_line, push_line};

#[test]
fn a_line_is_read_as_it_was_written() {
    let mut buffer = Vec::new();
    let first = push_line(&mut buffer, ChainHash::START, 1, b"\"kind\":\"event\"}");
    let second = push_line(&mut buffer, first, 2, b"\"kind\":\"event\"}");
    let lines: Vec<&[u8]> = buffer.split(|byte| *byte == b'\n').collect();
    let [one, two, end] = lines.as_slice() else { return assert_eq!(lines.len(), 3) };
    assert_eq!(check_line(one, ChainHash::START, 1).map(|(hash, _)| hash), Ok(first));
    let json: &[u8] = b"{\"seq\":2,\"kind\":\"event\"}";
    assert_eq!(check_line(two, first, 2), Ok((second, json)));
    assert!(end.is_empty());
    assert_eq!(check_line(two, ChainHash::START, 2), Err(LineFault::Hash));
    assert_eq!(check_line(two, first, 3), Err(LineFault::Sequence));
    assert_eq!(check_line(b"", first, 3), Err(LineFault::Shape));
    for position in 0..one.len() {
        let mut changed = one.to_vec();
        if let Some(byte) = changed.get_mut(position) {
            *byte ^= 1;
        }
        assert!(check_line(&changed, ChainHash::START, 1).is_err(), "byte {position}");
    }
}

#[test]
fn the_hash_is_plain_sha_256() {
    // Anybody can check a journal with standard tools: printf '%064d' 0 | xxd -r -p; printf '{"seq":1,}' | sha256sum.
    let mut buffer = Vec::new();
    let hash = push_line(&mut buffer, ChainHash::START, 1, b"}");
    let mut bytes = vec![0; 32];
    bytes.extend_from_slice(b"{\"seq\":1,}");
    assert_eq!(hash.to_string(), toolwarden_core::Digest::of_bytes(&bytes).to_string());
}
