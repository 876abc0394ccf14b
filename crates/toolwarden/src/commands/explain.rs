//! `explain`: what would happen to a call, and why.

mod answered;
mod remedies;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use toolwarden_advice::LABELS;
use toolwarden_control::most_alike;
use toolwarden_control::operations::{Nothing, TokensList};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::name::shown;
use toolwarden_core::{Call, CallKind, Caller, Door, Operation, Reason, Standing};
use toolwarden_pins as pins;
use toolwarden_policy::{Definition, Explanation, Query, RuleRef, Transport, Verdict, decide, nearest_miss};
use toolwarden_sources::{Locations, lookup};

use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, BadInput, Colour, Exit, coloured};
use crate::wire::{self, House};
use toolwarden_cli::{ExplainArguments, Places};

pub fn run(places: &Places, arguments: &ExplainArguments) -> Result<Exit> {
    check_places(places)?;
    let house = wire::with_seen_tools(wire::open(places, &arguments.policy)?)?;
    check_labels(&house, &arguments.seen)?;
    check_catalogs(&house, arguments)?;
    let caller = Arc::new(match &arguments.as_token {
        Some(id) => bearer(places, &house, id, arguments)?,
        None => caller(&house, arguments),
    });
    let query = query(&house, caller, arguments)?.with_seen(arguments.seen.clone()).traced();
    let (definition, files) = (definition(&house, &query)?, lookup::files(&house.policy, &query));
    let query = query.with_definition(definition).with_files(files);
    let verdict = decide(&house.policy, &query);
    let explanation = verdict.explanation();
    let mut answer = Answer::new(&house, &query, explanation);
    if let Verdict::Hold(pending) = &verdict {
        let desk = Desk::open(places, arguments.policy.workspace.as_deref())?;
        answer.notes = answered::notes(&desk, &house.policy, &query, pending);
    }
    if arguments.format.json {
        output::json(&answer)?;
    } else {
        output::text(&answer.text(&house.locations, &query, explanation))?;
    }
    Ok(explanation.decision.into())
}

/// Nothing was decided in a directory that is not there: whoever names one means another.
fn check_places(places: &Places) -> Result<()> {
    match places.data_dir.as_ref().filter(|path| matches!(path.try_exists(), Ok(false))) {
        Some(missing) => Err(BadInput(format!("--data-dir {}: no such directory", missing.display())).into()),
        None => Ok(()),
    }
}

/// A label that nothing carries is met by nobody, so that no rule would speak of it.
fn check_labels(house: &House, seen: &[String]) -> Result<()> {
    let servers = &house.loaded.input.servers;
    let of_tools = servers.iter().flat_map(|server| server.tools.values()).flat_map(|tool| &tool.labels);
    let of_servers = servers.iter().flat_map(|server| &server.labels);
    let mut known: Vec<&str> = of_servers.chain(of_tools).map(String::as_str).chain(LABELS).collect();
    known.sort_unstable();
    known.dedup();
    match seen.iter().find(|label| !known.contains(&label.as_str())) {
        Some(label) => {
            let known = known.join(", ");
            Err(BadInput(format!("--seen {}: no such label; there are {known}", shown(label))).into())
        }
        None => Ok(()),
    }
}

/// A catalog that names no server, and whose file is called like none that is configured, may be of any: where it was not
/// taken for the server that is asked about, it would say nothing of the call.
fn check_catalogs(house: &House, arguments: &ExplainArguments) -> Result<()> {
    let Some((server, _)) = arguments.target.as_deref().and_then(|target| target.split_once(':')) else {
        return Ok(());
    };
    let known = &house.loaded.input.servers;
    if known.iter().any(|one| one.name == server && one.catalog.is_some()) {
        return Ok(());
    }
    let is_configured = |name: &str| house.loaded.definitions.iter().any(|one| one.input.name == name);
    let is_anybodys = |file: &&String| {
        let stem = Path::new(file.as_str()).file_stem().and_then(|stem| stem.to_str());
        !file.contains('=') && !stem.is_some_and(is_configured)
    };
    match arguments.policy.catalog.iter().find(is_anybodys) {
        Some(file) => {
            let (server, file) = (shown(server), shown(file));
            Err(BadInput(format!("--catalog {file} has no tools of `{server}`: write `--catalog {server}={file}`"))
                .into())
        }
        None => Ok(()),
    }
}

