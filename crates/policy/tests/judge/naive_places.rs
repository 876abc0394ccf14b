//! SELF-1 for the arguments of tools, the slow way: every text is spelt out and compared with every place.

use serde_json::Value;

use crate::naive::Case;
use crate::naive_self::{begins_with_changing_verb, is_us, text_changes_us, words_run_us};
use crate::naive_shell::{self, program};

/// Whether any text of the arguments, keys included, names a place or runs us.
pub fn changes_us(case: &Case<'_>) -> bool {
    let mut texts = Vec::new();
    let mut lists = Vec::new();
    collect(&case.arguments, &mut texts, &mut lists);
    let runs = lists.iter().any(|words| (0..words.len()).any(|at| words.get(at..).is_some_and(words_run_us)));
    let mut together = Vec::new();
    put_together(&case.arguments, "", &mut together);
    // Only paths that end in a place count: directories above one are given to every tool.
    let names: Vec<String> = case
        .input
        .base
        .protected_paths
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().to_lowercase())
        .collect();
    together.retain(|path: &String| names.iter().any(|name| path.to_lowercase().contains(name)));
    let own = case.query.workspace().map(|path| path.to_string_lossy().into_owned());
    let mut bases = vec![own.clone()];
    bases.extend(values(&case.arguments).iter().filter_map(|text| above(text, own.as_deref(), case)).map(Some));
    let from = |base: Option<&str>| {
        texts.iter().any(|text| names_a_place(text, base, case) || runs_us(text, base, case))
            || together.iter().any(|path| names_a_place(path, base, case))
    };
    runs || bases.iter().any(|base| from(base.as_deref())) || starts_us(&case.arguments)
}

