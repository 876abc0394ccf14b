//! The compiled policy: a root of shared layers, each rebuilt alone when its part changes.

use std::path::PathBuf;
use std::sync::Arc;

use toolwarden_core::{ApprovalNeeds, Caller};

use crate::allowlist::Allowlist;
use crate::approvers::Approvers;
use crate::finding::{Finding, Severity};
use crate::input::{
    AutoRunInput, AutoRunMode, BaseInput, LimitsInput, LocalInput, PolicyInput, ServerInput, UserInput,
};
use crate::lists::{Admin, LocalLayer, UserLayer, Users, compile_users};
use crate::modes::{Mode, Modes};
use crate::roles::Roles;
use crate::rules::Rules;
use crate::servers::{Servers, task_scopes};
use crate::settings::Settings;
use crate::shell::Places;
use crate::verdict::RuleRef;

/// A policy ready to judge by. Cheap to clone.
#[derive(Debug, Clone)]
pub struct PolicySet {
    version: u64,
    base: Arc<Base>,
    servers: Arc<Servers>,
    users: Arc<Users>,
    local: Arc<LocalLayer>,
}

/// The layer of settings, admin record, modes, roles and rules.
#[derive(Debug)]
pub struct Base {
    pub(crate) auto_run: AutoRunInput,
    pub(crate) ask: Allowlist,
    pub(crate) approvers: Approvers,
    pub(crate) admin: Option<Admin>,
    pub modes: Modes,
    pub roles: Roles,
    pub rules: Rules,
    pub(crate) settings: Settings,
    pub(crate) places: Places,
    pub(crate) workspaces: Vec<PathBuf>,
    /// Keys and data among the places.
    pub(crate) keys: Places,
    /// Of every call that no server or tool says otherwise about.
    pub limits: LimitsInput,
}

/// Why a policy was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the policy has {} error(s)", .0.len())]
pub struct Refused(pub Vec<Finding>);

impl Base {
    /// Compiles the base layer.
    ///
    /// # Errors
    /// Roles, rules or settings that cannot be used. A faulty mode is refused alone, not here.
    pub fn compile(input: &BaseInput) -> Result<Self, Refused> {
        let mut faults = Vec::new();
        let mut keep = |found: Vec<Finding>| faults.extend(found);
        let roles = Roles::compile(&input.roles).map_err(&mut keep).ok();
        let rules = Rules::compile(&input.rules).map_err(&mut keep).ok();
        let settings = Settings::compile(&input.settings).map_err(&mut keep).ok();
        let approvers = Approvers::compile(&input.approvers).map_err(&mut keep).ok();
        let admin = input.admin.as_ref().map_or(Ok(None), Admin::compile).map_err(&mut keep).ok();
        let (Some(roles), Some(rules), Some(settings), Some(admin), Some(approvers)) =
            (roles, rules, settings, admin, approvers)
        else {
            return Err(Refused(faults));
        };
        Ok(Self {
            auto_run: input.auto_run.clone(),
            ask: Allowlist::compile(&input.auto_run.ask),
            admin,
            modes: Modes::compile(&input.modes),
            roles,
            rules,
            settings,
            places: Places::compile(&input.protected_paths, input.home.as_deref())
                .with_secret(&input.secret_paths)
                .with_git_configs(&input.git_configs),
            workspaces: input.workspaces.clone(),
            keys: Places::compile(&input.secret_paths, input.home.as_deref()),
            limits: input.limits,
            approvers,
        })
    }
}

/// What can only be checked once tools are known: typed rules, task scopes (GATE-10, GATE-11).
fn check(base: &Base, inputs: &[ServerInput], servers: &Servers) -> Result<(), Refused> {
    let mut errors = base.rules.validate(servers);
    errors.extend(task_scopes(inputs, servers));
    errors.retain(|finding| finding.severity == Severity::Error);
    if errors.is_empty() { Ok(()) } else { Err(Refused(errors)) }
}

/// What always asks one caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Protections {
    pub(crate) mcp: bool,
    pub(crate) browser: bool,
    pub(crate) delete: bool,
}

impl PolicySet {
    /// Compiles a whole policy.
    ///
    /// # Errors
    /// Roles, rules or settings that cannot be used, or rules that break the schema.
    pub fn compile(input: &PolicyInput) -> Result<Self, Refused> {
        let base = Base::compile(&input.base)?;
        let servers = Servers::compile(&input.servers);
        check(&base, &input.servers, &servers)?;
        let local = LocalLayer::compile(&input.local, input.users.get(&input.local.user), &input.servers);
        Ok(Self {
            version: input.version,
            base: Arc::new(base),
            servers: Arc::new(servers),
            users: Arc::new(compile_users(input)),
            local: Arc::new(local),
        })
    }

