//! The allowlists that count, entry by entry, with layer and place.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{Entry, Sourced};
use toolwarden_policy::shell::ShellEntry;
use toolwarden_policy::{NarrowEntry, PolicyInput};
use toolwarden_sources::List;

use crate::clerk::blocking;
use crate::place::{self, Place};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role};

/// The operation.
#[derive(Debug)]
pub struct AllowlistShow;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub place: Place,
    /// Another user than the owner.
    pub user: Option<String>,
    /// Only terminal entries.
    pub shell: bool,
    /// As `--catalog` has them.
    pub catalogs: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub rows: Vec<Row>,
    pub findings: Vec<Remark>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// `mcp`, `terminal` or `block`.
    pub kind: String,
    pub entry: String,
    pub layer: String,
    pub source: String,
    /// Whether this list counts; another layer may replace it.
    pub counts: bool,
    /// Why the entry can never match.
    pub invalid: Option<String>,
    /// The rule in Cedar, of an entry over arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

impl Operation for AllowlistShow {
    const PATH: &'static str = "/api/v1/allowlist/show";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let user = request.user.unwrap_or_else(|| clerk.whom(actor));
        actor.must_be(&user, "lists of others")?;
        let store = clerk.records().await?;
        blocking(move || {
            let opened = place::open(&locations, &request.catalogs, &store)?;
            let whose = Whose { input: &opened.loaded.input, user: &user, is_local: user == locations.user };
            let mut rows = if request.shell { Vec::new() } else { whose.mcp() };
            rows.extend(whose.terminal());
            if !request.shell {
                rows.extend(whose.blocks());
            }
            Ok(Outcome { rows, findings: opened.remarks() })
        })
        .await
    }
}

/// The lists of one user.
struct Whose<'a> {
    input: &'a PolicyInput,
    user: &'a str,
    is_local: bool,
}

impl Whose<'_> {
    /// The lists of one kind, strongest layer first, each with whether it counts (PERM-2).
    fn mcp(&self) -> Vec<Row> {
        let input = self.input;
        let fault = |text: &str| Entry::parse(text).err().map(|fault| fault.to_string());
        let admins = |entry: &Sourced<String>| row("mcp", entry, true, fault(&entry.value));
        let row = |counts: bool| {
            move |entry: &Sourced<String>| {
                let rule = NarrowEntry::parse(&entry.value).ok().and_then(|entry| entry.rule_text());
                Row { rule, ..row("mcp", entry, counts, List::Mcp.fault(&entry.value)) }
            }
        };
        let admin = input.base.admin.as_ref().filter(|admin| admin.enabled);
        let files: Vec<_> = input.local.here().filter(|_| self.is_local).collect();
        let defined = files.iter().any(|file| file.broken || file.mcp_allowlist.is_some());
        let mut rows: Vec<Row> = admin.iter().flat_map(|admin| &admin.mcp_tool_allowlist).map(admins).collect();
        rows.extend(files.iter().flat_map(|file| file.mcp_allowlist.iter().flatten()).map(row(admin.is_none())));
        let counts = admin.is_none() && !defined;
        rows.extend(input.users.get(self.user).into_iter().flat_map(|user| &user.mcp_allowlist).map(row(counts)));
        if self.is_local {
            let always = input.servers.iter().filter(|server| server.owner.is_none()).flat_map(|server| {
                server
                    .always_allow
                    .iter()
                    .map(|tool| Sourced::new(format!("{}:{}", server.name, tool.value), tool.origin.clone()))
            });
            rows.extend(always.map(|entry| row(counts)(&entry)));
        }
        rows
    }

    /// What the user answered with "deny always".
    fn blocks(&self) -> Vec<Row> {
        let fault = |text: &str| Entry::parse(text).err().map(|fault| fault.to_string());
        let blocks = self.input.users.get(self.user).into_iter().flat_map(|user| &user.blocks);
        blocks.map(|entry| row("block", entry, true, fault(&entry.value))).collect()
    }

    fn terminal(&self) -> Vec<Row> {
        let input = self.input;
        let fault = |text: &str| ShellEntry::parse(text).err().map(|fault| fault.to_string());
        let row = |counts: bool| move |entry: &Sourced<String>| row("terminal", entry, counts, fault(&entry.value));
        let admin = input.base.admin.as_ref().filter(|admin| admin.enabled);
        let files: Vec<_> = input.local.here().filter(|_| self.is_local).collect();
        let defined = files.iter().any(|file| file.broken || file.terminal_allowlist.is_some());
        let mut rows: Vec<Row> = admin.iter().flat_map(|admin| &admin.allowed).map(row(true)).collect();
        rows.extend(files.iter().flat_map(|file| file.terminal_allowlist.iter().flatten()).map(row(admin.is_none())));
        let stored = input.users.get(self.user).into_iter().flat_map(|user| &user.terminal_allowlist);
        rows.extend(stored.map(row(admin.is_none() && !defined)));
        rows
    }
}

fn row(kind: &str, entry: &Sourced<String>, counts: bool, invalid: Option<String>) -> Row {
    Row {
        kind: kind.to_owned(),
        entry: shown(&entry.value).into_owned(),
        layer: entry.origin.layer.as_str().to_owned(),
        source: entry.origin.to_string(),
        counts: counts && invalid.is_none(),
        invalid,
        rule: None,
    }
}
