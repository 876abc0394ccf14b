//! Names that users, scripts and other programs rely on, gathered into `docs/stable_names.snap`.
//!
//! Most are read from the types and tables that define them; serialised fields, keys of hand-written JSON and codes are
//! read from the source text, without the names of Rust types and files, so that a rename inside the code leaves the list
//! as it is. A changed line is a change for users: CHANGELOG says what they have to do.

mod source;

use std::collections::BTreeSet;
use std::fmt::Write;

use clap::{Command, CommandFactory};
use sha2::{Digest, Sha256};
use toolwarden_cli::Cli;
use toolwarden_control::operations::{self, Visitor};
use toolwarden_control::{Kind, Operation};
use toolwarden_core::{Reason, Status};
use toolwarden_sources::readers::known::{Section, Standing};

use crate::workspace;

#[test]
fn stable_names_did_not_change() {
    let mut text = String::new();
    for (title, lines) in [
        ("Reasons: code, decision, who may approve", reasons()),
        ("Statuses of calls", Status::ALL.iter().map(|status| status.as_str().to_owned()).collect()),
        ("Operations: method and path", api_paths()),
        ("Commands and their arguments", commands()),
        ("Configuration keys", config_keys()),
        ("Metrics: name, kind, labels", metrics()),
        ("Migrations: file and digest", migrations()),
        ("Serialised types: their fields or variants", source::serialised()),
        ("Objects written as JSON: their keys", source::json_objects()),
        ("Words of enumerations", source::words()),
        ("Paths, `_meta` keys, variables and headers", source::literals()),
        ("Numbers: JSON-RPC codes and exit codes", source::codes()),
    ] {
        assert!(lines.len() > 1, "{title}: nothing was found");
        let _ = writeln!(text, "\n# {title}\n");
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    }
    let _ = writeln!(text, "\n# Rules: entities, actions and context\n\n{}", schema_of_rules());
    insta::with_settings!({
        snapshot_path => workspace::root().join("docs"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, {
        insta::assert_snapshot!("stable_names", text);
    });
}

fn reasons() -> BTreeSet<String> {
    let approvers = |reason: &Reason| reason.payers().iter().map(|one| one.as_str()).collect::<Vec<_>>().join(" ");
    let line = |reason: &Reason| format!("{} {} [{}]", reason.code(), reason.decision().as_str(), approvers(reason));
    Reason::ALL.iter().map(line).collect()
}

struct Paths(BTreeSet<String>);

impl Visitor for Paths {
    fn visit<O: Operation>(&mut self) {
        let method = match O::KIND {
            Kind::Read => "GET",
            Kind::Post => "POST",
        };
        self.0.insert(format!("{method} {} for {}", O::PATH, O::rights()));
    }
}

fn api_paths() -> BTreeSet<String> {
    let mut paths = Paths(BTreeSet::new());
    operations::all(&mut paths);
    paths.0
}

fn commands() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_command(&Cli::command(), "toolwarden", &mut found);
    found
}

fn add_command(command: &Command, name: &str, found: &mut BTreeSet<String>) {
    let arguments: Vec<String> = command.get_arguments().map(argument).collect();
    let hidden = if command.is_hide_set() { " (hidden)" } else { "" };
    found.insert(format!("{name} {}{hidden}", arguments.join(" ")).trim_end().to_owned());
    let aliases = command.get_all_aliases().map(|alias| format!("{name} = {alias}"));
    found.extend(aliases);
    for inner in command.get_subcommands() {
        add_command(inner, &format!("{name} {}", inner.get_name()), found);
    }
}

/// `--flag=VALUE`, `-f`, `<POSITION>`, with `!` where it is required and its possible values.
fn argument(argument: &clap::Arg) -> String {
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let takes = argument.get_action().takes_values();
    let mut text = match argument.get_long() {
        Some(long) => format!("--{long}"),
        None => format!("<{}>", argument.get_id()),
    };
    if let Some(short) = argument.get_short() {
        let _ = write!(text, "/-{short}");
    }
    for alias in argument.get_all_aliases().unwrap_or_default() {
        let _ = write!(text, "/--{alias}");
    }
    if takes && !values.is_empty() {
        let _ = write!(text, "={}", values.join("|"));
    } else if takes && argument.get_long().is_some() {
        text.push_str("=..");
    }
    if argument.is_required_set() {
        text.push('!');
    }
    text
}

fn config_keys() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for section in Section::ALL {
        for (key, standing) in section.rows() {
            let standing = match standing {
                Standing::Used => "acts",
                Standing::NotBuilt(..) => "refused",
                Standing::Informational(_) => "informational",
            };
            found.insert(format!("{section:?}.{key} {standing}"));
        }
    }
    found
}

/// Rows of the table that a test compares with what is rendered.
fn metrics() -> BTreeSet<String> {
    let document = workspace::read("docs/telemetry.md");
    let rows = document.lines().filter(|line| line.starts_with("| `toolwarden_"));
    rows.map(|line| line.split('|').map(str::trim).skip(1).take(3).collect::<Vec<_>>().join(" ")).collect()
}

fn migrations() -> BTreeSet<String> {
    let directory = workspace::root().join("crates/store/migrations");
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    files
        .map(|path| {
            let digest = Sha256::digest(std::fs::read(&path).unwrap_or_default());
            let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
            format!("{} {hex}", path.file_name().unwrap_or_default().to_string_lossy())
        })
        .collect()
}

fn schema_of_rules() -> String {
    let schema = workspace::read("crates/policy/rules/schema.cedarschema");
    let lines = schema.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end());
    lines.filter(|line| !line.trim().is_empty()).collect::<Vec<_>>().join("\n")
}
