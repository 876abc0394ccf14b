//! The same mistake has the same exit code in every command, with a running server and without one: 2 for usage, bad
//! input and names that are not found; 1 for what failed; 3 and 4 for decisions alone.

use clap::CommandFactory;

use crate::house::House;
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// A command line with a mistake, and its code.
const MISTAKES: &[(&str, i32)] = &[
    // Usage.
    ("nosuch", 2),
    ("explain", 2),
    ("explain gw:x --time nosuch", 2),
    ("tokens issue", 2),
    ("grants issue gw:x", 2),
    ("doctor --listen nosuch", 2),
    ("serve --listen nosuch", 2),
    ("tools scope gw:x nosuch", 2),
    ("approvals approve x --scope nosuch", 2),
    ("audit export --format nosuch", 2),
    ("audit stats --since nosuch", 2),
    ("vault rotate-key --nosuch", 2),
    ("vault status --nosuch", 2),
    ("completions nosuch", 2),
    // Bad input.
    ("explain gw:x --args {", 2),
    ("explain gw:x --seen nosuch", 2),
    ("allow bad", 2),
    ("allow --shell *", 2),
    ("disallow bad", 2),
    ("servers add bad:name --url https://a.example", 2),
    ("servers add x", 2),
    ("settings set auto_run.mod x", 2),
    ("settings set auto_run.mode nosuch", 2),
    ("admin set nosuch", 2),
    ("policy confirm nosuch", 2),
    ("grants issue bad --calls 1", 2),
    ("audit query --decision nosuch", 2),
    ("audit tail --decision nosuch", 2),
    ("roles set nosuch", 2),
    ("modes set nosuch --extends alsonot", 2),
    // Names that are not found.
    ("explain gw:x --as nosuch", 2),
    ("describe --mode nosuch", 2),
    ("disallow gw:nosuch", 2),
    ("unblock gw:nosuch", 2),
    ("servers show nosuch", 2),
    ("servers remove nosuch", 2),
    ("servers enable nosuch", 2),
    ("servers disable nosuch", 2),
    ("servers reload nosuch", 2),
    ("tools list nosuch", 2),
    ("tools accept nosuch", 2),
    ("tools diff nosuch", 2),
    ("modes show nosuch", 2),
    ("modes delete nosuch", 2),
    ("modes suggest nosuch", 2),
    ("modes template nosuch", 2),
    ("sessions mode nosuch x", 2),
    ("roles show nosuch", 2),
    ("rules remove nosuch", 2),
    ("settings get nosuch", 2),
    ("settings unset nosuch", 2),
    ("policy diff 99", 2),
    ("policy rollback 99", 2),
    ("tokens issue --role nosuch", 2),
    ("tokens rotate nosuch", 2),
    ("tokens revoke nosuch", 2),
    ("grants issue gw:x --calls 1 --token nosuch", 2),
    ("grants revoke nosuch", 2),
    ("approvals show nosuch", 2),
    ("approvals approve nosuch", 2),
    ("approvals deny nosuch", 2),
    ("approvals link nosuch", 2),
    ("stdio --mode nosuch", 2),
    ("stdio --server nosuch", 2),
    // Files and directories that are not there.
    ("explain gw:x --workspace /nosuch", 2),
    ("tokens issue --person --workspace /nosuch", 2),
    ("explain gw:x --catalog /nosuch", 2),
    ("explain gw:x --data-dir /nosuch", 2),
    ("explain gw:x --config /nosuch.toml", 2),
    ("allow gw:x --config /nosuch.toml", 2),
    ("lint /nosuch.toml", 2),
    ("lint --config /nosuch.toml", 2),
    ("serve --config /nosuch.toml", 2),
    ("modes validate /nosuch.yaml", 2),
    ("rules add x /nosuch.cedar", 2),
    ("rules check /nosuch.cedar", 2),
    ("trust /nosuch", 2),
    ("trust --remove /nosuch", 2),
    // Decisions: what a call with such a mode or role would meet.
    ("explain gw:x --mode nosuch", 3),
    ("explain gw:x --role nosuch", 3),
    ("explain nosuch:tool", 4),
];

/// Commands that take no name or value that could be wrong, or names that need not exist yet (GATE-9).
const NOTHING_TO_MISTAKE: &[&str] = &[
    "admin show",
    "allowlist",
    "approvals list",
    "approvals stats",
    "approvals watch",
    "audit verify",
    "demo-server",
    "grants list",
    "man",
    "modes list",
    "policy history",
    "reload",
    "roles list",
    "rules list",
    "servers list",
    "sessions list",
    "tokens list",
    "tools disable",
    "tools enable",
];

fn differing(house: &House) -> Vec<String> {
    let mut wrong = Vec::new();
    for (line, code) in MISTAKES {
        let ran = house.run(&line.split(' ').collect::<Vec<_>>());
        if ran.code != *code {
            wrong.push(format!("`{line}` exits with {} instead of {code}: {}{}", ran.code, ran.out, ran.err));
        }
        if *code == 2 && ran.err.trim().is_empty() && ran.out.trim().is_empty() {
            wrong.push(format!("`{line}` does not say what is wrong"));
        }
    }
    wrong
}

#[test]
fn the_same_mistake_has_the_same_exit_code_with_a_server_and_without() {
    let house = House::new();
    house.write(CONFIG, "[servers.gw]\ncommand = \"sh\"\n");
    assert_eq!(house.run(&["allow", "gw:other"]).code, 0);
    assert_eq!(differing(&house), Vec::<String>::new());
    assert_eq!(house.run(&["reload"]).code, 1, "no server runs: that is no mistake of the command line");
    let house = House::new();
    house.write(CONFIG, "[servers.gw]\ncommand = \"sh\"\n");
    let server = Server::start(&house);
    assert_eq!(differing(&house), Vec::<String>::new());
    assert_eq!(house.run(&["reload"]).code, 0);
    server.stop();
}

#[test]
fn every_command_is_in_the_table_of_mistakes() {
    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        let mut below = command.get_subcommands().filter(|one| one.get_name() != "help").peekable();
        if below.peek().is_none() {
            found.push(path.trim().to_owned());
        }
        below.for_each(|one| leaves(one, &format!("{path} {}", one.get_name()), found));
    }
    let mut found = Vec::new();
    leaves(&toolwarden_cli::Cli::command(), "", &mut found);
    assert!(found.len() > 40, "{found:?}");
    let is_known = |command: &&String| {
        NOTHING_TO_MISTAKE.contains(&command.as_str())
            || MISTAKES.iter().any(|(line, _)| line == command || line.starts_with(&format!("{command} ")))
    };
    let missing: Vec<_> = found.iter().filter(|command| !is_known(command)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let gone: Vec<_> =
        NOTHING_TO_MISTAKE.iter().filter(|known| !found.iter().any(|command| command == *known)).collect();
    assert!(gone.is_empty(), "{gone:?}");
}
