//! Adds an entry to a user's allowlist where it takes effect, then explains again (ALLOW-4).

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, Entry, FETCH_TOOL, Operation as McpOperation, SHELL_TOOL, Side};
use toolwarden_policy::NarrowEntry;
use toolwarden_sources::edit::{self, Added, Write};
use toolwarden_sources::records::StoredUser;
use toolwarden_sources::{List, Locations, nearest};

use super::allowlist_edit::edit_lists;
use super::explain_again::{Again, explain_again};
use crate::clerk::blocking;
use crate::naming::{may_be_listed, most_alike};
use crate::place::{self, Opened, Place};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role};

/// The operation.
#[derive(Debug)]
pub struct AllowlistAdd;

/// An entry and whose list it is for; the same for adding and removing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub place: Place,
    pub entry: String,
    /// A terminal entry.
    pub shell: bool,
    /// Another user than the owner.
    pub user: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// `added`, `already_there` or `covered`.
    pub outcome: String,
    /// The entry that is there now.
    pub entry: String,
    pub place: String,
    pub remark: Option<String>,
    /// What a call of this entry would meet now.
    pub decision: Option<String>,
    pub reason: Option<String>,
    pub sentence: Option<String>,
    pub findings: Vec<Remark>,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Request {
    pub(super) fn list(&self) -> List {
        if self.shell { List::Terminal } else { List::Mcp }
    }

    pub(super) fn user(&self, clerk: &Clerk, actor: &Actor) -> String {
        self.user.clone().unwrap_or_else(|| clerk.whom(actor))
    }

    /// What is asked, for the record.
    pub(super) fn words(&self, verb: &str, user: &str) -> String {
        let kind = if self.shell { "terminal entry" } else { "entry" };
        format!("{verb} {kind} `{}`, allowlist of {}", shown(&self.entry), shown(user))
    }
}

impl Operation for AllowlistAdd {
    const PATH: &'static str = "/api/v1/allowlist/add";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let (user, list) = (request.user(clerk, actor), request.list());
        actor.must_be(&user, "lists of others")?;
        clerk.must_not_answer_itself(actor).await?;
        // What cannot be done is said before anything is written down or changed.
        refuse_useless(&request)?;
        let (places, store) = (locations.clone(), clerk.records().await?);
        let findings = blocking(move || Ok(place::open(&places, &[], &store)?.remarks())).await?;
        if let Some(fault) = list.fault(&request.entry) {
            let entry = shown(&request.entry).into_owned();
            return Err(edit::EditError::Invalid { entry, fault }.into());
        }
        let words = request.words("add", &user);
        let now = clerk.parts.clock.now();
        let entry = request.entry.clone();
        let add = move |locations: &Locations, whose: (&str, &mut StoredUser), write: Write| {
            let added = edit::add_entry(locations, whose, (list, &entry), write)?;
            let in_file = matches!(added, Added::Added { in_file: true, .. });
            Ok((added, in_file))
        };
        let whose = (locations.clone(), user.clone());
        let edited = edit_lists(clerk, (actor, "allowlist_add", &words, false), whose, add).await?;
        blocking(move || {
            let opened = place::open_as_seen(&locations, &edited.store, Vec::new())?;
            let again = explain_again(&opened, &locations, &user, list, &request.entry, now);
            let remark = meant(&opened, &user, &request).or_else(|| odd_argument(&opened, &request));
            let outcome = Outcome::of(edited.outcome, request.entry, again, findings);
            Ok(Outcome { not_in_force: edited.not_in_force, remark, ..outcome })
        })
        .await
    }
}

