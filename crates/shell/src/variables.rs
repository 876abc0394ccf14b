//! Puts the values of variables that a line itself sets into its words.
//! Takes a read line; gives the same line with `$f/k` as `lk/k`, or as `{lk,x}/k` where there are several values. What is
//! read, printed by a command or set elsewhere is not known, and stays as it is. Only for what must be held, never to
//! allow: a value may be set in a branch that does not run.

use std::collections::BTreeMap;

use crate::ground::unquoted;
use crate::line::{ShellLine, SimpleCommand, Word};
use crate::patterns;
use crate::work;

/// Most values of one variable.
const MOST_VALUES: usize = 64;
/// Longest word that is put together.
const LONGEST: usize = 8 * 1024;

/// What became of a line.
#[derive(Debug)]
pub(super) enum Substituted {
    /// No word of it has a variable whose value is known.
    Same,
    Line(Box<ShellLine>),
    /// A variable has too many values, or a word becomes too long.
    TooMuch,
}

/// The line with the values that are known.
pub(super) fn substituted(line: &ShellLine) -> Substituted {
    let mut values = Values::default();
    for (name, value) in &line.variables {
        values.set(name, value);
    }
    values.set_positional(line);
    let mut changed = line.clone();
    let mut is_same = true;
    let mut put = |word: &mut Word| -> Option<()> {
        if let Some(new) = values.put_into(word)? {
            is_same = false;
            *word = new;
        }
        Some(())
    };
    let all = |command: &mut SimpleCommand, put: &mut dyn FnMut(&mut Word) -> Option<()>| -> Option<()> {
        command.command_word.iter_mut().try_for_each(&mut *put)?;
        command.arguments.iter_mut().try_for_each(&mut *put)?;
        command.redirections.iter_mut().try_for_each(|redirection| put(&mut redirection.target))
    };
    let done = changed.commands.iter_mut().try_for_each(|command| all(command, &mut put)).and_then(|()| {
        changed.redirections.iter_mut().try_for_each(|redirection| put(&mut redirection.target))?;
        changed.other_words.iter_mut().try_for_each(&mut put)
    });
    // What is in its words now has no variables of its own.
    changed.variables.clear();
    match done {
        None => Substituted::TooMuch,
        Some(()) if is_same => Substituted::Same,
        Some(()) => Substituted::Line(Box::new(changed)),
    }
}

/// Values by name.
#[derive(Default)]
struct Values(BTreeMap<String, Vec<String>>);

impl Values {
    fn set(&mut self, name: &str, value: &Word) {
        // Words of earlier values: `x=l; y=${x}k`.
        let Some(value) = self.put_into(value).map(|new| new.unwrap_or_else(|| value.clone())) else { return };
        let text = unquoted(&value);
        if text.contains(['$', '`']) && !value.literal {
            return;
        }
        let known = self.0.entry(name.to_owned()).or_default();
        // A shell parts the value of a variable without quotes at blanks.
        let parts = text.split_whitespace().filter(|part| *part != text).map(str::to_owned).collect::<Vec<_>>();
        for text in std::iter::once(text).chain(parts) {
            if !known.contains(&text) && known.len() <= MOST_VALUES {
                known.push(text);
            }
        }
    }

    /// `set -- a; cat $1/k`, `f() { cat $1/k; }; f a`
    fn set_positional(&mut self, line: &ShellLine) {
        let defines = line.source.contains("()") || line.source.contains("function ");
        let gives = |command: &&SimpleCommand| defines || command.name.as_deref() == Some("set");
        let words = line.commands.iter().filter(gives).flat_map(|command| &command.arguments);
        let words: Vec<Word> = words.filter(|word| !word.text.starts_with('-')).cloned().collect();
        for name in ["1", "2", "3", "4", "5", "6", "7", "8", "9", "@", "*"] {
            words.iter().for_each(|word| self.set(name, word));
        }
    }