/// How the definition of what is called stands (GATE-12).
fn definition(house: &House, query: &Query) -> Result<Definition> {
    let server = house.policy.servers().get(&query.call.server);
    if server.is_some_and(|server| !server.is_for(query.caller.user.as_deref())) {
        return Ok(Definition::default());
    }
    let changes = changes_of(house, &query.call.server);
    let seen = pins::read(&house.locations, &query.call.server)?;
    // A tool that nobody ever listed is judged as if its server had always had it (CORE-6).
    let called = called(&query.call).filter(|(kind, name)| seen.has_seen(*kind, name) || is_listed(house, query));
    Ok(seen.definition(called, changes))
}

fn is_listed(house: &House, query: &Query) -> bool {
    let server = house.loaded.input.servers.iter().find(|one| *one.name == *query.call.server);
    let mut tools = server.into_iter().flat_map(|server| server.catalog.iter().flatten());
    tools.any(|tool| tool.name.eq_ignore_ascii_case(&query.call.tool))
}

/// What of its server's definitions a call depends on.
fn called(call: &Call) -> Option<(pins::Kind, &str)> {
    (call.requested_operation() == Operation::CallTool).then_some((pins::Kind::Tool, &*call.tool))
}

/// What becomes of changes of a server.
fn changes_of(house: &House, server: &str) -> pins::Changes {
    let found = house.loaded.definitions.iter().find(|one| one.input.name == server);
    if found.is_some_and(|one| one.follows_changes) { pins::Changes::Follow } else { pins::Changes::Wait }
}

/// The question, built as every transport builds its own (WORK-4).
fn query(house: &House, caller: Arc<Caller>, arguments: &ExplainArguments) -> Result<Query> {
    let transport = Transport::new(Door::Explain, house.locations.workspace_root());
    let time = arguments.time.unwrap_or_else(environment::now);
    if let Some(command) = &arguments.shell {
        return Ok(transport.query(caller, Call::shell(command.as_str(), None), time));
    }
    if let Some(url) = &arguments.fetch {
        return Ok(transport.query(caller, Call::fetch(url.as_str()), time));
    }
    let target = arguments.target.as_deref().unwrap_or_default();
    let document = arguments.args.as_deref().map(parse_arguments).transpose()?.map(Arc::new);
    let query = match target.split_once(':') {
        Some((server, tool)) => transport.query(caller, Call::named(server, tool, document), time),
        None => transport.query_by_flat_name(&house.policy, caller, ("", target), document, time),
    };
    if query.call.server.is_empty() && query.several.is_empty() {
        return Err(BadInput(without_server(house, target)).into());
    }
    Ok(if arguments.args.is_none() { query.without_arguments() } else { query })
}

/// Behind the common door a tool is called `SERVER__TOOL`.
fn without_server(house: &House, target: &str) -> String {
    let servers = house.loaded.input.servers.iter();
    let mut meant =
        servers.filter_map(|server| Some((&server.name, target.strip_prefix(&server.name)?.strip_prefix("__")?)));
    match meant.next() {
        Some((server, tool)) => format!(
            "`{}` is what clients of the common door call it: write `{}:{}`",
            shown(target),
            shown(server),
            shown(tool)
        ),
        None => format!("`{}` names no server: write SERVER:TOOL", shown(target)),
    }
}

fn parse_arguments(text: &str) -> Result<Document> {
    let document =
        Document::parse(text, Limits::DEFAULT).map_err(|error| BadInput(format!("--args is not JSON: {error}")))?;
    if document.root().kind() != toolwarden_core::json::Kind::Object {
        return Err(BadInput("--args must be a JSON object, such as '{\"path\":\"/tmp\"}'".to_owned()).into());
    }
    Ok(document)
}

