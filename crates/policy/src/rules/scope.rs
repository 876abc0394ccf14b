//! A rule's head, `(principal .., action .., resource ..)`, as something that can be looked up.

use cedar_policy::{ActionConstraint, EntityTypeName, EntityUid, Policy, PrincipalConstraint, ResourceConstraint};

/// The one action there is.
pub(crate) const ACTION: &str = "mcp.tool.invoke";

/// The entity types of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Person,
    Agent,
    User,
    Group,
    Role,
    Tool,
    Server,
    Label,
    /// A type the schema does not have: validation refuses such a rule.
    Other,
}

impl Kind {
    pub(crate) const COUNT: usize = 9;

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Person => "Person",
            Self::Agent => "Agent",
            Self::User => "User",
            Self::Group => "Group",
            Self::Role => "Role",
            Self::Tool => "Mcp::Tool",
            Self::Server => "Mcp::Server",
            Self::Label => "Mcp::Label",
            Self::Other => "Other",
        }
    }

    fn of(name: &EntityTypeName) -> Self {
        let text = name.to_string();
        let known =
            [Self::Person, Self::Agent, Self::User, Self::Group, Self::Role, Self::Tool, Self::Server, Self::Label];
        known.into_iter().find(|kind| kind.type_name() == text).unwrap_or(Self::Other)
    }
}

/// An entity a rule names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) kind: Kind,
    pub(crate) id: String,
}

impl Named {
    /// Whether the other is a tool of this server.
    fn is_server_of(&self, other: &Self) -> bool {
        let rest = other.id.strip_prefix(&self.id);
        self.kind == Kind::Server && other.kind == Kind::Tool && rest.is_some_and(|rest| rest.starts_with(':'))
    }

    fn of(uid: &EntityUid) -> Self {
        Self { kind: Kind::of(uid.type_name()), id: AsRef::<str>::as_ref(uid.id()).to_owned() }
    }
}

/// One side of a head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Any,
    Is(Kind),
    Equals(Named),
    In(Named),
    IsIn(Kind, Named),
}

impl Part {
    /// Whether everything the other part fits is fitted by this one, as far as heads alone can tell.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Is(kind), Self::Is(same) | Self::IsIn(same, _)) => kind == same,
            (Self::Is(kind), Self::Equals(named)) => *kind == named.kind,
            (Self::In(named), Self::In(same) | Self::IsIn(_, same) | Self::Equals(same)) => {
                named == same || named.is_server_of(same)
            }
            (mine, theirs) => mine == theirs,
        }
    }

    /// The entity to find this rule by.
    pub(crate) fn named(&self) -> Option<&Named> {
        match self {
            Self::Any | Self::Is(_) => None,
            Self::Equals(named) | Self::In(named) | Self::IsIn(_, named) => Some(named),
        }
    }
}

/// A rule's head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleScope {
    pub(crate) principal: Part,
    pub(crate) resource: Part,
    /// Whether the head names our action; a rule for another action never applies.
    pub(crate) applies_to_action: bool,
}

impl RuleScope {
    pub(crate) fn names_a_label(&self) -> bool {
        self.resource.named().is_some_and(|named| named.kind == Kind::Label)
    }

    pub(crate) fn names_a_tool_or_server(&self) -> bool {
        self.resource.named().is_some_and(|named| named.kind != Kind::Label)
    }

    pub(crate) fn of(policy: &Policy) -> Self {
        let principal = match policy.principal_constraint() {
            PrincipalConstraint::Any => Part::Any,
            PrincipalConstraint::In(uid) => Part::In(Named::of(&uid)),
            PrincipalConstraint::Eq(uid) => Part::Equals(Named::of(&uid)),
            PrincipalConstraint::Is(name) => Part::Is(Kind::of(&name)),
            PrincipalConstraint::IsIn(name, uid) => Part::IsIn(Kind::of(&name), Named::of(&uid)),
        };
        let resource = match policy.resource_constraint() {
            ResourceConstraint::Any => Part::Any,
            ResourceConstraint::In(uid) => Part::In(Named::of(&uid)),
            ResourceConstraint::Eq(uid) => Part::Equals(Named::of(&uid)),
            ResourceConstraint::Is(name) => Part::Is(Kind::of(&name)),
            ResourceConstraint::IsIn(name, uid) => Part::IsIn(Kind::of(&name), Named::of(&uid)),
        };
        let ours =
            |uid: &EntityUid| uid.type_name().to_string() == "Action" && AsRef::<str>::as_ref(uid.id()) == ACTION;
        let applies_to_action = match policy.action_constraint() {
            ActionConstraint::Any => true,
            ActionConstraint::In(uids) => uids.iter().any(ours),
            ActionConstraint::Eq(uid) => ours(&uid),
        };
        Self { principal, resource, applies_to_action }
    }
}

#[cfg(test)]
#[path = "heads_tests.rs"]
mod tests;
