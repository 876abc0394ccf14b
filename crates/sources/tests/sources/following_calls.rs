//! SELF-1 for every kind of call, and the bound on what is looked up (WORK-1).

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Call, Decision, Operation, Reason};

use crate::following::{Judge, home};
use crate::home::Outcome;

#[test]
fn self_1_every_kind_of_call_is_followed_to_keys() -> Outcome {
    let home = home()?;
    symlink(home.path("config/master.key"), home.path("work/lnk"))?;
    let link = home.path("work/lnk").display().to_string();
    let key = home.path("config/master.key").display().to_string();
    let judge = Judge::new(home)?;
    let judged = |operation: Operation, params: &str| {
        let document = Document::parse(params, Limits::DEFAULT).ok().map(Arc::new);
        assert!(document.is_some(), "{params}");
        judge.judged(Call::operation("files", operation, document)).1
    };
    for path in [&key, &link] {
        let uri = format!("{{\"uri\": \"file://{path}\"}}");
        assert_eq!(judged(Operation::ReadResource, &uri), Reason::SelfProtection, "{uri}");
        let prompt = format!("{{\"name\": \"p\", \"arguments\": {{\"x\": \"{path}\"}}}}");
        assert_eq!(judged(Operation::GetPrompt, &prompt), Reason::CannotBeHeld, "{prompt}");
        let value = format!("{{\"ref\": {{\"type\": \"ref/prompt\"}}, \"argument\": {{\"value\": \"{path}\"}}}}");
        assert_eq!(judged(Operation::Complete, &value), Reason::CannotBeHeld, "{value}");
    }
    let approves = "{\"name\": \"p\", \"arguments\": {\"x\": \"toolwarden approvals approve abc\"}}";
    assert_eq!(judged(Operation::GetPrompt, approves), Reason::CannotBeHeld);
    assert_eq!(judged(Operation::GetPrompt, "{\"name\": \"p\"}"), Reason::NeverHeld);
    Ok(())
}

#[test]
fn self_1_addresses_of_files_are_followed_whatever_their_host() -> Outcome {
    let home = home()?;
    symlink(home.path("config"), home.path("work/lk"))?;
    symlink("/proc", home.path("work/pr"))?;
    let work = home.path("work").display().to_string();
    let judge = Judge::new(home)?;
    let judged = |operation: Operation, params: &str| {
        let document = Document::parse(params, Limits::DEFAULT).ok().map(Arc::new);
        assert!(document.is_some(), "{params}");
        judge.judged(Call::operation("files", operation, document)).1
    };
    for uri in [
        format!("file://{work}/lk/master.key"),
        format!("file://localhost{work}/lk/master.key"),
        format!("file://LOCALHOST{work}/lk/master.key"),
        format!("FILE://localhost{work}/lk/master.key"),
        format!("file://x{work}/lk/master.key"),
        format!("file://127.0.0.1{work}/lk/master.key"),
        format!("file:{work}/lk/master.key"),
        format!("file://x{work}/l%6b/master.key"),
        format!("file://x{work}/lk/master.key?a#b"),
        "file://x/proc/self/environ".to_owned(),
        format!("file://x{work}/pr/self/environ"),
        format!("file://x{work}/../config/master.key"),
    ] {
        let params = format!("{{\"uri\": {uri:?}}}");
        assert_eq!(judged(Operation::ReadResource, &params), Reason::SelfProtection, "{uri}");
        let held = [Reason::SelfProtection, Reason::CannotBeHeld];
        let arguments = format!("{{\"name\": \"read\", \"arguments\": {{\"x\": {uri:?}}}}}");
        assert!(held.contains(&judged(Operation::GetPrompt, &arguments)), "{arguments}");
        let document = Document::parse(params.as_str(), Limits::DEFAULT).ok().map(Arc::new);
        assert_eq!(judge.judged(Call::mcp("files", "read", document)).1, Reason::SelfProtection, "{params}");
    }
    let other = format!("{{\"uri\": \"file://localhost{work}/notes.txt\"}}");
    assert_ne!(judged(Operation::ReadResource, &other), Reason::SelfProtection);
    Ok(())
}

#[test]
fn self_1_links_behind_signs_variables_and_in_diffs_are_followed() -> Outcome {
    let home = home()?;
    symlink(home.path("config"), home.path("work/lk"))?;
    fs::create_dir_all(home.path("work/a/lk"))?;
    let judge = Judge::new(home)?;
    let reason = |text: &str| {
        let params = format!("{{\"text\": {text:?}}}");
        let document = Document::parse(params.as_str(), Limits::DEFAULT).ok().map(Arc::new);
        assert!(document.is_some(), "{params}");
        judge.judged(Call::mcp("files", "read", document)).1
    };
    for text in [
        "@lk/master.key",
        "read @lk/master.key",
        "@@lk/master.key",
        "@file:lk/master.key",
        "$PWD/lk/master.key",
        "${PWD}/lk/master.key",
        "cat ${PWD}/lk/master.key",
        "cat $PWD/lk/master.key",
        "$(pwd)/lk/master.key",
        "%CD%/lk/master.key",
        "--- a/lk/master.key\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        "--- /dev/null\n+++ b/lk/master.key\n@@ -0,0 +1 @@\n+x\n",
        "diff --git a/lk/master.key b/lk/master.key\nold mode 100644\n",
        "*** p/q/lk/master.key\n--- x\n",
        "see file:lk/master.key for it",
    ] {
        assert_eq!(reason(text), Reason::SelfProtection, "{text}");
    }
    for text in [
        "@notes.txt",
        "mail ann@lk.example",
        "${PWD}/notes.txt",
        "--- a/notes.txt\n+++ b/notes.txt\n@@ -1 +1 @@\n-x\n+y\n",
        "see file:notes.txt for it",
    ] {
        assert_ne!(reason(text), Reason::SelfProtection, "{text}");
    }
    Ok(())
}

