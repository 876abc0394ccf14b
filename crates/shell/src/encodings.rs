//! Decodes the ways in which a text can spell another: `%2F`, `\u002f`, `\x2f` and `\057`.
//! Takes a text of a call; gives it decoded once, or nothing where it holds no such spelling. A tool may decode its
//! arguments before it opens a file, so a name counts in every spelling.

/// The text with every encoded byte and character decoded once.
#[must_use]
pub fn decoded(text: &str) -> Option<String> {
    if !text.contains(['%', '\\']) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut was_decoded = false;
    let mut left = text.as_bytes();
    while let Some((first, rest)) = left.split_first() {
        if let Some((byte, rest)) = encoded_byte(left) {
            bytes.push(byte);
            was_decoded = true;
            left = rest;
        } else if let Some((character, rest)) = escaped_character(left) {
            bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
            was_decoded = true;
            left = rest;
        } else {
            bytes.push(*first);
            left = rest;
        }
    }
    was_decoded.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// `%2F`, `\x2f`, `\057` or `\57`.
fn encoded_byte(text: &[u8]) -> Option<(u8, &[u8])> {
    let (start, digits, base) = match text {
        [b'%', ..] => (1, 2, 16),
        [b'\\', b'x', ..] => (2, 2, 16),
        [b'\\', b'0'..=b'3', b'0'..=b'7', b'0'..=b'7', ..] => (1, 3, 8),
        [b'\\', b'4'..=b'7', b'0'..=b'7', ..] => (1, 2, 8),
        _ => return None,
    };
    let (digits, rest) = text.get(start..)?.split_at_checked(digits)?;
    Some((u8::try_from(number(digits, base)?).ok()?, rest))
}

/// `\u002f` or `\u{2f}`.
fn escaped_character(text: &[u8]) -> Option<(char, &[u8])> {
    let rest = text.strip_prefix(b"\\u")?;
    let (digits, rest) = match rest.strip_prefix(b"{") {
        Some(rest) => {
            let end = rest.iter().take(MOST_DIGITS).position(|byte| *byte == b'}')?;
            (rest.get(..end)?, rest.get(end.saturating_add(1)..)?)
        }
        None => rest.split_at_checked(4)?,
    };
    Some((char::from_u32(number(digits, 16)?)?, rest))
}

/// Digits between the braces of `\u{..}`, and the closing one.
const MOST_DIGITS: usize = 7;

fn number(digits: &[u8], base: u32) -> Option<u32> {
    let mut value = 0_u32;
    for digit in digits {
        value = value.checked_mul(base)?.checked_add(char::from(*digit).to_digit(base)?)?;
    }
    (!digits.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn every_spelling_is_decoded_once() {
        for (text, expected) in [
            ("a%2Fb%2eC", "a/b.C"),
            ("%252e", "%2e"),
            (r"a\u002fb", "a/b"),
            (r"\u{2F}x\u{00e9}", "/x\u{e9}"),
            (r"m\x61ster", "master"),
            (r"\057etc\57x", "/etc/x"),
            (r"%5cu002f", r"\u002f"),
        ] {
            assert_eq!(decoded(text).as_deref(), Some(expected), "{text}");
        }
        for plain in [
            "",
            "100%",
            "%",
            "%2",
            "%zz",
            "% 2",
            r"C:\users\x",
            r"\",
            r"\u12",
            r"\u{}",
            r"\u{1234567}",
            r"\u{110000}",
            r"\9",
        ] {
            assert_eq!(decoded(plain), None, "{plain}");
        }
    }
}
