//! WORK-2: a number's value does not depend on its spelling.

use proptest::prelude::{ProptestConfig, any, prop, proptest};

use super::{Number, canonical, value};

#[test]
fn work_2_integers_of_any_spelling_are_integers() {
    for text in ["5000", "5e3", "5E3", "5e+3", "5e03", "5000.0", "5000.000", "50e2", "0.5e4", "0.005E6", "5000000e-3"] {
        assert_eq!(value(text), Number::Whole(5000), "{text}");
        assert_eq!(canonical(text).as_deref(), Some("5000"), "{text}");
    }
    for text in ["0", "-0", "0.0", "-0.0", "0e5", "0e-5", "-0e99999999999999999999", "0.000E+999999999"] {
        assert_eq!(value(text), Number::Whole(0), "{text}");
        assert_eq!(canonical(text).as_deref(), Some("0"), "{text}");
    }
    for (text, whole) in [
        ("9223372036854775807", i64::MAX),
        ("9223372036854775807.0", i64::MAX),
        ("922337203685477580.7e1", i64::MAX),
        ("-9223372036854775808", i64::MIN),
        ("-9223372036854775808e0", i64::MIN),
        ("-5e3", -5000),
        ("1e18", 1_000_000_000_000_000_000),
    ] {
        assert_eq!(value(text), Number::Whole(whole), "{text}");
    }
}

#[test]
fn work_2_what_is_no_64_bit_integer_is_told_apart() {
    for text in ["9223372036854775808", "-9223372036854775809", "99999999999999999999", "1e19", "1e999999999", "1e400"]
    {
        assert_eq!(value(text), Number::Beyond, "{text}");
    }
    assert_eq!(value(&format!("1e{}", "9".repeat(100_000))), Number::Beyond);
    for text in ["0.5", "5000.5", "5e-1", "1e-999999999", "4999.99999999999999999999", "1000.0000000000000000000001"] {
        assert_eq!(value(text), Number::Fraction, "{text}");
    }
    assert_eq!(value(&format!("1e-{}", "9".repeat(100_000))), Number::Fraction);
}

#[test]
fn work_2_every_value_has_one_text() {
    for (texts, one) in [
        (&["1.5", "15e-1", "0.15e1", "1.50", "150E-2"][..], "1.5"),
        (&["-0.001", "-1e-3", "-10e-4"], "-0.001"),
        (&["99999999999999999999", "9.9999999999999999999e19"], "99999999999999999999"),
        (&["1e400", "10e399", "0.1e401"], "1e400"),
        (&["1e-400", "10e-401"], "1e-400"),
    ] {
        for text in texts {
            assert_eq!(canonical(text).as_deref(), Some(one), "{text}");
        }
    }
    assert_eq!(canonical(&format!("1e{}", "9".repeat(30))), None);
    assert_eq!(canonical("1e999999999").as_deref(), Some("1e999999999"), "nothing is written out");
}

/// Another spelling of the same value: the point moved, zeros added, the exponent to match.
pub(crate) fn respelt(digits: &str, exponent: i64, shift: usize, zeros: usize) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let padded = format!("{}{digits}", "0".repeat(shift + 1));
    let (whole, fraction) = padded.split_at(padded.len() - shift);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let fraction = format!("{fraction}{}", "0".repeat(zeros));
    let point = if fraction.is_empty() { "" } else { "." };
    let exponent = exponent + i64::try_from(shift).unwrap_or(0);
    format!("{sign}{whole}{point}{fraction}e{exponent}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_2_respelling_changes_nothing(
        whole in prop::num::i64::ANY, exponent in -30_i64..30, shift in 0_usize..30, zeros in 0_usize..5,
    ) {
        let plain = whole.to_string();
        let integer = respelt(&plain, 0, shift, zeros);
        assert_eq!(value(&integer), Number::Whole(whole), "{integer}");
        assert_eq!(canonical(&integer), Some(plain.clone()), "{integer}");
        let (one, other) = (respelt(&plain, exponent, 0, 0), respelt(&plain, exponent, shift, zeros));
        assert_eq!(value(&one), value(&other), "{one} {other}");
        assert_eq!(canonical(&one), canonical(&other), "{one} {other}");
    }

    #[test]
    fn work_2_different_values_have_different_texts(one in any::<(i32, i8)>(), other in any::<(i32, i8)>()) {
        let text = |(digits, exponent): (i32, i8)| format!("{digits}e{exponent}");
        let equal = |(digits, exponent): (i32, i8), (others, power): (i32, i8)| {
            let least = i32::from(exponent.min(power));
            let scaled = |digits: i32, exponent: i8| {
                let zeros = u32::try_from(i32::from(exponent) - least).unwrap_or(0);
                10_i128.checked_pow(zeros).and_then(|factor| factor.checked_mul(digits.into()))
            };
            scaled(digits, exponent).zip(scaled(others, power)).map(|(one, other)| one == other)
        };
        if let Some(equal) = equal(one, other) {
            assert_eq!(canonical(&text(one)) == canonical(&text(other)), equal, "{one:?} {other:?}");
        }
    }
}
