//! How large the patterns of a schema become, before the library compiles any of them (WORK-1).
//!
//! A pattern is a small program: `[a-z]{1200}` is eleven letters and forty thousand bytes. What a schema's patterns
//! take together is bounded, and so is what those of one server take; what each of them takes counts in the steps of
//! a check as well.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use regex_automata::nfa::thompson::{Compiler, Config, NFA};
use serde_json::Value;

/// Longer patterns are refused before they are read: reading takes two hundred times their bytes.
const LONGEST_TEXT: usize = 16 * 1024;
/// Larger patterns are refused, in bytes of their compiled form.
pub(super) const LARGEST_PATTERN: usize = 256 * 1024;
/// What the library may keep for one pattern while it searches, to search faster.
pub(super) const LARGEST_MEMORY: usize = 64 * 1024;
/// What the patterns of one schema may take together.
pub(super) const MOST_OF_ONE: usize = 4 * 1024 * 1024;
/// What every pattern takes, however small it is.
const SMALLEST: usize = 4 * 1024;
/// What the library may make of a pattern with groups, beside the rest.
const LARGEST_OF_GROUPS: usize = 1024 * 1024;
/// So many bytes of a compiled pattern make each of its steps cost one more.
const SIZE_OF_A_STEP: usize = 256;

/// The patterns of a schema.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// What a visit costs for each step of the text, by the place of a schema with a pattern.
    pub(super) of_texts: BTreeMap<String, u64>,
    /// The same of the patterns that names of members are searched by.
    pub(super) of_names: BTreeMap<String, u64>,
    /// Bytes they take together.
    pub(super) taken: usize,
}

/// Why the patterns of a schema cannot be used.
#[derive(Debug)]
pub(super) enum Fault {
    Pattern(String),
    /// Together they are too large for what is left.
    Room,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    taken: usize,
    steps: u64,
}

/// Measures every pattern of a schema, as long as there is room.
pub(super) fn measure(schema: &Value, places: &BTreeSet<String>, room: usize) -> Result<Measured, Fault> {
    let mut found = Measured::default();
    let mut known: HashMap<&str, Size> = HashMap::new();
    for place in places {
        let Some(members) = schema.pointer(place).and_then(Value::as_object) else { continue };
        if let Some(pattern) = members.get("pattern").and_then(Value::as_str) {
            let steps = found.take(&mut known, pattern, room)?;
            found.of_texts.insert(place.clone(), steps);
        }
        let Some(named) = members.get("patternProperties").and_then(Value::as_object) else { continue };
        let mut all = 0_u64;
        for pattern in named.keys() {
            all = all.saturating_add(found.take(&mut known, pattern, room)?);
        }
        found.of_names.insert(place.clone(), all);
    }
    Ok(found)
}

impl Measured {
    fn take<'a>(&mut self, known: &mut HashMap<&'a str, Size>, text: &'a str, room: usize) -> Result<u64, Fault> {
        // The library compiles the same pattern once.
        if let Some(size) = known.get(text) {
            return Ok(size.steps);
        }
        let left = room.checked_sub(self.taken).filter(|left| *left >= SMALLEST).ok_or(Fault::Room)?;
        let size = size(text).map_err(Fault::Pattern)?;
        if size.taken > left {
            return Err(Fault::Room);
        }
        self.taken = self.taken.saturating_add(size.taken);
        known.insert(text, size);
        Ok(size.steps)
    }
}

fn size(text: &str) -> Result<Size, String> {
    let shown: String = text.chars().take(40).collect();
    if text.len() > toolwarden_core::weak::limit(LONGEST_TEXT) {
        return Err(format!("the pattern `{shown}..` is longer than {LONGEST_TEXT} bytes"));
    }
    // What cannot be read the library refuses, in its own words.
    let nothing = Size { taken: SMALLEST, steps: 1 };
    let Ok(translated) = jsonschema_regex::to_rust_regex(text) else { return Ok(nothing) };
    let limits = Config::new().nfa_size_limit(Some(toolwarden_core::weak::limit(LARGEST_PATTERN)));
    match Compiler::new().configure(limits).build(&translated) {
        Ok(compiled) => Ok(of_compiled(&compiled)),
        Err(error) if error.size_limit().is_some() => {
            Err(format!("the pattern `{shown}` becomes larger than {LARGEST_PATTERN} bytes"))
        }
        Err(_) => Ok(nothing),
    }
}

fn of_compiled(compiled: &NFA) -> Size {
    let program = compiled.memory_usage();
    let row = compiled.byte_classes().alphabet_len().next_power_of_two().saturating_mul(size_of::<u64>());
    let has_groups = compiled.group_info().explicit_slot_len() > 0;
    let most = if has_groups { LARGEST_OF_GROUPS } else { 0 };
    let with_groups = compiled.states().len().saturating_mul(row).min(most);
    // It is compiled forwards and backwards.
    let taken = SMALLEST.saturating_add(program.saturating_mul(2)).saturating_add(with_groups);
    let steps = u64::try_from(1 + program / SIZE_OF_A_STEP).unwrap_or(u64::MAX);
    Size { taken, steps }
}
