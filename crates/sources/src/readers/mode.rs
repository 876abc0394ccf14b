//! What every mode file says alike, whether in camel case (`.roomodes`) or snake case (the config).
//!
//! Takes one key and value at a time; fills a draft; `finish` gives the mode with the faults that
//! refuse it alone (MODE-6). Names in its lists must be valid: an invalid one could never match.

use toolwarden_core::{Origin, Sourced, ToolIdentity, name};
use toolwarden_policy::input::{ModeInput, Window};

use super::known::Section;
use crate::report::{Mark, Report};
use crate::tree::{Key, Node, Place, Value};

/// How the file spells its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spelling {
    Camel,
    Snake,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Name,
    Extends,
    Groups,
    AllowedServers,
    DisallowedServers,
    AllowedTools,
    DisallowedTools,
    Days,
    Hours,
    TimeZone,
    Conditions,
    AutoReview,
}

const FIELDS: [(&str, &str, Field); 12] = [
    ("name", "name", Field::Name),
    ("extends", "extends", Field::Extends),
    ("groups", "groups", Field::Groups),
    ("allowedServers", "allowed_servers", Field::AllowedServers),
    ("disallowedServers", "disallowed_servers", Field::DisallowedServers),
    ("allowedTools", "allowed_tools", Field::AllowedTools),
    ("disallowedTools", "disallowed_tools", Field::DisallowedTools),
    ("days", "days", Field::Days),
    ("hours", "hours", Field::Hours),
    ("timeZone", "time_zone", Field::TimeZone),
    ("conditions", "conditions", Field::Conditions),
    ("autoReview", "auto_review", Field::AutoReview),
];

const GROUPS: [&str; 6] = ["read", "edit", "browser", "command", "mcp", "modes"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const CONTEXT_KEYS: [&str; 8] = ["task", "project", "run", "job", "session", "user", "role", "group"];

impl Spelling {
    pub(super) fn field(self, text: &str) -> Option<Field> {
        FIELDS.iter().find(|row| self.of(row) == text).map(|row| row.2)
    }

    fn of(self, row: &(&'static str, &'static str, Field)) -> &'static str {
        match self {
            Self::Camel => row.0,
            Self::Snake => row.1,
        }
    }

    fn tool_section(self) -> Section {
        match self {
            Self::Camel => Section::RooTool,
            Self::Snake => Section::ModeTool,
        }
    }

    fn tool_keys(self) -> [&'static str; 2] {
        match self {
            Self::Camel => ["serverName", "toolName"],
            Self::Snake => ["server", "tool"],
        }
    }
}

/// A mode being read.
pub(super) struct Draft {
    pub(super) mode: ModeInput,
    spelling: Spelling,
    mark: Mark,
    seen: Vec<Field>,
    window: Option<Window>,
}

impl Draft {
    pub(super) fn new(slug: &str, origin: Origin, spelling: Spelling, mark: Mark) -> Self {
        let mode = ModeInput::unrestricted(slug, slug, origin);
        Self { mode, spelling, mark, seen: Vec::new(), window: None }
    }

    /// Reads one field; a field given twice (at both places it may stand) is an error.
    pub(super) fn fill(&mut self, report: &mut Report, field: Field, key: &Key, node: &Node) {
        if self.seen.contains(&field) {
            report.error(key.place, "duplicate_key", format!("`{}` is given twice", key.text));
        }
        self.seen.push(field);
        let what = key.text.as_str();
        match field {
            Field::Name => self.mode.name = report.text(what, node).unwrap_or_else(|| self.mode.slug.clone()),
            Field::Extends => self.mode.extends = report.sourced_text(what, node),
            Field::Groups => self.mode.groups = Some(groups(report, what, node)),
            Field::AllowedServers => self.mode.allowed_servers = Some(servers(report, what, node)),
            Field::DisallowedServers => self.mode.disallowed_servers = servers(report, what, node),
            Field::AllowedTools => self.mode.allowed_tools = Some(self.tools(report, what, node)),
            Field::DisallowedTools => self.mode.disallowed_tools = self.tools(report, what, node),
            Field::Days => self.window(report, key).days = days(report, what, node),
            Field::Hours => self.window(report, key).hours = hours(report, what, node),
            Field::TimeZone => self.window(report, key).time_zone = report.text(what, node).unwrap_or_default(),
            Field::Conditions => conditions(report, what, node, &mut self.mode),
            Field::AutoReview => self.mode.auto_review = report.boolean(what, node),
        }
    }

    pub(super) fn has(&self, field: Field) -> bool {
        self.seen.contains(&field)
    }

    pub(super) fn finish(mut self, report: &Report) -> ModeInput {
        self.mode.window = self.window;
        self.mode.faults.extend(report.errors_since(self.mark));
        self.mode
    }

    fn window(&mut self, report: &Report, key: &Key) -> &mut Window {
        self.window.get_or_insert_with(|| Window {
            origin: report.origin(key.place),
            days: Vec::new(),
            hours: Vec::new(),
            time_zone: "UTC".to_owned(),
        })
    }

    fn tools(&self, report: &mut Report, what: &str, node: &Node) -> Vec<Sourced<ToolIdentity>> {
        let items = report.list(what, node).unwrap_or_default();
        items.iter().filter_map(|item| self.tool(report, what, item)).collect()
    }

