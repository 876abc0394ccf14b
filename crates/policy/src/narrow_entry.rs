//! Allowlist entries that are narrowed to certain arguments: `server:tool where {"/path":{"path":"src"}}` (REVIEW-3).
//!
//! Each demand names one argument by its JSON pointer: what it must be like, or that it is free. A call is covered
//! where every demand is met and every argument it has is named: what nobody thought of is asked about. Only the
//! canonical text counts, so that one entry has one text.

mod facts;
mod likeness;
mod offer;
mod template;

use std::collections::BTreeMap;
use std::fmt;

use cedar_policy::Policy;
use hashbrown::HashMap;
use toolwarden_core::json::{Document, Kind, Limits, Value, unescape};
use toolwarden_core::name;
use toolwarden_core::{BUILTIN_SERVER, Entry, Side, Sourced};

use crate::verdict::RuleRef;
use facts::Facts;
pub use likeness::Likeness;
pub use offer::Narrowing;

/// What stands between the tool and the demands.
const WHERE: &str = " where ";
const FREE: &str = "free";
/// More than a person reads.
const MOST_CONDITIONS: usize = 8;
const MOST_DEMANDS: usize = 40;
const LONGEST: usize = 8_192;

/// What is said of one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Demand {
    /// It must be there, and count as this.
    Like(Likeness, String),
    /// It may be anything, or be left out.
    Free,
}

/// Why a text is no such entry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NarrowFault(String);

fn fault<T>(words: impl Into<String>) -> Result<T, NarrowFault> {
    Err(NarrowFault(words.into()))
}

/// An entry for one tool of one server, over chosen arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NarrowEntry {
    server: String,
    tool: String,
    demands: BTreeMap<String, Demand>,
}

impl NarrowEntry {
    /// Whether a text means to be such an entry, well-formed or not.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.contains(WHERE)
    }

    /// Reads the canonical text.
    ///
    /// # Errors
    /// What keeps the text from ever matching.
    pub fn parse(text: &str) -> Result<Self, NarrowFault> {
        if text.len() > LONGEST {
            return fault("the entry is too long");
        }
        let Some((names, demands)) = text.split_once(WHERE) else { return fault("`where` is missing") };
        let (server, tool) = match Entry::parse(names) {
            Ok(Entry { server: Side::Name(server), tool: Side::Name(tool) }) => (server, tool),
            Ok(_) => return fault("an entry with `where` names one server and one tool"),
            Err(error) => return fault(error.to_string()),
        };
        let Ok(document) = Document::parse(demands, Limits::again(demands.len())) else {
            return fault("what follows `where` is not JSON, or names an argument twice");
        };
        let mut found = BTreeMap::new();
        for (key, value) in document.root().entries() {
            found.insert(unescape(key).into_owned(), Demand::read(value)?);
        }
        let entry = Self::new(server, tool, found)?;
        let canonical = entry.to_string();
        if canonical == text { Ok(entry) } else { fault(format!("write it as {canonical}")) }
    }

    fn new(server: String, tool: String, demands: BTreeMap<String, Demand>) -> Result<Self, NarrowFault> {
        if server.eq_ignore_ascii_case(BUILTIN_SERVER) || tool.contains('/') {
            return fault("only tools of servers can be narrowed to arguments");
        }
        let conditions = demands.values().filter(|demand| matches!(demand, Demand::Like(..))).count();
        if conditions == 0 {
            return fault("no argument is said to be like anything, which would allow the whole tool");
        }
        if conditions > MOST_CONDITIONS || demands.len() > MOST_DEMANDS {
            return fault(format!("at most {MOST_CONDITIONS} conditions on {MOST_DEMANDS} arguments"));
        }
        for (pointer, demand) in &demands {
            let shown = name::shown(pointer);
            if !is_pointer(pointer) {
                return fault(format!("`{shown}` is no JSON pointer"));
            }
            let is_below_free =
                |(other, demand): (&String, &Demand)| *demand == Demand::Free && is_below(pointer, other);
            if demands.iter().any(is_below_free) {
                return fault(format!("`{shown}` lies in an argument that is free"));
            }
            if let Demand::Like(likeness, value) = demand
                && !likeness.is_value(value)
            {
                return fault(format!("`{}` is no {}", name::shown(value), likeness.of_value()));
            }
        }
        Ok(Self { server, tool, demands })
    }

    /// The plain entry that would cover every call this one covers.
    #[must_use]
    pub fn whole_tool(&self) -> Entry {
        Entry { server: Side::Name(self.server.clone()), tool: Side::Name(self.tool.clone()) }
    }

    /// Arguments it speaks of that a tool of this input schema does not know: a call that has them is hardly meant.
    #[must_use]
    pub fn unknown_arguments(&self, schema: &serde_json::Value) -> Vec<String> {
        let Some(known) = schema.get("properties").and_then(serde_json::Value::as_object) else { return Vec::new() };
        let named = self.demands.keys().filter_map(|pointer| pointer.split('/').nth(1));
        let mut named: Vec<String> = named.map(|name| name.replace("~1", "/").replace("~0", "~")).collect();
        named.retain(|name| !known.contains_key(name));
        named
    }

    /// The rule in Cedar that decides whether a call is covered.
    #[must_use]
    pub fn rule_text(&self) -> Option<String> {
        self.rule().map(|policy| policy.to_string())
    }

    /// Whether a call of exactly this tool, with these arguments, is covered.
    #[must_use]
    pub fn covers(&self, server: &str, tool: &str, arguments: Option<Value<'_>>) -> bool {
        self.rule().is_some_and(|rule| self.is_met(&rule, (server, tool), arguments))
    }

    /// How many of several calls of this tool are covered.
    pub fn count<'a>(&self, calls: impl IntoIterator<Item = Value<'a>>) -> usize {
        let Some(rule) = self.rule() else { return 0 };
        calls.into_iter().filter(|call| self.is_met(&rule, (&self.server, &self.tool), Some(*call))).count()
    }

    fn rule(&self) -> Option<Policy> {
        template::instantiate(&self.server, &self.tool, &self.demands)
    }

    fn is_met(&self, rule: &Policy, (server, tool): (&str, &str), arguments: Option<Value<'_>>) -> bool {
        let facts = arguments.and_then(|arguments| Facts::of(arguments, &self.demands));
        facts.is_some_and(|facts| template::permits(rule, (server, tool), &facts))
    }
}

