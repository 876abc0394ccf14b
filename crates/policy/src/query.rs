//! One question to the judge: who, what, where, when, and what is known around it. One function builds it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::json::Document;
use toolwarden_core::{Call, Caller, Door, ToolIdentity};

use crate::resolve::{FlatName, resolve_flat_name};
use crate::set::PolicySet;
use crate::shell::FileFacts;

/// What is known of the tool's definition (GATE-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Definition {
    /// As accepted, or not pinned.
    #[default]
    Accepted,
    Changed,
    /// What starts its server, or the server's instructions, changed.
    ServerChanged,
    /// First seen after its server's baseline.
    New,
}

/// Who would carry the call out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launcher {
    /// An upstream server, or the client itself.
    #[default]
    Elsewhere,
    /// Toolwarden starts the shell command, in the cage.
    Caged,
}

/// Whether every stage is to be reported, or only what decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tracing {
    #[default]
    Off,
    Full,
}

/// The way calls reach the policy: a door, and the workspace bound there (PERM-4).
///
/// The only source of a [`Query`]: `explain`, every MCP transport, hooks and the decision API each have one, made from
/// the place they serve. So none of them can ask without its workspace (WORK-4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    door: Door,
    workspace: Option<Arc<Path>>,
}

impl Transport {
    /// A transport bound to a workspace, as its real path. Never from a URL, a header or a message.
    #[must_use]
    pub fn new(door: Door, workspace: Option<PathBuf>) -> Self {
        Self { door, workspace: workspace.map(Into::into) }
    }

    /// The question whether a caller may make a call.
    #[must_use]
    pub fn query(&self, caller: Arc<Caller>, call: Call, time: Timestamp) -> Query {
        Query {
            transport: self.clone(),
            question: Question {
                caller,
                call,
                door: self.door,
                time,
                definition: Definition::default(),
                launcher: Launcher::default(),
                seen: Arc::default(),
                several: Arc::default(),
                arguments_omitted: false,
                tracing: Tracing::default(),
                files: Arc::default(),
            },
        }
    }

    /// The same for a name that comes without a server, such as `mcp_server_tool` (ALLOW-11). Where several known
    /// tools fit, the call is denied. `given_server` counts for a name without prefix or separator.
    #[must_use]
    pub fn query_by_flat_name(
        &self,
        policy: &PolicySet,
        caller: Arc<Caller>,
        (given_server, name): (&str, &str),
        arguments: Option<Arc<Document>>,
        time: Timestamp,
    ) -> Query {
        let (tool, several) = match resolve_flat_name(policy, name, given_server, caller.user.as_deref()) {
            FlatName::One(tool) => (tool, Vec::new()),
            FlatName::Several(tools) => (ToolIdentity::new(given_server, name), tools),
        };
        let mut query = self.query(caller, Call::named(tool.server, tool.tool, arguments), time);
        query.question.several = several.into();
        query
    }
}

/// The parts of a [`Query`] that can be read. Facts looked up before the decision are added here, each with a
/// `Query::with_..` method.
#[derive(Debug, Clone)]
pub struct Question {
    pub caller: Arc<Caller>,
    pub call: Call,
    pub door: Door,
    /// Time comes in here: the policy has no clock.
    pub time: Timestamp,
    pub definition: Definition,
    pub launcher: Launcher,
    /// Flow labels seen under this session anchor (GATE-20).
    pub seen: Arc<[String]>,
    /// Tools that fit the flat name the call was given by, where several do: it is denied (ALLOW-11).
    pub several: Arc<[ToolIdentity]>,
    /// No arguments were given because nobody makes the call yet: they cannot be checked against the schema.
    pub arguments_omitted: bool,
    pub tracing: Tracing,
    /// Where the paths of a command line really lead, looked up just before (SELF-1). Unless somebody looked, command
    /// lines are held.
    pub files: Arc<FileFacts>,
}

/// A question to the policy. Only a [`Transport`] makes one; its parts can be read:
///
/// ```
/// # use toolwarden_policy::{Query, Question, Transport};
/// fn read(query: &mut Query) -> (toolwarden_core::Door, &Question) {
///     (query.door, query)
/// }
/// ```
/// and neither made nor assigned from outside:
///
/// ```compile_fail
/// # use toolwarden_policy::{Query, Question, Transport};
/// fn forge(transport: Transport, question: Question) -> Query {
///     Query { transport, question }
/// }
/// ```
/// ```compile_fail
/// # use toolwarden_policy::Query;
/// fn change(query: &mut Query) {
///     query.door = toolwarden_core::Door::Explain;
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Query {
    transport: Transport,
    question: Question,
}

impl std::ops::Deref for Query {
    type Target = Question;

    fn deref(&self) -> &Question {
        &self.question
    }
}

impl Query {
    /// The call's workspace: the token's, else the transport's. For permissions.json (PERM-1), redirections and
    /// relative paths.
    #[must_use]
    pub fn workspace(&self) -> Option<&Path> {
        self.question.caller.token.workspace.as_deref().or(self.transport.workspace.as_deref())
    }

    /// The same question with what the file system says of the paths it names.
    #[must_use]
    pub fn with_files(mut self, files: FileFacts) -> Self {
        self.question.files = Arc::new(files);
        self
    }

    /// The same question with every stage reported.
    #[must_use]
    pub fn traced(mut self) -> Self {
        self.question.tracing = Tracing::Full;
        self
    }

    /// The same question of the caller as known by now, in another mode or with a credential that ended.
    #[must_use]
    pub fn asked_by(mut self, caller: Arc<Caller>) -> Self {
        self.question.caller = caller;
        self
    }

    #[must_use]
    pub fn at(mut self, time: Timestamp) -> Self {
        self.question.time = time;
        self
    }

    /// The same question of another call. Nothing was looked up for that one yet.
    #[must_use]
    pub fn with_call(mut self, call: Call) -> Self {
        self.question.call = call;
        self.question.files = Arc::default();
        self
    }

    #[must_use]
    pub fn with_definition(mut self, definition: Definition) -> Self {
        self.question.definition = definition;
        self
    }

    #[must_use]
    pub fn with_seen(mut self, labels: impl Into<Arc<[String]>>) -> Self {
        self.question.seen = labels.into();
        self
    }

    /// The same question before anybody chose arguments: `explain` without `--args`.
    #[must_use]
    pub fn without_arguments(mut self) -> Self {
        self.question.arguments_omitted = self.question.call.arguments.is_none();
        self
    }

    #[must_use]
    pub fn with_launcher(mut self, launcher: Launcher) -> Self {
        self.question.launcher = launcher;
        self
    }

    /// The call alone.
    #[must_use]
    pub fn into_call(self) -> Call {
        self.question.call
    }
}
