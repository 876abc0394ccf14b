//! SELF-1 for calls to tools: arguments that name what Toolwarden lives by, or run it.

use std::sync::Arc;

use toolwarden_core::{Call, Caller, Door, Operation};
use toolwarden_policy::input::{AutoRunMode, ToolInput};
use toolwarden_policy::{PolicySet, Query, is_visible};

use crate::kit::{agent, answer, arguments, asked_in, compile, listing, person, plain, server, with_tool};

/// Everything runs, whatever it is, but for what SELF-1 holds.
fn policy() -> PolicySet {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input.base.home = Some("/home/ada".into());
    input.base.protected_paths =
        ["/home/ada/.config/toolwarden", "/srv/space/.mcp.json", "/srv/space/.cursor/hooks.json"]
            .map(Into::into)
            .to_vec();
    let scoped = ToolInput { scope: Some(toolwarden_policy::input::Scope::Both), ..ToolInput::default() };
    input.servers.push(with_tool(listing(server("fs"), &["db.write"]), "db.write", scoped));
    compile(&input)
}

fn asked(caller: &Arc<Caller>, call: Call, door: Door) -> Query {
    asked_in("/srv/space", caller, call, door)
}

fn judged(caller: &Arc<Caller>, json: &str) -> String {
    let query = asked(caller, Call::mcp("fs", "db.write", arguments(json)), Door::Mcp);
    assert!(query.call.arguments.is_some(), "{json}");
    answer(&policy(), &query)
}

#[test]
fn self_1_no_argument_names_what_is_ours_unasked() {
    for (json, expected) in [
        (r#"{"path":"/home/ada/.config/toolwarden/toolwarden.toml","content":"x"}"#, "hold self_protection"),
        (r#"{"path":"~/.config/toolwarden"}"#, "hold self_protection"),
        (r#"{"path":".mcp.json"}"#, "hold self_protection"),
        (r#"{"path":"sub/../.cursor//hooks.json"}"#, "hold self_protection"),
        (r#"{"path":"\u002ecursor\/hooks.json"}"#, "hold self_protection"),
        (r#"{"path":".CURSOR/Hooks.json"}"#, "hold self_protection"),
        (r#"{"uri":"file:///srv/space/%2Emcp.json"}"#, "hold self_protection"),
        (r#"{"edits":[{"files":["a.rs",".mcp.json"]}]}"#, "hold self_protection"),
        (r#"{"files":{".mcp.json":"{}"}}"#, "hold self_protection"),
        (r#"{"source":"/tmp/x","destination":"/home/ada/.config"}"#, "hold self_protection"),
        (r#"{"path":".cursor"}"#, "hold self_protection"),
        (r#"{"path":"/home/ada/.config/tool*/master.key"}"#, "hold self_protection"),
        (r#"{"pattern":"~/.config/**"}"#, "hold self_protection"),
        (r#"{"pattern":"/*/*/.config/{toolwarden,x}/*"}"#, "hold self_protection"),
        (r#"{"arguments":"{\"path\":\"\\u002fhome/ada/.config/toolwarden\"}"}"#, "hold self_protection"),
        (r#"{"command":"cat $'/home/ada/.config/\\x74oolwarden/master.key'"}"#, "hold self_protection"),
        (r#"{"path":"/proc/1/environ"}"#, "hold self_protection"),
        (r#"{"path":"/srv/../proc/self/environ"}"#, "hold self_protection"),
        (r#"{"path":"file:///proc/self/mem"}"#, "hold self_protection"),
        (r#"{"path":"%2Fproc/self/environ"}"#, "hold self_protection"),
        (r#"{"path":"/dev/sda"}"#, "hold self_protection"),
        (r#"{"path":"../../../proc/4242/environ"}"#, "hold self_protection"),
        (r#"{"path":"~/../../proc/4242/environ"}"#, "hold self_protection"),
        (r#"{"path":"FILE:///proc/4242/environ"}"#, "hold self_protection"),
        (r#"{"path":"a b/../../../proc/4242/environ"}"#, "hold self_protection"),
        (r#"{"path":"/home/ada/.config/+(toolwarden)/master.key"}"#, "hold self_protection"),
        (r#"{"path":"/home/ada/.config/!(x)/master.key"}"#, "hold self_protection"),
        (r#"{"path":"/home/ada/.config/tool*/master.@(key)"}"#, "hold self_protection"),
        (r#"{"path":"/@(home|x)/ada/.config/*(tool|warden)/x"}"#, "hold self_protection"),
        (r#"{"command":"cat /proc/1/environ"}"#, "hold self_protection"),
        (r#"{"command":"echo '{}' > .mcp.json"}"#, "hold self_protection"),
        (r#"{"script":"open('.mcp.json', 'w').write('')"}"#, "hold self_protection"),
        (r#"{"command":"toolwarden allow x:y"}"#, "hold self_protection"),
        (r#"{"command":"sh","args":["-c","toolwarden approvals approve 1"]}"#, "hold self_protection"),
        (r#"{"argv":["sudo","toolwarden","trust","."]}"#, "hold self_protection"),
        (r#"{"command":"toolwarden","args":["servers","add","x"]}"#, "hold self_protection"),
        (r#"{"command":"/opt/toolwarden","line":"modes set x"}"#, "hold self_protection"),
        ("\"/srv/space/.mcp.json\"", "hold self_protection"),
        (r#"{"path":"/srv/space"}"#, "allow run_everything"),
        (r#"{"path":"."}"#, "allow run_everything"),
        (r#"{"pattern":"**/*"}"#, "allow run_everything"),
        (r#"{"pattern":"src/**/*.rs"}"#, "allow run_everything"),
        (r#"{"pattern":"src/**/*.@(rs|toml)"}"#, "allow run_everything"),
        (r#"{"path":"../../other/proc/x"}"#, "allow run_everything"),
        (r#"{"text":"see ../../proc/1/environ for it"}"#, "allow run_everything"),
        (r#"{"pattern":"/home/ada/src/**"}"#, "allow run_everything"),
        (r#"{"path":"/proc/cpuinfo"}"#, "allow run_everything"),
        (r#"{"path":"/dev/null"}"#, "allow run_everything"),
        (r#"{"content":"/** reads /proc/self/status and 2 ** 3 */"}"#, "allow run_everything"),
        (r#"{"path":"src/main.rs","content":"fn main() {}"}"#, "allow run_everything"),
        (r#"{"path":".cursor/rules/style.md"}"#, "allow run_everything"),
        (r#"{"command":"toolwarden","args":["servers","list"]}"#, "allow run_everything"),
        (r#"{"title":"What is toolwarden?","tags":["toolwarden","mcp"]}"#, "allow run_everything"),
        (r#"{"count":5,"ok":true,"none":null}"#, "allow run_everything"),
        ("{}", "allow run_everything"),
    ] {
        assert_eq!(judged(&person(), json), expected, "{json}");
        assert_eq!(judged(&agent("pm"), json), expected, "{json}");
    }
}

#[test]
fn self_1_reading_is_not_held_and_lists_stay() {
    let policy = policy();
    let read = Call::operation("fs", Operation::ReadResource, arguments(r#"{"uri":"file:///srv/space/.mcp.json"}"#));
    assert_eq!(answer(&policy, &asked(&person(), read, Door::Mcp)), "allow run_everything");
    let named = Call::mcp("fs", "db.write", arguments(r#"{"path":".mcp.json"}"#));
    assert!(is_visible(&policy, &asked(&person(), named, Door::Mcp)));
}
