//! What the server offers, read from the JSON files beside the sources.

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};

/// The tool that comes and goes with `test_trigger_tool_change`.
pub const CHANGING_TOOL: &str = "test_changing_tool";
/// The prompt that comes and goes with `test_trigger_prompt_change`.
pub const CHANGING_PROMPT: &str = "test_changing_prompt";
/// The resource that `test_trigger_resource_change` announces.
pub const WATCHED_RESOURCE: &str = "test://watched-resource";

/// Everything that can be listed, in the order in which it is listed.
#[derive(Debug)]
pub struct Catalogue {
    pub tools: Vec<Tool>,
    pub prompts: Vec<Prompt>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
}

impl Catalogue {
    /// Reads the files that were compiled in.
    pub fn read() -> serde_json::Result<Self> {
        Ok(Self {
            tools: serde_json::from_str(include_str!("../catalogue/tools.json"))?,
            prompts: serde_json::from_str(include_str!("../catalogue/prompts.json"))?,
            resources: serde_json::from_str(include_str!("../catalogue/resources.json"))?,
            templates: serde_json::from_str(include_str!("../catalogue/templates.json"))?,
        })
    }
}
