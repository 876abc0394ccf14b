//! SELF-1 for arguments that name what is ours only together: a directory and a relative name, a list, keys of a tree, a
//! command line seen from elsewhere. The workspace lies below the home, as it does for most people.

use toolwarden_core::{Call, Door};
use toolwarden_policy::PolicySet;
use toolwarden_policy::input::{AutoRunMode, ToolInput};

use crate::kit::{answer, arguments, asked_in, compile, listing, person, plain, server, with_tool};

fn policy() -> PolicySet {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input.base.home = Some("/home/ada".into());
    input.base.protected_paths = [
        "/home/ada/.config/toolwarden",
        "/home/ada/.local/share/toolwarden",
        "/home/ada/.cursor/permissions.json",
        "/home/ada/keys/mk",
        "/home/ada/ws/.mcp.json",
    ]
    .map(Into::into)
    .to_vec();
    input.base.secret_paths =
        ["/home/ada/.config/toolwarden/master.key", "/home/ada/.local/share/toolwarden", "/home/ada/keys/mk"]
            .map(Into::into)
            .to_vec();
    input.servers.push(with_tool(listing(server("fs"), &["run"]), "run", ToolInput::default()));
    compile(&input)
}

fn judged(json: &str) -> String {
    let query = asked_in("/home/ada/ws", &person(), Call::mcp("fs", "run", arguments(json)), Door::Mcp);
    assert!(query.call.arguments.is_some(), "{json}");
    answer(&policy(), &query)
}

#[test]
fn self_1_arguments_that_name_what_is_ours_together_are_held() {
    for json in [
        // Command lines, relative and with patterns.
        r#"{"command":"cat ../.config/t*/m*"}"#,
        r#"{"command":"cat ../.config/[t]oolwarden/master.key"}"#,
        r#"{"command":"cat ../.config/{toolwarden,x}/master.key"}"#,
        r#"{"command":"tee ../.config/t*/*.toml"}"#,
        r#"{"command":"sed -i s/a/b/ ../.config/t*/*.toml"}"#,
        r#"{"script":"cat ../.local/share/t*/roots.json"}"#,
        r#"{"text":"ls; tee ../.cursor/p*"}"#,
        r#"{"args":["-c","cat ../.config/t*/m*"]}"#,
        r#"{"command":"grep -r . ../.config"}"#,
        r#"{"command":"cp -r /home/ada /tmp/x"}"#,
        r#"{"command":"rm -rf /home/ada/.config"}"#,
        // A directory above the workspace, and a line or a name seen from there.
        r#"{"cwd":"/home/ada","command":"cat .config/t*/m*"}"#,
        r#"{"cwd":"/home/ada","command":"cat keys/mk"}"#,
        r#"{"cwd":"~","command":"cat .config/*/*"}"#,
        r#"{"cwd":"..","command":"tee .cursor/p*"}"#,
        r#"{"cwd":"/home/ada","command":"mv .config x"}"#,
        r#"{"cwd":"/home/ada","command":"tar c .config"}"#,
        r#"{"cwd":"/home","path":"ada/keys/mk"}"#,
        r#"{"cwd":"/home/ada","path":".config/t*/m*"}"#,
        r#"{"options":{"root":"/home/ada/"},"files":[{"path":"keys/mk"}]}"#,
        // Segments, trees and pairs.
        r#"{"path":["/","home","ada","keys","mk"]}"#,
        r#"{"parts":["/home/ada","keys","mk"]}"#,
        r#"{"base":"/home/ada","parts":["keys","mk"]}"#,
        r#"{"path":["..","keys","mk"]}"#,
        r#"{"tree":{"keys":{"mk":"x"}},"root":"/home/ada"}"#,
        r#"{"/home":{"ada":{"keys":{"mk":"x"}}}}"#,
        r#"{"dir":"/home/ada/keys","name":"mk"}"#,
        r#"{"root":"/home/ada","files":[{"dir":"keys","name":"mk"}]}"#,
    ] {
        assert_eq!(judged(json), "hold self_protection", "{json}");
    }
    for json in [
        r#"{"command":"cat ../other/*.txt"}"#,
        r#"{"command":"grep -rn mk src"}"#,
        r#"{"cwd":"/home/ada/ws","command":"cat src/*.rs"}"#,
        r#"{"cwd":"/home/ada","path":"ws/src/main.rs"}"#,
        r#"{"path":["src","mk"]}"#,
        r#"{"tree":{"src":{"mk":"x"}}}"#,
        r#"{"dir":"src","name":"mk"}"#,
        r#"{"text":"file the report; sort it out .. and more"}"#,
        r#"{"path":".."}"#,
    ] {
        assert_eq!(judged(json), "allow run_everything", "{json}");
    }
}

#[test]
fn work_1_paths_put_together_have_a_budget() {
    let member = |at: usize| format!(r#""k{at}":"mk""#);
    let object = format!("{{{}}}", (0..40).map(member).collect::<Vec<_>>().join(","));
    let many = format!("[{}]", vec![object; 200].join(","));
    assert_eq!(judged(&format!(r#"{{"cwd":"/home","files":{many}}}"#)), "hold self_protection");
}
