//! A `tools/list` answer saved to a file, for servers that are not running.
//!
//! Takes `{tools: [..]}`, the same inside `result`, or a map from server to such an answer; gives
//! definitions. A tool without a name makes the file broken.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolwarden_core::{Layer, Origin, name};
use toolwarden_policy::input::{Declared, PolicyInput, ServerInput, ToolDefinition};
use toolwarden_policy::missing_input_schema;

use crate::files::{self, FileError};
use crate::finding::{Finding, Severity};
use crate::report::{Reading, Report};
use crate::tree::{Format, LARGEST_FILE, Node, Place, Value};

/// A file that names no server was taken for one's tools.
pub const GUESSED: &str = "guessed_server";

/// Definitions by server; the key is none where the file names no server.
pub type Catalog = BTreeMap<Option<String>, Vec<ToolDefinition>>;

/// Why a `--catalog` argument cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    #[error("{path} {error}")]
    File { path: String, error: FileError },
    #[error("{0}: no such file")]
    Missing(String),
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Broken(Vec<Finding>),
    #[error("{0} does not say which server it is; write `--catalog SERVER={0}`")]
    NoServer(String),
}

/// Reads a catalog.
#[must_use]
pub fn read_bytes(path: &str, bytes: &[u8]) -> Reading<Catalog> {
    let mut report = Report::lenient(path, Layer::Config);
    let mut catalog = Catalog::new();
    if let Some(root) = report.parse(bytes, Format::Jsonc) {
        read_root(&mut report, &root, &mut catalog);
    }
    let broken = report.has_errors();
    if broken {
        catalog.clear();
    }
    report.finish(catalog, broken)
}

fn read_root(report: &mut Report, root: &Node, catalog: &mut Catalog) {
    if let Some(tools) = answer(root) {
        catalog.insert(None, read_tools(report, tools));
        return;
    }
    for (key, node) in report.table("catalog", root) {
        match answer(node) {
            Some(tools) => {
                catalog.insert(Some(key.text.clone()), read_tools(report, tools));
            }
            None => report.error(node.place, "missing_key", "not a tools/list answer: it has no `tools`"),
        }
    }
    if catalog.is_empty() && !report.has_errors() {
        report.error(root.place, "missing_key", "not a tools/list answer: it has no `tools`");
    }
}

fn answer(node: &Node) -> Option<&Node> {
    node.get("tools").or_else(|| node.get("result")?.get("tools"))
}

fn read_tools(report: &mut Report, node: &Node) -> Vec<ToolDefinition> {
    let items = report.list("tools", node).unwrap_or_default();
    items.iter().filter_map(|item| read_tool(report, item)).collect()
}

fn read_tool(report: &mut Report, node: &Node) -> Option<ToolDefinition> {
    if !matches!(node.value, Value::Table(_)) {
        report.wrong_type("tools", node, "a list of tables");
        return None;
    }
    let Some(name_node) = node.get("name") else {
        report.error(node.place, "missing_key", "a tool needs a `name`");
        return None;
    };
    let tool = report.text("name", name_node)?;
    if let Err(fault) = name::check(&tool) {
        report.warning(name_node.place, "invalid_name", format!("invalid tool name `{}`: {fault}", name::shown(&tool)));
    }
    let description = node.get("description").and_then(|node| report.text("description", node));
    let input_schema = node.get("inputSchema").map_or_else(missing_input_schema, |schema| {
        report.table("inputSchema", schema);
        schema.to_json()
    });
    let output_schema = node.get("outputSchema").map(|schema| {
        report.table("outputSchema", schema);
        schema.to_json()
    });
    Some(ToolDefinition { name: tool, description, input_schema: Some(input_schema), output_schema })
}

/// Puts the tools of a `--catalog` argument (`SERVER=FILE` or `FILE`) into the judge's input. A server
/// that is not configured counts as declared by the person who named it on the command line.
///
/// # Errors
/// The file cannot be read, is no catalog, or does not tell whose tools it lists.
pub fn apply(argument: &str, base: &Path, input: &mut PolicyInput) -> Result<Vec<Finding>, CatalogError> {
    let (named, path) = split_argument(argument, base);
    let label = files::shown(&path);
    let bytes = files::read(&path, LARGEST_FILE)
        .map_err(|error| CatalogError::File { path: label.clone(), error })?
        .ok_or_else(|| CatalogError::Missing(label.clone()))?;
    let mut reading = read_bytes(&label, &bytes);
    if reading.broken {
        return Err(CatalogError::Broken(reading.findings));
    }
    for (server, tools) in reading.value {
        let server = match server.or_else(|| named.clone()) {
            Some(server) => server,
            None => {
                let (server, is_certain) = guess(&path, input).ok_or_else(|| CatalogError::NoServer(label.clone()))?;
                if !is_certain {
                    reading.findings.push(guessed(&label, &server));
                }
                server
            }
        };
        if !input.servers.iter().any(|known| known.name == server) {
            input.servers.push(named_on_the_command_line(&server, &label));
        }
        for known in input.servers.iter_mut().filter(|known| known.name == server) {
            known.catalog = Some(tools.clone());
        }
    }
    Ok(reading.findings)
}

/// Whoever meant another server must hear whose tools these became.
fn guessed(label: &str, server: &str) -> Finding {
    let (place, name) = (Place { line: 0, column: 0 }, name::shown(server));
    let message = format!("taken as the tools of `{name}`; `--catalog SERVER={label}` says whose they are");
    Finding::at(Severity::Warning, GUESSED, label.into(), place, message)
}

fn named_on_the_command_line(name: &str, label: &str) -> ServerInput {
    ServerInput::new(name, Origin::record(Layer::Config, label), Declared::ByOperator)
}

/// `SERVER=FILE`, unless a file of that whole name exists.
fn split_argument(argument: &str, base: &Path) -> (Option<String>, PathBuf) {
    let whole = base.join(argument);
    match argument.split_once('=') {
        Some((server, file)) if !whole.exists() => (Some(server.to_owned()), base.join(file)),
        _ => (None, whole),
    }
}

/// The file's stem where it is a server's name, which is certain; else the only server there is, else the stem where no
/// server is configured at all.
fn guess(path: &Path, input: &PolicyInput) -> Option<(String, bool)> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    if input.servers.iter().any(|server| server.name == stem) {
        return Some((stem.to_owned(), true));
    }
    match input.servers.as_slice() {
        [only] => Some((only.name.clone(), false)),
        [] => name::check(stem).ok().map(|()| (stem.to_owned(), false)),
        _ => None,
    }
}
