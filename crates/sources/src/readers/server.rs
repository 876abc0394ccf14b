//! One server as a file defines it: what the judge needs, and what is needed to reach it.
//!
//! Shared by the client files and `[servers.NAME]`. `${env:N}` and `${secret:N}` stay as written;
//! they are resolved when the server is reached (VAULT-6).

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_core::{BUILTIN_SERVER, CUSTOM_TOOLS_SERVER, Layer, Origin, Secret, name};
use toolwarden_policy::input::{Declared, Launch, ServerInput};

use super::config::screening::ScreeningRules;
use crate::report::Report;
use crate::tree::{Key, Node, Place, Value};

/// A server and how it is reached.
#[derive(Debug, Clone)]
pub struct ServerDefinition {
    pub input: ServerInput,
    pub connection: Connection,
    /// `alwaysAllow` as the file has it; whether it counts is for the person to say (MODE-7).
    pub offered_always_allow: Vec<toolwarden_core::Sourced<String>>,
    /// Changes of its definitions need nobody's consent: `definitions = "follow"` (GATE-12).
    pub follows_changes: bool,
    /// How its results are screened.
    pub screening: ScreeningRules,
    /// Something in it is wrong: the server is off until repaired.
    pub faulty: bool,
    /// A `${..}` in it that has no value where it is to be reached from: then it is not reached.
    pub unresolved: Option<String>,
}

impl ServerDefinition {
    /// A server that needs nothing beyond its command or URL.
    #[must_use]
    pub fn of(input: ServerInput) -> Self {
        Self {
            input,
            connection: Connection::default(),
            offered_always_allow: Vec::new(),
            follows_changes: false,
            screening: ScreeningRules::default(),
            faulty: false,
            unresolved: None,
        }
    }

    /// Whether both are started or reached in the same way, for the same user, secrets included: what was opened for one of them
    /// may be used for the other.
    #[must_use]
    pub fn is_reached_like(&self, other: &Self) -> bool {
        (&self.input.launch, &self.input.owner) == (&other.input.launch, &other.input.owner)
            && self.connection.is_like(&other.connection)
            && (self.faulty, &self.unresolved) == (other.faulty, &other.unresolved)
    }
}

/// What reaching a server takes beyond its command or URL.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// `type` or `transport`, where the file says so.
    pub transport: Option<Transport>,
    pub env: BTreeMap<String, Secret>,
    pub env_file: Option<String>,
    pub working_directory: Option<String>,
    pub headers: BTreeMap<String, Secret>,
    pub timeout: Option<Duration>,
    /// `[servers.NAME] share`; none = the default.
    pub share: Option<Share>,
    /// `[servers.NAME] may_ask`; none = the default.
    pub may_ask: Option<Vec<String>>,
    /// `private_network`: a user's own server may be near this machine.
    pub private_network: bool,
}

impl Connection {
    fn is_like(&self, other: &Self) -> bool {
        // Named one by one, so that none can be added and forgotten here.
        let Self { transport, env, env_file, working_directory, headers, timeout, .. } = self;
        let Self { share, may_ask, private_network, .. } = self;
        let same = |one: &BTreeMap<String, Secret>, other: &BTreeMap<String, Secret>| {
            let entries = other.iter().map(|(name, value)| (name, value.reveal_to_upstream()));
            one.iter().map(|(name, value)| (name, value.reveal_to_upstream())).eq(entries)
        };
        same(env, &other.env)
            && same(headers, &other.headers)
            && (transport, env_file, working_directory) == (&other.transport, &other.env_file, &other.working_directory)
            && (timeout, share, may_ask) == (&other.timeout, &other.share, &other.may_ask)
            && *private_network == other.private_network
    }
}

/// How messages travel to a server and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Over the pipes of a child.
    Stdio,
    /// Streamable HTTP, since 2025-03-26.
    Http,
    /// HTTP with a stream of events, of 2024-11-05.
    Sse,
}

impl Transport {
    /// The words of `[servers.NAME]`.
    pub(super) const WORDS: [&str; 3] = ["stdio", "http", "sse"];
    /// The words of clients, several of which have a spelling of their own for the same.
    pub(super) const CLIENT_WORDS: [&str; 6] =
        ["stdio", "http", "sse", "streamable-http", "streamableHttp", "streamable_http"];

