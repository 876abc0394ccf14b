//! One call, of any kind, with the exact bytes that would be sent.
//!
//! Shell and fetch calls are the tools `builtin:shell.run` and `builtin:web.fetch` at every door, so
//! a call to those tools is turned into one of those kinds here, once, for everybody.

use std::path::PathBuf;
use std::sync::Arc;

use crate::beside_arguments::{MemberBeside, beside_arguments};
use crate::json::{Document, Part};

/// The server of Toolwarden's own tools.
pub const BUILTIN_SERVER: &str = "builtin";
/// The server under which tools registered by an SDK agent appear.
pub const CUSTOM_TOOLS_SERVER: &str = "custom-user-tools";
pub const SHELL_TOOL: &str = "shell.run";
pub const FETCH_TOOL: &str = "web.fetch";

/// Where a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Door {
    /// MCP over HTTP or stdio, and edges: only listed tools exist.
    Mcp,
    /// A client's hook, or the decision API: the client executes.
    Decide,
    /// `explain`: nothing executes.
    Explain,
}

/// What is asked of an upstream server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    CallTool,
    ReadResource,
    GetPrompt,
    Complete,
}

impl Operation {
    /// The reserved tool name of everything but a tool call.
    #[must_use]
    pub fn reserved_name(self) -> Option<&'static str> {
        match self {
            Self::CallTool => None,
            Self::ReadResource => Some("resources/read"),
            Self::GetPrompt => Some("prompts/get"),
            Self::Complete => Some("completion/complete"),
        }
    }

    #[must_use]
    pub fn from_reserved_name(name: &str) -> Option<Self> {
        [Self::ReadResource, Self::GetPrompt, Self::Complete]
            .into_iter()
            .find(|operation| operation.reserved_name() == Some(name))
    }

    /// The JSON-RPC method this operation travels under.
    #[must_use]
    pub fn method(self) -> &'static str {
        self.reserved_name().unwrap_or("tools/call")
    }
}

/// What kind of call it is.
#[derive(Debug, Clone)]
pub enum CallKind {
    Mcp { operation: Operation },
    Shell { command: String, directory: Option<PathBuf> },
    Fetch { url: String },
}

/// A call to be judged. `server` and `tool` are as given; they may be invalid.
#[derive(Debug, Clone)]
pub struct Call {
    pub kind: CallKind,
    pub server: Arc<str>,
    pub tool: Arc<str>,
    /// The arguments as sent; none where the caller gave none.
    pub arguments: Option<Part>,
    /// The whole params the arguments stand in, where the call came over the wire: what is sent on.
    pub params: Option<Part>,
}

impl Call {
    /// A call to an MCP server. Calls to the built-in shell and fetch tools become those kinds.
    #[must_use]
    pub fn mcp(server: impl Into<Arc<str>>, tool: impl Into<Arc<str>>, arguments: Option<Arc<Document>>) -> Self {
        Self::tool_call(server.into(), tool.into(), arguments.map(Part::whole), None)
    }

    /// A tool call as it came over the wire; none where `params` name no tool. What is judged is the
    /// tool that `params` name, and `params` are what is sent on.
    #[must_use]
    pub fn received(server: impl Into<Arc<str>>, params: Part) -> Option<Self> {
        let tool: Arc<str> = params.value().get("name")?.as_str()?.into();
        let arguments = params.member("arguments");
        Some(Self::tool_call(server.into(), tool, arguments, Some(params)))
    }

    fn tool_call(server: Arc<str>, tool: Arc<str>, arguments: Option<Part>, params: Option<Part>) -> Self {
        let text_argument = |key: &str| {
            let value = arguments.as_ref().and_then(|arguments| arguments.value().get(key))?;
            value.as_str().map(|text| text.into_owned())
        };
        // In any spelling: doors that forgive case would else let `Shell.Run` pass as an ordinary tool.
        let is_own = |own: &str| server.eq_ignore_ascii_case(BUILTIN_SERVER) && tool.eq_ignore_ascii_case(own);
        let kind = if is_own(SHELL_TOOL) {
            CallKind::Shell {
                // Without a command there is nothing to parse, and what cannot be parsed is held.
                command: text_argument("command").unwrap_or_default(),
                directory: text_argument("cwd").map(PathBuf::from),
            }
        } else if is_own(FETCH_TOOL) {
            CallKind::Fetch { url: text_argument("url").unwrap_or_default() }
        } else {
            CallKind::Mcp { operation: Operation::CallTool }
        };
        Self { kind, server, tool, arguments, params }
    }

    /// A call by the names a person or a client gives: reserved names mean their operation.
    #[must_use]
    pub fn named(server: impl Into<Arc<str>>, tool: impl Into<Arc<str>>, arguments: Option<Arc<Document>>) -> Self {
        let tool = tool.into();
        match Operation::from_reserved_name(&tool) {
            Some(operation) => Self::operation(server, operation, arguments),
            None => Self::mcp(server, tool, arguments),
        }
    }

    /// Reading a resource, getting a prompt or asking for a completion.
    #[must_use]
    pub fn operation(server: impl Into<Arc<str>>, operation: Operation, params: Option<Arc<Document>>) -> Self {
        Self::asked(server, operation, params.map(Part::whole))
    }

    /// The same as it came over the wire, its params part of a message.
    #[must_use]
    pub fn asked(server: impl Into<Arc<str>>, operation: Operation, params: Option<Part>) -> Self {
        let tool = operation.method().into();
        Self { kind: CallKind::Mcp { operation }, server: server.into(), tool, arguments: params.clone(), params }
    }

    #[must_use]
    pub fn shell(command: impl Into<String>, directory: Option<PathBuf>) -> Self {
        Self {
            kind: CallKind::Shell { command: command.into(), directory },
            server: BUILTIN_SERVER.into(),
            tool: SHELL_TOOL.into(),
            arguments: None,
            params: None,
        }
    }

    #[must_use]
    pub fn fetch(url: impl Into<String>) -> Self {
        Self {
            kind: CallKind::Fetch { url: url.into() },
            server: BUILTIN_SERVER.into(),
            tool: FETCH_TOOL.into(),
            arguments: None,
            params: None,
        }
    }

    /// Members of a tool call that came over the wire, beside its name and arguments.
    #[must_use]
    pub fn beside_arguments(&self) -> Vec<MemberBeside<'_>> {
        let is_tool_call = self.requested_operation() == Operation::CallTool;
        let params = self.params.as_ref().filter(|_| is_tool_call);
        params.map(|params| beside_arguments(params.value())).unwrap_or_default()
    }

    #[must_use]
    pub fn requested_operation(&self) -> Operation {
        match self.kind {
            CallKind::Mcp { operation } => operation,
            CallKind::Shell { .. } | CallKind::Fetch { .. } => Operation::CallTool,
        }
    }
}
