//! Numbers by value, whatever their spelling (WORK-2): `5000`, `5e3` and `5000.0` are one number.
//!
//! Takes the text of a JSON number; reads it exactly, digit by digit. The cost depends on the length of the text,
//! never on the size of the exponent.

use std::fmt::Write;

/// The most digits written out in full; longer numbers are written with an exponent.
const LONGEST_PLAIN: i64 = 40;
/// The most digits of an exponent that is read. No text is long enough to balance a larger one.
const LONGEST_EXPONENT: usize = 15;

/// A number as rules can hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Whole(i64),
    /// An integer that does not fit into 64 bits.
    Beyond,
    Fraction,
}

/// Digits without zeros at either end, times ten to the power of `exponent`.
struct Parts {
    is_negative: bool,
    digits: String,
    exponent: Exponent,
}

enum Exponent {
    Exact(i64),
    /// Too large to be read.
    Huge,
    /// Too small to be read.
    Tiny,
}

/// The value of a JSON number.
pub(crate) fn value(text: &str) -> Number {
    // Most numbers are written plainly.
    if let Ok(whole) = text.parse() {
        return Number::Whole(whole);
    }
    let parts = parts(text);
    if parts.digits.is_empty() {
        return Number::Whole(0);
    }
    match parts.exponent {
        Exponent::Tiny => Number::Fraction,
        Exponent::Exact(exponent) if exponent < 0 => Number::Fraction,
        Exponent::Huge => Number::Beyond,
        Exponent::Exact(exponent) => {
            let zeros = usize::try_from(exponent).unwrap_or(usize::MAX);
            // 64 bits hold at most 19 digits.
            if parts.digits.len().saturating_add(zeros) > 19 {
                return Number::Beyond;
            }
            let sign = if parts.is_negative { "-" } else { "" };
            let plain = format!("{sign}{}{}", parts.digits, "0".repeat(zeros));
            plain.parse().map_or(Number::Beyond, Number::Whole)
        }
    }
}

/// The one text of a number, the same for every spelling of its value. None where the exponent is too long to be
/// read.
pub(crate) fn canonical(text: &str) -> Option<String> {
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole.to_string());
    }
    let parts = parts(text);
    if parts.digits.is_empty() {
        return Some("0".to_owned());
    }
    let Exponent::Exact(exponent) = parts.exponent else { return None };
    let mut written = String::from(if parts.is_negative { "-" } else { "" });
    let length = i64::try_from(parts.digits.len()).unwrap_or(i64::MAX);
    // Digits before the point.
    let before = length.saturating_add(exponent);
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    if exponent >= 0 && before <= LONGEST_PLAIN {
        written.push_str(&parts.digits);
        written.push_str(&zeros(exponent));
    } else if exponent < 0 && before > 0 && length <= LONGEST_PLAIN {
        let (whole, rest) = parts.digits.split_at_checked(usize::try_from(before).unwrap_or(0))?;
        let _ = write!(written, "{whole}.{rest}");
    } else if exponent < 0 && before <= 0 && exponent >= -LONGEST_PLAIN {
        let _ = write!(written, "0.{}{}", zeros(before.saturating_neg()), parts.digits);
    } else {
        // Writing to a string cannot fail.
        let _ = write!(written, "{}e{exponent}", parts.digits);
    }
    Some(written)
}

/// Whether a fraction of 64 bits is this number and no other: the shortest text that means it has the same value.
pub(crate) fn is_exactly(text: &str, fraction: f64) -> bool {
    let shortest = canonical(&format!("{fraction:e}"));
    canonical(text).is_some_and(|written| Some(written) == shortest)
}

fn parts(text: &str) -> Parts {
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = String::with_capacity(mantissa.len());
    digits.push_str(whole);
    digits.push_str(fraction);
    let kept = digits.trim_end_matches('0').len();
    let dropped = digits.len() - kept;
    digits.truncate(kept);
    let digits = digits.trim_start_matches('0').to_owned();
    let length = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    let exponent = match read_exponent(exponent) {
        Exponent::Exact(exponent) => {
            Exponent::Exact(exponent.saturating_sub(length(fraction.len())).saturating_add(length(dropped)))
        }
        unread => unread,
    };
    Parts { is_negative, digits, exponent }
}

fn read_exponent(text: &str) -> Exponent {
    let is_negative = text.starts_with('-');
    let digits = text.trim_start_matches(['+', '-']).trim_start_matches('0');
    match digits.parse::<i64>() {
        _ if digits.is_empty() => Exponent::Exact(0),
        Ok(exponent) if digits.len() <= LONGEST_EXPONENT => {
            Exponent::Exact(if is_negative { exponent.saturating_neg() } else { exponent })
        }
        _ if is_negative => Exponent::Tiny,
        _ => Exponent::Huge,
    }
}

#[cfg(test)]
#[path = "numbers_tests.rs"]
mod tests;