/// Whoever carries a stored token, with what is left of it.
fn bearer(places: &Places, house: &House, id: &str, arguments: &ExplainArguments) -> Result<Caller> {
    let desk = Desk::open(places, arguments.policy.workspace.as_deref())?;
    let tokens = desk.ask::<TokensList>(Nothing {})?.tokens;
    let missing = || BadInput(format!("there is no token `{}`; see `toolwarden tokens list`", shown(id)));
    let token = tokens.iter().find(|token| token.id == id).ok_or_else(missing)?;
    let mut caller = Caller::of_token(id, &token.claims, &house.locations.user);
    caller.token.workspace = caller.token.workspace.as_deref().map(Locations::bound_workspace);
    if token.state == "revoked" {
        caller.token.standing = Standing::Revoked;
    }
    caller.token.calls_left = token.claims.max_calls.map(|most| most.saturating_sub(token.calls.unwrap_or(0)));
    caller.mode.clone_from(&arguments.mode);
    Ok(caller)
}

/// CORE-7: the local person, another person, or a token of a role.
fn caller(house: &House, arguments: &ExplainArguments) -> Caller {
    let mut caller = match (&arguments.role, &arguments.user) {
        (Some(role), user) => Caller::agent(role.as_str(), user.clone()),
        (None, Some(user)) if *user != house.locations.user => Caller::person(user.as_str()),
        (None, _) => Caller::local_person(house.locations.user.as_str()),
    };
    caller.groups.clone_from(&arguments.group);
    caller.mode.clone_from(&arguments.mode);
    caller.context.task.clone_from(&arguments.task);
    caller.context.project.clone_from(&arguments.project);
    caller.context.run.clone_from(&arguments.run);
    caller.context.job.clone_from(&arguments.job);
    caller.context.session.clone_from(&arguments.session);
    caller.token.task_tools.clone_from(&arguments.task_tool);
    if arguments.role.is_some() {
        caller.token.modes = arguments.mode.iter().cloned().collect();
    }
    caller
}

/// The answer as scripts read it.
#[derive(Debug, Serialize)]
struct Answer {
    decision: &'static str,
    stage: &'static str,
    reason: &'static str,
    message: String,
    remedy: &'static str,
    detail: Option<String>,
    rule: Option<Rule>,
    candidates: Vec<String>,
    payers: Vec<&'static str>,
    nearest: Option<Nearest>,
    unknown: bool,
    /// The known server or tool that an unknown name may mean.
    did_you_mean: Option<String>,
    valid_until: Option<String>,
    /// What people said of such a call, which the decision leaves out.
    notes: Vec<String>,
    trace: Vec<Step>,
    policy_version: u64,
}

#[derive(Debug, Serialize)]
struct Rule {
    text: String,
    source: String,
    layer: &'static str,
}

#[derive(Debug, Serialize)]
struct Nearest {
    text: String,
    source: Option<String>,
}

#[derive(Debug, Serialize)]
struct Step {
    stage: &'static str,
    outcome: &'static str,
    reason: Option<&'static str>,
    detail: String,
    rule: Option<Rule>,
}

impl From<&RuleRef> for Rule {
    fn from(rule: &RuleRef) -> Self {
        Self {
            text: shown(&rule.text).into_owned(),
            source: rule.origin.to_string(),
            layer: rule.origin.layer.as_str(),
        }
    }
}

