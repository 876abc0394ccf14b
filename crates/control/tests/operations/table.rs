//! Who may ask for what: every operation and everybody who can come, as one table. An operation that has no row here
//! fails the build.

use toolwarden_control::operations::{self, Visitor};
use toolwarden_control::{Actor, ControlError, Kind, Operation, Role, Via};

use crate::{Office, office};

/// The columns: each has only that role. Agents and whoever is nobody have none.
const COLUMNS: [(&str, Option<Role>); 8] = [
    ("anonymous", None),
    ("agent token", None),
    ("client token", None),
    ("viewer", Some(Role::Viewer)),
    ("user", Some(Role::User)),
    ("auditor", Some(Role::Auditor)),
    ("approver", Some(Role::Approver)),
    ("admin", Some(Role::Admin)),
];

#[derive(Default)]
struct Table(Vec<String>);

impl Visitor for Table {
    fn visit<O: Operation>(&mut self) {
        let may = |role: Option<Role>| {
            let actor = Actor {
                user: "ada".to_owned(),
                via: Via::Token,
                roles: role.into_iter().collect(),
                groups: Vec::new(),
                token: None,
            };
            if O::is_for(&actor) { "yes" } else { "-" }
        };
        let cells = COLUMNS.map(|(_, role)| format!("{:<13}", may(role)));
        self.0.push(format!("{:<34}{}", O::PATH, cells.concat()).trim_end().to_owned());
    }
}

#[test]
fn gate_17_every_operation_is_for_those_the_table_says() {
    let mut table = Table::default();
    operations::all(&mut table);
    let heading = format!("{:<34}{}", "", COLUMNS.map(|(name, _)| format!("{name:<13}")).concat());
    insta::assert_snapshot!("roles", format!("{}\n{}", heading.trim_end(), table.0.join("\n")));
}

/// The files of operations are the operations: one that is forgotten in the list has no door, and no row.
#[test]
fn every_file_of_an_operation_is_in_the_list() {
    let mut table = Table::default();
    operations::all(&mut table);
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/operations");
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_operation =
        |path: &std::path::Path| std::fs::read_to_string(path).is_ok_and(|text| text.contains("impl Operation for "));
    let operations = files.filter(|file| is_operation(&file.path())).count();
    assert_eq!(table.0.len(), operations);
}

/// The page of the API, as it is in `docs/api.md`.
#[derive(Default)]
struct Page(String);

impl Visitor for Page {
    fn visit<O: Operation>(&mut self) {
        let method = match O::KIND {
            Kind::Read => "GET",
            Kind::Post => "POST",
        };
        let read = |text: &str| serde_json::from_str::<O::Request>(text).ok();
        let empty = read("{}").or_else(|| read(r#"{"id":""}"#)).and_then(|empty| serde_json::to_value(&empty).ok());
        let fields = empty.and_then(|empty| empty.as_object().cloned()).unwrap_or_default();
        // Where somebody stands counts on this machine alone.
        let names = fields.keys().filter(|name| !["place", "catalogs"].contains(&name.as_str()));
        let fields = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let row = format!("| {method} | `{}` | {} | {fields} |\n", O::PATH, O::rights());
        self.0.push_str(&row);
    }
}

#[test]
fn gate_17_the_page_of_the_api_has_every_operation() {
    let mut page = Page::default();
    operations::all(&mut page);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written.contains(&page.0), "docs/api.md should have:\n{}", page.0);
}

/// Every cell that says no, asked for: the table is what the clerk does.
struct Asking<'a> {
    office: &'a Office,
    let_through: Vec<String>,
}

impl Visitor for Asking<'_> {
    fn visit<O: Operation>(&mut self) {
        let read = |text: &str| serde_json::from_str::<O::Request>(text).ok();
        for (name, role) in COLUMNS {
            let actor = Actor {
                user: "eve".to_owned(),
                via: Via::Token,
                roles: role.into_iter().collect(),
                groups: Vec::new(),
                token: None,
            };
            let Some(request) = read("{}").or_else(|| read(r#"{"id":""}"#)).filter(|_| !O::is_for(&actor)) else {
                continue;
            };
            let asking = self.office.clerk.perform::<O>(&actor, request);
            let answer = tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(asking));
            if !matches!(answer, Err(ControlError::Forbidden(_))) {
                self.let_through.push(format!("{name}: {}", O::PATH));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gate_17_the_clerk_refuses_whom_the_table_refuses() {
    let office = office(true).await;
    let mut asking = Asking { office: &office, let_through: Vec::new() };
    operations::all(&mut asking);
    assert!(asking.let_through.is_empty(), "{:?}", asking.let_through);
    assert!(office.details().await.iter().all(|detail| detail.starts_with("refused: ")));
}
