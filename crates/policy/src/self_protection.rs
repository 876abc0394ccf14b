//! SELF-1: calls that would change Toolwarden itself, as far as a call shows it.
//!
//! A shell call is read as a line. The arguments of any other tool are searched for places Toolwarden
//! lives by and for command lines that run it: what a server says of its tools is the server's word, so
//! nobody knows whether a tool writes. Reading a resource writes nothing, so only keys and data are kept from it.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolwarden_core::json::{Kind, Value, unescape};
use toolwarden_core::{CallKind, Operation, Reason, weak};

use crate::autorun::command::directory;
use crate::shell::{self, FileFacts, Places};
use crate::subject::{Arguments, Subject};
use crate::verdict::Step;

pub(crate) fn self_protection(subject: &Subject<'_>) -> Option<Step> {
    let places = &subject.policy.base().places;
    let why = match &subject.query.call.kind {
        CallKind::Shell { .. } => {
            let line = subject.line.as_ref()?.as_ref().ok()?;
            shell::touches_toolwarden(line, places.belongings(), &directory(subject), &subject.query.files)
        }
        CallKind::Mcp { operation: Operation::CallTool | Operation::GetPrompt | Operation::Complete } => {
            in_arguments(subject, places)
        }
        CallKind::Mcp { operation: Operation::ReadResource } => in_resource(subject),
        CallKind::Fetch { .. } => None,
    };
    Some(Step::because(Reason::SelfProtection).noting(why?))
}

fn in_arguments(subject: &Subject<'_>, places: &Places) -> Option<String> {
    let Arguments::Known(Some(arguments)) = subject.arguments else { return None };
    if let Some(why) = led_by_link(&subject.query.files, places) {
        return Some(why);
    }
    // One pass over the text as sent; almost every call ends here.
    if !places.may_be_named_in(arguments.raw()) {
        return None;
    }
    let workspaces = &subject.policy.base().workspaces;
    let left = Cell::new(weak::limit(MOST_LINES));
    let patterns_left = Cell::new(MOST_PATTERNS);
    let here = subject.query.workspace();
    let above = here.map(|here| directories_above(arguments, places, here)).unwrap_or_default();
    let joined_left = Cell::new(MOST_PATTERNS);
    Search { left, patterns_left, joined_left, places, workspaces, here, above }.value(arguments, None)
}

/// Directories above the workspace that the arguments name: relative names may be seen from there instead.
fn directories_above(arguments: Value<'_>, places: &Places, here: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![arguments];
    while let Some(value) = waiting.pop() {
        match value.kind() {
            Kind::Array => waiting.extend(value.items()),
            Kind::Object => waiting.extend(value.entries().map(|(_, inner)| inner)),
            Kind::String => {
                let text = value.as_str().filter(|text| text.len() <= LONGEST_PATH);
                found.extend(text.and_then(|text| places.directory_above(&text, here)));
            }
            Kind::Null | Kind::True | Kind::False | Kind::Number => {}
        }
    }
    found
}

/// Texts that are longer are no paths.
const LONGEST_PATH: usize = 4_096;

/// Of a tool's arguments only those are looked up that may be paths; each that is a link must lead elsewhere, and one of
/// which that cannot be told may lead to us.
fn led_by_link(files: &FileFacts, places: &Places) -> Option<String> {
    if files.are_too_many() {
        return Some("its arguments name too many paths to follow their links".to_owned());
    }
    if let Some(path) = files.unresolved().min() {
        return Some(format!("it cannot be told where {} leads", path.display()));
    }
    files.links().find_map(|(path, real)| {
        if shell::shows_processes(real) {
            return Some(format!("{} leads to {}, which {PROCESS_FILE}", path.display(), real.display()));
        }
        let place = places.named_in(&real.to_string_lossy(), None)?;
        Some(format!("{} leads to {}, which belongs to toolwarden", path.display(), place.display()))
    })
}

