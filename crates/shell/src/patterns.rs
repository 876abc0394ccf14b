//! Compares patterns of a tool (`~/.config/tool*/master.key`, `/**/*.key`) with the names of a protected place.
//! Takes both as names from the root on, folded; says whether the pattern may stand for the place, for something inside
//! of it, or for everything below a directory above it. Wide: brackets count as any character, braces as any text.
//! Only endings narrow it: `/home/**/*.rs` finds no file of ours.

use std::path::Path;

use crate::work;
use crate::wrappers::listed;

/// Whether a text holds anything that a tool may expand.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '[', '{'])
}

/// A text with each extended pattern (`@(a|b)`, `+(a)`, `!(x)`, `?(a)`, `*(a)`) as a `*`; `None` where it holds none.
pub(super) fn without_extended(text: &str) -> Option<String> {
    let is_opening =
        |at: usize| at > 0 && text.get(..at).is_some_and(|before| before.ends_with(['@', '+', '!', '?', '*']));
    let opens = text.char_indices().any(|(at, letter)| letter == '(' && is_opening(at));
    if !opens {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut depth = 0_usize;
    for (at, letter) in text.char_indices() {
        match letter {
            '(' if depth > 0 => depth = depth.saturating_add(1),
            '(' if is_opening(at) => {
                plain.pop();
                plain.push('*');
                depth = 1;
            }
            ')' if depth > 0 => depth = depth.saturating_sub(1),
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    Some(plain)
}

/// Whether a pattern, seen from the directory a tool works in, says more than that it searches there: `rules/*` does,
/// `**/*` and `*.toml` do not.
pub(super) fn is_pointed(names: &[&str]) -> bool {
    names.first().is_some_and(|first| !is_pattern(first))
}

/// Endings of the files that may lie inside of a protected directory.
const ENDINGS: &str = "key sqlite lock log json jsonl toml cedar sock db yaml yml wal shm";

/// Whether a pattern may stand for the place or lead into it.
pub(super) fn reaches(pattern: &[&str], place: &[String]) -> bool {
    work::took(pattern.len().saturating_add(place.len()));
    let ending = pattern.last().and_then(|last| last.rsplit_once('.')).map(|(_, ending)| ending);
    let is_foreign = ending.is_some_and(|ending| {
        !ending.is_empty() && !is_pattern(ending) && !ending.contains(']') && !listed(ENDINGS, ending)
    });
    // How many names of the place the pattern may have passed so far.
    let mut passed = vec![false; place.len().saturating_add(1)];
    if let Some(first) = passed.first_mut() {
        *first = true;
    }
    for name in pattern {
        // What is left of the pattern is for something inside. It may still be for the place itself, behind `**`.
        if passed.last() == Some(&true) && !is_foreign {
            return true;
        }
        passed = match is_deep(name) {
            true => {
                let from = passed.iter().position(|passed| *passed).unwrap_or(passed.len());
                (0..passed.len()).map(|at| at >= from).collect()
            }
            false => {
                let further = passed.iter().zip(place).map(|(passed, own)| *passed && fits(name, own));
                std::iter::once(false).chain(further).collect()
            }
        };
        if !passed.contains(&true) {
            return false;
        }
    }
    passed.last() == Some(&true)
}

/// `**` stands for any number of names, but only alone.
fn is_deep(pattern: &str) -> bool {
    pattern == "**"
}

/// Whether a pattern may be expanded to a protected path, to something inside of it or, for whole trees, to a directory
/// above it. A wild character at the beginning of a name stands for no dot; `**` stands for no name as well.
pub(super) fn expands_to(pattern: &Path, protected: &Path, is_tree: bool) -> bool {
    let names = |path: &Path| -> Vec<String> {
        path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let (pattern, place) = (names(pattern), names(protected));
    let is_file = protected.extension().is_some();
    let is_fitting = |(name, own): (&String, &String)| {
        let is_blind = own.starts_with('.') && name.starts_with(['*', '?', '[']);
        name == own || (!is_blind && fits(name, own))
    };
    let expands = |pattern: &[String]| {
        let is_short = pattern.len() < place.len() && !is_tree;
        // Nothing lies inside of a file.
        let is_below = is_file && pattern.len() > place.len();
        !is_short && !is_below && pattern.iter().zip(&place).all(is_fitting)
    };
    let is_deep = |name: &&String| name.as_str() == "**";
    let shallow: Vec<String> = pattern.iter().filter(|name| !is_deep(name)).cloned().collect();
    expands(&pattern) || (shallow.len() != pattern.len() && expands(&shallow))
}

/// Whether one name fits a pattern.
pub(super) fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<Part> = parts(pattern);
    let name: Vec<char> = name.chars().collect();
    // Which prefixes of the pattern fit the name so far.
    let mut fitting = vec![false; pattern.len().saturating_add(1)];
    if let Some(first) = fitting.first_mut() {
        *first = true;
    }
    skip_any(&pattern, &mut fitting);
    for letter in name {
        let mut next = vec![false; fitting.len()];
        for (at, part) in pattern.iter().enumerate() {
            if !fitting.get(at).copied().unwrap_or(false) {
                continue;
            }
            let to = match part {
                Part::Any => at,
                Part::One => at.saturating_add(1),
                Part::Letter(own) if *own == letter => at.saturating_add(1),
                Part::Letter(_) => continue,
            };
            if let Some(found) = next.get_mut(to) {
                *found = true;
            }
        }
        skip_any(&pattern, &mut next);
        fitting = next;
    }
    fitting.last().copied().unwrap_or(false)
}

/// What may stand for nothing is passed over.
fn skip_any(pattern: &[Part], fitting: &mut [bool]) {
    for (at, part) in pattern.iter().enumerate() {
        let passes = matches!(part, Part::Any) && fitting.get(at).copied().unwrap_or(false);
        if let Some(behind) = fitting.get_mut(at.saturating_add(1)).filter(|_| passes) {
            *behind = true;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Any text, also none.
    Any,
    One,
    Letter(char),
}

fn parts(pattern: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        let (part, end) = match letter {
            '*' => (Part::Any, None),
            '?' => (Part::One, None),
            '[' => (Part::One, Some(']')),
            '{' => (Part::Any, Some('}')),
            other => (Part::Letter(other), None),
        };
        let behind = letters.as_str();
        // A bracket may close with its second character at the earliest: `[]x]`.
        let closing = end.and_then(|end| behind.char_indices().skip(1).find(|(_, next)| *next == end));
        match (end, closing) {
            (Some(_), None) => parts.push(Part::Letter(letter)),
            (_, Some((at, end))) => {
                parts.push(part);
                letters = behind.get(at.saturating_add(end.len_utf8())..).unwrap_or_default().chars();
            }
            (None, None) => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::reaches;

    fn is_reached(pattern: &str) -> bool {
        let names: Vec<&str> = pattern.split('/').filter(|name| !name.is_empty()).collect();
        let place: Vec<String> = ["home", "ann", ".config", "toolwarden"].map(str::to_owned).to_vec();
        reaches(&names, &place)
    }

    #[test]
    fn self_1_patterns_that_lead_to_a_place_are_found() {
        for pattern in [
            "/home/ann/.config/tool*",
            "/home/ann/.config/tool*/master.key",
            "/home/ann/.config/*/master.key",
            "/home/*/.config/toolwarden/x",
            "/h?me/[a]nn/.c*g/toolwarde[a-z]/*",
            "/home/ann/.config/{toolwarden,x}/master.key",
            "/home/ann/.config/tool{warden,x}",
            "/**",
            "/**/*.key",
            "/home/**/master.key",
            "/*/*/*/*/*",
            "/home/ann/.config/t**n",
            "/**/toolwarden",
            "/**/ann/**/.config/**/tool*",
        ] {
            assert!(is_reached(pattern), "{pattern}");
        }
        for pattern in [
            "/home/ann/.config/*.json",
            "/home/*/src/**/*.rs",
            "/home/ann/*",
            "/w/**",
            "/home/ann/**/*.rs",
            "/**/*.md",
            "/home/ann/.config/tool?",
            "/home/ann/.config/[t",
            "/*/*/*",
        ] {
            assert!(!is_reached(pattern), "{pattern}");
        }
    }

    /// A file of ours need not have an ending that others of ours have.
    #[test]
    fn self_1_patterns_for_a_file_of_any_ending_are_found() {
        let place: Vec<String> = ["w", ".roomodes"].map(str::to_owned).to_vec();
        for pattern in
            [&["w", "**", ".roomodes"][..], &["**", ".roomodes"], &["w", ".roo*"], &["**", "**", ".room?des"]]
        {
            assert!(reaches(pattern, &place), "{pattern:?}");
        }
        for pattern in [&["w", "**", "x.roomodes"][..], &["**", "*.md"], &["w", ".roomodes", "x.md"]] {
            assert!(!reaches(pattern, &place), "{pattern:?}");
        }
    }

    #[test]
    fn work_1_a_pattern_of_many_stars_ends() {
        assert!(is_reached(&"/**".repeat(2_000)));
        assert!(is_reached(&format!("/home/ann/.config/{}*n", "*o".repeat(2))));
        assert!(!is_reached(&format!("/home/ann/.config/{}", "*a".repeat(2_000))));
    }
}
