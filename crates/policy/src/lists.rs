//! The lists auto-run looks at, per layer: the admin's, the files', the stored ones of each user.

use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use toolwarden_core::{Caller, Sourced};

use crate::allowlist::Allowlist;
use crate::finding::Finding;
use crate::hosts;
use crate::input::{
    AdminInput, AutoRunMode, LocalInput, OwnProtections, PermissionsInput, PolicyInput, ServerInput, UserInput,
};
use crate::instructions::Instructions;
use crate::narrow_entry::NarrowEntries;
use crate::query::Query;
use crate::set::PolicySet;
use crate::shell::{Blocklist, ShellAllowlist, ShellEntry, SimpleCommand};
use crate::verdict::RuleRef;

/// MCP and terminal entries of one layer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lists {
    pub(crate) mcp: Allowlist,
    /// Those of the MCP entries that ask for certain arguments.
    pub(crate) narrow: NarrowEntries,
    pub(crate) terminal: Terminal,
}

/// Terminal entries with the places they were written.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terminal {
    list: ShellAllowlist,
    rules: Vec<RuleRef>,
}

impl Terminal {
    pub(crate) fn compile<'a>(texts: impl IntoIterator<Item = &'a Sourced<String>>) -> Self {
        let (entries, rules) = parse(texts);
        Self { list: ShellAllowlist::compile(&entries), rules }
    }

    pub(crate) fn covers(&self, command: &SimpleCommand) -> Option<&RuleRef> {
        self.list.covers(command).and_then(|index| self.rules.get(index))
    }

    pub(crate) fn rules(&self) -> impl Iterator<Item = &RuleRef> {
        self.rules.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Invalid entries match nothing, like those of the MCP lists.
fn parse<'a>(texts: impl IntoIterator<Item = &'a Sourced<String>>) -> (Vec<(usize, ShellEntry)>, Vec<RuleRef>) {
    let mut entries = Vec::new();
    let mut rules = Vec::new();
    for text in texts {
        if let Ok(entry) = ShellEntry::parse(&text.value) {
            entries.push((rules.len(), entry));
            rules.push(RuleRef::new(text.value.as_str(), &text.origin));
        }
    }
    (entries, rules)
}

/// The admin record, compiled (ALLOW-10). Present only while enabled.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) lists: Lists,
    pub(crate) blocked: Blocklist,
    pub(crate) blocked_rules: Vec<RuleRef>,
    pub(crate) auto_run_disabled: bool,
    pub(crate) mcp_protection: bool,
    pub(crate) delete_protection: bool,
    pub(crate) browser_protection: bool,
    pub(crate) enable_run_everything: bool,
    /// Hosts as URLs have them, with the entry each came from.
    pub(crate) denied_hosts: Vec<(String, RuleRef)>,
}

impl Admin {
    /// Compiles the record; none while it is not enabled.
    ///
    /// # Errors
    /// Domains and blocked commands that are none: left out, they would deny and block nothing.
    pub(crate) fn compile(input: &AdminInput) -> Result<Option<Self>, Vec<Finding>> {
        if !input.enabled {
            return Ok(None);
        }
        let denied_hosts = denied_hosts(&input.sandboxing.denied_domains)?;
        refuse_invalid_blocks(&input.blocked)?;
        // Entries over arguments are a user's own: in the admin's list they match nothing.
        let lists = Lists {
            mcp: Allowlist::compile(&input.mcp_tool_allowlist),
            narrow: NarrowEntries::default(),
            terminal: Terminal::compile(&input.allowed),
        };
        let (blocked, blocked_rules) = parse(&input.blocked);
        Ok(Some(Self {
            auto_run_disabled: lists.mcp.is_empty() && lists.terminal.is_empty() && !input.enable_run_everything,
            lists,
            blocked: Blocklist::compile(&blocked),
            blocked_rules,
            mcp_protection: input.disable_mcp_auto_run,
            delete_protection: input.delete_file_protection,
            browser_protection: input.browser_protection,
            enable_run_everything: input.enable_run_everything,
            denied_hosts,
        }))
    }
}