impl Demand {
    fn read(value: Value<'_>) -> Result<Self, NarrowFault> {
        if value.kind() == Kind::String && value.as_str().as_deref() == Some(FREE) {
            return Ok(Self::Free);
        }
        let mut members = value.entries();
        let (Some((key, wanted)), None) = (members.next(), members.next()) else {
            return fault("an argument is `\"free\"`, or has one of equals, path, host, branch");
        };
        let Some(likeness) = Likeness::parse(&unescape(key)) else {
            return fault("an argument can be compared by equals, path, host or branch");
        };
        let text = match likeness {
            Likeness::Equals => facts::scalar(wanted),
            Likeness::Path | Likeness::Host | Likeness::Branch => wanted.as_str().map(std::borrow::Cow::into_owned),
        };
        text.map_or_else(
            || fault("an argument is compared with one text, number or truth value"),
            |text| Ok(Self::Like(likeness, text)),
        )
    }
}

impl fmt::Display for NarrowEntry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}{WHERE}{{", self.server, self.tool)?;
        for (index, (pointer, demand)) in self.demands.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{}:", quoted(pointer))?;
            match demand {
                Demand::Free => write!(formatter, "{}", quoted(FREE))?,
                // Already JSON: a text with its quotes, or a number.
                Demand::Like(Likeness::Equals, value) => write!(formatter, "{{\"equals\":{value}}}")?,
                Demand::Like(likeness, value) => {
                    write!(formatter, "{{{}:{}}}", quoted(likeness.as_str()), quoted(value))?;
                }
            }
        }
        formatter.write_str("}")
    }
}

/// A text as JSON, in characters that mean nothing to a shell between `'` and cannot mislead who reads them.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            ' '..='~' if character != '\'' => quoted.push(character),
            _ if character.is_alphabetic() && !name::is_deceptive(character) && !name::is_invisible(character) => {
                quoted.push(character);
            }
            _ => {
                let mut units = [0_u16; 2];
                quoted.extend(character.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    quoted.push('"');
    quoted
}

fn is_pointer(text: &str) -> bool {
    let is_whole = |part: &str| part.starts_with(['0', '1']);
    text.starts_with('/') && text.split('~').skip(1).all(is_whole)
}

/// Whether a pointer leads into what another one names.
fn is_below(pointer: &str, other: &str) -> bool {
    pointer.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

/// A list's entries of this kind, by the tool they are for.
#[derive(Debug, Clone, Default)]
pub(crate) struct NarrowEntries(HashMap<(String, String), Vec<Compiled>>);

#[derive(Debug, Clone)]
struct Compiled {
    entry: NarrowEntry,
    rule: Policy,
    reference: RuleRef,
}

impl NarrowEntries {
    /// Texts that are no such entries, or whose rule does not fit the schema, match nothing (ALLOW-3).
    pub(crate) fn compile<'a>(texts: impl IntoIterator<Item = &'a Sourced<String>>) -> Self {
        let mut entries: HashMap<_, Vec<Compiled>> = HashMap::new();
        for text in texts {
            let Ok(entry) = NarrowEntry::parse(&text.value) else { continue };
            let Some(rule) = entry.rule().filter(template::is_well_typed) else { continue };
            let reference = RuleRef::new(text.value.as_str(), &text.origin);
            let tool = (entry.server.clone(), entry.tool.clone());
            entries.entry(tool).or_default().push(Compiled { entry, rule, reference });
        }
        Self(entries)
    }

    /// The first entry that covers a call. Names compare exactly: this is a grant for one tool.
    pub(crate) fn find(&self, server: &str, tool: &str, arguments: Option<Value<'_>>) -> Option<&RuleRef> {
        let is_met = |compiled: &&Compiled| compiled.entry.is_met(&compiled.rule, (server, tool), arguments);
        self.of_tool(server, tool).iter().find(is_met).map(|compiled| &compiled.reference)
    }

    /// The first entry for a tool, whether it covers a call or not.
    pub(crate) fn first_of(&self, server: &str, tool: &str) -> Option<&RuleRef> {
        self.of_tool(server, tool).first().map(|compiled| &compiled.reference)
    }

    /// The entries, in no particular order.
    pub(crate) fn rules(&self) -> impl Iterator<Item = &RuleRef> {
        self.0.values().flatten().map(|compiled| &compiled.reference)
    }

    fn of_tool(&self, server: &str, tool: &str) -> &[Compiled] {
        if self.0.is_empty() {
            return &[];
        }
        self.0.get(&(server.to_owned(), tool.to_owned())).map(Vec::as_slice).unwrap_or_default()
    }
}

#[cfg(test)]
#[path = "narrow_entry_tests.rs"]
mod tests;
