//! Roots that may be passed on, and those that may not.

use std::path::PathBuf;

use toolwarden_core::Caller;

use super::permits_root;
use crate::input::PolicyInput;
use crate::set::PolicySet;

#[test]
fn gate_18_roots_are_judged_one_by_one() {
    let mut input = PolicyInput::default();
    let own = [
        "/home/ada/.config/toolwarden",
        "/home/ada/project/.cursor/hooks.json",
        "/srv/rules.cedar",
        "/home/ada/project/.roomodes",
    ];
    input.base.protected_paths = own.map(PathBuf::from).to_vec();
    input.base.home = Some(PathBuf::from("/home/ada"));
    let policy = PolicySet::compile(&input);
    assert!(policy.is_ok());
    let Ok(policy) = policy else { unreachable!("the policy compiles") };
    let ada = Caller::local_person("ada");
    for uri in [
        "file:///home/ada/project",
        "file://localhost/home/ada/project",
        "file:///home/ada/my%20project/",
        "file:///srv",
    ] {
        assert!(permits_root(&policy, &ada, uri), "{uri}");
        assert!(!permits_root(&policy, &Caller::agent("worker", None), uri), "{uri}");
    }
    for uri in [
        "file:///",
        "file:///home",
        "file:///home/ada",
        "file:///home/ada/.config",
        "file:///home/ada/project/.cursor/hooks.json",
        "file:///home/ada/.config/toolwarden",
        "file:///home/ada/.config/toolwarden/keys",
        "file:///home/ada/.config/%74oolwarden/keys",
        "file:///home/ada/project/../.config/toolwarden",
        "file:///home/ada/project/%2e%2e/.config/toolwarden",
        "file://other.host/home/ada/project",
        "file:home/ada",
        "file:///home/ada/project?x",
        "file:///home/ada/%zz",
        "file:///home/ada/%00",
        "https://example.com/",
        "/home/ada/project",
        "",
    ] {
        assert!(!permits_root(&policy, &ada, uri), "{uri}");
    }
}
