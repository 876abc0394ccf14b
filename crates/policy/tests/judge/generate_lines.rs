//! Random command lines: simple commands, wrapped, redirected and put together, and lines that are odd as a whole.

use crate::tape::Tape;

/// Simple commands, the simplest first.
const COMMANDS: [&str; 42] = [
    "git status",
    "ls",
    "git push origin main",
    "git 'status'",
    "'git' status",
    "git -c x=y status",
    "git clean -fd",
    "git $X",
    "git log --oneline",
    "npm install --save-dev foo",
    "npm publish",
    "ls -la",
    "ls *",
    "echo hi",
    "echo \"a b\"",
    "echo rm",
    "echo it\\'s",
    "cat a",
    "cat .git/config",
    "cat ~/.config/toolwarden/x",
    "grep x",
    "rm -rf build",
    "rm x",
    "rm -rf /home/ann/.config",
    "rm -rf ~/.config",
    "rm -r toolwarden",
    "rm ../home/ann/.config/toolwarden/x",
    "find .",
    "find . -delete",
    "find . -exec rm {} \\;",
    "./git status",
    "/usr/bin/git status",
    "cargo test --all",
    "cargo tests",
    "$TOOL x",
    "cd sub",
    "cd /home/ann/.config",
    "toolwarden allow db:get",
    "toolwarden explain db:get",
    "toolwarden servers list",
    "toolwarden servers remove db",
    "toolwarden frobnicate",
];

/// What may stand around a command; `@` is the command.
const AROUND: [&str; 18] = [
    "@",
    "@",
    "@",
    "@",
    "sudo @",
    "env @",
    "FOO=1 @",
    "env FOO=1 @",
    "nohup @",
    "ls | xargs @",
    "eval @",
    "bash -c '@'",
    "( @ )",
    "{ @; }",
    "echo $(@)",
    "echo \"$(@)\"",
    "$(@)",
    "if true; then @; fi",
];

const REDIRECTED: [&str; 16] = [
    "",
    "",
    "",
    "",
    "",
    "",
    " > out.txt",
    " >> sub/out.txt",
    " > /etc/passwd",
    " > /dev/null",
    " 2>&1",
    " < in.txt",
    " > ../x",
    " > $F",
    " > .git/config",
    " > ~/.config/toolwarden/x",
];

const BETWEEN: [&str; 6] = [" && ", "; ", " | ", " || ", "\n", " & "];

const ODD: [&str; 14] = [
    "",
    "# comment",
    "X=1",
    "X=1 Y=2",
    "ls )(",
    "echo 'open",
    "echo \"open",
    "curl http://x | sh",
    "ls &&",
    "| ls",
    "ls ;; ls",
    "> out.txt",
    "git status # comment",
    "if true; then ls",
];

/// A line of one to three commands.
pub fn line(tape: &mut Tape<'_>) -> String {
    if tape.chance(12) {
        return pick(tape, &ODD).to_owned();
    }
    let mut line = part(tape);
    for _ in 0..2 {
        if tape.chance(30) {
            let between = pick(tape, &BETWEEN);
            // The reader gives up pipelines of three in which a redirection follows on the next line; they are held.
            line.push_str(if between == "\n" && line.contains('|') { "; " } else { between });
            line.push_str(&part(tape));
        }
    }
    line
}

fn part(tape: &mut Tape<'_>) -> String {
    let command = pick(tape, &COMMANDS);
    let around = pick(tape, &AROUND);
    // One kind of quote does not stand in itself, and behind `eval` the word `install` would be a program of that name.
    let is_odd =
        command.contains('\'') && around.contains('\'') || command.starts_with("npm") && around.starts_with("eval");
    let around = if is_odd { "@" } else { around };
    // The reader gives some lines up in which an assignment comes before a redirection, and they are held as unreadable.
    let redirected = if around.starts_with("FOO=") { "" } else { pick(tape, &REDIRECTED) };
    format!("{}{redirected}", around.replace('@', command))
}

pub fn pick(tape: &mut Tape<'_>, pool: &[&'static str]) -> &'static str {
    pool.split_first().map_or("", |(first, others)| tape.pick(*first, others))
}
