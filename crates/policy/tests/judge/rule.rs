//! A tiny language of rules: printed as Cedar for the engine, read by itself for the naive evaluator.
//!
//! Scope first, then the condition; an evaluation error is its own answer (GATE-10).

use toolwarden_core::{Caller, CallerKind};

/// What is known of a call when rules are asked.
#[derive(Debug)]
pub struct Facts<'a> {
    pub caller: &'a Caller,
    /// The role under its name and its alias.
    pub roles: Vec<&'a str>,
    pub server: &'a str,
    pub tool: &'a str,
    pub labels: Vec<&'a str>,
    pub arguments: &'a serde_json::Value,
    pub mode: Option<&'a str>,
    pub seen: &'a [String],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Permit,
    Forbid,
    /// A forbid annotated `@hold`.
    Hold,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Anyone,
    Persons,
    Agents,
    Role(&'static str),
    User(&'static str),
    Group(&'static str),
    /// One agent, by the id of its token.
    Agent(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    Anything,
    Tool(String, String),
    Server(&'static str),
    Label(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Always,
    /// The argument at `/key` is this text.
    Argument(&'static str, &'static str),
    Mode(&'static str),
    Seen(&'static str),
    /// Both labels of the shipped flow rule were seen.
    Flow,
    /// The typed argument `n` is above this; only for a tool whose schema has `n`.
    Above(i64),
    /// Overflows as soon as `n` is positive; only for a tool whose schema has `n`.
    Overflow,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub effect: Effect,
    pub who: Who,
    pub what: What,
    pub when: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    Yes,
    No,
    Error,
}

impl Rule {
    /// Whether the rule speaks about this call.
    pub fn applies(&self, facts: &Facts<'_>) -> Truth {
        if self.who.covers(facts) && self.what.covers(facts) { self.when.holds(facts) } else { Truth::No }
    }

    /// WORK-2: the argument it looks at is there, and is nothing a rule could compare.
    pub fn cannot_look(&self, facts: &Facts<'_>) -> bool {
        let at_hand = self.who.covers(facts) && self.what.covers(facts);
        at_hand
            && match self.when {
                When::Argument(key, _) => match (facts.arguments, facts.arguments.get(key)) {
                    (serde_json::Value::Object(_), Some(value)) => {
                        let is_odd = value.is_number() && integer(value).is_none();
                        value.is_array() || value.is_object() || value.is_null() || is_odd
                    }
                    (serde_json::Value::Object(_) | serde_json::Value::Null, _) => false,
                    // Also a list: somebody may read the object in it.
                    _ => true,
                },
                When::Above(_) | When::Overflow => facts
                    .arguments
                    .get("n")
                    .is_some_and(|value| value.is_null() || (value.is_number() && integer(value).is_none())),
                When::Always | When::Mode(_) | When::Seen(_) | When::Flow => false,
            }
    }

    pub fn looks_at_arguments(&self) -> bool {
        matches!(self.when, When::Argument(..) | When::Above(_) | When::Overflow)
    }

    pub fn cedar(&self, id: usize) -> String {
        let (annotation, effect) = match self.effect {
            Effect::Permit => ("", "permit"),
            Effect::Forbid => ("", "forbid"),
            Effect::Hold => ("@hold(\"why\")\n", "forbid"),
        };
        let (who, what, when) = (self.who.cedar(), self.what.cedar(), self.when.cedar());
        format!(
            "@id(\"r{id}\")\n{annotation}{effect} (principal{who}, action == Action::\"mcp.tool.invoke\", resource{what}){when};\n"
        )
    }
}

impl Who {
    fn covers(self, facts: &Facts<'_>) -> bool {
        let caller = facts.caller;
        match self {
            Self::Anyone => true,
            Self::Persons => caller.kind != CallerKind::Agent,
            Self::Agents => caller.kind == CallerKind::Agent,
            Self::Role(role) => facts.roles.contains(&role),
            Self::User(user) => caller.user.as_deref() == Some(user),
            Self::Group(group) => caller.groups.iter().any(|mine| mine == group),
            Self::Agent(id) => caller.kind == CallerKind::Agent && caller.token.id.as_deref() == Some(id),
        }
    }

    fn cedar(self) -> String {
        match self {
            Self::Anyone => String::new(),
            Self::Persons => " is Person".to_owned(),
            Self::Agents => " is Agent".to_owned(),
            Self::Role(role) => format!(" in Role::\"{role}\""),
            Self::User(user) => format!(" in User::\"{user}\""),
            Self::Group(group) => format!(" in Group::\"{group}\""),
            Self::Agent(id) => format!(" == Agent::\"{id}\""),
        }
    }
}

impl What {
    fn covers(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Anything => true,
            Self::Tool(server, tool) => facts.server == server && facts.tool == tool,
            Self::Server(server) => facts.server == *server,
            Self::Label(label) => facts.labels.contains(label),
        }
    }

    fn cedar(&self) -> String {
        match self {
            Self::Anything => String::new(),
            Self::Tool(server, tool) => format!(" == Mcp::Tool::\"{server}:{tool}\""),
            Self::Server(server) => format!(" in Mcp::Server::\"{server}\""),
            Self::Label(label) => format!(" in Mcp::Label::\"{label}\""),
        }
    }
}

impl When {
    fn holds(self, facts: &Facts<'_>) -> Truth {
        let seen = |label: &str| facts.seen.iter().any(|mine| mine == label);
        let number = facts.arguments.get("n");
        match self {
            // `has` wants a record.
            Self::Above(_) | Self::Overflow if !facts.arguments.is_object() => Truth::Error,
            Self::Always => Truth::Yes,
            Self::Argument(key, value) => truth(text(facts.arguments.get(key)).as_deref() == Some(value)),
            Self::Mode(mode) => truth(facts.mode == Some(mode)),
            Self::Seen(label) => truth(seen(label)),
            Self::Flow => truth(seen("reads_untrusted") && seen("reads_private")),
            Self::Above(bound) => match number {
                None => Truth::No,
                Some(value) => integer(value).map_or(Truth::Error, |value| truth(value > bound)),
            },
            Self::Overflow => match number {
                None => Truth::No,
                Some(value) => match integer(value).map(|value| value.checked_add(i64::MAX)) {
                    Some(Some(sum)) => truth(sum > 0),
                    Some(None) | None => Truth::Error,
                },
            },
        }
    }

    fn cedar(self) -> String {
        match self {
            Self::Always => String::new(),
            Self::Argument(key, value) => {
                format!(" when {{ context.args.hasTag(\"/{key}\") && context.args.getTag(\"/{key}\") == \"{value}\" }}")
            }
            Self::Mode(mode) => format!(" when {{ context has mode && context.mode == \"{mode}\" }}"),
            Self::Seen(label) => format!(" when {{ context.seen.contains(\"{label}\") }}"),
            Self::Flow => {
                " when { context.seen.contains(\"reads_untrusted\") && context.seen.contains(\"reads_private\") }"
                    .to_owned()
            }
            Self::Above(bound) => {
                format!(" when {{ context.arguments has n && context.arguments.n > {bound} }}")
            }
            Self::Overflow => {
                format!(" when {{ context.arguments has n && context.arguments.n + {} > 0 }}", i64::MAX)
            }
        }
    }
}

fn truth(yes: bool) -> Truth {
    if yes { Truth::Yes } else { Truth::No }
}

/// The integer a number is, however it was written; the numbers of these tests are small enough for a float.
pub fn integer(value: &serde_json::Value) -> Option<i64> {
    let float = value.as_f64()?;
    let whole = format!("{float:.0}").parse().ok()?;
    (float.fract() == 0.0).then_some(whole)
}

/// A scalar argument as text.
pub fn text(value: Option<&serde_json::Value>) -> Option<String> {
    match value? {
        serde_json::Value::String(text) => Some(text.clone()),
        serde_json::Value::Number(number) => {
            Some(integer(value?).map_or(number.to_string(), |whole| whole.to_string()))
        }
        serde_json::Value::Bool(yes) => Some(yes.to_string()),
        serde_json::Value::Null | serde_json::Value::Array(_) | serde_json::Value::Object(_) => None,
    }
}
