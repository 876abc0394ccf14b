//! `envFile` of a client's server: `NAME=value` lines that the server gets in its environment.
//!
//! Takes a file inside the workspace; gives its variables. Anything that is not plainly such a line is a fault, and the
//! server is off: half an environment is another environment. Values are never repeated in messages.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use toolwarden_core::Secret;

use crate::files;
use crate::tree::decode;

const LARGEST: u64 = 256 * 1024;
const MOST_VARIABLES: usize = 1000;

/// Variables by name.
pub(crate) type Variables = BTreeMap<String, Secret>;

/// Where the file is: below the workspace, whatever links lead there.
///
/// # Errors
/// Why it is not read.
pub(crate) fn place(root: &Path, written: &str) -> Result<PathBuf, String> {
    let relative = ["${workspaceFolder}/", "${workspaceRoot}/", "./"]
        .iter()
        .find_map(|start| written.strip_prefix(start))
        .unwrap_or(written);
    if relative.contains("${") || relative.starts_with('~') {
        return Err("its path names something other than the workspace".to_owned());
    }
    let path = root.join(relative);
    let leaves = path.components().any(|part| part == Component::ParentDir);
    if leaves || !files::real(&path).starts_with(files::real(root)) {
        return Err("it is outside of the workspace".to_owned());
    }
    Ok(path)
}

/// Reads the file.
///
/// # Errors
/// Why it cannot be used, without what it holds.
pub(crate) fn read(path: &Path) -> Result<Variables, String> {
    let bytes = files::read(path, LARGEST).map_err(|error| error.to_string())?;
    parse(&bytes.ok_or("it does not exist")?)
}

fn parse(bytes: &[u8]) -> Result<Variables, String> {
    let text = decode(bytes).map_err(|error| error.message)?;
    let mut variables = Variables::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = |what: &str| format!("line {number}: {what}");
        let line = line.strip_prefix("export ").map_or(line, str::trim_start);
        let (name, rest) = line.split_once('=').ok_or_else(|| fault("not NAME=value"))?;
        if !is_name(name) {
            return Err(fault("the name is not letters, digits and `_`"));
        }
        let value = value(rest.trim_start()).map_err(fault)?;
        if variables.insert(name.to_owned(), Secret::new(value)).is_some() {
            return Err(fault("the variable is there twice"));
        }
        if variables.len() > MOST_VARIABLES {
            return Err(fault("too many variables"));
        }
    }
    Ok(variables)
}

fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_letter) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// A value, bare or in quotes; behind quotes only a comment may stand.
fn value(text: &str) -> Result<String, &'static str> {
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            let inner = text.get(1..).unwrap_or_default();
            let (value, rest) = inner.split_once('\'').ok_or("a quote is not closed")?;
            (value.to_owned(), rest)
        }
        Some('"') => quoted(text.get(1..).unwrap_or_default())?,
        _ => {
            let bare = text.split_once(" #").map_or(text, |(value, _)| value).trim_end();
            if bare.contains(['"', '\'', '`']) {
                return Err("a quote stands inside a value that has none around it");
            }
            (bare.to_owned(), "")
        }
    };
    let rest = rest.trim_start();
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err("something stands behind the closing quote");
    }
    if value.contains("${") || value.contains("$(") {
        return Err("values are taken as they are, so `${` and `$(` are refused");
    }
    if value.contains('\0') {
        return Err("a value holds a zero byte");
    }
    Ok(value)
}

fn quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((value, text.get(at + 1..).unwrap_or_default())),
            '\\' => match letters.next().map(|(_, letter)| letter) {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('r') => value.push('\r'),
                Some(plain @ ('"' | '\\' | '$' | '\'')) => value.push(plain),
                _ => return Err("an unknown escape"),
            },
            other => value.push(other),
        }
    }
    Err("a quote is not closed")
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn plain_lines_are_read_and_nothing_else() {
        let text = "# c\n\nA=1\nexport B = two words # c\nC='x # y'\nD=\"a\\\"b\\n\" # c\nE=\nF=a=b\n";
        // A space before `=` is no name.
        assert!(parse(text.as_bytes()).is_err());
        let read = parse(text.replace("B =", "B=").as_bytes()).unwrap_or_default();
        let found: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.reveal_to_upstream())).collect();
        assert_eq!(found, [("A", "1"), ("B", "two words"), ("C", "x # y"), ("D", "a\"b\n"), ("E", ""), ("F", "a=b")]);
        for bad in [
            "A",
            "=1",
            "1A=1",
            "A-B=1",
            "A='x",
            "A=\"x",
            "A=\"x\" y",
            "A='x'y",
            "A=1\nA=2",
            "A=${B}",
            "A=\"$(whoami)\"",
            "A=x\"y",
            "A=\"\\x\"",
            "A.B=1",
            "a b=1",
            "A=`whoami`",
        ] {
            let said = parse(bad.as_bytes()).err();
            assert!(said.is_some_and(|said| said.contains("line ") && !said.contains("whoami")), "{bad:?}");
        }
        assert!(parse(b"A=\xff").is_err() && parse(b"A=a\0b").is_err());
    }
}
