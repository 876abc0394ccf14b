//! Which lines would change Toolwarden.

use std::path::{Path, PathBuf};

use crate::{changes_toolwarden, read, redirections_stay_inside};

fn held(text: &str) -> bool {
    let protected = [
        PathBuf::from("/home/u/.config/toolwarden"),
        PathBuf::from("/home/u/.cursor/hooks.json"),
        PathBuf::from("/w/.cursor/permissions.json"),
    ];
    read(text).is_ok_and(|line| {
        changes_toolwarden(&line, &protected, Path::new("/w/sub"), Some(Path::new("/home/u"))).is_some()
    })
}

#[test]
fn changing_verbs_are_held() {
    for verb in [
        "allow x",
        "disallow x",
        "trust .",
        "servers add x",
        "servers remove x",
        "servers reload",
        "tools enable a:b",
        "tools accept a:b",
        "modes set x",
        "modes delete x",
        "roles set x",
        "rules add x",
        "rules remove x",
        "settings set a b",
        "admin set x",
        "policy rollback 1",
        "tokens issue",
        "tokens list",
        "leases inspect x",
        "grants issue",
        "grants revoke x",
        "approvals approve 1",
        "approvals deny 1",
        // It answers by key.
        "approvals watch",
        "unblock x",
        "vault login",
        "vault rotate-key",
        "init",
        "import",
        "connect cursor",
        "serve",
        "unknown",
        "$x",
        "--strange list allow x",
        "--config f allow x",
        "--data-dir=d allow x",
        "--json allow x",
        "sessions mode x",
    ] {
        assert!(held(&format!("toolwarden {verb}")), "{verb}");
        assert!(held(&format!("sudo -E /opt/toolwarden {verb}")), "{verb}");
    }
    assert!(held("sh -c 'toolwarden allow x'"));
    assert!(held("t=toolwarden; $t allow x"));
    assert!(held("toolwarden run -- toolwarden allow x"));
}

#[test]
fn reading_verbs_are_not() {
    for verb in [
        "explain git:status",
        "lint",
        "describe --mode x",
        "allowlist",
        "servers list",
        "servers show x",
        "tools diff a:b",
        "audit export --format csv",
        "completions bash",
        "man",
        "modes show x",
        "roles list",
        "rules check",
        "settings get x",
        "admin show",
        "policy history",
        "approvals list --json",
        "audit query",
        "vault status",
        "doctor",
        "--help",
        "--version",
        "--config f servers list",
        "--json servers list",
        "",
    ] {
        assert!(!held(&format!("toolwarden {verb}")), "{verb}");
    }
}

#[test]
fn without_a_known_directory_every_relative_word_is_suspect() {
    let protected = [PathBuf::from("/home/u/.cursor/hooks.json")];
    for cwd in ["", "sub", "./sub"] {
        let held = |text: &str| {
            read(text).is_ok_and(|line| changes_toolwarden(&line, &protected, Path::new(cwd), None).is_some())
        };
        assert!(held("tee /home/u/.cursor/hooks.json"));
        assert!(held("echo x > /home/u/.cursor/hooks.json"));
        assert!(held("tee hooks.json"));
        assert!(held("echo x > out.txt"));
        assert!(held("cp -r a ../b"));
        assert!(!held("tee /tmp/x"));
        assert!(!held("cat hooks.json"));
        let stays =
            |text: &str| read(text).is_ok_and(|line| redirections_stay_inside(&line, Path::new("/w"), Path::new(cwd)));
        assert!(!stays("ls > out.txt"));
        assert!(!stays("ls > /tmp/out.txt"));
        assert!(stays("ls > /w/out.txt"));
    }
}

