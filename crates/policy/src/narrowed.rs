//! What narrows a tool, gathered from every spelling of its name that a config uses.
//!
//! Deny sides ignore ASCII case (ALLOW-5): a server that lists `deploy` does not escape what somebody
//! wrote about `Deploy`. What opens a tool, its scope, stays with the exact name.

use crate::input::{LimitsInput, ServerInput, ToolInput};
use crate::verdict::RuleRef;

/// The restrictions of one tool.
#[derive(Debug, Clone, Default)]
pub struct Narrowed {
    /// `review = "human"`.
    pub human_review: Option<RuleRef>,
    /// `review = "result"`.
    pub result_review: Option<RuleRef>,
    /// Argument names a call must carry.
    pub task_scoped: Vec<String>,
    pub(crate) task_rule: Option<RuleRef>,
    /// Settings that must all be on.
    pub settings: Vec<String>,
    /// Flow labels of the tool and its server.
    pub labels: Vec<String>,
    pub limits: LimitsInput,
}

impl Narrowed {
    /// A tool nobody configured: the labels and limits of its server.
    pub(crate) fn of_server(server: &ServerInput) -> Self {
        Self { labels: server.labels.clone(), ..Self::default() }
    }

    /// Adds what a config says about one spelling.
    pub(crate) fn add(&mut self, server: &ServerInput, tool: &ToolInput) {
        let origin = tool.origin.as_ref().unwrap_or(&server.origin);
        if tool.human_review && self.human_review.is_none() {
            self.human_review = Some(RuleRef::new("review = \"human\"", origin));
        }
        if tool.result_review && self.result_review.is_none() {
            self.result_review = Some(RuleRef::new("review = \"result\"", origin));
        }
        if !tool.task_scoped.is_empty() && self.task_rule.is_none() {
            self.task_rule = Some(RuleRef::new("task_scoped", origin));
        }
        add_new(&mut self.task_scoped, &tool.task_scoped);
        add_new(&mut self.labels, &tool.labels);
        self.settings.extend(tool.requires_setting.clone());
        self.limits = self.limits.smaller(tool.limits);
    }
}

fn add_new(list: &mut Vec<String>, texts: &[String]) {
    for text in texts {
        if !list.contains(text) {
            list.push(text.clone());
        }
    }
}
