//! What the judge answers: allow with a permit, hold with a pending call, or deny; and why.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::{Decision, Origin, Payer, Reason, Stage, name};

use crate::permit::Permit;
use crate::query::Query;
use crate::settle::Pending;

/// The rule, entry or definition that decided, and the place it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRef {
    pub text: Arc<str>,
    pub origin: Origin,
}

impl RuleRef {
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>, origin: &Origin) -> Self {
        Self { text: text.into(), origin: origin.clone() }
    }
}

/// What one stage found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub outcome: Outcome,
    pub rule: Option<RuleRef>,
    pub detail: Option<Cow<'static, str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The stage has nothing to say about this caller or call.
    NotApplicable,
    Pass,
    Because(Reason),
}

impl Outcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotApplicable => "not applicable",
            Self::Pass => "pass",
            Self::Because(reason) => reason.decision().as_str(),
        }
    }
}

impl Step {
    pub(crate) const NOT_APPLICABLE: Self = Self { outcome: Outcome::NotApplicable, rule: None, detail: None };
    pub(crate) const PASS: Self = Self { outcome: Outcome::Pass, rule: None, detail: None };

    pub(crate) fn because(reason: Reason) -> Self {
        Self { outcome: Outcome::Because(reason), rule: None, detail: None }
    }

    pub(crate) fn by(mut self, rule: Option<RuleRef>) -> Self {
        self.rule = rule;
        self
    }

    pub(crate) fn noting(mut self, detail: impl Into<Cow<'static, str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The reason, where the stage decided something.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self.outcome {
            Outcome::Because(reason) => Some(reason),
            Outcome::Pass | Outcome::NotApplicable => None,
        }
    }

    pub(crate) fn denies(&self) -> bool {
        self.reason().is_some_and(|reason| reason.decision() == Decision::Deny)
    }
}

/// Why a call was decided as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub decision: Decision,
    pub stage: Stage,
    pub reason: Reason,
    pub rule: Option<RuleRef>,
    pub detail: Option<Cow<'static, str>>,
    /// Entries that would let this call run unasked, narrowest first.
    pub candidates: Vec<String>,
    /// Who may pay at this moment; empty unless held.
    pub payers: Vec<Payer>,
    /// Every stage, where the query asked for it.
    pub trace: Vec<(Stage, Step)>,
    pub policy_version: u64,
    /// The decision may change by itself at this time (a window's edge, a token's end).
    pub valid_until: Option<Timestamp>,
}

impl Explanation {
    /// What happened, in words for the caller (MODE-5 for mode restrictions).
    #[must_use]
    pub fn message(&self, query: &Query) -> String {
        let mode = query.caller.mode.as_deref().or_else(|| query.caller.token.modes.first().map(String::as_str));
        match (self.reason, mode) {
            (Reason::ModeServer | Reason::ModeTool | Reason::ModeGroup | Reason::ModeServerOptIn, Some(mode)) => {
                let (server, tool) = (name::shown(&query.call.server), name::shown(&query.call.tool));
                let mode = name::shown(mode);
                format!(
                    "Mode restriction: Tool \"{tool}\" is not allowed in {mode} mode (server: {server}, tool: {tool})."
                )
            }
            _ => self.reason.sentence().to_owned(),
        }
    }

    /// Whether the trace says that the server or tool is not known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        let is_server = |(stage, step): &&(Stage, Step)| *stage == Stage::Server && step.detail.is_some();
        let noted = self.trace.iter().find(is_server).and_then(|(_, step)| step.detail.as_deref());
        self.reason == Reason::UnknownTool || noted.is_some_and(|detail| detail.starts_with("unknown"))
    }
}

/// The judge's answer.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    Allow(Permit),
    Hold(Box<Pending>),
    Deny(Box<Explanation>),
}

impl Verdict {
    #[must_use]
    pub fn explanation(&self) -> &Explanation {
        match self {
            Self::Allow(permit) => permit.explanation(),
            Self::Hold(pending) => pending.explanation(),
            Self::Deny(explanation) => explanation,
        }
    }

    #[must_use]
    pub fn decision(&self) -> Decision {
        self.explanation().decision
    }
}
