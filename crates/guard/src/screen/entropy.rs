//! Texts that look drawn by lot: keys nobody gave a shape. Hashes, ids and encoded files look alike, so what is
//! known to be one of those is left out before anything is called a secret.

use std::ops::Range;

/// Shorter ones are ids, longer ones are files.
const SHORTEST: usize = 32;
const LONGEST: usize = 128;
/// Lines of encoded files have these lengths.
const LINES: [usize; 2] = [64, 76];
/// What stands before a checksum, never before a key.
const BEFORE_CHECKSUMS: [&str; 11] =
    ["sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "sha512:", "md5:", "h1:", "base64,", "etag: ", "w/\""];
/// How encoded JSON, pictures, archives, public keys and content ids begin.
const KNOWN_STARTS: [&str; 9] = ["eyJ", "iVBOR", "R0lGOD", "/9j/", "H4sI", "UEsDB", "AAAA", "MII", "Qm"];

/// Whether a byte can stand in a key or in base64.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
}

/// The places of texts that look drawn by lot. Looks at one byte in 32 where words are short.
pub(super) fn candidates(text: &str, mut found: impl FnMut(Range<usize>)) {
    let bytes = text.as_bytes();
    let is_token = |at: usize| bytes.get(at).copied().is_some_and(is_token_byte);
    let (mut start, mut block_end) = (0_usize, None);
    while let Some(probe) = start.checked_add(SHORTEST - 1).filter(|probe| *probe < bytes.len()) {
        // The last byte before the probe that cannot belong to it; all before that is too short.
        if let Some(gap) = (start..=probe).rev().find(|at| !is_token(*at)) {
            start = gap + 1;
            continue;
        }
        let end = (probe..bytes.len()).find(|at| !is_token(*at)).unwrap_or(bytes.len());
        let (before, token) = (text.get(..start).unwrap_or_default(), text.get(start..end).unwrap_or_default());
        let is_line = is_line_of_block(token.len(), before, text.get(end..).unwrap_or_default());
        let follows_block = block_end.is_some_and(|last| start - last <= 2);
        if is_line || follows_block {
            block_end = Some(end);
        } else if is_key(before, token) {
            found(start..end);
        }
        start = end + 1;
    }
}

/// Whether it is one line of an encoded file, such as a certificate.
fn is_line_of_block(length: usize, before: &str, after: &str) -> bool {
    let starts = before.is_empty() || before.ends_with('\n') || before.ends_with("\\n");
    let ends = after.starts_with(['\n', '\r']) || after.starts_with("\\n") || after.starts_with("\\r");
    LINES.contains(&length) && starts && ends
}

fn is_key(before: &str, token: &str) -> bool {
    let token = token.trim_matches(['=', '/', '-', '_']);
    if !(SHORTEST..=LONGEST).contains(&token.len()) || KNOWN_STARTS.iter().any(|start| token.starts_with(start)) {
        return false;
    }
    if !is_drawn_by_lot(token) {
        return false;
    }
    let tail = before.get(before.floor_char_boundary(before.len().saturating_sub(8))..).unwrap_or_default();
    let tail = tail.to_ascii_lowercase();
    let starts_like = |mark: &str| token.get(..mark.len()).is_some_and(|start| start.eq_ignore_ascii_case(mark));
    if BEFORE_CHECKSUMS.iter().any(|mark| tail.ends_with(mark)) || BEFORE_CHECKSUMS.iter().any(|mark| starts_like(mark))
    {
        return false;
    }
    !decodes_to_text(token)
}

/// Capitals, small letters and digits in the disorder of chance: words and names change their kind of letter
/// far less often.
pub(super) fn is_drawn_by_lot(token: &str) -> bool {
    let has = |is: fn(&u8) -> bool| token.bytes().any(|byte| is(&byte));
    let all_kinds = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    // What is joined from words has many joints.
    let joints = token.bytes().filter(|byte| !byte.is_ascii_alphanumeric()).count();
    all_kinds && joints * 6 <= token.len() && changes(token) * 100 >= token.len() * 38 && bits(token) >= 4.0
}

/// How often the next letter is of another kind.
fn changes(token: &str) -> usize {
    let kind = |byte: u8| match byte {
        b'0'..=b'9' => 0,
        b'a'..=b'z' => 1,
        b'A'..=b'Z' => 2,
        _ => 3,
    };
    token.bytes().zip(token.bytes().skip(1)).filter(|(one, next)| kind(*one) != kind(*next)).count()
}

/// Shannon's measure, in bits for each letter.
pub(super) fn bits(token: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in token.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let length = f64::from(u32::try_from(token.len()).unwrap_or(u32::MAX));
    let share = |count: u32| f64::from(count) / length;
    -counts.iter().filter(|count| **count > 0).map(|count| share(*count) * share(*count).log2()).sum::<f64>()
}

/// Base64 of something people can read is an encoding, not a key.
fn decodes_to_text(token: &str) -> bool {
    let (mut held, mut width, mut readable, mut all) = (0_u32, 0, 0_usize, 0_usize);
    for byte in token.bytes() {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => break,
        };
        held = (held << 6) | u32::from(six);
        width += 6;
        if width >= 8 {
            width -= 8;
            let byte = (held >> width) & 0xFF;
            all += 1;
            readable += usize::from((0x20..0x7F).contains(&byte) || byte == 0x0A);
        }
    }
    all > 0 && readable * 100 >= all * 85
}
