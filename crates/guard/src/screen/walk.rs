//! Every text of a JSON value, looked at once. Only texts with findings are written anew, all else stays as it
//! came, byte for byte.

use std::ops::Range;

use toolwarden_core::json::{Kind, Part, Value, unescape};
use toolwarden_core::name;
use toolwarden_sources::{HiddenText, Screening};

use super::entropy::is_token_byte;
use super::hidden::{self, Hidden};
use super::{Place, Screen, Seen};

/// So much of a picture, a sound or another encoded file is looked at.
const START_OF_FILE: usize = 4096;
const LONGEST_POINTER: usize = 256;
/// Members that the protocol carries from one message to the next. They are opaque, and would break.
const CARRIED: [&str; 4] = ["requestState", "taskId", "progressToken", "nextCursor"];
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// One step on the way to a text.
#[derive(Debug, Clone, Copy)]
enum Step<'v> {
    /// As written.
    Member(&'v str),
    /// A member whose name is a finding itself.
    Unnamed,
    Item(usize),
}

pub(super) struct Walk<'s, 'v> {
    screen: &'s Screen,
    said: &'v Part,
    path: Vec<Step<'v>>,
    edits: Vec<(Range<usize>, String)>,
    seen: Seen,
}

impl<'s, 'v> Walk<'s, 'v> {
    pub(super) fn through(screen: &'s Screen, said: &'v Part) -> Seen {
        let mut walk = Self { screen, said, path: Vec::new(), edits: Vec::new(), seen: Seen::default() };
        walk.value(said.value(), None, false);
        let Self { edits, mut seen, .. } = walk;
        if !edits.is_empty() && !seen.is_withheld {
            seen.changed = Some(spliced(said.raw(), &edits));
        }
        seen
    }

    /// Nests no deeper than the parser that made it permits.
    fn value(&mut self, value: Value<'v>, name: Option<&str>, may_be_file: bool) {
        match value.kind() {
            Kind::String => self.text(value, name, may_be_file),
            Kind::Array => {
                for (number, item) in value.items().enumerate() {
                    self.path.push(Step::Item(number));
                    // What holds for a name holds for each of its values.
                    self.value(item, name, false);
                    self.path.pop();
                }
            }
            Kind::Object => self.members(value),
            Kind::Number => self.number(value),
            Kind::Null | Kind::True | Kind::False => {}
        }
    }

    fn members(&mut self, object: Value<'v>) {
        let names_file = |key: &str| matches!(key, "\"mimeType\"" | "\"uri\"");
        let is_content = object.entries().any(|(key, _)| names_file(key));
        let is_address = self.is_question() && object.get("mode").is_some_and(|mode| mode.raw() == "\"url\"");
        for (key, value) in object.entries() {
            let step = if self.name(key) { Step::Unnamed } else { Step::Member(key) };
            // Who is to open an address needs all of it.
            let is_whole = is_address && key == "\"url\"";
            if !self.is_carried(key) && !is_whole {
                self.path.push(step);
                self.value(value, Some(&unescape(key)), is_content && matches!(key, "\"data\"" | "\"blob\""));
                self.path.pop();
            }
        }
    }

    fn is_carried(&self, key: &str) -> bool {
        let key = unescape(key);
        match self.path.as_slice() {
            [] | [Step::Member("\"task\"")] | [Step::Member("\"tasks\""), Step::Item(_)] => CARRIED.contains(&&*key),
            [Step::Member("\"_meta\"")] => key == SUBSCRIPTION,
            _ => false,
        }
    }

    /// Whether the walk stands where a question may be: by itself, in a result, or in an error.
    fn is_question(&self) -> bool {
        matches!(
            self.path.as_slice(),
            [] | [Step::Member("\"inputRequests\""), _, Step::Member("\"params\"")]
                | [Step::Member("\"data\""), Step::Member("\"elicitations\""), Step::Item(_)]
        )
    }

    /// The name of a member. It cannot be written anew: what reads the result looks for it. Says whether
    /// something was found in it.
    fn name(&mut self, key: &'v str) -> bool {
        let text = unescape(key);
        let secrets = self.screen.secrets_in(&text, None, false);
        self.count(&secrets);
        match self.screen.secrets_mode {
            _ if secrets.is_empty() => {}
            Screening::Off | Screening::Mark => self.seen.is_marked = true,
            Screening::Redact | Screening::Withhold => self.seen.is_withheld = true,
        }
        let is_hidden = self.count_hidden(&text);
        self.seen.is_marked |= is_hidden;
        is_hidden || !secrets.is_empty()
    }