    fn parse(word: &str) -> Option<Self> {
        match word {
            "stdio" => Some(Self::Stdio),
            "http" | "streamable-http" | "streamableHttp" | "streamable_http" => Some(Self::Http),
            "sse" => Some(Self::Sse),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "http",
            Self::Sse => "sse",
        }
    }
}

/// Who may use the same child of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// Nobody else than one principal.
    Principal,
    /// Everybody, whatever the server may mix up.
    All,
}

/// An empty definition to fill.
pub(super) fn blank(name: &str, origin: Origin, declared: Declared) -> ServerDefinition {
    ServerDefinition::of(ServerInput::new(name, origin, declared))
}

/// Whether a server's name belongs to Toolwarden itself, in any spelling.
pub(crate) fn is_reserved(server: &str) -> bool {
    let key = name::registration_key(server);
    key == BUILTIN_SERVER || key == CUSTOM_TOOLS_SERVER
}

/// Checks a server's name; an invalid one is recorded.
pub(super) fn check_name(report: &mut Report, key: &Key) -> bool {
    match name::check(&key.text) {
        Ok(()) => true,
        Err(fault) => {
            report.error(
                key.place,
                "invalid_name",
                format!("invalid server name `{}`: {fault}", name::shown(&key.text)),
            );
            false
        }
    }
}

/// What a file says about reaching a server, before it is known to make sense.
#[derive(Debug, Default)]
pub(super) struct Reach {
    pub(super) command: Option<String>,
    pub(super) arguments: Vec<String>,
    pub(super) url: Option<(String, Place)>,
    transport: Option<(Transport, Place)>,
    /// The URL stands under a key that is for Streamable HTTP alone.
    is_http_url: bool,
    /// A command or URL was given, but of a wrong type, which has been told already.
    tried: bool,
}

impl Reach {
    pub(super) fn set_command(&mut self, report: &mut Report, key: &Key, node: &Node) {
        self.command = report.text(&key.text, node);
        self.tried |= self.command.is_none();
    }

    pub(super) fn set_url(&mut self, report: &mut Report, key: &Key, node: &Node) {
        let Some(url) = report.text(&key.text, node) else {
            self.tried = true;
            return;
        };
        if self.url.is_some() {
            report.error(key.place, "two_urls", "the server has two URLs");
        }
        let known = ["http://", "https://", "unix://"].iter().any(|scheme| url.starts_with(scheme));
        if !known && !url.starts_with("${") {
            report.error(node.place, "invalid_url", "not an http or https URL");
        }
        self.is_http_url = key.text == "httpUrl";
        self.url = Some((url, node.place));
    }

    pub(super) fn set_transport(&mut self, report: &mut Report, key: &Key, node: &Node, words: &[&str]) {
        let word = report.word(&key.text, node, words);
        let Some(transport) = word.as_deref().and_then(Transport::parse) else { return };
        if self.transport.is_some_and(|(before, _)| before != transport) {
            report.error(node.place, "two_transports", "`type` and `transport` say different things");
            report.help("keep one of them");
        }
        self.transport = Some((transport, node.place));
    }

    /// What the file says about the transport.
    pub(super) fn transport(&self) -> Option<Transport> {
        let said = self.transport.map(|(transport, _)| transport);
        said.or(self.is_http_url.then_some(Transport::Http))
    }

    /// A transport that does not go with a command, or not with a URL.
    fn check_transport(&self, report: &mut Report) {
        match (self.transport, &self.command, &self.url) {
            (Some((Transport::Stdio, _)), None, Some((_, place))) => {
                report.error(*place, "two_launches", "a server of type `stdio` has no URL");
                report.help("write `command` instead, or the type `http` or `sse`");
            }
            (Some((transport @ (Transport::Http | Transport::Sse), place)), Some(_), None) => {
                let message = format!("a server of type `{}` has a URL, not a command", transport.as_str());
                report.error(place, "two_launches", message);
                report.help("write `url` instead of `command`, or the type `stdio`");
            }
            _ => {}
        }
    }