    /// The word with its values; none where it has none. Fails where that is too much.
    fn put_into(&self, word: &Word) -> Option<Option<Word>> {
        if word.literal || self.0.is_empty() {
            return Some(None);
        }
        let home = self.0.contains_key("HOME").then(|| word.text.strip_prefix('~')).flatten();
        let spelled = home.filter(|rest| rest.is_empty() || rest.starts_with('/')).map(|rest| format!("$HOME{rest}"));
        let source = spelled.as_deref().unwrap_or(&word.text);
        if !source.contains('$') {
            return Some(None);
        }
        work::went_through(source);
        let mut text = String::with_capacity(source.len());
        let mut rest = source;
        let mut is_single = true;
        let mut has_changed = false;
        while let Some((before, behind)) = rest.split_once('$') {
            text.push_str(before);
            let expansion = Expansion::of(behind);
            let known = expansion.as_ref().and_then(|found| Some((found, self.0.get(found.name)?)));
            let Some((found, values)) = known else {
                text.push('$');
                rest = behind;
                continue;
            };
            // A variable that is the whole word was looked at value by value.
            let is_whole = source.trim_matches('"').len() == found.length.saturating_add(1);
            if values.len() > MOST_VALUES && is_whole {
                return Some(None);
            }
            if values.len() > MOST_VALUES || text.len() > LONGEST {
                return None;
            }
            is_single &= values.len() == 1;
            has_changed = true;
            text.push_str(&joined(values.iter().map(|value| found.applied(value)).collect()));
            rest = behind.get(found.length..).unwrap_or_default();
        }
        text.push_str(rest);
        Some(has_changed.then(|| finished(text, is_single)))
    }
}

/// Several values as braces; what would mean something there becomes a sign that stands for any.
fn joined(mut values: Vec<String>) -> String {
    values.dedup();
    match values.as_slice() {
        [only] => only.clone(),
        _ => format!("{{{}}}", values.iter().map(|value| value.replace(',', "?")).collect::<Vec<_>>().join(",")),
    }
}

/// A word that is certain now is literal, so that it may be a command or the text of one.
fn finished(text: String, is_single: bool) -> Word {
    let is_quoted = text.starts_with('"') && text.ends_with('"') && text.matches('"').count() == 2;
    let plain = text.replace('"', "");
    let is_odd = |letter: char| "$`'\\".contains(letter) || (!is_quoted && "*?[{~ \t\n".contains(letter));
    if is_single && !plain.contains(is_odd) { Word::literal(plain) } else { Word::raw(text) }
}

/// `name`, `{name}` or `{name%x}` behind a `$`.
struct Expansion<'a> {
    name: &'a str,
    /// What stands between the name and the closing brace.
    operation: &'a str,
    /// How much of the text it is.
    length: usize,
}

impl<'a> Expansion<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let end = |text: &str| text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        if let Some(inner) = text.strip_prefix('{') {
            let close = inner.find('}')?;
            let inner = inner.get(..close)?;
            let at = if inner.starts_with(['@', '*']) { 1 } else { end(inner) };
            let (name, operation) = (inner.get(..at)?, inner.get(at..)?);
            return (!name.is_empty()).then_some(Self { name, operation, length: close.saturating_add(2) });
        }
        let first = text.chars().next()?;
        let length = if first.is_ascii_digit() || "@*".contains(first) { 1 } else { end(text) };
        let name = text.get(..length).filter(|name| !name.is_empty())?;
        Some(Self { name, operation: "", length })
    }

    /// The value as the operation leaves it; a `*` where that is not known.
    fn applied(&self, value: &str) -> String {
        let unknown = || "*".to_owned();
        let operation = self.operation;
        if operation.is_empty() || operation.starts_with(['-', '=', '?', '[', '@']) {
            return value.to_owned();
        }
        for sign in [":-", ":=", ":?"] {
            if operation.starts_with(sign) {
                return value.to_owned();
            }
        }
        if let Some(other) = operation.strip_prefix(":+").or_else(|| operation.strip_prefix('+')) {
            return other.to_owned();
        }
        if patterns::is_pattern(value) {
            // `*.txt` without `.txt` is anything that is there.
            return unknown();
        }
        let cuts = |pattern: &str, is_end: bool, is_long: bool| cut(value, pattern, is_end, is_long);
        match operation.split_at_checked(1) {
            Some(("%", rest)) => {
                rest.strip_prefix('%').map_or_else(|| cuts(rest, true, false), |rest| cuts(rest, true, true))
            }
            Some(("#", rest)) => {
                rest.strip_prefix('#').map_or_else(|| cuts(rest, false, false), |rest| cuts(rest, false, true))
            }
            Some(("/", rest)) => {
                let (pattern, new) =
                    rest.trim_start_matches('/').split_once('/').unwrap_or((rest.trim_start_matches('/'), ""));
                let is_plain =
                    !patterns::is_pattern(pattern) && !pattern.is_empty() && !pattern.starts_with(['#', '%']);
                let times = if rest.starts_with('/') { usize::MAX } else { 1 };
                if is_plain { value.replacen(pattern, new, times) } else { unknown() }
            }
            Some(("^", _)) => value.to_ascii_uppercase(),
            Some((",", _)) => value.to_ascii_lowercase(),
            _ => unknown(),
        }
    }
}

