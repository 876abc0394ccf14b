//! The method table against the published schemas: everything in them is listed, and nothing else is.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use toolwarden_mcp::Version;
use toolwarden_mcp::methods::{Direction, Form, METHODS};

use crate::house::{House, root};
use crate::peers::peer;
use crate::processes::run;

/// The tasks extension of 2026-07-28, which the core schema lacks.
const TASKS_EXTENSION: [(Direction, Form, &str); 4] = [
    (Direction::ToServer, Form::Request, "tasks/get"),
    (Direction::ToServer, Form::Request, "tasks/cancel"),
    (Direction::ToServer, Form::Request, "tasks/update"),
    (Direction::ToClient, Form::Notification, "notifications/tasks"),
];

type Names = BTreeSet<String>;
type Schemas = BTreeMap<String, BTreeMap<String, Names>>;

fn schemas() -> Schemas {
    let text = std::fs::read_to_string(root().join("tests/methods.json")).unwrap_or_default();
    let parsed = serde_json::from_str(&text);
    assert!(parsed.is_ok(), "{parsed:?}");
    parsed.unwrap_or_default()
}

/// What the table lists for a revision, extensions left out.
fn listed(version: Version, direction: Direction, form: Form) -> Names {
    let rows = METHODS.iter().filter(|row| row.direction == direction && row.form == form);
    let of_version = rows.filter(|row| (row.since..=row.until).contains(&version));
    let is_extension =
        |name: &str| version == Version::V2026_07_28 && TASKS_EXTENSION.contains(&(direction, form, name));
    of_version.map(|row| row.name).filter(|name| !is_extension(name)).map(str::to_owned).collect()
}

/// Which unions of a schema name the messages of a direction and form. A modern server asks inside a result;
/// the table has these questions as requests to the client.
const UNIONS: [(Direction, Form, &[&str]); 4] = [
    (Direction::ToServer, Form::Request, &["clientRequests"]),
    (Direction::ToServer, Form::Notification, &["clientNotifications"]),
    (Direction::ToClient, Form::Request, &["serverRequests", "inputRequests"]),
    (Direction::ToClient, Form::Notification, &["serverNotifications"]),
];

#[test]
fn the_table_lists_the_methods_of_every_schema() {
    let schemas = schemas();
    for version in Version::ALL {
        // No published JSON schema is at hand for the oldest revision; its methods are those of the next.
        let revision = version.max(Version::V2025_03_26).as_str();
        let schema = schemas.get(revision);
        assert!(schema.is_some(), "tests/methods.json lacks {revision}");
        for (direction, form, unions) in UNIONS {
            let of_schema = |union: &&str| schema.and_then(|schema| schema.get(*union)).cloned().unwrap_or_default();
            let published: Names = unions.iter().flat_map(of_schema).collect();
            assert_eq!(listed(version, direction, form), published, "{version} {direction:?} {form:?}");
        }
    }
    assert_eq!(schemas.len() + 1, Version::ALL.len(), "a revision was published that the table does not know");
}

#[test]
fn the_tasks_extension_is_listed() {
    for (direction, form, name) in TASKS_EXTENSION {
        let found = toolwarden_mcp::Method::find(name, direction, form, Version::V2026_07_28);
        assert!(found.is_some(), "{name}");
    }
}

#[test]
fn methods_json_is_what_the_pinned_schemas_say() {
    let house = House::new("");
    let script = root().join("tests/peers/methods.mjs");
    let ran = run(peer(&house, "node").arg(script), Duration::from_secs(60));
    let printed: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let committed = std::fs::read_to_string(root().join("tests/methods.json")).unwrap_or_default();
    let committed: Value = serde_json::from_str(&committed).unwrap_or_default();
    assert!(printed.is_object(), "{}", ran.err);
    assert_eq!(printed, committed, "run tests/peers/run node tests/peers/methods.mjs > tests/methods.json");
}
