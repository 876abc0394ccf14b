//! Keys of the admin record.

use super::Standing::{Informational, NotBuilt, Used};
use super::{Row, Unless};

pub(super) const ADMIN: [Row; 10] = [
    ("enabled", Used),
    ("allowed", Used),
    ("blocked", Used),
    ("disable_mcp_auto_run", Used),
    ("delete_file_protection", Used),
    ("enable_run_everything", Used),
    ("mcp_tool_allowlist", Used),
    ("sandboxing_controls", Used),
    ("browser_protection", Used),
    ("$schema", Informational("editors use it to check the file; it says nothing about calls")),
];
pub(super) const SANDBOXING_CONTROLS: [Row; 2] =
    [("required", NotBuilt("the sandbox", Unless::False)), ("denied_domains", Used)];
