//! Servers and their tools, compiled: what is known, enabled, scoped, limited and labelled.
//!
//! Two definitions of one name with different launches, or names that differ only in case or
//! Unicode form, switch that name off until a person chooses (MODE-7, ALLOW-5). A server of one user is
//! unknown to everybody else: whoever looks a name up says for whom (GATE-8).

mod task_scopes;

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use serde_json::Value;
use toolwarden_core::name;
use toolwarden_core::{BUILTIN_SERVER, CUSTOM_TOOLS_SERVER, FETCH_TOOL, Layer, Origin, SHELL_TOOL};

pub use crate::narrowed::Narrowed;
pub use task_scopes::task_scopes;

use crate::allowlist::Twin;
use crate::input::{Declared, Launch, LimitsInput, Scope, ServerInput, ToolDefinition, ToolInput};
use crate::schema::{Room, Schema};
use crate::shipped;
use crate::verdict::RuleRef;

/// Whether calls may go to a server at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    Enabled,
    Disabled,
    /// The other place that defines this name.
    Conflict(Origin),
}

/// One compiled server.
#[derive(Debug)]
pub struct Server {
    pub name: Arc<str>,
    pub origin: Origin,
    /// How explanations name it, made once.
    pub(crate) rule: RuleRef,
    pub declared: Declared,
    /// The user for whom alone it is there.
    pub owner: Option<String>,
    pub state: ServerState,
    pub default_enabled: bool,
    /// What starts or reaches it.
    pub launch: Launch,
    /// Whether its own list of tools is known.
    pub listed: bool,
    tools: HashMap<String, Tool>,
    /// Folded name → names that differ only in case.
    folded: HashMap<String, Vec<String>>,
    /// What narrows tools, by folded name, and what narrows those nobody configured.
    narrowed: HashMap<String, Narrowed>,
    unconfigured: Narrowed,
    /// Folded names of tools switched off here, with the place that says so.
    off: HashMap<String, Origin>,
    limits: LimitsInput,
}

/// One compiled tool.
#[derive(Debug, Default)]
pub struct Tool {
    /// None where no config speaks of it.
    pub input: Option<ToolInput>,
    pub definition: Option<ToolDefinition>,
    /// Shared with the next policy, which may know the same tool.
    pub schema: Option<Arc<Schema>>,
    /// What results must fit. Shared: a result may come after the policy has changed.
    pub output: Option<Arc<Schema>>,
}

impl Tool {
    /// The side whose schema cannot be used, and why: such a tool is denied (WORK-1).
    #[must_use]
    pub fn unusable(&self) -> Option<(&'static str, &str)> {
        let input = self.schema.as_deref().and_then(Schema::fault).map(|fault| ("input", fault));
        input.or_else(|| self.output.as_deref().and_then(Schema::fault).map(|fault| ("output", fault)))
    }
}

impl Tool {
    /// What was compiled of its schemas, where these are the same.
    fn compiled_of(&self, definition: &ToolDefinition) -> (Option<&Arc<Schema>>, Option<&Arc<Schema>>) {
        let Some(own) = &self.definition else { return (None, None) };
        let input = self.schema.as_ref().filter(|_| own.input_schema == definition.input_schema);
        (input, self.output.as_ref().filter(|_| own.output_schema == definition.output_schema))
    }
}

/// All compiled servers.
#[derive(Debug, Default)]
pub struct Servers {
    by_name: HashMap<String, Arc<Server>>,
    by_folded: HashMap<String, Vec<String>>,
    have_labels: bool,
}

/// What became of looking a name up where one that differs only in case may be meant (CORE-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    Known(&'a str),
    Ambiguous,
    Unknown,
}

impl Servers {
    /// Compiles servers; a faulty tool schema is no error: that tool is denied.
    #[must_use]
    pub fn compile(inputs: &[ServerInput]) -> Self {
        Self::compile_after(&Self::default(), inputs)
    }

    /// The same, with the schemas that were compiled before of tools that are defined as they were.
    pub(crate) fn compile_after(former: &Self, inputs: &[ServerInput]) -> Self {
        let mut groups: BTreeMap<String, Vec<&ServerInput>> = BTreeMap::new();
        for input in inputs {
            groups.entry(name::registration_key(&input.name)).or_default().push(input);
        }
        let mut servers = Self::default();
        let is_labelled =
            |input: &ServerInput| !input.labels.is_empty() || input.tools.values().any(|tool| !tool.labels.is_empty());
        servers.have_labels = inputs.iter().any(is_labelled);
        for group in groups.values() {
            for input in group {
                let rival = group.iter().find(|other| differs(input, other)).map(|other| other.origin.clone());
                servers.add(Server::compile(input, rival, former.get(&input.name).map(AsRef::as_ref)));
            }
        }
        for (name, tools) in [(BUILTIN_SERVER, &[SHELL_TOOL, FETCH_TOOL][..]), (CUSTOM_TOOLS_SERVER, &[])] {
            let configured = servers.by_name.get(name).filter(|server| server.owner.is_none()).cloned();
            servers.add(Server::virtual_server(name, tools, configured.as_deref(), inputs));
        }
        servers
    }

