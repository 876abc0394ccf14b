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
