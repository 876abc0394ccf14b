//! SELF-1 where everything runs unasked: archives, files of clients, and arguments of which nobody can tell where they
//! lead.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Call, Decision, Reason};

use crate::following::{Judge, home};
use crate::home::{Home, Outcome};

const HELD: (Decision, Reason) = (Decision::Hold, Reason::SelfProtection);

/// A home in which no allowlist holds anything.
fn open_home() -> Result<Home, Box<dyn std::error::Error>> {
    let home = home()?;
    home.write("config/toolwarden.toml", "[auto_run]\nmode = \"run_everything\"\n")?;
    Ok(home)
}

fn given(judge: &Judge, arguments: &str) -> Reason {
    let document = Document::parse(arguments, Limits::DEFAULT).ok().map(Arc::new);
    assert!(document.is_some(), "{arguments}");
    judge.judged(Call::mcp("files", "write", document)).1
}

#[test]
fn self_1_archives_are_not_unpacked_through_links_or_to_anywhere() -> Outcome {
    let home = open_home()?;
    for directory in ["out/deep", "plain/a", "hard"] {
        fs::create_dir_all(home.path("work").join(directory))?;
    }
    symlink(home.path("home/.cursor"), home.path("work/out/deep/d"))?;
    symlink("../notes.txt", home.path("work/plain/l"))?;
    fs::hard_link(home.path("home/.cursor/permissions.json"), home.path("work/hard/h"))?;
    let judge = Judge::new(home)?;
    let line = |text: &str| judge.judged(Call::shell(text, None));
    for text in [
        "tar -xf a.tar -C out",
        "cd out && tar -xf ../a.tar",
        "tar -xf a.tar -C out/deep",
        "tar -xf a.tar -C hard",
        "unzip a.zip -d out",
        "tar -xPf a.tar -C plain",
        "cpio -i < x",
        "cd plain && cpio -i < ../x",
        // The top of a workspace holds files of clients.
        "tar -xf a.tar",
    ] {
        assert_eq!(line(text), HELD, "{text}");
    }
    for text in ["tar -xf a.tar -C plain", "tar xCf plain a.tar", "unzip a.zip -d sub", "tar -tf a.tar"] {
        assert_eq!(line(text), (Decision::Allow, Reason::RunEverything), "{text}");
    }
    Ok(())
}

#[test]
fn self_1_files_of_clients_are_not_written() -> Outcome {
    let judge = Judge::new(open_home()?)?;
    for (base, files) in [
        (
            "",
            &[
                ".vscode/settings.json",
                ".vscode/mcp.json",
                ".github/hooks/a.json",
                ".copilot/hooks/a.json",
                ".opencode/plugins/a.js",
                "opencode.json",
                ".windsurf/hooks.json",
                ".claude/settings.json",
                ".claude/settings.local.json",
                ".claude/hooks/a.sh",
                ".codex/config.toml",
                ".codex/hooks.json",
                ".codex/rules/default.rules",
                ".gemini/settings.json",
                ".gemini/policies/a.toml",
                ".gemini/extensions/a/gemini-extension.json",
                ".cursor/hooks.json",
                ".mcp.json",
                ".roo/mcp.json",
                ".roomodes",
                ".kilocode/mcp.json",
                "kilo.json",
            ][..],
        ),
        (
            "~/",
            &[
                ".codeium/windsurf/mcp_config.json",
                ".config/opencode/opencode.json",
                ".config/opencode/plugins/a.js",
                ".config/Claude/claude_desktop_config.json",
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".config/Code/User/settings.json",
                ".config/Code/User/mcp.json",
                ".config/Code - Insiders/User/mcp.json",
                ".copilot/hooks/a.json",
                ".claude.json",
                ".claude/settings.json",
                ".claude/plugins/a/hooks/hooks.json",
                ".codex/config.toml",
                ".gemini/settings.json",
                ".gemini/trustedFolders.json",
                ".cursor/cli-config.json",
            ][..],
        ),
        (
            "/etc/",
            &[
                "cursor/hooks.json",
                "claude-code/managed-settings.json",
                "codex/requirements.toml",
                "gemini-cli/policies/a.toml",
            ][..],
        ),
    ] {
        for file in files {
            let path = format!("{base}{file}");
            let quoted = path.replace(' ', "\\ ");
            assert_eq!(judge.judged(Call::shell(format!("tee {quoted}"), None)), HELD, "{path}");
            assert_eq!(given(&judge, &format!("{{\"path\": {path:?}}}")), Reason::SelfProtection, "{path}");
        }
    }
    for file in [".vscode/launch.json", ".github/workflows/a.yml", ".gemini/GEMINI.md", "src/opencode.rs"] {
        assert_eq!(judge.judged(Call::shell(format!("tee {file}"), None)).0, Decision::Allow, "{file}");
        assert_ne!(given(&judge, &format!("{{\"path\": {file:?}}}")), Reason::SelfProtection, "{file}");
    }
    Ok(())
}

#[test]
fn self_1_arguments_that_cannot_be_resolved_are_held() -> Outcome {
    let home = open_home()?;
    let work = home.path("work");
    symlink("loop", work.join("loop"))?;
    symlink("two", work.join("one"))?;
    symlink("one", work.join("two"))?;
    let closed = work.join("closed");
    fs::create_dir_all(closed.join("inside"))?;
    symlink("closed", work.join("door"))?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000))?;
    let is_closed = fs::symlink_metadata(closed.join("inside")).is_err();
    let judge = Judge::new(home)?;
    for arguments in [
        r#"{"path": "loop"}"#,
        r#"{"path": "./one/x"}"#,
        r#"{"dir": ".", "name": "two"}"#,
        r#"{"files": {"loop": "text"}}"#,
        r#"{"command": "tee loop"}"#,
    ] {
        assert_eq!(given(&judge, arguments), Reason::SelfProtection, "{arguments}");
    }
    let inside = closed.join("inside").display().to_string();
    // To root no directory is closed.
    if is_closed {
        assert_eq!(given(&judge, &format!("{{\"path\": {inside:?}}}")), Reason::SelfProtection);
        assert_eq!(given(&judge, r#"{"text": "it fails in door/inside/x again"}"#), Reason::SelfProtection);
    }
    // Texts that only speak of places, and names that no file can have.
    let spoken = format!("{{\"text\": \"it fails in {inside}/x again\"}}");
    let long = format!("{{\"path\": \"/{}\"}}", "a".repeat(300));
    let missing = r#"{"path": "/no/such/place", "text": "a/b and c"}"#;
    for arguments in [spoken.as_str(), long.as_str(), missing] {
        assert_ne!(given(&judge, arguments), Reason::SelfProtection, "{arguments}");
    }
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755))?;
    Ok(())
}