    fn add(&mut self, server: Server) {
        let name = server.name.to_string();
        let folded = self.by_folded.entry(name.to_ascii_lowercase()).or_default();
        if !folded.contains(&name) {
            folded.push(name.clone());
        }
        self.by_name.insert(name, Arc::new(server));
    }

    /// Whether any of their tools has a flow label.
    #[must_use]
    pub fn have_labels(&self) -> bool {
        self.have_labels
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Server>> {
        self.by_name.get(name)
    }

    /// Every server, by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Arc<Server>> {
        let mut servers: Vec<_> = self.by_name.values().collect();
        servers.sort_by(|left, right| left.name.cmp(&right.name));
        servers
    }

    /// A server as this user knows it.
    pub(crate) fn get_for(&self, name: &str, user: Option<&str>) -> Option<&Arc<Server>> {
        self.get(name).filter(|server| server.is_for(user))
    }

    /// Of names that differ only in case, those count that this user knows.
    pub(crate) fn find(&self, name: &str, user: Option<&str>) -> Found<'_> {
        let known = |name: &str| self.by_name.get_key_value(name).filter(|(_, server)| server.is_for(user));
        if let Some((known, _)) = known(name) {
            return Found::Known(known);
        }
        let twins = self.by_folded.get(&*name::folded(name)).into_iter().flatten();
        let mut twins = twins.filter(|twin| known(twin).is_some());
        match (twins.next(), twins.next()) {
            (Some(only), None) => Found::Known(only),
            (Some(_), Some(_)) => Found::Ambiguous,
            (None, _) => Found::Unknown,
        }
    }
}

/// A schema, compiled once however often its server is learned anew.
fn compiled(schema: Option<&Value>, known: Option<&Arc<Schema>>, room: &mut Room) -> Option<Arc<Schema>> {
    let schema = schema?;
    match known.filter(|known| known.fits_again(room)) {
        Some(known) => Some(known.clone()),
        None => Some(Arc::new(Schema::compile_within(schema, room))),
    }
}

fn differs(one: &ServerInput, other: &ServerInput) -> bool {
    one.name != other.name || one.launch != other.launch || one.owner != other.owner
}

fn find<'a, T>(names: &'a HashMap<String, T>, folded: &'a HashMap<String, Vec<String>>, name: &str) -> Found<'a> {
    if let Some((known, _)) = names.get_key_value(name) {
        return Found::Known(known);
    }
    match folded.get(&*name::folded(name)).map(Vec::as_slice) {
        Some([only]) => Found::Known(only),
        Some([_, _, ..]) => Found::Ambiguous,
        _ => Found::Unknown,
    }
}

