//! `docs/requirements.md` maps requirements to code and tests that exist.

use crate::workspace::{read, root, rust_files};

#[test]
fn every_place_named_exists() {
    let table = read("docs/requirements.md");
    let mut places = 0;
    for word in table
        .split('`')
        .filter(|word| word.starts_with("crates/") || word.starts_with("fuzz/") || word.starts_with("bench/"))
    {
        assert!(root().join(word).exists(), "docs/requirements.md names `{word}`, which is not there");
        places += 1;
    }
    assert!(places > 40, "only {places} places are named");
}

#[test]
fn every_test_named_exists() {
    let table = read("docs/requirements.md");
    let sources: String = rust_files().into_iter().map(|file| file.text).collect();
    let mut tests = 0;
    for name in table.split('`').filter_map(|word| word.strip_prefix("test:")) {
        assert!(
            sources.contains(&format!("fn {name}(")),
            "docs/requirements.md names the test `{name}`, which is not there"
        );
        tests += 1;
    }
    assert!(tests > 40, "only {tests} tests are named");
}
