//! A test that cannot do its work fails. It never ends early as if it had passed.

use crate::workspace::{File, read, rust_files};

/// Ways in which a test would end early and count as passed.
const ESCAPES: [&str; 5] =
    ["{ return }", "{ return Ok(()) }", "{ return assert!", "else { return; }", "else { return Ok(()); }"];

/// The functions of a file, with the line each begins in and whether a test runner calls it.
fn functions_of(file: &File) -> Vec<(usize, bool, String)> {
    let lines: Vec<&str> = file.text.lines().collect();
    let is_function = |line: &str| {
        let begins = ["fn ", "async fn ", "pub fn ", "pub async fn ", "pub(super) fn ", "pub(super) async fn "];
        begins.iter().any(|begin| line.trim_start().starts_with(begin)) && !line.ends_with('}')
    };
    let is_mark = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test") || line.starts_with("#[test_case")
    };
    let mut found = Vec::new();
    for (at, head) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
        let indent = head.len() - head.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let body: Vec<&str> = lines.iter().skip(at).take_while(|line| **line != end).copied().collect();
        let marks = lines.iter().take(at).rev().take_while(|line| line.trim_start().starts_with(['#', '/']));
        found.push((at + 1, marks.into_iter().any(|line| is_mark(line)), body.join("\n")));
    }
    found
}

/// Whether all functions of a file are there for tests.
fn is_for_tests(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("_tests.rs") || path.ends_with("/tests.rs")
}

/// Whether a function can end early where it should have failed: a test, or a helper that checks something.
fn escapes(is_test: bool, is_for_tests: bool, body: &str) -> bool {
    let body = flat(body);
    let checks = is_test || (is_for_tests && body.contains("assert"));
    checks && ESCAPES.iter().any(|escape| body.contains(escape))
}

/// The text on one line, so that an escape is found however it is formatted.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn no_test_ends_early_as_if_it_had_passed() {
    let mut found = Vec::new();
    let mut tests = 0;
    for file in rust_files() {
        for (line, is_test, body) in functions_of(&file) {
            tests += usize::from(is_test);
            if escapes(is_test, is_for_tests(&file.path), &body) {
                found.push(format!("{}:{line}", file.path));
            }
        }
    }
    assert!(tests > 1000, "only {tests} tests were found");
    assert!(found.is_empty(), "these can end early and pass: assert, or use `else {{ unreachable!(..) }}`: {found:#?}");
}

#[test]
fn the_rule_finds_an_escape_in_any_layout() {
    let text = "#[test]\nfn a() {\n    let Some(x) = y else {\n        return;\n    };\n}\n\n#[test]\nfn b() {\n    c();\n}\n\n\
         async fn c() {\n    let Some(x) = y else {\n        return;\n    };\n    assert!(x);\n}\n\nfn d() {\n    let Some(x) = y else {\n        return;\n    };\n}\n";
    let file = File { path: "x_tests.rs".to_owned(), text: text.to_owned() };
    let of = |is_for_tests| -> Vec<bool> {
        functions_of(&file).iter().map(|(_, is_test, body)| escapes(*is_test, is_for_tests, body)).collect()
    };
    assert_eq!(of(true), [true, false, true, false]);
    assert_eq!(of(false), [true, false, false, false]);
}

/// As many changes of deciding code no test notices. Less is better; a new one is killed by a test, not added here.
const MOST_SURVIVORS: usize = 17;

#[test]
fn the_list_of_survivors_of_mutation_testing_only_shrinks() {
    let list = read("tests/mutants/survivors.txt");
    let survivors: Vec<&str> = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(survivors.len() <= MOST_SURVIVORS, "{} survivors", survivors.len());
    for survivor in survivors {
        let (mutant, reason) = survivor.split_once("  # ").unwrap_or_default();
        assert!(mutant.contains(".rs: ") && reason.len() > 5, "a survivor has a file and a reason: {survivor}");
    }
}
