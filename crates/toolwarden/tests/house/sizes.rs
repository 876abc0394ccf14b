//! Files and functions stay small, files say what they are, and names mean something.

use crate::workspace::{File, rust_files};

const LONGEST_FILE: usize = 600;
const LONGEST_FUNCTION: usize = 100;

/// Files allowed to be longer. This list may only shrink.
const EXEMPT: [&str; 0] = [];

const BAG_NAMES: [&str; 6] = ["utils", "util", "common", "helper", "helpers", "manager"];

fn complaints(check: impl Fn(&File) -> Vec<String>) -> Vec<String> {
    rust_files().iter().flat_map(|file| check(file).into_iter().map(|line| format!("{}: {line}", file.path))).collect()
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn files_stay_small() {
    assert_none(&complaints(|file| {
        let lines = file.text.lines().count();
        let fits = lines <= LONGEST_FILE || EXEMPT.contains(&file.path.as_str());
        if fits { Vec::new() } else { vec![format!("{lines} lines, at most {LONGEST_FILE}")] }
    }));
}

#[test]
fn functions_stay_small() {
    assert_none(&complaints(|file| {
        functions(&file.text)
            .into_iter()
            .filter(|(_, _, length)| *length > LONGEST_FUNCTION)
            .map(|(line, name, length)| format!("{line}: `{name}` has {length} lines, at most {LONGEST_FUNCTION}"))
            .collect()
    }));
}

/// Functions by their first line, found by the closing brace of the same indentation.
fn functions(text: &str) -> Vec<(usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let starts = ["fn ", "pub fn ", "pub(crate) fn ", "pub(super) fn ", "async fn ", "const fn "];
        if !starts.iter().any(|start| trimmed.starts_with(start)) || trimmed.ends_with(';') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(line.len() - trimmed.len()));
        let length = lines.iter().skip(index).position(|later| *later == closing).map_or(1, |end| end + 1);
        let name = trimmed.split("fn ").nth(1).unwrap_or_default().split(['(', '<']).next().unwrap_or_default();
        found.push((index + 1, name.to_owned(), length));
    }
    found
}

#[test]
fn the_function_finder_finds() {
    let text = "impl X {\n    pub fn long(\n        a: u8,\n    ) {\n        a;\n    }\n}\nfn short() {}\n";
    assert_eq!(functions(text), [(2, "long".to_owned(), 5), (8, "short".to_owned(), 1)]);
}

#[test]
fn files_open_with_what_they_are() {
    assert_none(&complaints(|file| {
        if file.text.starts_with("//! ") { Vec::new() } else { vec!["does not open with `//!`".to_owned()] }
    }));
}

#[test]
fn names_mean_something() {
    assert_none(&complaints(|file| {
        let stem = file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs");
        let parts: Vec<&str> = stem.split('_').collect();
        let mut lines = Vec::new();
        if stem == "mod" {
            lines.push("`foo.rs` and `foo/`, no `mod.rs`".to_owned());
        }
        if BAG_NAMES.iter().any(|bag| parts.contains(bag)) {
            lines.push("a bag name says nothing".to_owned());
        }
        lines
    }));
}