#[test]
fn self_1_stopping_toolwarden_is_held_in_lines_and_arguments() -> Outcome {
    let mut home = home()?;
    home.write("config/toolwarden.toml", "[auto_run]\nmode = \"run_everything\"\n")?;
    home.locations.git_configs = Vec::new();
    let judge = Judge::new(home)?;
    let reason = |params: &str| {
        let document = Document::parse(params, Limits::DEFAULT).ok().map(Arc::new);
        assert!(document.is_some(), "{params}");
        judge.judged(Call::mcp("files", "run", document)).1
    };
    for params in [
        r#"{"command": "pkill -9 -f tool"}"#,
        r#"{"command": "kill $(pgrep toolw)"}"#,
        r#"{"command": "systemctl", "args": ["stop", "toolwarden"]}"#,
        r#"{"command": "killall", "args": ["-9", "toolwarden"]}"#,
        r#"{"argv": ["sudo", "pkill", "toolw"]}"#,
    ] {
        assert_eq!(reason(params), Reason::SelfProtection, "{params}");
    }
    for params in [r#"{"command": "pkill node"}"#, r#"{"command": "systemctl", "args": ["status", "toolwarden"]}"#] {
        assert_ne!(reason(params), Reason::SelfProtection, "{params}");
    }
    for line in ["pkill -f tool", "systemctl stop toolwarden", "kill $(pidof toolwarden)"] {
        assert_eq!(judge.judged(Call::shell(line, None)).1, Reason::SelfProtection, "{line}");
    }
    assert_eq!(judge.judged(Call::shell("pkill node", None)), (Decision::Allow, Reason::RunEverything));
    Ok(())
}

#[test]
fn shell_3_configurations_that_the_environment_names_count() -> Outcome {
    let mut home = home()?;
    fs::create_dir_all(home.path("work/.git/objects"))?;
    home.write("work/.git/HEAD", "ref: refs/heads/main\n")?;
    home.write("elsewhere/git/config", "[core]\n\thooksPath = hk\n")?;
    home.write("work/hk/x", "")?;
    let line = "echo x > hk/pre-commit";
    let decided = |judge: &Judge| judge.judged(Call::shell(line, None)).0;
    home.locations.git_configs = vec![home.path("elsewhere/git/config")];
    let judge = Judge::new(home)?;
    assert_eq!(decided(&judge), Decision::Hold);
    assert_eq!(judge.judged(Call::shell("echo x > other", None)).0, Decision::Allow);
    Ok(())
}

#[test]
fn work_1_patterns_through_links_that_lead_back_end() -> Outcome {
    let home = home()?;
    for name in ["a", "b", "c"] {
        symlink(".", home.path("work").join("sub").join(name))?;
    }
    let judge = Judge::new(home)?;
    let stars = "sub/".to_owned() + &"*/".repeat(24) + "*";
    let arguments = format!("{{\"command\": \"cat {stars}\"}}");
    let document = Document::parse(arguments.as_str(), Limits::DEFAULT).ok().map(Arc::new);
    // Nobody waits for three to the power of twenty-four paths; the call is held.
    assert_eq!(judge.judged(Call::mcp("files", "read", document)).1, Reason::SelfProtection);
    assert_eq!(judge.judged(Call::shell(format!("cat {stars}"), None)).1, Reason::SelfProtection);
    Ok(())
}

#[test]
fn shell_3_clones_stay_inside_and_out_of_executed_places() -> Outcome {
    let judge = Judge::new(home()?)?;
    let decided = |line: &str| judge.judged(Call::shell(line, None)).0;
    for line in [
        "git clone https://example.com/x",
        "git clone https://example.com/x y",
        "git clone --depth 1 https://example.com/x",
        "git clone https://example.com/x --depth 1",
    ] {
        assert_eq!(decided(line), Decision::Allow, "{line}");
    }
    for line in [
        "git clone https://example.com/node_modules",
        "git clone https://example.com/node_modules --depth 1",
        "git clone https://example.com/x --depth 1 venv",
        "git clone https://example.com/x ../y",
        "git clone https://example.com/x /usr/local/bin/q",
        "git -C .. clone https://example.com/x y",
        "git -C / clone https://example.com/x",
    ] {
        assert_eq!(decided(line), Decision::Hold, "{line}");
    }
    Ok(())
}
