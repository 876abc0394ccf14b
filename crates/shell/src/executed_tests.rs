//! Which words reach a place whose files are executed.

use std::path::Path;

use super::{Use, reached_by_path, reached_by_word};

#[test]
fn shell_3_every_spelling_of_such_a_place_is_found() {
    for text in [
        ".git",
        ".git/config",
        "./.git/config",
        "x/../.git/config",
        "../../.git/hooks/pre-commit",
        "/w/.git/config",
        ".GIT/config",
        ".Git/CONFIG",
        ".git./config",
        ".git /config",
        "git~1/config",
        "GIT~1",
        ".git::$INDEX_ALLOCATION/config",
        ".g\u{200c}it/config",
        "-o.git/config",
        "-abco.git/config",
        "-C.git",
        "--output=.git/x",
        "of=.git/config",
        "if=x,of=.git/config",
        "host:.git/config",
        ":(top).git/config",
        ".g*/config",
        ".gi?/config",
        ".gi[t]/config",
        ".g{i,x}t/config",
        "{.git,x}/config",
        "{.gi,x}{t,y}/config",
        ".g{h..j}t/config",
        ".git\\config",
        ".g\\it/config",
        "\".git\"/config",
        ".g$x/config",
        "$x/.git/config",
        "~/.git/config",
        "repo.git/config",
        "repo.git/hooks/post-receive",
        "evil/hooks/pre-commit",
        "evil/hooks/post-*",
        ".husky/pre-commit",
        "~/.bashrc",
        "~/.bash*",
        ".vscode/tasks.json",
        ".cursor/mcp.json",
        ".claude/settings.json",
        ".mcp.json",
        "node_modules/.bin/eslint",
        "a/node_modules/./.bin/eslint",
        ".envrc",
        ".npmrc",
        ".cargo/config.toml",
        "~/.ssh/authorized_keys",
        "~/.config/git/config",
        "-o~/.bashrc",
        "/etc/profile",
        "/etc/cron.d/x",
    ] {
        assert!(reached_by_word(text).is_some(), "{text}");
    }
    for text in [
        "a",
        ".",
        "..",
        "../x",
        "src/hooks/useState.ts",
        ".gitignore",
        ".gitattributes",
        ".github/workflows/ci.yml",
        "https://example.com/repo.git",
        "repo.git",
        "git",
        "git/config",
        "node_modules/eslint/bin/eslint.js",
        "*.rs",
        "*/config",
        "*",
        "src/*.txt",
        "{a,b}/c",
        "-la",
        "--color=auto",
        "config",
        "bin/x",
        "~/notes.txt",
        "file{1..9}.txt",
    ] {
        assert_eq!(reached_by_word(text), None, "{text}");
    }
}

#[test]
fn shell_3_a_workspace_below_such_a_place_is_none_itself() {
    let workspace = Path::new("/home/u/.cursor/worktrees/w");
    assert_eq!(reached_by_path(Path::new("/home/u/.cursor/worktrees/w/src/a"), Some(workspace), Use::Any), None);
    assert!(reached_by_path(Path::new("/home/u/.cursor/worktrees/w/.git/config"), Some(workspace), Use::Any).is_some());
    assert!(reached_by_path(Path::new("/home/u/.cursor/hooks.json"), Some(workspace), Use::Any).is_some());
}
