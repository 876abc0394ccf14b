//! What rules may know of a call: principal, tool, and a context built only as far as it is used.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use cedar_policy::{Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression};
use jiff::Timestamp;
use toolwarden_core::json::Value;
use toolwarden_core::{Caller, Door};

use super::arguments::{self, FactsError};
use super::mentions::Needs;
use super::scope::{ACTION, Kind, Named};
use crate::hosts::Address;

/// The facts about one call.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) caller: &'a Caller,
    /// The caller's role by its name and alias: rules may use either.
    pub(crate) roles: [Option<&'a str>; 2],
    pub(crate) mode: Option<&'a str>,
    pub(crate) server: &'a str,
    pub(crate) tool: &'a str,
    pub(crate) labels: &'a [String],
    pub(crate) arguments: Option<Value<'a>>,
    pub(crate) operation: &'a str,
    pub(crate) commands: BTreeSet<String>,
    /// Where a fetch goes.
    pub(crate) address: Address,
    pub(crate) time: Timestamp,
    pub(crate) seen: &'a [String],
    pub(crate) door: Door,
}

impl Facts<'_> {
    pub(crate) fn principal_kind(&self) -> Kind {
        if self.caller.is_agent() { Kind::Agent } else { Kind::Person }
    }

    fn principal_id(&self) -> &str {
        let caller = self.caller;
        let agent = || caller.token.id.as_deref().or(caller.role.as_deref());
        let id = if caller.is_agent() { agent() } else { caller.user.as_deref() };
        id.unwrap_or_default()
    }

    fn tool_id(&self) -> String {
        format!("{}:{}", self.server, self.tool)
    }

    pub(crate) fn principal_is(&self, named: &Named) -> bool {
        named.kind == self.principal_kind() && named.id == self.principal_id()
    }

    pub(crate) fn principal_in(&self, named: &Named) -> bool {
        match named.kind {
            Kind::User => self.caller.user.as_deref() == Some(&named.id),
            Kind::Role => self.roles.contains(&Some(&named.id)),
            Kind::Group => self.caller.groups.contains(&named.id),
            _ => false,
        }
    }

    pub(crate) fn resource_is(&self, named: &Named) -> bool {
        let parts = || named.id.strip_prefix(self.server).and_then(|rest| rest.strip_prefix(':'));
        named.kind == Kind::Tool && parts() == Some(self.tool)
    }

    pub(crate) fn resource_in(&self, named: &Named) -> bool {
        match named.kind {
            Kind::Server => named.id == self.server,
            Kind::Label => self.labels.contains(&named.id),
            _ => false,
        }
    }

    /// Every entity a rule's head could name to mean this call. Ids are made only when asked for:
    /// where no rule names a tool, none needs a tool's id.
    pub(crate) fn for_each_entity<'f>(&'f self, mut visit: impl FnMut(Kind, &dyn Fn() -> Cow<'f, str>)) {
        visit(Kind::Tool, &|| Cow::Owned(self.tool_id()));
        visit(Kind::Server, &|| Cow::Borrowed(self.server));
        self.labels.iter().for_each(|label| visit(Kind::Label, &|| Cow::Borrowed(label)));
        visit(self.principal_kind(), &|| Cow::Borrowed(self.principal_id()));
        self.caller.user.iter().for_each(|user| visit(Kind::User, &|| Cow::Borrowed(user)));
        self.roles.iter().flatten().for_each(|role| visit(Kind::Role, &|| Cow::Borrowed(*role)));
        self.caller.groups.iter().for_each(|group| visit(Kind::Group, &|| Cow::Borrowed(group)));
    }

    /// The request, with as much context as the rules at hand mention.
    pub(crate) fn request(&self, needs: &Needs) -> Result<(Request, Entities), FactsError> {
        let principal = uid(self.principal_kind(), self.principal_id());
        let resource = uid(Kind::Tool, &self.tool_id());
        let mut entities = vec![self.principal_entity(&principal)?, self.tool_entity(&resource)?];
        if needs.has("args") {
            entities.push(self.arguments_entity(needs)?);
        }
        let context = Context::from_pairs(self.context(needs)?).map_err(|_| FactsError::Unusable)?;
        let request =
            Request::new(principal, ACTION_UID.clone(), resource, context, None).map_err(|_| FactsError::Unusable)?;
        let entities = Entities::from_entities(entities, None).map_err(|_| FactsError::Unusable)?;
        Ok((request, entities))
    }

    fn principal_entity(&self, uid_of_principal: &EntityUid) -> Result<Entity, FactsError> {
        let caller = self.caller;
        let mut attributes = vec![("groups".to_owned(), strings(&caller.groups))];
        let mut parents: HashSet<EntityUid> = caller.groups.iter().map(|group| uid(Kind::Group, group)).collect();
        if let Some(user) = &caller.user {
            attributes.push(("user".to_owned(), string(user)));
            parents.insert(uid(Kind::User, user));
        }
        if let [Some(role), _] = self.roles {
            attributes.push(("role".to_owned(), string(role)));
        }
        parents.extend(self.roles.iter().flatten().map(|role| uid(Kind::Role, role)));
        Entity::new(uid_of_principal.clone(), attributes.into_iter().collect(), parents)
            .map_err(|_| FactsError::Unusable)
    }

    fn tool_entity(&self, uid_of_tool: &EntityUid) -> Result<Entity, FactsError> {
        let attributes = [
            ("server".to_owned(), string(self.server)),
            ("name".to_owned(), string(self.tool)),
            ("labels".to_owned(), strings(self.labels)),
        ];
        let labels = self.labels.iter().map(|label| uid(Kind::Label, label));
        let parents = labels.chain([uid(Kind::Server, self.server)]).collect();
        Entity::new(uid_of_tool.clone(), attributes.into_iter().collect(), parents).map_err(|_| FactsError::Unusable)
    }

    fn arguments_entity(&self, needs: &Needs) -> Result<Entity, FactsError> {
        let tags = arguments::tags(self.arguments, needs)?;
        let tags = tags.into_iter().map(|(pointer, text)| (pointer, string(&text)));
        Entity::new_with_tags(ARGUMENTS_UID.clone(), [], [], tags).map_err(|_| FactsError::Unusable)
    }

    fn context(&self, needs: &Needs) -> Result<Vec<(String, RestrictedExpression)>, FactsError> {
        let mut pairs = Vec::new();
        let mut add = |name: &str, value: Option<RestrictedExpression>| {
            if let Some(value) = value {
                pairs.push((name.to_owned(), value));
            }
        };
        let wanted = |name: &str, value: Option<&str>| if needs.has(name) { value.map(string) } else { None };
        let context = &self.caller.context;
        add("mode", wanted("mode", self.mode));
        add("task_id", wanted("task_id", context.task.as_deref()));
        add("project_id", wanted("project_id", context.project.as_deref()));
        add("run_id", wanted("run_id", context.run.as_deref()));
        add("job_id", wanted("job_id", context.job.as_deref()));
        add("session_id", wanted("session_id", context.session.as_deref()));
        add("token_id", wanted("token_id", self.caller.token.id.as_deref()));
        add("operation", wanted("operation", Some(self.operation)));
        add("door", wanted("door", Some(door_name(self.door))));
        add("seen", needs.has("seen").then(|| strings(self.seen)));
        add(
            "commands",
            needs.has("commands").then(|| RestrictedExpression::new_set(self.commands.iter().map(|name| string(name)))),
        );
        add(
            "now",
            needs
                .has("now")
                .then(|| RestrictedExpression::new_datetime(self.time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
        );
        match &self.address {
            Address::None => {}
            Address::Unreadable if needs.mentions_an_address() => return Err(FactsError::Address),
            Address::Unreadable => {}
            Address::Known(address) => {
                add("url", wanted("url", Some(address.url.as_str())));
                add("scheme", wanted("scheme", Some(address.url.scheme())));
                add("host", wanted("host", address.host.as_deref()));
                let port = address.url.port_or_known_default().filter(|_| needs.has("port"));
                add("port", port.map(|port| RestrictedExpression::new_long(port.into())));
            }
        }
        add("args", needs.has("args").then(|| RestrictedExpression::new_entity_uid(ARGUMENTS_UID.clone())));
        if needs.has("arguments") {
            add("arguments", Some(arguments::record(self.arguments, needs)?));
        }
        Ok(pairs)
    }
}

fn door_name(door: Door) -> &'static str {
    match door {
        Door::Mcp => "mcp",
        Door::Decide => "decide",
        Door::Explain => "explain",
    }
}