    /// The same policy with one user's stored lists replaced.
    #[must_use]
    pub fn with_user(&self, version: u64, name: &str, user: &UserInput) -> Self {
        let mut users: Users = (*self.users).clone();
        users.insert(name.to_owned(), Arc::new(UserLayer::compile(user)));
        let mut changed = Self { version, users: Arc::new(users), ..self.clone() };
        if self.local.user() == name {
            changed.local = Arc::new(self.local.with_stored(user));
        }
        changed
    }

    /// Whether both have the same rules, wherever these are written.
    #[must_use]
    pub fn has_rules_of(&self, other: &Self) -> bool {
        let (own, others) = (self.base().rules.all(), other.base().rules.all());
        own.len() == others.len() && own.iter().zip(others).all(|(one, other)| one.policy == other.policy)
    }

    /// The same policy with other servers. Rules typed by their tools are checked again.
    ///
    /// # Errors
    /// Rules that break the schema of a tool now known.
    pub fn with_servers(&self, version: u64, inputs: &[ServerInput]) -> Result<Self, Refused> {
        let servers = Servers::compile_after(&self.servers, inputs);
        check(&self.base, inputs, &servers)?;
        let local = Arc::new(self.local.with_servers(inputs));
        Ok(Self { version, servers: Arc::new(servers), local, ..self.clone() })
    }

    /// The same policy with other files of the operating-system user.
    #[must_use]
    pub fn with_local(
        &self,
        version: u64,
        local: &LocalInput,
        stored: Option<&UserInput>,
        servers: &[ServerInput],
    ) -> Self {
        Self { version, local: Arc::new(LocalLayer::compile(local, stored, servers)), ..self.clone() }
    }

    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    #[must_use]
    pub fn base(&self) -> &Base {
        &self.base
    }

    #[must_use]
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    pub(crate) fn local(&self) -> &LocalLayer {
        &self.local
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    pub(crate) fn user(&self, caller: &Caller) -> Option<&UserLayer> {
        self.users.get(caller.user.as_deref()?).map(AsRef::as_ref)
    }

    /// The caller's own auto-run mode; none for a credential without a user (CORE-7).
    pub(crate) fn auto_run_mode(&self, caller: &Caller) -> Option<AutoRunMode> {
        caller.user.as_ref().filter(|user| !user.is_empty())?;
        Some(self.user(caller).and_then(|user| user.mode).unwrap_or(self.base.auto_run.mode))
    }

    /// Whether the caller's mode was named by their user or the config (ALLOW-6).
    pub(crate) fn auto_run_is_chosen(&self, caller: &Caller) -> bool {
        self.user(caller).is_some_and(|user| user.mode.is_some()) || self.base.auto_run.mode_is_chosen
    }

    /// The protections that count for a caller: those of its user, else the configured ones. An admin switches one on,
    /// never off (ALLOW-8).
    pub(crate) fn protections(&self, caller: &Caller) -> Protections {
        let (base, admin) = (&self.base.auto_run, self.base.admin.as_ref());
        let own = self.user(caller).map(|user| user.protections).unwrap_or_default();
        Protections {
            mcp: own.mcp.unwrap_or(base.mcp_protection) || admin.is_some_and(|admin| admin.mcp_protection),
            browser: own.browser.unwrap_or(base.browser_protection)
                || admin.is_some_and(|admin| admin.browser_protection),
            delete: own.delete.unwrap_or(base.delete_protection) || admin.is_some_and(|admin| admin.delete_protection),
        }
    }

    /// Why results of a tool wait for a person, and what an answer needs; none where they pass.
    #[must_use]
    pub fn reviews_results(&self, server: &str, tool: &str) -> Option<(RuleRef, ApprovalNeeds)> {
        let rule = self.servers().get(server)?.narrowed(tool).result_review.clone()?;
        Some((rule, self.base.approvers.needs(server, tool)))
    }

    /// Whether some call may be held for a person: false only where everything runs unasked and nothing is protected or
    /// asked for. Rules and definitions that change may hold all the same; this is for those who look after the gateway.
    #[must_use]
    pub fn may_hold(&self) -> bool {
        let auto_run = &self.base.auto_run;
        let runs_everything = auto_run.mode == AutoRunMode::RunEverything && !auto_run.auto_review;
        let is_protected = auto_run.mcp_protection || auto_run.browser_protection || auto_run.delete_protection;
        let own = |user: &UserLayer| [user.protections.mcp, user.protections.browser, user.protections.delete];
        let is_protected = is_protected || self.users.values().any(|user| own(user).contains(&Some(true)));
        !runs_everything || is_protected || !auto_run.ask.is_empty() || self.base.admin.is_some()
    }

    /// Whether auto-review is on, which makes run-everything act as use-allowlist (REVIEW-1).
    #[must_use]
    pub fn auto_review(&self, mode: Option<&Mode>) -> bool {
        mode.and_then(|mode| mode.auto_review).unwrap_or(self.base.auto_run.auto_review)
    }
}
