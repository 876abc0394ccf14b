//! `docs/requirements.md` maps every requirement to code and tests that exist, or says that it is not built.

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

#[test]
fn every_test_that_security_names_exists() {
    let page = read("SECURITY.md");
    let sources: String = rust_files().into_iter().map(|file| file.text).collect();
    // Names of tests are sentences; what has fewer words is something else.
    let is_test = |word: &&str| {
        let is_name = word.bytes().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == b'_');
        is_name && word.split('_').count() > 4
    };
    let names: Vec<&str> = page.split('`').filter(is_test).collect();
    let missing: Vec<&&str> = names.iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "SECURITY.md names tests that are not there: {missing:#?}");
    assert!(names.len() > 100, "only {} tests are named", names.len());
}

/// The ids in the first column of the rows of a part of the document.
fn ids(part: &str) -> Vec<&str> {
    let first = |line: &'_ str| line.strip_prefix("| ").and_then(|rest| rest.split(" |").next().map(str::to_owned));
    let is_id = |cell: &str| {
        let family = cell.split_once('-').map(|(family, number)| (family, number.parse::<u32>().is_ok()));
        family.is_some_and(|(family, numbered)| numbered && family.bytes().all(|sign| sign.is_ascii_uppercase()))
    };
    part.lines()
        .filter(|line| first(line).is_some_and(|cell| is_id(&cell)))
        .filter_map(|line| line.split(' ').nth(1))
        .collect()
}

#[test]
fn every_requirement_is_answered_for_once() {
    let (document, listed) = (read("docs/requirements.md"), read("docs/requirement-ids.txt"));
    let parts = document.split_once("\n## Not built\n");
    assert!(parts.is_some(), "docs/requirements.md has no part `Not built`");
    let (built, unbuilt) = parts.unwrap_or_default();
    let (built, unbuilt) = (ids(built), ids(unbuilt));
    assert!(built.len() > 50 && !unbuilt.is_empty());
    let wrong: Vec<String> = listed
        .lines()
        .map(|id| (id, built.iter().chain(&unbuilt).filter(|known| **known == id).count()))
        .filter(|(_, rows)| *rows != 1)
        .map(|(id, rows)| format!("{id}: {rows} rows"))
        .collect();
    assert!(wrong.is_empty(), "every requirement has one row, built or not: {wrong:#?}");
    let unknown: Vec<&&str> =
        built.iter().chain(&unbuilt).filter(|id| !listed.lines().any(|known| known == **id)).collect();
    assert!(unknown.is_empty(), "rows of requirements that docs/requirement-ids.txt does not list: {unknown:?}");
}
