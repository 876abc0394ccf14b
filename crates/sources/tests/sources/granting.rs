//! ALLOW-4: adding an entry takes no grant away, removing one adds none, in this workspace and in every other.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};
use proptest::test_runner::{Config, TestCaseError};
use toolwarden_core::{Call, Caller, Decision, Door, Layer, Origin};
use toolwarden_policy::input::RuleFile;
use toolwarden_policy::{PolicySet, Transport, decide, shipped};
use toolwarden_sources::{List, WorkspaceTrust, load};

use crate::home::Home;

const ENTRIES: [&str; 6] = ["a:b", "A:B", "a:*", "*:c", "d:e", "*:*"];
const COMMANDS: [&str; 4] = ["git", "git:status", "ls:*", "ls:-l"];

/// How a permissions.json begins: not there, or with one list, both or none.
fn file() -> impl Strategy<Value = Option<String>> {
    let entries = proptest::sample::subsequence(ENTRIES.to_vec(), 0..3);
    let commands = proptest::sample::subsequence(COMMANDS.to_vec(), 0..3);
    prop_oneof![
        Just(None),
        Just(Some("{}".to_owned())),
        entries.clone().prop_map(|mcp| Some(serde_json::json!({ "mcpAllowlist": mcp }).to_string())),
        commands.clone().prop_map(|own| Some(serde_json::json!({ "terminalAllowlist": own }).to_string())),
        (entries, commands).prop_map(|(mcp, own)| Some(
            serde_json::json!({ "mcpAllowlist": mcp, "terminalAllowlist": own }).to_string()
        )),
    ]
}

#[derive(Debug, Clone)]
struct Edit {
    adds: bool,
    shell: bool,
    text: &'static str,
    user: &'static str,
}

fn edit() -> impl Strategy<Value = Edit> {
    let texts = (proptest::bool::ANY, 0..ENTRIES.len(), 0..COMMANDS.len());
    (proptest::bool::ANY, texts, proptest::bool::weighted(0.2)).prop_map(|(adds, (shell, one, other), is_others)| {
        Edit {
            adds,
            shell,
            text: if shell { COMMANDS.get(other).copied() } else { ENTRIES.get(one).copied() }.unwrap_or_default(),
            user: if is_others { "anna" } else { "me" },
        }
    })
}

/// What runs unasked: for whom, in which workspace, which call.
type Grants = BTreeSet<(String, Option<PathBuf>, String)>;

fn grants(home: &Home) -> Result<Grants, TestCaseError> {
    let fail = |error: String| TestCaseError::fail(error);
    let mut found = Grants::new();
    for workspace in [home.path("work"), home.path("other"), home.path("nowhere")] {
        let mut locations = home.locations.clone();
        locations.workspace = Some(workspace.clone());
        let mut loaded = load(&locations, &home.store.borrow()).map_err(|refusal| fail(refusal.to_string()))?;
        let origin = Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1);
        loaded.input.base.rules.push(RuleFile { origin, text: shipped::RULES.to_owned() });
        let policy = PolicySet::compile(&loaded.input).map_err(|refused| fail(refused.to_string()))?;
        let transport = Transport::new(Door::Explain, Some(workspace.clone()));
        for caller in [Caller::local_person("me"), Caller::person("anna")] {
            let calls = [("a", "b"), ("a", "c"), ("d", "e"), ("x", "c"), ("x", "y")]
                .map(|(server, tool)| Call::mcp(server, tool, None));
            let lines = ["git", "git status", "git push", "ls", "ls -l", "ls -a"].map(|line| Call::shell(line, None));
            for call in calls.into_iter().chain(lines) {
                let shown = format!("{:?} {}:{}", call.kind, call.server, call.tool);
                let query = transport.query(Arc::new(caller.clone()), call, Timestamp::UNIX_EPOCH);
                if decide(&policy, &query).decision() == Decision::Allow {
                    found.insert((caller.user.clone().unwrap_or_default(), Some(workspace.clone()), shown));
                }
            }
        }
    }
    Ok(found)
}

proptest! {
    #![proptest_config(Config { cases: 60, failure_persistence: None, ..Config::default() })]

    #[test]
    fn allow_4_an_add_takes_no_grant_away_and_a_removal_adds_none(
        user in file(),
        work in file(),
        other in file(),
        edits in proptest::collection::vec(edit(), 1..5),
    ) {
        let fail = |error: std::io::Error| TestCaseError::fail(error.to_string());
        let mut home = Home::new().map_err(fail)?;
        for (path, content) in [("home", user), ("work", work), ("other", other)] {
            std::fs::create_dir_all(home.path(path)).map_err(fail)?;
            if let Some(content) = content {
                home.write(&format!("{path}/.cursor/permissions.json"), content).map_err(fail)?;
            }
        }
        for workspace in ["work", "other"] {
            let trusted = toolwarden_sources::trust::trust(&home.locations, &home.path(workspace), Timestamp::UNIX_EPOCH);
            prop_assert!(trusted.is_ok(), "{:?}", trusted);
        }
        home.locations.workspace_trust = WorkspaceTrust::Recorded;
        let mut before = grants(&home)?;
        for edit in &edits {
            let list = if edit.shell { List::Terminal } else { List::Mcp };
            // Refused or done: either way nothing else may move.
            let done = if edit.adds {
                home.add(edit.user, list, edit.text).map(drop)
            } else {
                home.remove(edit.user, list, edit.text).map(drop)
            };
            let after = grants(&home)?;
            if edit.adds {
                prop_assert!(before.is_subset(&after), "{:?} {:?} took {:?}", edit, done, before.difference(&after));
            } else {
                prop_assert!(after.is_subset(&before), "{:?} {:?} added {:?}", edit, done, after.difference(&before));
            }
            before = after;
        }
    }
}