impl Answer {
    fn new(house: &House, query: &Query, explanation: &Explanation) -> Self {
        let nearest = nearest_miss(&house.policy, query, explanation);
        let trace: Vec<Step> = explanation
            .trace
            .iter()
            .map(|(stage, step)| Step {
                stage: stage.as_str(),
                outcome: step.outcome.as_str(),
                reason: step.reason().map(Reason::code),
                detail: step.detail.as_deref().map(|detail| shown(detail).into_owned()).unwrap_or_default(),
                rule: step.rule.as_ref().map(Rule::from),
            })
            .collect();
        Self {
            decision: explanation.decision.as_str(),
            stage: explanation.stage.as_str(),
            reason: explanation.reason.code(),
            message: explanation.message(query),
            remedy: explanation.reason.remedy(),
            detail: explanation.detail.as_deref().map(|detail| shown(detail).into_owned()),
            rule: explanation.rule.as_ref().map(Rule::from),
            candidates: explanation.candidates.clone(),
            payers: explanation.payers.iter().map(|payer| payer.as_str()).collect(),
            nearest: nearest
                .map(|miss| Nearest { text: miss.text, source: miss.rule.map(|rule| rule.origin.to_string()) }),
            unknown: explanation.is_unknown(),
            did_you_mean: explanation.is_unknown().then(|| known_name(house, query)).flatten(),
            valid_until: explanation.valid_until.map(|time| time.to_string()),
            notes: Vec::new(),
            trace,
            policy_version: explanation.policy_version,
        }
    }

    /// The answer as people read it.
    fn text(&self, locations: &Locations, query: &Query, explanation: &Explanation) -> String {
        let mut text = format!("{}  {}\n", coloured(self.decision, Colour::of(explanation.decision)), subject(query));
        let mut line = |label: &str, value: &str| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {label:<9} {value}");
        };
        line("because", &self.message);
        line("reason", &format!("{} (stage {})", self.reason, self.stage));
        if let Some(detail) = &self.detail {
            line("detail", detail);
        }
        if let Some(rule) = &self.rule {
            line("rule", &format!("{}  at {} ({})", rule.text, rule.source, rule.layer));
        }
        if let Some(nearest) = &self.nearest {
            let place = nearest.source.as_ref().map(|source| format!("  at {source}")).unwrap_or_default();
            line("nearest", &format!("{}{place}", nearest.text));
        }
        self.notes.iter().for_each(|note| line("note", note));
        if self.unknown && matches!(query.call.kind, CallKind::Mcp { .. }) {
            let hint = self.did_you_mean.as_ref().map(|known| format!("; did you mean {known}?")).unwrap_or_default();
            line("unknown", &format!("no known server lists this tool, so this is what would happen if one did{hint}"));
        }
        if !self.payers.is_empty() {
            line("who pays", &self.payers.join(", "));
        }
        for candidate in &self.candidates {
            line("to allow", &remedies::to_allow(locations, query, candidate));
        }
        if self.candidates.is_empty() && explanation.reason == Reason::NotInAllowlist {
            line("help", "a person decides: no entry of your own would let this through");
        } else if self.candidates.is_empty() && !self.remedy.is_empty() {
            let command = remedies::command(query, explanation.reason);
            line("help", command.as_deref().unwrap_or(self.remedy));
        }
        if let Some(until) = &self.valid_until {
            line("until", until);
        }
        text.push('\n');
        for step in &self.trace {
            let because = step.reason.map(|reason| format!(" {reason}")).unwrap_or_default();
            let rule = step.rule.as_ref().filter(|_| step.detail.is_empty());
            let rule = rule.map(|rule| format!("{} ({})", rule.text, rule.source)).unwrap_or_default();
            let row = format!("  {:<14} {}{because}  {}{rule}", step.stage, step.outcome, step.detail);
            let _ = writeln!(text, "{}", row.trim_end());
        }
        text
    }
}

/// The known `SERVER:TOOL` or server that an unknown name is most like.
fn known_name(house: &House, query: &Query) -> Option<String> {
    let called = (&*query.call.server, &*query.call.tool);
    most_alike(&house.loaded.input.servers, query.caller.user.as_deref(), called)
}

fn subject(query: &Query) -> String {
    match &query.call.kind {
        CallKind::Mcp { .. } if query.call.server.is_empty() => shown(&query.call.tool).into_owned(),
        CallKind::Mcp { .. } => format!("{}:{}", shown(&query.call.server), shown(&query.call.tool)),
        CallKind::Shell { command, .. } => format!("shell {}", shown(command)),
        CallKind::Fetch { url } => format!("fetch {}", shown(url)),
    }
}

/// Quoted for a shell where that is needed.
pub(super) fn quoted(text: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "-_.:/@%+=,".contains(character);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