#[test]
fn protected_paths_are_watched() {
    for text in [
        "echo x > ~/.config/toolwarden/a",
        "echo x >> $HOME/.cursor/hooks.json",
        "echo x > \"$HOME/.cursor/hooks.json\"",
        "echo x > ../.cursor/permissions.json",
        "tee ../.cursor/permissions.json",
        "cp a ~/.config/toolwarden",
        "rm -rf ~/.config",
        "rm -rf ~/.con*",
        "rm -rf ..",
        "mv /home/u /tmp",
        "dd of=/home/u/.cursor/hooks.json",
        "x --file=/home/u/.cursor/hooks.json",
        "x -o/home/u/.cursor/hooks.json",
        "sudo tee /home/u/.cursor/hooks.json",
        "find ~/.config -delete",
        "sh -c 'echo x; tee ~/.cursor/hooks.json'",
        "cd ~/.config/toolwarden && vim policy.toml",
        "cd ~ && rm -rf .config",
        "cd ~/.cursor; cp x hooks.json",
        "sed -i s/a/b/ ${HOME}/.cursor/hooks.json",
        "bash -c 'echo {} > ~/.cursor/hooks.json'",
        "eval \"echo {} > ~/.cursor/hooks.json\"",
        "sh -c 'cd ~/.cursor && cp x hooks.json'",
        "tee \"$HOME\"/.cursor/hooks.json",
        "echo x > \"$HOME\"/.cursor/hooks.json",
        "tee ${HOME:-x}/.cursor/hooks.json",
        "tee \"$PWD\"/../.cursor/permissions.json",
        "tee ${PWD}/../.cursor/permissions.json",
        "tee $X/.cursor/hooks.json",
        "tee \"$X\"/hooks.json",
        "tee $(pwd)/../.cursor/permissions.json",
        "tee ~u/.cursor/hooks.json",
        "tee ${x}oks.json $y/hoo*",
        "rm -rf $X/.cursor",
        "curl -so/home/u/.cursor/hooks.json x",
        "wget -qO/home/u/.cursor/hooks.json x",
        "cp -rt/home/u/.config/toolwarden x",
        "cp -rt~/.config/toolwarden x",
        "tee {~/.cursor,x}/hooks.json",
        "tee {/home/u/.cursor/hooks.json,x}",
        "tee ../{.cursor,x}/permissions.json",
        "tee {..,x}/.cursor/permissions.json",
        "tree -o ~/.cursor/hooks.json",
        "less -o ~/.cursor/hooks.json",
        "x 'open(\"/home/u/.cursor/hooks.json\")'",
        "x 'write ~/.cursor/hooks.json'",
        "python3 <<'EOF'\nopen('/home/u/.cursor/hooks.json', 'w')\nEOF",
        "sh <<'EOF'\necho > $X/hooks.json\nEOF",
        "cd $X && tee hooks.json",
        "cd - && tee hooks.json",
        "cd a; cd b; cd c; cd d; ls",
        "env -S 'tee /home/u/.cursor/hooks.json'",
        "strace -o /home/u/.cursor/hooks.json ls",
        "tee a*/../../.cursor/permissions.json",
        "tee ../.cursor/{perm{issions,x},y}.json",
        "docker run -v ../.cursor:/x y",
        "docker run --mount type=bind,src=/home/u,dst=/x y",
        "python3 -c 'open(\"../.cursor/permissions.json\", \"w\")'",
    ] {
        assert!(held(text), "{text}");
    }
    for text in [
        "cat ~/.config/toolwarden/a",
        "grep x ../.cursor/permissions.json",
        "cat < ~/.cursor/hooks.json",
        "eslint .",
        "git add .",
        "git add ..",
        "rm -rf build",
        "echo x > notes.txt",
        "ls ~/.config",
        "cp a b",
        "cd src && make",
        "cd $X && make",
        "mkdir -p {src,tests}",
        "cp $f out/",
        "cat <<EOF\n~/.cursor/hooks.json\nEOF",
    ] {
        assert!(!held(text), "{text}");
    }
}

/// A redirection is opened before its own command runs, but behind every run before it.
#[test]
fn self_1_what_a_command_brings_is_there_when_it_runs_again() {
    for line in ["git checkout other > sub/out", "git checkout other > sub/out; ls", "sudo git pull > out.txt"] {
        assert!(!held(line), "{line}");
    }
    for line in [
        "git checkout other > sub/out; git checkout other > sub/out",
        "for i in 1 2; do git checkout other > sub/out; done",
        "while ls; do git pull >> sub/out; done",
        "git checkout other && echo x > sub/out",
    ] {
        assert!(held(line), "{line}");
    }
}

