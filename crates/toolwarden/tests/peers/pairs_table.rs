//! Which clients, servers and doors meet, and what they are asked: every one of each at least twice.

use crate::peers::{Client, Target};

pub const TS1: Client = Client { name: "ts1", mode: "" };
pub const TS2_LEGACY: Client = Client { name: "ts2", mode: "legacy" };
pub const TS2_AUTO: Client = Client { name: "ts2", mode: "auto" };
pub const TS2_MODERN: Client = Client { name: "ts2", mode: "modern" };
pub const PYTHON_LEGACY: Client = Client { name: "python", mode: "legacy" };
pub const PYTHON_AUTO: Client = Client { name: "python", mode: "auto" };
pub const PYTHON_MODERN: Client = Client { name: "python", mode: "modern" };
pub const INSPECTOR: Client = Client { name: "inspector", mode: "legacy" };
pub const INSPECTOR_MODERN: Client = Client { name: "inspector", mode: "modern" };

/// How a client reaches the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// `/mcp/{server}`
    One,
    /// `/mcp`
    Common,
    /// `/sse/{server}`
    OldestOne,
    /// `/sse`
    OldestCommon,
    /// `toolwarden stdio --server NAME`
    PipeOne,
    /// `toolwarden stdio`
    PipeCommon,
}

impl Door {
    pub fn is_common(self) -> bool {
        matches!(self, Self::Common | Self::OldestCommon | Self::PipeCommon)
    }

    /// What a client connects to; `gateway` is the address of a running one.
    pub fn target(self, gateway: &str, server: &str) -> Target {
        let program = env!("CARGO_BIN_EXE_toolwarden").to_owned();
        match self {
            Self::One => Target::Url(format!("{gateway}/mcp/{server}")),
            Self::Common => Target::Url(format!("{gateway}/mcp")),
            Self::OldestOne => Target::Url(format!("{gateway}/sse/{server}")),
            Self::OldestCommon => Target::Url(format!("{gateway}/sse")),
            Self::PipeOne => {
                Target::Command(vec![program, "stdio".to_owned(), "--server".to_owned(), server.to_owned()])
            }
            Self::PipeCommon => Target::Command(vec![program, "stdio".to_owned()]),
        }
    }
}

/// Clients and the server each one calls.
pub type Rows = &'static [(Client, &'static str)];

/// Servers written in TypeScript, behind their own doors.
pub const ONE_NODE: Rows = &[
    (TS1, "everything"),
    (TS2_AUTO, "everything"),
    (INSPECTOR, "everything"),
    (TS2_LEGACY, "filesystem"),
    (PYTHON_LEGACY, "filesystem"),
    (PYTHON_AUTO, "memory"),
    (TS1, "everything-http"),
    (TS2_AUTO, "everything-http"),
    (PYTHON_AUTO, "everything-http"),
];

/// Servers that speak the modern revision, behind their own doors.
pub const ONE_BOTH_ERAS: Rows = &[
    (TS2_LEGACY, "git"),
    (TS2_MODERN, "time"),
    (PYTHON_MODERN, "git"),
    (PYTHON_AUTO, "time"),
    (TS1, "fixture"),
    (TS2_MODERN, "fixture"),
    (TS2_AUTO, "fixture"),
    (PYTHON_LEGACY, "fixture"),
    (PYTHON_MODERN, "fixture"),
    (INSPECTOR, "fixture"),
    (TS2_MODERN, "fixture-child"),
    (PYTHON_LEGACY, "fixture-child"),
];

/// All servers under one roof, for clients of the legacy era.
pub const COMMON_LEGACY: Rows =
    &[(TS1, "filesystem"), (TS2_LEGACY, "everything-http"), (PYTHON_LEGACY, "fixture"), (INSPECTOR, "filesystem")];

/// The same where every server and client knows the modern era.
pub const COMMON_MODERN: Rows =
    &[(TS2_MODERN, "time"), (TS2_AUTO, "fixture"), (PYTHON_AUTO, "time"), (PYTHON_MODERN, "fixture-child")];

pub const PIPE_ONE: Rows = &[
    (TS2_AUTO, "memory"),
    (PYTHON_LEGACY, "git"),
    (TS1, "time"),
    (TS2_MODERN, "fixture-child"),
    (PYTHON_AUTO, "everything-http"),
    (INSPECTOR, "filesystem"),
];

pub const PIPE_COMMON: Rows = &[(TS2_LEGACY, "memory"), (PYTHON_LEGACY, "git"), (TS1, "git"), (TS2_LEGACY, "fixture")];

pub const PIPE_COMMON_MODERN: Rows = &[(TS2_MODERN, "fixture-child"), (PYTHON_MODERN, "time")];

/// Modern requests that come in by a pipe and leave over HTTP, where headers must say what the body says.
pub const PIPE_TO_HTTP: Rows = &[(TS2_MODERN, "fixture"), (PYTHON_AUTO, "fixture")];

/// Clients of one era at servers of the other, and what they see beside it: the same client in the server's era.
pub type Across = &'static [(Client, Client, &'static str)];

pub const ACROSS_ONE: Across = &[
    (TS1, TS2_MODERN, "modern"),
    (TS2_LEGACY, TS2_MODERN, "modern-child"),
    (PYTHON_LEGACY, PYTHON_MODERN, "modern"),
    (INSPECTOR, INSPECTOR_MODERN, "modern-child"),
    (TS2_MODERN, TS2_LEGACY, "everything"),
    (PYTHON_MODERN, PYTHON_LEGACY, "filesystem"),
    (INSPECTOR_MODERN, INSPECTOR, "memory"),
    (TS2_MODERN, TS1, "everything-http"),
    (PYTHON_MODERN, PYTHON_LEGACY, "everything-sse"),
    (INSPECTOR_MODERN, INSPECTOR, "everything-http"),
    (PYTHON_MODERN, PYTHON_LEGACY, "legacy-child"),
    (TS2_MODERN, TS2_LEGACY, "legacy"),
];

/// Clients at servers of the oldest HTTP transport, which none of them has to know.
pub const OLDEST_SERVERS: Rows =
    &[(TS1, "everything-sse"), (TS2_LEGACY, "everything-sse"), (PYTHON_LEGACY, "everything-sse")];

/// Clients that come in by the oldest HTTP door.
pub const OLDEST_CLIENTS: Across = &[
    (TS1, TS1, "everything"),
    (PYTHON_LEGACY, PYTHON_LEGACY, "filesystem"),
    (TS1, TS1, "everything-http"),
    (TS1, TS2_MODERN, "modern"),
    (PYTHON_LEGACY, PYTHON_MODERN, "modern-child"),
    (PYTHON_LEGACY, PYTHON_LEGACY, "everything-sse"),
];

pub const ACROSS_COMMON: Across = &[
    (TS1, TS2_MODERN, "modern"),
    (PYTHON_LEGACY, PYTHON_MODERN, "modern-child"),
    (INSPECTOR, INSPECTOR_MODERN, "modern"),
    (TS2_MODERN, TS2_LEGACY, "filesystem"),
    (PYTHON_MODERN, PYTHON_LEGACY, "everything-http"),
    (INSPECTOR_MODERN, INSPECTOR, "legacy-child"),
];

pub const ACROSS_PIPE: Across = &[
    (TS2_LEGACY, TS2_MODERN, "modern"),
    (PYTHON_LEGACY, PYTHON_MODERN, "modern-child"),
    (TS2_MODERN, TS2_LEGACY, "memory"),
    (PYTHON_MODERN, PYTHON_LEGACY, "everything-http"),
];