    /// `"server:tool"`, or a table with the two names.
    fn tool(&self, report: &mut Report, what: &str, node: &Node) -> Option<Sourced<ToolIdentity>> {
        let [server_key, tool_key] = self.spelling.tool_keys();
        let (server, tool) = match &node.value {
            Value::String(text) => match text.split_once(':') {
                Some((server, tool)) => (server.to_owned(), tool.to_owned()),
                None => {
                    report.error(node.place, "invalid_entry", format!("`{}` is not `server:tool`", name::shown(text)));
                    return None;
                }
            },
            Value::Table(_) => {
                let section = self.spelling.tool_section();
                let (mut server, mut tool) = (None, None);
                for (key, value) in report.keys(section, what, node) {
                    match key.text.as_str() {
                        key_text if key_text == server_key => server = report.text(server_key, value),
                        key_text if key_text == tool_key => tool = report.text(tool_key, value),
                        _ => report.unread(key),
                    }
                }
                if server.is_none() || tool.is_none() {
                    let message = format!("an entry of `{what}` needs `{server_key}` and `{tool_key}`");
                    report.error(node.place, "missing_key", message);
                }
                (server?, tool?)
            }
            _ => {
                report.wrong_type(
                    what,
                    node,
                    &format!("a list of `server:tool` texts or {{{server_key}, {tool_key}}}"),
                );
                return None;
            }
        };
        check_name(report, node.place, &server);
        check_name(report, node.place, &tool);
        Some(Sourced::new(ToolIdentity::new(server, tool), report.origin(node.place)))
    }
}

fn check_name(report: &mut Report, place: Place, text: &str) {
    if let Err(fault) = name::check_written(text) {
        report.error(place, "invalid_name", format!("`{}` can never match: {fault}", name::shown(text)));
    }
}

fn servers(report: &mut Report, what: &str, node: &Node) -> Vec<Sourced<String>> {
    let names = report.texts(what, node).unwrap_or_default();
    for server in &names {
        check_name(report, Place { line: server.origin.line, column: server.origin.column }, &server.value);
    }
    names
}

/// Group names, and Roo's pairs of a group with options.
fn groups(report: &mut Report, what: &str, node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    for item in report.list(what, node).unwrap_or_default() {
        let group = match &item.value {
            Value::List(pair) => match pair.as_slice() {
                [group, options @ Node { value: Value::Table(_), .. }] => {
                    let group = report.text(what, group);
                    group_options(report, group.as_deref().unwrap_or_default(), options);
                    group
                }
                _ => {
                    report.error(
                        item.place,
                        "wrong_type",
                        "a group with options is a pair: [name, {fileRegex, description}]",
                    );
                    None
                }
            },
            _ => report.text(what, item),
        };
        let Some(group) = group else { continue };
        if !GROUPS.contains(&group.as_str()) {
            report.warning(item.place, "unknown_group", format!("unknown group `{}`", name::shown(&group)));
            report.help(format!("known groups: {}", GROUPS.join(", ")));
        }
        found.push(group);
    }
    found
}

/// Options of a group narrow what it gives. Those that only the client's own file edits know are left to it; on groups that
/// calls belong to they would restrict nothing.
fn group_options(report: &mut Report, group: &str, options: &Node) {
    for (key, _) in report.table(group, options) {
        let known = Section::RooGroupOptions.standing(&key.text).is_some();
        if !known || (key.text != "description" && ["command", "mcp"].contains(&group)) {
            let shown = (name::shown(&key.text), name::shown(group));
            report.error(key.place, "not_built", format!("`{}` restricts nothing in the group `{}`", shown.0, shown.1));
            report.help("write `mcpRestrictions`, or leave the group out");
        }
    }
}

/// Day names, short or long, in any case.
fn days(report: &mut Report, what: &str, node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    for day in report.text_or_texts(what, node).unwrap_or_default() {
        let short: String = day.chars().take(3).flat_map(char::to_lowercase).collect();
        let long = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
        if DAYS.contains(&short.as_str()) && (day.len() == 3 || long.contains(&day.to_lowercase().as_str())) {
            found.push(short);
        } else {
            report.error(node.place, "unknown_value", format!("`{}` is not a day", name::shown(&day)));
            report.help(DAYS.join(", "));
        }
    }
    refuse_nothing(report, what, node);
    found
}

fn hours(report: &mut Report, what: &str, node: &Node) -> Vec<String> {
    let spans = report.text_or_texts(what, node).unwrap_or_default();
    for span in &spans {
        let well_formed = span.split_once('-').is_some_and(|(from, to)| is_clock(from) && is_clock(to));
        if !well_formed {
            report.error(node.place, "unknown_value", format!("`{}` is not a span of hours", name::shown(span)));
            report.help("write `HH:MM-HH:MM`, for example `09:00-17:30`");
        }
    }
    refuse_nothing(report, what, node);
    spans
}

/// An empty list reads as if the mode were never open, and means that it always is.
fn refuse_nothing(report: &mut Report, what: &str, node: &Node) {
    if matches!(&node.value, Value::List(items) if items.is_empty()) {
        report.error(node.place, "unknown_value", format!("`{what}` is empty"));
        report.help("leave it out where the mode is always open, or allow no server in it");
    }
}

fn is_clock(text: &str) -> bool {
    let number = |part: &str, most: u8| {
        part.len() == 2
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && part.parse::<u8>().is_ok_and(|value| value <= most)
    };
    text == "24:00" || text.split_once(':').is_some_and(|(hour, minute)| number(hour, 23) && number(minute, 59))
}

fn conditions(report: &mut Report, what: &str, node: &Node, mode: &mut ModeInput) {
    for (key, value) in report.table(what, node) {
        if !CONTEXT_KEYS.contains(&key.text.as_str()) {
            // Ignored, the condition would be met by everybody.
            report.error(key.place, "unknown_key", format!("unknown condition `{}`", name::shown(&key.text)));
            report.help(format!("known: {}", CONTEXT_KEYS.join(", ")));
            continue;
        }
        let texts = report.text_or_texts(&key.text, value).unwrap_or_default();
        mode.conditions.insert(key.text.clone(), texts);
    }
}