/// A resource may be read unless it is one of our keys or data.
fn in_resource(subject: &Subject<'_>) -> Option<String> {
    let Arguments::Known(Some(params)) = subject.arguments else { return None };
    let uri = params.get("uri")?.as_str()?;
    let keys = &subject.policy.base().keys;
    if let Some(why) = led_by_link(&subject.query.files, keys) {
        return Some(why);
    }
    if keys.is_process_file(&uri, subject.query.workspace()) {
        return Some(format!("reads {uri}, which {PROCESS_FILE}"));
    }
    let place = keys.named_in(&uri, subject.query.workspace())?;
    Some(format!("reads {}, which holds keys or data of toolwarden", place.display()))
}

/// What files below `/proc` and `/dev` are held for.
const PROCESS_FILE: &str = "shows memory, environment or open files of processes, toolwarden among them";

/// Bytes of patterns in one call that are compared with places; a call with more is held.
const MOST_PATTERNS: usize = 64 * 1024;
/// So many bytes of one call's arguments are read as command lines; a call with more is held unread (WORK-1).
const MOST_LINES: usize = 64 * 1024;
/// So many texts of one list or object are put together to paths.
const MOST_SEGMENTS: usize = 64;

struct Search<'a> {
    /// Bytes that may still be read as command lines.
    left: Cell<usize>,
    /// Bytes of patterns that may still be compared.
    patterns_left: Cell<usize>,
    /// Bytes of paths that may still be put together.
    joined_left: Cell<usize>,
    places: &'a Places,
    workspaces: &'a [PathBuf],
    /// Where relative paths are seen from, as far as it is known.
    here: Option<&'a Path>,
    /// Directories above it that the arguments name.
    above: BTreeSet<PathBuf>,
}

/// The keys above a value, the nearest first.
struct Keys<'a> {
    name: &'a str,
    outer: Option<&'a Keys<'a>>,
}

impl Search<'_> {
    /// As deep as the document was let in.
    fn value(&self, value: Value<'_>, keys: Option<&Keys<'_>>) -> Option<String> {
        match value.kind() {
            Kind::String => self.text(&value.as_str()?),
            Kind::Array => {
                let items = value.items().find_map(|item| self.value(item, keys)).or_else(|| words(value));
                items.or_else(|| self.segments(value))
            }
            Kind::Object => {
                let members = value.entries().find_map(|(key, inner)| {
                    let name = unescape(key);
                    let keys = Keys { name: &name, outer: keys };
                    self.text(&name).or_else(|| self.tree(&keys)).or_else(|| self.value(inner, Some(&keys)))
                });
                members.or_else(|| program_and_words(value)).or_else(|| self.pairs(value))
            }
            Kind::Null | Kind::True | Kind::False | Kind::Number => None,
        }
    }

    /// `["..", ".config", "toolwarden", "master.key"]`
    fn segments(&self, list: Value<'_>) -> Option<String> {
        let words: Option<Vec<Cow<'_, str>>> = list.items().take(MOST_SEGMENTS).map(Value::as_str).collect();
        let words = words.filter(|words| words.len() > 1)?;
        let length: usize = words.iter().map(|word| word.len()).sum();
        if length > LONGEST_PATH { None } else { self.joined(&words.join("/")) }
    }

    /// `{"tree": {".config": {"toolwarden": {"master.key": "x"}}}}`: a path that is spelt by keys, from any of them on.
    fn tree(&self, keys: &Keys<'_>) -> Option<String> {
        let mut outer = keys.outer.filter(|_| self.places.holds_last_name(keys.name));
        let mut path = keys.name.to_owned();
        while let Some(one) = outer.filter(|_| path.len() <= LONGEST_PATH) {
            path = format!("{}/{path}", one.name);
            if let Some(why) = self.joined(&path) {
                return Some(why);
            }
            outer = one.outer;
        }
        None
    }

    /// `{"dir": "config/toolwarden", "name": "toolwarden.toml"}`
    fn pairs(&self, object: Value<'_>) -> Option<String> {
        let texts: Vec<Cow<'_, str>> = object
            .entries()
            .filter_map(|(_, value)| value.as_str())
            .filter(|text| text.len() <= LONGEST_PATH)
            .take(MOST_SEGMENTS)
            .collect();
        let names = || texts.iter().filter(|text| self.places.holds_last_name(text));
        names().find_map(|name| texts.iter().find_map(|directory| self.joined(&format!("{directory}/{name}"))))
    }

    /// A path that is put together from several texts.
    fn joined(&self, path: &str) -> Option<String> {
        if !self.places.holds_last_name(path) {
            return None;
        }
        let Some(left) = self.joined_left.get().checked_sub(path.len()) else {
            return Some("the arguments may name files of toolwarden in too many ways".to_owned());
        };
        self.joined_left.set(left);
        let mut bases = self.above.iter().map(|base| Some(base.as_path())).chain([self.here]);
        let place = bases.find_map(|base| self.places.named_in(path, base))?;
        Some(format!("the arguments together name {}, which belongs to toolwarden", place.display()))
    }

    fn text(&self, text: &str) -> Option<String> {
        if let Some(why) = self.text_from(text, self.here) {
            return Some(why);
        }
        self.above.iter().find_map(|base| self.text_from(text, Some(base)))
    }

    fn text_from(&self, text: &str, base: Option<&Path>) -> Option<String> {
        // A tool that is told which workspace to work in is told no more than that.
        let workspace = self.workspaces.iter().find(|root| *root == Path::new(text));
        let here = workspace.map(PathBuf::as_path).or(base);
        if let Some(place) = self.places.named_in(text, here) {
            return Some(format!("an argument names {}, which belongs to toolwarden", place.display()));
        }
        let mut patterns_left = self.patterns_left.get();
        if let Some(place) = self.places.pattern_in(text, here, &mut patterns_left) {
            return Some(format!("an argument holds a pattern for {}, which belongs to toolwarden", place.display()));
        }
        self.patterns_left.set(patterns_left);
        if self.places.is_process_file(text, base) {
            return Some(format!("an argument names {text}, which {PROCESS_FILE}"));
        }
        if !self.places.may_be_run_in(text) {
            return None;
        }
        let Some(left) = self.left.get().checked_sub(text.len()) else {
            return Some("the arguments hold too much text to tell what it runs".to_owned());
        };
        self.left.set(left);
        shell::text_changes_toolwarden(text, self.places, base.unwrap_or(Path::new("/")))
    }
}