    fn text(&mut self, value: Value<'v>, name: Option<&str>, may_be_file: bool) {
        let text = unescape(value.raw());
        let is_file = may_be_file && text.bytes().all(is_token_byte);
        let looked_at =
            if is_file { text.get(..text.floor_char_boundary(START_OF_FILE)).unwrap_or(&text) } else { &text };
        let mut replaced: Vec<(Range<usize>, String)> = Vec::new();
        let secrets = self.screen.secrets_in(looked_at, name, is_file);
        self.count(&secrets);
        match self.screen.secrets_mode {
            _ if secrets.is_empty() => {}
            Screening::Off => {}
            Screening::Mark => self.seen.is_marked = true,
            Screening::Redact => replaced.extend(secrets.iter().map(redacted)),
            Screening::Withhold => self.seen.is_withheld = true,
        }
        let is_hidden = self.count_hidden(&text);
        let neutralises = is_hidden && self.screen.hidden_mode == HiddenText::Neutralise;
        self.seen.is_marked |= is_hidden && self.screen.hidden_mode == HiddenText::Mark;
        if neutralises || !replaced.is_empty() {
            let text = rewritten(&text, &replaced, neutralises);
            self.edits.push((self.said.span_of(value), serde_json::Value::from(text).to_string()));
        }
    }

    fn number(&mut self, value: Value<'v>) {
        let Some(found) = self.screen.pattern_of_number(value.raw()) else { return };
        let words = redacted(&found).1;
        self.count(&[found]);
        match self.screen.secrets_mode {
            Screening::Off | Screening::Mark => self.seen.is_marked = true,
            // Half a number is another number.
            Screening::Redact => {
                self.edits.push((self.said.span_of(value), serde_json::Value::from(words).to_string()));
            }
            Screening::Withhold => self.seen.is_withheld = true,
        }
    }

    fn count(&mut self, secrets: &[Place<'_>]) {
        if secrets.is_empty() {
            return;
        }
        let pointer = self.pointer();
        for place in secrets {
            self.seen.findings.add(place.kind, &pointer, place.range.len());
        }
    }

    /// Whether there are hidden characters that somebody looks for.
    fn count_hidden(&mut self, text: &str) -> bool {
        if self.screen.hidden_mode == HiddenText::Pass || hidden::is_plain(text) {
            return false;
        }
        let pointer = self.pointer();
        let findings = &mut self.seen.findings;
        // A text may consist of nothing else.
        let mut counts = Hidden::ALL.map(|kind| (kind, 0));
        hidden::characters(text, |_, character, hidden| {
            findings.tell(hidden.as_str(), &pointer, character.len_utf8());
            counts.iter_mut().filter(|(kind, _)| *kind == hidden).for_each(|(_, count)| *count += 1);
        });
        let found = counts.iter().filter(|(_, count)| *count > 0);
        found.clone().for_each(|(kind, count)| findings.count(kind.as_str(), *count));
        found.count() > 0
    }

    /// Where the walk stands, as a JSON pointer.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            match step {
                Step::Member(key) => {
                    let key = unescape(key).replace('~', "~0").replace('/', "~1");
                    pointer.push('/');
                    pointer.push_str(&name::shown(&key));
                }
                Step::Unnamed => pointer.push_str("/*"),
                Step::Item(number) => pointer.push_str(&format!("/{number}")),
            }
            if pointer.len() > LONGEST_POINTER {
                pointer.truncate(pointer.floor_char_boundary(LONGEST_POINTER));
                break;
            }
        }
        pointer
    }
}

fn redacted(place: &Place<'_>) -> (Range<usize>, String) {
    (place.range.clone(), format!("[redacted: {}]", place.kind))
}

/// A text with other words at some places, which are in order.
fn spliced(text: &str, places: &[(Range<usize>, String)]) -> String {
    rewritten(text, places, false)
}

/// The same, and with hidden characters in a form that can be seen.
fn rewritten(text: &str, places: &[(Range<usize>, String)], neutralises: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    let mut places = places.iter().peekable();
    let mut push = |range: Range<usize>, other: &mut dyn Iterator<Item = char>| {
        if range.start >= done {
            shown.push_str(text.get(done..range.start).unwrap_or_default());
            shown.extend(other);
            done = range.end;
        }
    };
    if neutralises {
        hidden::characters(text, |at, character, _| {
            while let Some((range, other)) = places.next_if(|(range, _)| range.start <= at) {
                push(range.clone(), &mut other.chars());
            }
            push(at..at + character.len_utf8(), &mut character.escape_unicode());
        });
    }
    places.for_each(|(range, other)| push(range.clone(), &mut other.chars()));
    shown.push_str(text.get(done..).unwrap_or_default());
    shown
}

impl Seen {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }
}