#[test]
fn self_1_our_name_with_a_verb_is_held_in_whatever_may_run_it() {
    for text in [
        "awk 'BEGIN{system(\"toolwarden allow --shell aaa\")}'",
        "x86_64 toolwarden allow --shell bbb",
        "git rebase -x 'toolwarden allow --shell ccc' --root",
        "EDITOR='toolwarden allow --shell ddd; true' git commit --allow-empty",
        "GIT_SSH_COMMAND='toolwarden allow x' git fetch",
        "git -c alias.x='!toolwarden allow --shell fff' x",
        "sed '1e toolwarden allow --shell ggg' f",
        "git bisect run toolwarden allow x",
        "perl -e 'system(\"toolwarden trust .\")'",
        "prove -e 'toolwarden settings set a b' t",
        "make SHELL='toolwarden allow x'",
        "/usr/bin/x86_64 /usr/bin/toolwarden allow x",
    ] {
        assert!(held(text), "{text}");
    }
    for text in [
        "grep -rn 'toolwarden allow' docs",
        "git commit -m 'toolwarden allow says more'",
        "git log --grep 'toolwarden allow'",
        "echo toolwarden allow x",
        "cargo build -p toolwarden",
        "make toolwarden",
        "x86_64 toolwarden allowlist",
    ] {
        assert!(!held(text), "{text}");
    }
}

#[test]
fn self_1_links_that_copies_make_or_keep_are_not_written_through() {
    for text in [
        "cp -s $HOME/.cursor/hooks.json l; echo x > l",
        "cp -l /tmp/v l && echo x | tee l",
        "cp --symbolic-link /tmp/v l && echo x > l",
        "cp --sym /tmp/v l && echo x > l",
        "cp -as /tmp/v l && echo x > l",
        "cp -sf /tmp/v d/l && echo x | tee d/l",
    ] {
        assert!(held(text), "{text}");
    }
    for text in ["cp a b && echo x > b", "cp -s a b && echo x > c"] {
        assert!(!held(text), "{text}");
    }
}

#[test]
fn self_1_programs_and_patterns_in_quotes_are_not_taken_for_files_of_ours() {
    let protected =
        ["/w/.copilot", "/w/.claude/hooks", "/w/kilo.json", "/w/.cursor/permissions.json"].map(PathBuf::from);
    let held = |text: &str| {
        read(text).is_ok_and(|line| {
            changes_toolwarden(&line, &protected, Path::new("/w"), Some(Path::new("/home/u"))).is_some()
        })
    };
    for text in [
        "awk '{print $1}' src/a.txt",
        "cat a | awk '{print $2}'",
        "jq '.[]' x.json",
        "jq -r '.[].id' x.json",
        "jq '.[0].name' x.json",
        "curl -d '{\"a\":1}' http://localhost:3000/x",
        "git stash pop stash@{0}",
        "git log --format='{%h}'",
        "kubectl get pods -o jsonpath='{.items[*].metadata.name}'",
        "eslint '{src,test}/**/*.ts'",
        "prettier --write '**/*.{js,ts}'",
        "npm test -- -t 'foo {bar}'",
        "mycmd *.js",
        "mycmd src/{a,b}.js",
        "cp src/*.js out",
    ] {
        assert!(!held(text), "{text}");
    }
    for text in [
        "mycmd kilo.js{on,}",
        "mycmd 'kilo.*'",
        "mycmd *.json",
        "mycmd '**/*.json'",
        "mycmd .cop*",
        "mycmd '.cop*'",
        "mycmd {.copilot,x}",
        "mycmd .c{opilot,x}/agents/a",
        "mycmd .cursor/{permissions,x}.json",
        "mycmd .cursor/perm*",
        "mycmd './**/.cursor/permissions.json'",
        "mycmd .claude/*/x.sh",
        "mycmd .claude/h?oks/x.sh",
        "rm -rf .cur*",
        "mycmd {a,{b,{c,{d,{e,{f,.copilot}}}}}}",
    ] {
        assert!(held(text), "{text}");
    }
    let many = (0..120).map(|number| format!("a{number}")).collect::<Vec<_>>().join(",");
    assert!(held(&format!("mycmd {{{many},.copilot}}")));
}