/// `["toolwarden", "allow", "x"]`
fn words(list: Value<'_>) -> Option<String> {
    let words: Vec<Cow<'_, str>> = list.items().filter_map(Value::as_str).collect();
    shell::words_change_toolwarden(words.iter().map(AsRef::as_ref))
}

/// `{"command": "toolwarden", "args": ["allow", "x"]}`
fn program_and_words(object: Value<'_>) -> Option<String> {
    let members = || object.entries().map(|(_, value)| value);
    let names = || members().filter_map(Value::as_str);
    if names().any(|text| shell::is_toolwarden(&text)) {
        return members().find_map(verb_in);
    }
    // `{"command": "systemctl", "args": ["stop", "toolwarden"]}`
    let lists = || members().filter(|value| value.kind() == Kind::Array);
    let mut runs =
        names().take(MOST_NAMES).flat_map(|name| lists().take(MOST_NAMES).map(move |list| (name.clone(), list)));
    runs.find_map(|(name, list)| {
        let words: Vec<Cow<'_, str>> = std::iter::once(name).chain(list.items().filter_map(Value::as_str)).collect();
        shell::words_change_toolwarden(words.iter().map(AsRef::as_ref))
    })
}

/// So many texts and lists of one object are put together to a program with its words.
const MOST_NAMES: usize = 8;

/// A changing verb at the beginning of a text or of a list, however deep.
fn verb_in(value: Value<'_>) -> Option<String> {
    match value.kind() {
        Kind::Array => {
            let words: Vec<Cow<'_, str>> = value.items().filter_map(Value::as_str).collect();
            shell::verb_behind(words.iter().map(AsRef::as_ref)).or_else(|| value.items().find_map(verb_in))
        }
        Kind::String => shell::verb_behind(value.as_str()?.split_whitespace()),
        Kind::Object => value.entries().find_map(|(_, inner)| verb_in(inner)),
        Kind::Null | Kind::True | Kind::False | Kind::Number => None,
    }
}
