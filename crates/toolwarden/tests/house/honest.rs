//! A test that cannot do its work fails. It never ends early as if it had passed.

use crate::workspace::{File, rust_files};

/// Ways in which a test would end early and count as passed.
const ESCAPES: [&str; 5] =
    ["{ return }", "{ return Ok(()) }", "{ return assert!", "else { return; }", "else { return Ok(()); }"];

/// The bodies of all functions that a test runner calls, with the line each begins in.
fn tests_of(file: &File) -> Vec<(usize, String)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let is_mark = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test")
    };
    let mut found = Vec::new();
    for (at, mark) in lines.iter().enumerate().filter(|(_, line)| is_mark(line)) {
        let indent = mark.len() - mark.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let body: Vec<&str> = lines.iter().skip(at).take_while(|line| **line != end).copied().collect();
        found.push((at + 1, body.join("\n")));
    }
    found
}

/// The text on one line, so that an escape is found however it is formatted.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_test_ends_early_as_if_it_had_passed() {
    let mut escapes = Vec::new();
    let mut tests = 0;
    for file in rust_files() {
        for (line, body) in tests_of(&file) {
            tests += 1;
            let body = flat(&body);
            if ESCAPES.iter().any(|escape| body.contains(escape)) {
                escapes.push(format!("{}:{line}", file.path));
            }
        }
    }
    assert!(tests > 1000, "only {tests} tests were found");
    assert!(
        escapes.is_empty(),
        "these tests can end early and pass: assert, or use `else {{ unreachable!(..) }}`: {escapes:#?}"
    );
}

#[test]
fn the_rule_finds_an_escape_in_any_layout() {
    let text =
        "#[test]\nfn a() {\n    let Some(x) = y else {\n        return;\n    };\n}\n\n#[test]\nfn b() {\n    c();\n}\n";
    let file = File { path: "x.rs".to_owned(), text: text.to_owned() };
    let found: Vec<bool> =
        tests_of(&file).iter().map(|(_, body)| ESCAPES.iter().any(|escape| flat(body).contains(escape))).collect();
    assert_eq!(found, [true, false]);
}