fn string(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

fn strings(texts: &[String]) -> RestrictedExpression {
    RestrictedExpression::new_set(texts.iter().map(|text| string(text)))
}

/// The type names, parsed once.
static TYPE_NAMES: LazyLock<Vec<Option<EntityTypeName>>> = LazyLock::new(|| {
    let kinds = [
        Kind::Person,
        Kind::Agent,
        Kind::User,
        Kind::Group,
        Kind::Role,
        Kind::Tool,
        Kind::Server,
        Kind::Label,
        Kind::Other,
    ];
    kinds.iter().map(|kind| kind.type_name().parse().ok()).collect()
});

static ACTION_UID: LazyLock<EntityUid> = LazyLock::new(|| named_uid("Action", ACTION));
static ARGUMENTS_UID: LazyLock<EntityUid> = LazyLock::new(|| named_uid("Mcp::Arguments", "call"));

fn uid(kind: Kind, id: &str) -> EntityUid {
    match TYPE_NAMES.get(kind.index()) {
        Some(Some(name)) => EntityUid::from_type_name_and_id(name.clone(), EntityId::new(id)),
        _ => named_uid(kind.type_name(), id),
    }
}

#[expect(clippy::expect_used, reason = "the type names are constants of this file, and a test parses each")]
fn named_uid(type_name: &str, id: &str) -> EntityUid {
    let name: EntityTypeName = type_name.parse().expect("a constant type name");
    EntityUid::from_type_name_and_id(name, EntityId::new(id))
}