impl Outcome {
    fn of(added: Added, asked: String, again: Option<Again>, findings: Vec<Remark>) -> Self {
        let (outcome, entry, place) = match added {
            Added::Added { place, .. } => ("added", asked, place),
            Added::AlreadyThere { entry, place } => ("already_there", entry, place),
            Added::CoveredBy { entry, place } => ("covered", entry, place),
        };
        Self {
            outcome: outcome.to_owned(),
            entry,
            place,
            remark: None,
            decision: again.as_ref().map(|again| again.decision.as_str().to_owned()),
            reason: again.as_ref().map(|again| again.reason.to_owned()),
            sentence: again.map(|again| again.sentence),
            findings,
            not_in_force: None,
        }
    }
}

/// What an entry for a tool that no known server lists may be meant for.
fn meant(opened: &Opened, user: &str, request: &Request) -> Option<String> {
    let entry = NarrowEntry::parse(&request.entry).map(|entry| entry.whole_tool());
    let entry = entry.ok().or_else(|| Entry::parse(&request.entry).ok()).filter(|_| !request.shell)?;
    let (Side::Name(server), Side::Name(tool)) = (&entry.server, &entry.tool) else { return None };
    let servers = &opened.loaded.input.servers;
    let called = (server.as_str(), tool.as_str());
    let close = most_alike(servers, Some(user), called).filter(|_| !may_be_listed(servers, called))?;
    Some(format!("warning: no known server lists `{}`; did you mean `{close}`?", shown(&request.entry)))
}

/// An argument that the tool's schema does not have: a misspelt one lets nothing run.
fn odd_argument(opened: &Opened, request: &Request) -> Option<String> {
    let entry = NarrowEntry::parse(&request.entry).ok()?;
    let Entry { server: Side::Name(server), tool: Side::Name(tool) } = entry.whole_tool() else { return None };
    let found = opened.policy.servers().get(&server)?.tool(&tool)?;
    let schema = found.definition.as_ref()?.input_schema.as_ref()?;
    let unknown = entry.unknown_arguments(schema).into_iter().next()?;
    let known: Vec<&str> = schema.get("properties")?.as_object()?.keys().map(String::as_str).collect();
    let close = nearest(&unknown, &known).map(|close| format!("; did you mean `{}`?", shown(close)));
    let (server, tool) = (shown(&server), shown(&tool));
    Some(format!("warning: `{server}:{tool}` has no argument `{}`{}", shown(&unknown), close.unwrap_or_default()))
}

/// Entries that are well-formed but could never do what they seem to (MODE-4, SHELL-1).
fn refuse_useless(request: &Request) -> Result<(), ControlError> {
    if !request.shell
        && format!("{} ", request.entry).contains(" where ")
        && let Err(fault) = NarrowEntry::parse(&request.entry)
    {
        let tool = request.entry.split_once(" where").map_or("", |(tool, _)| tool);
        let tool = shown(tool.trim());
        return Err(ControlError::BadInput(format!(
            "`{}` is no entry over arguments: {fault}. Write `{tool} where {{\"/NAME\":{{\"equals\":\"VALUE\"}}}}`, or let \
             `toolwarden approvals approve ID --scope narrowed --where NAME=equals:VALUE` write it from a held call",
            shown(&request.entry)
        )));
    }
    let Some(Entry { server, tool: Side::Name(tool) }) = Entry::parse(&request.entry).ok().filter(|_| !request.shell)
    else {
        return Ok(());
    };
    let advice = if McpOperation::from_reserved_name(&tool) == Some(McpOperation::ReadResource) {
        format!("only `{server}:*` lets resources be read unasked")
    } else if tool.contains('/') {
        "`/` is reserved: no tool may have it in its name, and prompts and completion never ask".to_owned()
    } else if server == Side::Name(BUILTIN_SERVER.to_owned()) && tool == SHELL_TOOL {
        "commands have their own entries: `toolwarden allow --shell 'command:arguments'`".to_owned()
    } else if server == Side::Name(BUILTIN_SERVER.to_owned()) && tool == FETCH_TOOL {
        "a fetch has no allowlist".to_owned()
    } else {
        return Ok(());
    };
    Err(ControlError::BadInput(format!("`{}` would allow nothing: {advice}", shown(&request.entry))))
}
