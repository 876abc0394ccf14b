//! Keys of files that belong to clients: permissions.json, `.roomodes`, mcp.json.

use super::Standing::{Informational, NotBuilt, Used};
use super::{Row, Unless};

const SCHEMA: Row = ("$schema", Informational("editors use it to check the file; it says nothing about calls"));
const WORDS: &str = "words for people or for the model; they grant and restrict nothing";
const CLIENT_ONLY: &str = "about how the client itself works; the gateway does not do it, so nothing is granted";

pub(super) const PERMISSIONS: [Row; 4] =
    [("mcpAllowlist", Used), ("terminalAllowlist", Used), ("autoRun", Used), SCHEMA];
pub(super) const INSTRUCTIONS: [Row; 2] = [("allow_instructions", Used), ("block_instructions", Used)];
pub(super) const MODES_FILE: [Row; 2] = [("customModes", Used), SCHEMA];
pub(super) const ROO_MODE: [Row; 18] = [
    ("slug", Used),
    ("name", Used),
    ("groups", Used),
    ("extends", Used),
    ("days", Used),
    ("hours", Used),
    ("timeZone", Used),
    ("conditions", Used),
    ("autoReview", Used),
    ("mcpRestrictions", Used),
    ("roleDefinition", Informational(WORDS)),
    ("whenToUse", Informational(WORDS)),
    ("description", Informational(WORDS)),
    ("customInstructions", Informational(WORDS)),
    ("source", Informational("where the client keeps the mode")),
    ("rulesFiles", Informational(WORDS)),
    ("iconName", Informational(WORDS)),
    ("model", Informational(CLIENT_ONLY)),
];
pub(super) const ROO_RESTRICTIONS: [Row; 9] = [
    ("extends", Used),
    ("allowedServers", Used),
    ("disallowedServers", Used),
    ("allowedTools", Used),
    ("disallowedTools", Used),
    ("days", Used),
    ("hours", Used),
    ("timeZone", Used),
    ("conditions", Used),
];
pub(super) const ROO_TOOL: [Row; 2] = [("serverName", Used), ("toolName", Used)];
pub(super) const ROO_GROUP_OPTIONS: [Row; 2] = [
    (
        "fileRegex",
        Informational("restricts the client's own file edits, which are no calls; refused for `command` and `mcp`"),
    ),
    ("description", Informational(WORDS)),
];
pub(super) const SERVERS_FILE: [Row; 5] = [
    ("mcpServers", Used),
    ("servers", Used),
    ("sandbox", Used),
    ("inputs", Informational("questions of the client for `${input:..}`; a server that needs one is not reached")),
    SCHEMA,
];
pub(super) const SERVER: [Row; 30] = [
    ("command", Used),
    ("args", Used),
    ("env", Used),
    ("cwd", Used),
    ("envFile", Used),
    ("url", Used),
    ("httpUrl", Used),
    ("headers", Used),
    ("type", Used),
    ("transport", Used),
    ("disabled", Used),
    ("enabled", Used),
    ("disabledTools", Used),
    ("alwaysAllow", Used),
    ("autoApprove", Used),
    ("defaultEnabled", Used),
    ("timeout", Used),
    ("auth", NotBuilt("login to servers by OAuth", Unless::Never)),
    ("oauth", NotBuilt("login to servers by OAuth", Unless::False)),
    ("sandboxEnabled", NotBuilt("the sandbox", Unless::False)),
    ("sandbox", NotBuilt("the sandbox", Unless::False)),
    ("description", Informational(WORDS)),
    ("displayName", Informational(WORDS)),
    ("name", Informational(WORDS)),
    ("icon", Informational(WORDS)),
    ("note", Informational(WORDS)),
    ("version", Informational(WORDS)),
    ("gallery", Informational(CLIENT_ONLY)),
    ("dev", Informational(CLIENT_ONLY)),
    ("watchPaths", Informational(CLIENT_ONLY)),
];
