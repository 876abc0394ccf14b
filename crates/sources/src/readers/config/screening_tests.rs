//! What `[screening]` and a server's keys take.

use super::super::{Standing, read_bytes};
use super::{HiddenText, Screening};

const SERVER: &str = "[servers.s]\nurl = \"https://s.example/mcp\"\n";

#[test]
fn every_key_is_read_and_patterns_of_the_file_count_for_every_server() {
    let text = format!(
        "[screening]\npatterns = [{{ name = \"badge\", pattern = 'B-\\d{{6}}' }}]\n{SERVER}screening = \"redact\"\nhidden_text = \"neutralise\"\n\
         patterns = [{{ name = \"ticket\", pattern = \"T-[0-9]+\" }}]\n[servers.t]\nurl = \"https://t.example/mcp\"\n"
    );
    let reading = read_bytes("toolwarden.toml", Standing::Operator, text.as_bytes());
    assert!(!reading.broken && reading.findings.is_empty(), "{:?}", reading.findings);
    let [first, second] = reading.value.servers.as_slice() else {
        unreachable!("there are two servers: {:?}", reading.findings)
    };
    assert_eq!((first.screening.secrets, first.screening.hidden), (Screening::Redact, HiddenText::Neutralise));
    let names: Vec<_> = first.screening.patterns.iter().map(|pattern| pattern.name.as_str()).collect();
    assert_eq!(names, ["ticket", "badge"]);
    assert_eq!((second.screening.secrets, second.screening.hidden), (Screening::Off, HiddenText::Pass));
}

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    let bomb = r"patterns = [{ name = 'a', pattern = '(?:\\pL{500}){500}' }]".replace(r"\\", r"\");
    for (keys, code, said) in [
        ("screening = \"on\"", "unknown_value", "withhold"),
        ("screenin = \"off\"", "unknown_key", "screenin"),
        ("hidden_text = \"show\"", "unknown_value", "neutralise"),
        ("patterns = [{ name = 'a', pattern = '(' }]", "invalid_pattern", "unclosed group"),
        ("patterns = [{ name = 'a', pattern = 'x*' }]", "invalid_pattern", "where nothing is"),
        (bomb.as_str(), "invalid_pattern", "1 MiB"),
        ("patterns = [{ name = 'A b', pattern = 'x' }]", "invalid_name", "small letters"),
        ("patterns = [{ pattern = 'x' }]", "missing_key", "`name`"),
        ("patterns = [{ name = 'a' }]", "missing_key", "`pattern`"),
        ("patterns = [{ name = 'a', pattern = 'x', flags = 'i' }]", "unknown_key", "flags"),
    ] {
        let text = format!("{SERVER}{keys}\n");
        let reading = read_bytes("toolwarden.toml", Standing::Operator, text.as_bytes());
        let found: Vec<_> = reading.findings.iter().map(|finding| (finding.code, format!("{finding:?}"))).collect();
        let fits = found.iter().any(|(is, words)| *is == code && words.contains(said) && words.contains('3'));
        assert!(reading.broken && fits, "{keys}: {found:?}");
    }
}