fn refuse_invalid_blocks(texts: &[Sourced<String>]) -> Result<(), Vec<Finding>> {
    let refused = |text: &Sourced<String>| {
        let fault = ShellEntry::parse(&text.value).err()?;
        let shown = toolwarden_core::name::shown(&text.value);
        let message = format!("`{shown}` in `blocked` would block nothing: {fault}");
        Some(Finding::error("invalid_entry", text.origin.clone(), message))
    };
    let faults: Vec<Finding> = texts.iter().filter_map(refused).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// `example.com`, `*.example.com` or a whole URL, as the host a URL would have.
fn denied_hosts(texts: &[Sourced<String>]) -> Result<Vec<(String, RuleRef)>, Vec<Finding>> {
    let mut hosts = Vec::new();
    let mut faults = Vec::new();
    for text in texts {
        let bare = text.value.trim_start_matches("*.").trim_end_matches('.');
        let parsed = url::Url::parse(&format!("https://{bare}")).or_else(|_| url::Url::parse(bare));
        let parsed = if bare.contains("://") { url::Url::parse(bare) } else { parsed };
        let host = parsed.ok().and_then(|url| url.host_str().and_then(hosts::normal));
        // A `*` elsewhere than in front would be part of a name that no host has.
        match host.filter(|host| !host.contains('*')) {
            Some(host) => hosts.push((host, RuleRef::new(text.value.as_str(), &text.origin))),
            None => faults.push(Finding::error(
                "domain_invalid",
                text.origin.clone(),
                format!("`{}` is not a domain, so it would deny nothing", toolwarden_core::name::shown(&text.value)),
            )),
        }
    }
    if faults.is_empty() { Ok(hosts) } else { Err(faults) }
}

/// What is stored for one user, compiled.
#[derive(Debug, Default)]
pub struct UserLayer {
    pub(crate) mode: Option<AutoRunMode>,
    pub(crate) protections: OwnProtections,
    pub(crate) lists: Lists,
    pub(crate) blocks: Allowlist,
}

impl UserLayer {
    #[must_use]
    pub fn compile(input: &UserInput) -> Self {
        Self {
            mode: input.auto_run_mode,
            protections: input.protections,
            lists: Lists {
                mcp: Allowlist::compile(&input.mcp_allowlist),
                narrow: NarrowEntries::compile(&input.mcp_allowlist),
                terminal: Terminal::compile(&input.terminal_allowlist),
            },
            blocks: Allowlist::compile(&input.blocks),
        }
    }
}

/// The lists of the operating-system user, from files and settings.
#[derive(Debug, Clone, Default)]
pub struct LocalLayer {
    user: String,
    /// The user's own files.
    outside: Files,
    /// The user's own files united with the one of a workspace.
    inside: HashMap<PathBuf, Files>,
    /// The stored list and what `alwaysAllow` adds.
    settings: Lists,
    /// What the settings list was made of, so that either part can change alone.
    stored: UserInput,
    always: Vec<Sourced<String>>,
}

/// What the permissions.json files of one place say together (PERM-2).
#[derive(Debug, Clone, Default)]
struct Files {
    /// None where no file defines the key: then the settings list counts.
    mcp: Option<(Allowlist, NarrowEntries)>,
    terminal: Option<Terminal>,
    /// A broken permissions.json: the classifier pays nothing (PERM-3).
    is_broken: bool,
    instructions: Instructions,
}

impl Files {
    fn compile(files: &[&PermissionsInput]) -> Self {
        let is_broken = files.iter().any(|file| file.broken);
        let defines_mcp = is_broken || files.iter().any(|file| file.mcp_allowlist.is_some());
        let defines_terminal = is_broken || files.iter().any(|file| file.terminal_allowlist.is_some());
        // A broken file grants nothing and defines every key, so the good file beside it still counts.
        let good = || files.iter().filter(|file| !file.broken);
        let mcp = || good().flat_map(|file| file.mcp_allowlist.iter().flatten());
        let terminal = good().flat_map(|file| file.terminal_allowlist.iter().flatten());
        Self {
            mcp: defines_mcp.then(|| (Allowlist::compile(mcp()), NarrowEntries::compile(mcp()))),
            terminal: defines_terminal.then(|| Terminal::compile(terminal)),
            is_broken,
            instructions: Instructions::of(files),
        }
    }
}

impl LocalLayer {
    #[must_use]
    pub fn compile(local: &LocalInput, stored: Option<&UserInput>, servers: &[ServerInput]) -> Self {
        let own: Vec<&PermissionsInput> = local.files.iter().collect();
        let with = |file| own.iter().copied().chain([file]).collect::<Vec<&PermissionsInput>>();
        let inside = local.workspaces.iter().map(|(root, file)| (root.clone(), Files::compile(&with(file))));
        let stored = stored.cloned().unwrap_or_default();
        let always: Vec<Sourced<String>> = servers.iter().flat_map(always_allowed).collect();
        Self {
            user: local.user.clone(),
            outside: Files::compile(&own),
            inside: inside.collect(),
            settings: settings(&stored, &always),
            stored,
            always,
        }
    }

    /// The same files over another stored list.
    pub(crate) fn with_stored(&self, stored: &UserInput) -> Self {
        Self { settings: settings(stored, &self.always), stored: stored.clone(), ..self.clone() }
    }

    /// The same files over what other servers' `alwaysAllow` adds.
    pub(crate) fn with_servers(&self, servers: &[ServerInput]) -> Self {
        let always: Vec<Sourced<String>> = servers.iter().flat_map(always_allowed).collect();
        Self { settings: settings(&self.stored, &always), always, ..self.clone() }
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// The workspaces that have a file of their own.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &Path> {
        self.inside.keys().map(PathBuf::as_path)
    }

    /// The lists that count for calls of a workspace.
    pub(crate) fn lists(&self, workspace: Option<&Path>) -> LocalLists<'_> {
        let files = workspace.and_then(|root| self.inside.get(root)).unwrap_or(&self.outside);
        LocalLists { files, settings: &self.settings }
    }

    /// Whether a caller is the user these files belong to, in person or by any token issued to them (PERM-1).
    pub(crate) fn belongs_to(&self, caller: &Caller) -> bool {
        caller.user.as_deref().is_some_and(|user| !user.is_empty() && user == self.user)
    }
}

