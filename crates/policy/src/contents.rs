//! What a compiled policy holds, for those who read it and judge nothing: entries that count, each with its place.
//!
//! Views only: nothing can be changed through them, and the judge does not use them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use toolwarden_core::{ApprovalNeeds, Entry};

use crate::input::{AutoRunInput, AutoRunMode, OwnProtections};
use crate::lists::{Admin, Lists, LocalLayer, UserLayer};
use crate::set::PolicySet;
use crate::settings::Settings;
use crate::shell::Places;
use crate::verdict::RuleRef;

/// Everything a policy holds beside servers, modes, roles and rules, which show themselves.
#[derive(Debug, Clone, Copy)]
pub struct Contents<'a>(&'a PolicySet);

/// The lists of one layer, in no particular order. Entries that match nothing are not in them.
#[derive(Debug, Clone, Default)]
pub struct ListContents<'a> {
    pub mcp: Vec<&'a RuleRef>,
    /// MCP entries that ask for certain arguments.
    pub narrow: Vec<&'a RuleRef>,
    pub terminal: Vec<&'a RuleRef>,
}

/// The admin record, while it counts (ALLOW-10).
#[derive(Debug, Clone)]
pub struct AdminContents<'a> {
    pub lists: ListContents<'a>,
    pub blocked: &'a [RuleRef],
    /// Hosts as URLs have them, with the entry each came from.
    pub denied_hosts: &'a [(String, RuleRef)],
    pub auto_run_disabled: bool,
    pub mcp_protection: bool,
    pub delete_protection: bool,
    pub browser_protection: bool,
    pub enable_run_everything: bool,
}

/// What is stored for a user.
#[derive(Debug, Clone, Default)]
pub struct UserContents<'a> {
    pub mode: Option<AutoRunMode>,
    pub protections: OwnProtections,
    pub lists: ListContents<'a>,
    pub blocks: Vec<&'a RuleRef>,
}

/// What counts for the operating-system user in one workspace, or where the workspace has no file of its own.
#[derive(Debug, Clone)]
pub struct LocalContents<'a> {
    pub user: &'a str,
    pub workspace: Option<PathBuf>,
    pub lists: ListContents<'a>,
    /// A file is broken, so that the classifier pays nothing (PERM-3).
    pub classifier_off: bool,
}

impl PolicySet {
    #[must_use]
    pub fn contents(&self) -> Contents<'_> {
        Contents(self)
    }
}

impl<'a> Contents<'a> {
    /// The entries that say who may answer held calls, and how.
    pub fn approver_entries(self) -> impl Iterator<Item = &'a Entry> {
        self.0.base().approvers.entries()
    }

    /// What an answer to a call of a tool needs.
    #[must_use]
    pub fn approval_needs(self, server: &str, tool: &str) -> ApprovalNeeds {
        self.0.base().approvers.needs(server, tool)
    }

    /// Whether something is said of how persons answer calls of a tool: then no classifier does.
    #[must_use]
    pub fn names_approvers(self, server: &str, tool: &str) -> bool {
        self.0.base().approvers.name(server, tool)
    }

    /// Whether both say the same of answers.
    #[must_use]
    pub fn same_approvers(self, other: Contents<'_>) -> bool {
        self.0.base().approvers == other.0.base().approvers
    }

    #[must_use]
    pub fn auto_run(self) -> &'a AutoRunInput {
        &self.0.base().auto_run
    }

    /// What always asks.
    #[must_use]
    pub fn ask(self) -> Vec<&'a RuleRef> {
        self.0.base().ask.rules().collect()
    }

    #[must_use]
    pub fn admin(self) -> Option<AdminContents<'a>> {
        self.0.base().admin.as_ref().map(AdminContents::of)
    }

    #[must_use]
    pub fn settings(self) -> &'a Settings {
        &self.0.base().settings
    }

    /// What Toolwarden protects of itself.
    #[must_use]
    pub fn places(self) -> &'a Places {
        &self.0.base().places
    }

    /// The users something is stored for.
    #[must_use]
    pub fn users(self) -> BTreeSet<&'a str> {
        self.0.users().keys().map(String::as_str).collect()
    }

    /// What is stored for a user; nothing for one who is not known.
    #[must_use]
    pub fn user(self, name: &str) -> UserContents<'a> {
        self.0.users().get(name).map(|user| UserContents::of(user)).unwrap_or_default()
    }

    /// What counts for the operating-system user in a workspace.
    #[must_use]
    pub fn local(self, workspace: Option<&Path>) -> LocalContents<'a> {
        LocalContents::of(self.0.local(), workspace)
    }

    /// The workspaces whose own file counts there.
    #[must_use]
    pub fn workspaces(self) -> BTreeSet<&'a Path> {
        self.0.local().workspaces().collect()
    }
}

impl<'a> AdminContents<'a> {
    fn of(admin: &'a Admin) -> Self {
        Self {
            lists: ListContents::of(&admin.lists),
            blocked: &admin.blocked_rules,
            denied_hosts: &admin.denied_hosts,
            auto_run_disabled: admin.auto_run_disabled,
            mcp_protection: admin.mcp_protection,
            delete_protection: admin.delete_protection,
            browser_protection: admin.browser_protection,
            enable_run_everything: admin.enable_run_everything,
        }
    }
}

impl<'a> UserContents<'a> {
    fn of(user: &'a UserLayer) -> Self {
        let (mode, protections) = (user.mode, user.protections);
        Self { mode, protections, lists: ListContents::of(&user.lists), blocks: user.blocks.rules().collect() }
    }
}

impl<'a> LocalContents<'a> {
    fn of(local: &'a LocalLayer, workspace: Option<&Path>) -> Self {
        let here = local.lists(workspace);
        let lists = ListContents {
            mcp: here.mcp().rules().collect(),
            narrow: here.narrow().rules().collect(),
            terminal: here.terminal().rules().collect(),
        };
        let workspace = workspace.map(Path::to_path_buf);
        Self { user: local.user(), workspace, lists, classifier_off: here.classifier_off() }
    }
}

impl<'a> ListContents<'a> {
    fn of(lists: &'a Lists) -> Self {
        Self {
            mcp: lists.mcp.rules().collect(),
            narrow: lists.narrow.rules().collect(),
            terminal: lists.terminal.rules().collect(),
        }
    }
}