/// The value without its beginning or its end, as far as a pattern matches: the longest or the shortest.
fn cut(value: &str, pattern: &str, is_end: bool, is_long: bool) -> String {
    let mut places: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
    // The shortest first: for an end from behind.
    if is_end != is_long {
        places.reverse();
    }
    let found = places.into_iter().find_map(|at| {
        let (before, behind) = value.split_at_checked(at)?;
        let (taken, left) = if is_end { (behind, before) } else { (before, behind) };
        patterns::fits(pattern, taken).then_some(left)
    });
    found.unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Substituted, substituted};
    use crate::read;

    fn words(text: &str) -> Vec<String> {
        let Ok(line) = read(text) else { return vec!["unparsable".to_owned()] };
        match substituted(&line) {
            Substituted::Line(line) => {
                line.commands.iter().flat_map(|one| &one.arguments).map(|word| word.text.clone()).collect()
            }
            Substituted::Same => Vec::new(),
            Substituted::TooMuch => vec!["too much".to_owned()],
        }
    }

    #[test]
    fn self_1_values_that_stand_in_the_line_are_put_into_its_words() {
        for (text, word) in [
            ("for f in lk; do cat $f/k; done", "lk/k"),
            ("for f in lk x; do cat \"$f\"/k; done", "\"{lk,x}\"/k"),
            ("x=lk; cat ${x}/k", "lk/k"),
            ("x=l; y=${x}k; cat $y/k", "{l,lk}/k"),
            ("x=l; x+=k; cat $x/k", "{l,lk,k}/k"),
            ("x=lk.txt; cat ${x%.txt}/k", "lk/k"),
            ("x=lk.a.b; cat ${x%.*}", "lk.a"),
            ("x=lk.a.b; cat ${x%%.*}", "lk"),
            ("x=a/b/lk; cat ${x##*/}", "lk"),
            ("x=a/b/lk; cat ${x#*/}", "b/lk"),
            ("x=aXb; cat ${x/X/Y}", "aYb"),
            ("x=lk; cat ${x:-z}/k", "lk/k"),
            ("x=1; cat ${x:+lk}/k", "lk/k"),
            ("x=lk; cat ${x:0:2}/k", "*/k"),
            ("for f in *.txt; do mv $f ${f%.txt}.md; done", "*.md"),
            ("export x=lk; cat $x/k", "lk/k"),
            ("a=(lk); cat ${a[0]}/k", "lk/k"),
            ("set -- lk; cat $1/k", "lk/k"),
            ("f() { cat $1/k; }; f lk", "lk/k"),
            ("HOME=/x; cat ~/k", "/x/k"),
            ("a=/x/.c; b=t; cat ${a}/${b}/k", "/x/.c/t/k"),
        ] {
            let found = words(text);
            let wanted =
                if text.starts_with("x=l;") { vec![word.to_owned(), "lk/k".to_owned()] } else { vec![word.to_owned()] };
            assert!(found.iter().any(|word| wanted.contains(word)), "{text}: {found:?}");
        }
        for text in ["cat $x/k", "x=$(pwd); cat $x/k", "while read f; do cat $f; done", "x=lk; cat y", "x=lk; cat '$x'"]
        {
            assert!(words(text).is_empty(), "{text}: {:?}", words(text));
        }
        let many = |times: usize| (0..times).map(|number| format!("f{number} ")).collect::<String>();
        assert_eq!(words(&format!("for f in {}; do cat x/$f; done", many(100))), ["too much"]);
        assert!(words(&format!("for f in {}; do cat $f; done", many(100))).is_empty());
    }
}