/// The lists of the operating-system user in one workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalLists<'a> {
    files: &'a Files,
    settings: &'a Lists,
}

impl<'a> LocalLists<'a> {
    pub(crate) fn mcp(self) -> &'a Allowlist {
        self.files.mcp.as_ref().map_or(&self.settings.mcp, |(mcp, _)| mcp)
    }

    pub(crate) fn narrow(self) -> &'a NarrowEntries {
        self.files.mcp.as_ref().map_or(&self.settings.narrow, |(_, narrow)| narrow)
    }

    pub(crate) fn terminal(self) -> &'a Terminal {
        self.files.terminal.as_ref().unwrap_or(&self.settings.terminal)
    }

    pub(crate) fn instructions(self) -> &'a Instructions {
        &self.files.instructions
    }

    /// A broken file: the classifier approves nothing (PERM-3).
    pub(crate) fn classifier_off(self) -> bool {
        self.files.is_broken
    }
}

/// The settings layer: the stored list and what `alwaysAllow` adds.
fn settings(stored: &UserInput, always: &[Sourced<String>]) -> Lists {
    Lists {
        mcp: Allowlist::compile(stored.mcp_allowlist.iter().chain(always)),
        narrow: NarrowEntries::compile(&stored.mcp_allowlist),
        terminal: Terminal::compile(&stored.terminal_allowlist),
    }
}

/// `alwaysAllow` names tools of its own server.
fn always_allowed(server: &ServerInput) -> impl Iterator<Item = Sourced<String>> + '_ {
    // What a user installed says nothing of what the local person lets run.
    let counts = server.owner.is_none();
    server
        .always_allow
        .iter()
        .filter(move |_| counts)
        .map(|tool| Sourced::new(format!("{}:{}", server.name, tool.value), tool.origin.clone()))
}

/// All users' layers.
pub(crate) type Users = HashMap<String, std::sync::Arc<UserLayer>>;

pub(crate) fn compile_users(input: &PolicyInput) -> Users {
    input.users.iter().map(|(name, user)| (name.clone(), std::sync::Arc::new(UserLayer::compile(user)))).collect()
}

/// The lists that count for a caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effective<'a> {
    pub(crate) mcp: &'a Allowlist,
    pub(crate) narrow: &'a NarrowEntries,
    pub(crate) terminal: &'a Terminal,
}

impl<'a> Effective<'a> {
    /// The lists for a question: the admin's, else those of the operating-system user in the call's workspace, else
    /// the stored ones of the caller's user.
    pub(crate) fn of(policy: &'a PolicySet, query: &Query) -> Option<Self> {
        if let Some(admin) = &policy.base().admin {
            return Some(Self::of_lists(&admin.lists));
        }
        if policy.local().belongs_to(&query.caller) {
            let lists = policy.local().lists(query.workspace());
            return Some(Self { mcp: lists.mcp(), narrow: lists.narrow(), terminal: lists.terminal() });
        }
        policy.user(&query.caller).map(|user| Self::of_lists(&user.lists))
    }

    fn of_lists(lists: &'a Lists) -> Self {
        Self { mcp: &lists.mcp, narrow: &lists.narrow, terminal: &lists.terminal }
    }
}
