//! Reads scripts of `sed`.
//! Takes the text of one script; says whether every command in it is known to only edit what is printed. Refuses the
//! commands and flags that execute (`e`), read or write files (`r`, `w`), groups, labels, newlines and every text that
//! implementations of `sed` read in different ways.

/// Whether a script is made of plain commands: `1,20p`, `/a/,/b/d`, `$!N`, `s/a/b/g`, `2i text`, parted by `;`.
pub(super) fn is_plain_script(script: &str) -> bool {
    if script.contains(['\n', '\r', '\0']) {
        return false;
    }
    let mut rest = script.trim_start_matches([' ', ';']);
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let Some(next) = behind_command(rest) else { return false };
        rest = next;
    }
    true
}

/// What stands behind the first command; `None` where it is not plain.
fn behind_command(script: &str) -> Option<&str> {
    let mut rest = behind_address(script)?;
    if let Some(second) = rest.strip_prefix(',') {
        let second = second.trim_start();
        let is_step = second.starts_with(['+', '~']);
        rest = if is_step { behind_number(second.get(1..)?)? } else { behind_address(second)? };
        // A second address must be there.
        if rest.len() == second.len() {
            return None;
        }
    }
    let rest = rest.trim_start().trim_start_matches('!').trim_start();
    let mut letters = rest.chars();
    let behind = match letters.next()? {
        'p' | 'd' | 'P' | 'D' | 'n' | 'N' | 'h' | 'H' | 'g' | 'G' | 'x' | '=' => letters.as_str(),
        'q' | 'l' => letters.as_str().trim_start().trim_start_matches(|digit: char| digit.is_ascii_digit()),
        's' => behind_substitution(letters.as_str())?,
        // The rest is text, up to the end of the script.
        'a' | 'i' | 'c' => return (!letters.as_str().is_empty() && !letters.as_str().ends_with('\\')).then_some(""),
        _ => return None,
    };
    let behind = behind.trim_start();
    match behind.strip_prefix(';') {
        Some(next) => Some(next.trim_start_matches([' ', ';'])),
        None => behind.is_empty().then_some(behind),
    }
}

/// What stands behind an address: a number, a step, `$` or a pattern; the text itself where there is none.
fn behind_address(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix('$') {
        return Some(rest);
    }
    if let Some(rest) = text.strip_prefix('/') {
        let (_, rest) = delimited(rest, '/')?;
        return Some(rest.strip_prefix('I').unwrap_or(rest));
    }
    let rest = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    match rest.strip_prefix('~').filter(|_| rest.len() != text.len()) {
        Some(step) => behind_number(step),
        None => Some(rest),
    }
}

fn behind_number(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    (rest.len() != text.len()).then_some(rest)
}

/// What stands behind a substitution and its flags.
fn behind_substitution(text: &str) -> Option<&str> {
    let delimiter = text.chars().next().filter(|first| "/|#,:@!%+~_".contains(*first))?;
    let (_, rest) = delimited(text.get(1..)?, delimiter)?;
    let (_, rest) = delimited(rest, delimiter)?;
    Some(rest.trim_start_matches(|flag: char| matches!(flag, 'g' | 'p' | 'i' | 'I') || flag.is_ascii_digit()))
}

/// Brackets that end elsewhere than at the first `]`: `[]x]`, `[^]x]`, `[[:digit:]]`.
const NESTED: [&str; 5] = ["[]", "[^]", "[:", "[.", "[="];

/// The text up to a delimiter and what stands behind it. Some implementations do not end a pattern inside of brackets.
fn delimited(text: &str, delimiter: char) -> Option<(&str, &str)> {
    let mut is_escaped = false;
    let mut is_bracketed = false;
    for (at, letter) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if letter == '\\' {
            is_escaped = true;
        } else if letter == delimiter {
            let inner = text.get(..at)?;
            let is_doubtful = is_bracketed || NESTED.iter().any(|opening| inner.contains(opening));
            return if is_doubtful { None } else { Some((inner, text.get(at.saturating_add(letter.len_utf8())..)?)) };
        } else if letter == '[' {
            is_bracketed = true;
        } else if letter == ']' {
            is_bracketed = false;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_plain_script;

    #[test]
    fn shell_3_only_scripts_that_edit_are_plain() {
        for script in [
            "1,20p",
            "p",
            "$p",
            "$!N",
            "/a/,/b/p",
            "/a/,$d",
            "/a/,+3d",
            "2~3p",
            "0~4d",
            "/x/I p",
            "s/foo/bar/g",
            "s/a\\/b/c/",
            "s|a|b|2gI",
            "s/[0-9]*/x/",
            "/a/s/b/c/",
            "1,5s/^/> /",
            "1p;3p",
            "s/a/b/;s/c/d/g",
            "2q",
            "1i #!/bin/sh; x",
            "a text",
            "/x/!d",
            "=",
        ] {
            assert!(is_plain_script(script), "{script}");
        }
        for script in [
            "",
            "e",
            "1e id",
            "e id",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/b/w x",
            "w x",
            "1w x",
            "r x",
            "R x",
            "W x",
            "/a/w x",
            "1,w x",
            "1,e",
            "s/a/b/;e",
            "s/a/b/;e id",
            "1p;w x",
            "1p;1e id",
            "p;e",
            "s/[/]/e;/x",
            "s/[/w x]/b/",
            "s/[]/]*.*/g;a;touch pwned/e",
            "s/[^]/]*.*/g;a;touch pwned/e",
            "s/[[:digit:]/]x/g;a;id/e",
            "/[]/]x/e;a/p",
            "/[/]e/p",
            "s/a/b\\/e",
            "sxaxbxe",
            "s/a/b/x",
            "{e}",
            "{p}",
            "1{p;e}",
            "b x",
            "t",
            ": x",
            "y/a/b/",
            "p\ne id",
            "a x\ne id",
            "a\\",
            "!e",
            "1!e",
            "\\,a,e",
            "F",
            "v",
            "z",
            "p e",
            "qe",
            "l 1e",
            "$!{e}",
        ] {
            assert!(!is_plain_script(script), "{script}");
        }
    }
}