impl Server {
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.state == ServerState::Enabled
    }

    /// Whether it is there for this user.
    #[must_use]
    pub fn is_for(&self, user: Option<&str>) -> bool {
        self.owner.as_deref().is_none_or(|owner| user == Some(owner))
    }

    fn compile(input: &ServerInput, rival: Option<Origin>, former: Option<&Self>) -> Self {
        let state = match rival {
            Some(other) => ServerState::Conflict(other),
            None if input.enabled => ServerState::Enabled,
            None => ServerState::Disabled,
        };
        let mut server = Self {
            name: input.name.as_str().into(),
            origin: input.origin.clone(),
            rule: RuleRef::new(format!("server {}", name::shown(&input.name)), &input.origin),
            // Whatever else is said of it: patterns without a server are not for one user's servers (GATE-5).
            declared: if input.owner.is_some() { Declared::ByUser } else { input.declared },
            owner: input.owner.clone(),
            state,
            default_enabled: input.default_enabled,
            launch: input.launch.clone(),
            listed: input.catalog.is_some(),
            tools: HashMap::new(),
            folded: HashMap::new(),
            narrowed: HashMap::new(),
            unconfigured: Narrowed::of_server(input),
            off: HashMap::new(),
            limits: input.limits,
        };
        server.take_tools(input, former);
        server
    }

    /// `builtin` and `custom-user-tools`: always known and enabled, never launched.
    fn virtual_server(name: &str, tools: &[&str], configured: Option<&Self>, inputs: &[ServerInput]) -> Self {
        let definition = |tool: &&str| ToolDefinition {
            name: (*tool).to_owned(),
            description: None,
            input_schema: None,
            output_schema: None,
        };
        let base = inputs.iter().find(|input| input.name == name && input.owner.is_none());
        let input = ServerInput {
            name: name.to_owned(),
            origin: configured.map_or_else(|| Origin::record(Layer::Shipped, name), |server| server.origin.clone()),
            declared: Declared::ByOperator,
            owner: None,
            enabled: true,
            default_enabled: true,
            launch: Launch::Nothing,
            labels: base.map(|input| input.labels.clone()).unwrap_or_default(),
            limits: base.map(|input| input.limits).unwrap_or_default(),
            tools: base.map(|input| input.tools.clone()).unwrap_or_default(),
            disabled_tools: base.map(|input| input.disabled_tools.clone()).unwrap_or_default(),
            always_allow: Vec::new(),
            catalog: match tools {
                [] => base.and_then(|input| input.catalog.clone()),
                tools => Some(tools.iter().map(definition).collect()),
            },
        };
        Self::compile(&input, None, None)
    }

    fn take_tools(&mut self, input: &ServerInput, former: Option<&Self>) {
        for (name, tool) in &input.tools {
            self.tool_mut(name).input = Some(tool.clone());
            let narrowed = self.narrowed.entry(name.to_ascii_lowercase());
            narrowed.or_insert_with(|| Narrowed::of_server(input)).add(input, tool);
            if tool.enabled == Some(false) {
                let origin = tool.origin.clone().unwrap_or_else(|| input.origin.clone());
                self.off.insert(name.to_ascii_lowercase(), origin);
            }
        }
        let mut room = Room::of_a_server();
        for definition in input.catalog.iter().flatten() {
            let known = former.and_then(|former| former.tool(&definition.name));
            let (input, output) = known.map_or((None, None), |tool| tool.compiled_of(definition));
            let entry = self.tool_mut(&definition.name);
            entry.schema = compiled(definition.input_schema.as_ref(), input, &mut room);
            entry.output = compiled(definition.output_schema.as_ref(), output, &mut room);
            entry.definition = Some(definition.clone());
        }
        for tool in &input.disabled_tools {
            self.off.insert(tool.value.to_ascii_lowercase(), tool.origin.clone());
        }
    }

    fn tool_mut(&mut self, name: &str) -> &mut Tool {
        let folded = self.folded.entry(name.to_ascii_lowercase()).or_default();
        if !folded.iter().any(|known| known == name) {
            folded.push(name.to_owned());
        }
        self.tools.entry(name.to_owned()).or_default()
    }

    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// The tools it listed, by name.
    #[must_use]
    pub fn listed_tools(&self) -> Vec<&ToolDefinition> {
        let mut tools: Vec<_> = self.tools.values().filter_map(|tool| tool.definition.as_ref()).collect();
        tools.sort_by(|left, right| left.name.cmp(&right.name));
        tools
    }

    /// Every tool it listed or a config names.
    pub fn known_tools(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    pub(crate) fn find_tool(&self, name: &str) -> Found<'_> {
        find(&self.tools, &self.folded, name)
    }

    /// The tools a name may mean: the one spelt so, else every one that differs in ASCII case alone.
    pub(crate) fn tools_spelt(&self, name: &str) -> Vec<&str> {
        match self.tools.get_key_value(name) {
            Some((known, _)) => vec![known],
            None => self.folded.get(&*name::folded(name)).into_iter().flatten().map(String::as_str).collect(),
        }
    }

    pub(crate) fn twin(&self, tool: &str) -> Twin {
        match self.folded.get(&*name::folded(tool)).map_or(0, Vec::len) {
            0 | 1 => Twin::None,
            _ => Twin::Exists,
        }
    }

    /// Whether another tool has the same name but for its case.
    #[must_use]
    pub fn has_twin(&self, tool: &str) -> bool {
        self.twin(tool) == Twin::Exists
    }

    /// Where a tool was switched off.
    #[must_use]
    pub fn switched_off(&self, tool: &str) -> Option<&Origin> {
        self.off.get(&*name::folded(tool))
    }

    /// Folded names of tools that a config narrows or switches off, and the places that switch off.
    pub fn narrowed_names(&self) -> impl Iterator<Item = &str> {
        self.narrowed.keys().map(String::as_str)
    }

    pub fn switched_off_names(&self) -> impl Iterator<Item = (&str, &Origin)> {
        self.off.iter().map(|(name, origin)| (name.as_str(), origin))
    }

    /// The scope of a tool: as configured, else the preset where an operator declared the server.
    #[must_use]
    pub fn scope(&self, tool: &str) -> Option<Scope> {
        let configured = self.tool(tool).and_then(|tool| tool.input.as_ref()).and_then(|input| input.scope);
        let preset = || (self.declared == Declared::ByOperator).then(|| shipped::preset_scope(tool)).flatten();
        configured.or_else(preset)
    }

    /// The flow labels of a tool, and of its server (GATE-20).
    #[must_use]
    pub fn labels(&self, tool: &str) -> &[String] {
        &self.narrowed(tool).labels
    }

    /// What narrows a tool, however its name is spelt.
    #[must_use]
    pub fn narrowed(&self, tool: &str) -> &Narrowed {
        self.narrowed.get(&*name::folded(tool)).unwrap_or(&self.unconfigured)
    }

    /// The limits of a tool, and of its server where it has none of its own.
    #[must_use]
    pub fn limits(&self, tool: &str) -> LimitsInput {
        self.narrowed(tool).limits.or(self.limits)
    }
}
