//! Bytes a second that results are looked through with, by what they are made of. `make bench`.

use divan::Bencher;
use divan::counter::BytesCount;
use toolwarden_core::json::Part;
use toolwarden_guard::Screen;
use toolwarden_sources::{HiddenText, Screening, ScreeningRules};

fn main() {
    divan::main();
}

const PROSE: &str = "The quick brown fox jumps over the lazy dog, and nobody asks for its papers twice.\n";
const CODE: &str =
    "    let answer = self.tokens.next().map(|token| token.key(&self.keys))?; // https://example.com/a\n";
const LOG: &str =
    "2026-11-16T12:48:38Z INFO id=7f9c24e8-3b12-4fef-91e0-56a2b1f2d7aa path=/v1/users status=200 took=12\n";
const GREEK: &str = "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία, γραμμή προς γραμμή, χωρίς κρυφά σημεία.\n";

/// A clean result of a megabyte.
#[divan::bench(args = [PROSE, CODE, LOG, GREEK])]
fn clean(bencher: Bencher<'_, '_>, line: &str) {
    let rules = ScreeningRules { secrets: Screening::Redact, hidden: HiddenText::Neutralise, patterns: Vec::new() };
    let text = serde_json::Value::from(line.repeat((1 << 20) / line.len())).to_string();
    let result = Part::composed(format!(r#"{{"content":[{{"type":"text","text":{text}}}]}}"#));
    let (Some(screen), Ok(result)) = (Screen::of(&rules), result) else { return };
    assert!(screen.look(&result).is_clean());
    bencher
        .counter(BytesCount::new(result.raw().len()))
        .bench_local(|| screen.look(divan::black_box(&result)).is_clean());
}