    /// Exactly one of command and URL, and a transport that goes with it.
    pub(super) fn launch(self, report: &mut Report, key: &Key) -> Launch {
        self.check_transport(report);
        let shown = name::shown(&key.text).into_owned();
        match (self.command, self.url) {
            (Some(command), None) if command.trim().is_empty() => {
                report.error(key.place, "no_launch", format!("server `{shown}` has an empty command"));
                Launch::Nothing
            }
            (Some(command), None) => {
                warn_of_line(report, key, &command);
                Launch::Command { command, arguments: self.arguments }
            }
            (None, Some((url, _))) => Launch::Url(url),
            (Some(_), Some((_, place))) => {
                report.error(place, "two_launches", format!("server `{shown}` has both a command and a URL"));
                report.help("keep one of them");
                Launch::Nothing
            }
            (None, None) if self.tried => Launch::Nothing,
            (None, None) => {
                report.error(key.place, "no_launch", format!("server `{shown}` has neither a command nor a URL"));
                report.help("add `command` with `args`, or `url`");
                Launch::Nothing
            }
        }
    }
}

/// Warns of keys that have no effect on a server that is reached this way.
pub(super) fn warn_of_idle_keys(report: &mut Report, name_key: &Key, node: &Node, launch: &Launch) {
    let (idle, way): (&[&str], _) = match launch {
        Launch::Url(_) => (&["args", "env", "cwd", "envFile"], "by its URL"),
        Launch::Command { .. } => (&["headers"], "by its command"),
        Launch::Nothing => return,
    };
    let Value::Table(entries) = &node.value else { return };
    for (key, _) in entries.iter().filter(|(key, _)| idle.contains(&key.text.as_str())) {
        let server = name::shown(&name_key.text);
        let message = format!("`{}` does nothing here: `{server}` is reached {way}", key.text);
        report.warning(key.place, "key_without_effect", message);
        report.help("remove the key");
    }
}

/// `command` is one program; a whole command line there is not found.
fn warn_of_line(report: &mut Report, key: &Key, command: &str) {
    let mut words = command.split_whitespace();
    let (Some(program), rest) = (words.next(), words.collect::<Vec<_>>()) else { return };
    // A path may have spaces in it.
    let is_line = !rest.is_empty() && (!command.contains('/') || rest.iter().any(|word| word.starts_with('-')));
    if is_line {
        let shown = name::shown(&key.text);
        report.warning(key.place, "command_line", format!("the command of `{shown}` looks like a whole command line"));
        let rest: Vec<String> = rest.iter().map(|word| format!("\"{}\"", name::shown(word))).collect();
        report.help(format!("write command \"{}\" and args [{}]", name::shown(program), rest.join(", ")));
    }
}

/// A table of texts that may be secrets, such as `env` and `headers`.
pub(super) fn secrets(report: &mut Report, key: &Key, node: &Node) -> BTreeMap<String, Secret> {
    let mut found = BTreeMap::new();
    for (inner, value) in report.table(&key.text, node) {
        // VS Code writes ports and the like as numbers.
        let text = match value.value {
            Value::Integer(number) => Some(number.to_string()),
            _ => report.text(&inner.text, value),
        };
        if let Some(text) = text {
            found.insert(inner.text.clone(), Secret::new(text));
        }
    }
    found
}

const SWITCHES_NOTHING: &str = "patterns switch nothing off";

/// A list that switches tools off holds names alone: whoever writes `*` relies on it.
pub(super) fn refuse_patterns(report: &mut Report, key: &Key, node: &Node) {
    let Value::List(items) = &node.value else { return };
    for item in items {
        let Value::String(text) = &item.value else { continue };
        if let Err(fault) = name::check_written(text) {
            let (shown, why) =
                (name::shown(text), if text.contains('*') { SWITCHES_NOTHING.into() } else { fault.to_string() });
            report.error(item.place, "invalid_name", format!("`{shown}` of `{}` names no tool: {why}", key.text));
            report.help("name each tool, or set `enabled = false` for the whole server");
        }
    }
}

/// Tool names of a list; invalid ones are warned about, and kept only where they can but deny.
pub(super) fn tool_names(
    report: &mut Report,
    key: &Key,
    node: &Node,
    layer: Layer,
) -> Vec<toolwarden_core::Sourced<String>> {
    let mut names = report.texts(&key.text, node).unwrap_or_default();
    names.retain_mut(|tool| {
        tool.origin.layer = layer;
        let place = Place { line: tool.origin.line, column: tool.origin.column };
        let Err(fault) = name::check(&tool.value) else { return true };
        report.warning(place, "invalid_name", format!("invalid tool name `{}`: {fault}", name::shown(&tool.value)));
        // As an allowlist entry `*` would mean every tool.
        false
    });
    names
}