/// Texts that are no keys.
fn values(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(values).collect(),
        Value::Object(members) => members.values().flat_map(values).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// The directory above the workspace that a text is: relative names may be seen from there.
fn above(text: &str, own: Option<&str>, case: &Case<'_>) -> Option<String> {
    let own = own?.to_lowercase();
    let lower = text.to_lowercase();
    let home = case.input.base.home.as_ref().map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
    let is_path =
        lower.starts_with(['/', '.']) || lower == "~" || lower.starts_with("~/") || lower.starts_with("$home");
    let whole = absolute(&lower, &home, Some(&own));
    let is_above = whole != own && (whole.is_empty() || whole == "/" || own.starts_with(&format!("{whole}/")));
    (is_path && is_above).then_some(whole)
}

/// Paths that lists of names, keys of trees, and two members of one object make together.
fn put_together(value: &Value, keys: &str, paths: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            let names: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
            paths.extend(names.filter(|names| names.len() > 1).map(|names| names.join("/")));
            items.iter().for_each(|item| put_together(item, keys, paths));
        }
        Value::Object(members) => {
            let texts: Vec<&str> = members.values().filter_map(Value::as_str).collect();
            paths.extend(texts.iter().flat_map(|first| texts.iter().map(move |second| format!("{first}/{second}"))));
            for (key, member) in members {
                let keys = format!("{keys}/{key}");
                let starts = keys.match_indices('/').filter_map(|(at, _)| keys.get(at.saturating_add(1)..));
                paths.extend(starts.filter(|path| path.contains('/')).map(str::to_owned));
                put_together(member, &keys, paths);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn collect(value: &Value, texts: &mut Vec<String>, lists: &mut Vec<Vec<String>>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(items) => {
            lists.push(items.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            items.iter().for_each(|item| collect(item, texts, lists));
        }
        Value::Object(members) => {
            texts.extend(members.keys().cloned());
            members.values().for_each(|member| collect(member, texts, lists));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// An object with our program in one member and a changing verb in another.
fn starts_us(value: &Value) -> bool {
    let Some(members) = value.as_object() else {
        return value.as_array().is_some_and(|items| items.iter().any(starts_us));
    };
    let is_run = members.values().filter_map(Value::as_str).any(is_us);
    let verb = |value: &Value| match value {
        Value::Array(items) => {
            let words: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            begins_with_changing_verb(&words)
        }
        Value::String(text) => {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            begins_with_changing_verb(&words)
        }
        _ => false,
    };
    (is_run && members.values().any(verb)) || members.values().any(starts_us)
}

/// A command line, looked at where it has one of our names in it.
fn runs_us(text: &str, from: Option<&str>, case: &Case<'_>) -> bool {
    let base = &case.input.base;
    let names =
        base.protected_paths.iter().flat_map(|path| path.iter()).map(|name| name.to_string_lossy().to_lowercase());
    let lower = text.to_lowercase();
    let hinted =
        names.filter(|name| name.starts_with('.') || name.contains("toolwarden")).any(|name| lower.contains(&name));
    let at_home = lower.contains('~') || lower.contains("$home") || lower.contains("${home");
    let here = std::path::PathBuf::from(from.unwrap_or("/"));
    let begins = |part: &str| part.split_whitespace().next().is_some_and(|word| PROGRAMS.contains(&program(word)));
    let is_line = text.len() <= 2_048 && text.split([';', '|', '&', '(', '{', '\n', '`']).any(begins);
    // A line that names nothing of ours is looked at only where something else in the arguments does, or leaves its directory.
    let sent = case.arguments.to_string().to_lowercase();
    let marks = [
        " ..",
        "=..",
        "\"..",
        "~",
        "$home",
        "${home",
        "toolwarden",
        "/home",
        "\"home",
        "/ann",
        "\"ann",
        ".config",
        "dev/",
        "proc/",
        "/.config",
        "\"/*",
        "\"file:",
    ];
    let is_line = is_line && marks.iter().any(|mark| sent.contains(mark));
    (hinted || at_home || is_line) && text_changes_us(text, &here, case)
}

/// Programs of the generated texts that read, write or run others.
const PROGRAMS: [&str; 17] = [
    "toolwarden",
    "rm",
    "find",
    "cd",
    "sudo",
    "env",
    "nohup",
    "xargs",
    "bash",
    "sh",
    "eval",
    "npm",
    "cat",
    "ls",
    "grep",
    "echo",
    "cp",
];

fn names_a_place(text: &str, here: Option<&str>, case: &Case<'_>) -> bool {
    let base = &case.input.base;
    let home = base.home.as_ref().map(|home| home.to_string_lossy().into_owned()).unwrap_or_default();
    let is_workspace = base.workspaces.iter().any(|root| std::path::Path::new(text) == root);
    base.protected_paths.iter().any(|place| {
        let place = place.to_string_lossy().to_lowercase();
        forms(text).iter().any(|form| is_it(form, &place, &home, here, is_workspace))
    })
}

/// The text in small letters; without quotes; with percent signs read once, twice, three times.
fn forms(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let mut forms = vec![lower.replace(['"', '\'', '\\'], ""), lower];
    for _ in 0..3 {
        let last = forms.last().cloned().unwrap_or_default();
        forms.push(decoded(&last).to_lowercase());
    }
    forms
}

fn decoded(text: &str) -> String {
    match text.split_once('%') {
        None => text.to_owned(),
        Some((before, after)) => match after.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if byte.is_ascii() => {
                format!("{before}{}{}", char::from(byte), decoded(after.get(2..).unwrap_or("")))
            }
            _ => format!("{before}%{}", decoded(after)),
        },
    }
}

/// The text is the place, lies in it or holds it; or one of its pieces is the place or lies in it.
fn is_it(form: &str, place: &str, home: &str, here: Option<&str>, is_workspace: bool) -> bool {
    let address = form.strip_prefix("file://localhost").or_else(|| form.strip_prefix("file://")).unwrap_or(form);
    let whole = absolute(address, home, here);
    let looks_like_a_path = address.starts_with(['/', '~', '$', '.']) || address.contains('/');
    let holds_here = here.is_some_and(|here| format!("{here}/").starts_with(&format!("{whole}/")));
    // A directory people work in holds its own files, and that is no reason.
    let is_above = !is_workspace
        && looks_like_a_path
        && !whole.is_empty()
        && !holds_here
        && place.starts_with(&format!("{whole}/"));
    if is_above || is_or_in(&whole, place) {
        return true;
    }
    let parts: &[char] = &[
        ' ', '\n', '\t', '\'', '"', '`', '=', '<', '>', ',', ':', ';', '|', '&', '(', ')', '[', ']', '{', '}', '?',
        '#', '*',
    ];
    let mut pieces = form.split(parts).filter(|piece| piece.contains(['/', '.', '~']));
    pieces.any(|piece| {
        let sentence_end = piece.trim_end_matches(['.', '!']);
        is_or_in(&absolute(piece, home, here), place) || is_or_in(&absolute(sentence_end, home, here), place)
    })
}

/// A path from the root on, without `.` and `..`; empty for the root and for nothing.
fn absolute(path: &str, home: &str, here: Option<&str>) -> String {
    let from_home = path.strip_prefix('~').or_else(|| path.strip_prefix("$home"));
    let from_home = from_home.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let written = match from_home {
        Some(rest) => format!("{home}{rest}"),
        None if path.is_empty() => String::new(),
        None if path.starts_with('/') => path.to_owned(),
        None => format!("{}/{path}", here.unwrap_or("")),
    };
    naive_shell::absolute(&written, std::path::Path::new(""))
}

/// `/any/where/.config/toolwarden/x` lies in `/home/ann/.config/toolwarden`: from its hidden name on, a place is the
/// same wherever a tool works.
fn is_or_in(path: &str, place: &str) -> bool {
    let tail = place.rfind("/.").and_then(|at| place.get(at..)).unwrap_or(place);
    format!("{path}/").contains(&format!("{tail}/"))
}
