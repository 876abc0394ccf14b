//! Looks through wrappers and inner shell text: everything a line might run.
//! Takes a read line; gives each possible invocation, or `Unknown` where the command cannot be known.
//! Used to find what must be held, never to allow. Work is bounded; beyond the bound all is unknown.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::line::{Obstacle, Redirection, ShellLine, SimpleCommand, Word};
use crate::read::read;
use crate::variables::{Substituted, substituted};
use crate::work;
use crate::wrappers::{self, COMMAND_OPTIONS, Reach, basename, program};

const DEEPEST_TEXT: usize = 4;
const MOST_INVOCATIONS: usize = 1_000;
/// How much inner text is read in one line, counted as often as it is read (WORK-1).
const MOST_INNER_BYTES: usize = 64 * 1024;
/// Longest argument list of a wrapper that is looked through.
const MOST_WORDS: usize = 200;

/// Something a line might run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reached<'a> {
    Invocation(Invocation<'a>),
    /// A redirection inside text that is given to a shell.
    Redirection(&'a Redirection),
    /// The command word or the inner text cannot be known.
    Unknown {
        text: &'a str,
    },
}

/// A possible command: its unquoted word and its arguments, inside the simple command `text`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Invocation<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: &'a [Word],
    pub(super) text: &'a str,
}

/// What `command_names` holds when the line may also run something that cannot be known.
const UNKNOWN_NAME: &str = "?";

/// The names of all commands a line might run, also through wrappers and inner text, without directories. The
/// set holds `?` as well when that is not all: a command word or inner text cannot be known, or the line has
/// too many parts to be looked through.
pub fn command_names(line: &ShellLine) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    visit(line, &mut |reached| {
        match reached {
            Reached::Invocation(invocation) => {
                names.insert(basename(invocation.name).to_owned());
            }
            Reached::Unknown { .. } => {
                names.insert(UNKNOWN_NAME.to_owned());
            }
            Reached::Redirection(_) => {}
        }
        ControlFlow::Continue(())
    });
    // Options that execute, inline code and variables that name programs run what no word is.
    let executes = |command: &SimpleCommand| {
        let is_looked_through = command.name.as_deref().is_some_and(|name| wrappers::is_looked_through(&program(name)));
        matches!(command.obstacle, Some(Obstacle::Executes { .. } | Obstacle::Assignment)) && !is_looked_through
    };
    if line.commands.iter().any(executes) {
        names.insert(UNKNOWN_NAME.to_owned());
    }
    names
}

/// Shows each possible invocation to `see`, which may stop the search.
pub(super) fn visit(line: &ShellLine, see: &mut dyn FnMut(Reached<'_>) -> ControlFlow<()>) {
    let mut search = Search { see, seen: 0, read: 0 };
    // The outcome only says whether `see` stopped early; it keeps its own result.
    let _ = search.line(line, 0).is_continue().then(|| match substituted(line) {
        Substituted::Line(known) => search.line(&known, 0),
        Substituted::Same | Substituted::TooMuch => ControlFlow::Continue(()),
    });
}

struct Search<'f> {
    see: &'f mut dyn FnMut(Reached<'_>) -> ControlFlow<()>,
    seen: usize,
    /// Bytes of inner text read so far.
    read: usize,
}

impl Search<'_> {
    fn line(&mut self, line: &ShellLine, depth: usize) -> ControlFlow<()> {
        line.commands.iter().try_for_each(|command| self.command(command, depth))
    }

    fn command(&mut self, command: &SimpleCommand, depth: usize) -> ControlFlow<()> {
        let Some(word) = &command.command_word else { return ControlFlow::Continue(()) };
        self.words(word, &command.arguments, &command.text, depth)
    }

    /// A word and what follows it, taken as a command.
    fn words(&mut self, name: &Word, arguments: &[Word], text: &str, depth: usize) -> ControlFlow<()> {
        let mut name = name;
        let mut arguments = arguments;
        loop {
            self.invocation(name, arguments, text)?;
            let program = program(&name.text);
            let runs_others = wrappers::is_looked_through(&program);
            if runs_others && arguments.len() > MOST_WORDS {
                return (self.see)(Reached::Unknown { text });
            }
            match direct_command(&program, arguments) {
                Some((next, rest)) => (name, arguments) = (next, rest),
                None => return self.look_through(&program, arguments, text, depth),
            }
        }
    }

    fn invocation(&mut self, name: &Word, arguments: &[Word], text: &str) -> ControlFlow<()> {
        self.seen = self.seen.saturating_add(1);
        work::took(1);
        if !name.literal || self.seen > MOST_INVOCATIONS {
            (self.see)(Reached::Unknown { text })?;
            return if self.seen > MOST_INVOCATIONS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        (self.see)(Reached::Invocation(Invocation { name: &name.text, arguments, text }))
    }

    fn look_through(&mut self, program: &str, arguments: &[Word], text: &str, depth: usize) -> ControlFlow<()> {
        match wrappers::reach(program) {
            Some(Reach::Words) => {
                self.tails(arguments, text, depth)?;
                self.texts(arguments, text, depth, Doubt::Unknown)
            }
            Some(Reach::AfterOption) => self.after_options(program, arguments, text, depth),
            Some(Reach::Text) => {
                self.tails(arguments, text, depth)?;
                self.texts(arguments, text, depth, Doubt::Ignored)?;
                arguments.iter().try_for_each(|word| self.inner_text(word, text, depth))
            }
            Some(Reach::Shell) => self.shell(arguments, text, depth),
            None if wrappers::starts_programs(program) => self.open_runner(program, arguments, text, depth),
            None => ControlFlow::Continue(()),
        }
    }

    /// `find . -exec a {} ; -exec b {} ;`: the word behind each such option is a command.
    fn after_options(&mut self, program: &str, arguments: &[Word], text: &str, depth: usize) -> ControlFlow<()> {
        for (position, option) in arguments.iter().enumerate() {
            let option = option.text.as_str();
            // `fd -xrm`, `fd --exec=rm`; `find` has `-xdev` instead.
            let is_glued =
                program.starts_with("fd") && ["-x", "-X", "--exec"].iter().any(|start| option.starts_with(start));
            if is_glued && !COMMAND_OPTIONS.contains(&option) {
                (self.see)(Reached::Unknown { text })?;
            }
            let behind = arguments.get(position.saturating_add(1)..).and_then(<[Word]>::split_first);
            let Some((name, rest)) = behind.filter(|_| COMMAND_OPTIONS.contains(&option)) else { continue };
            if depth >= DEEPEST_TEXT {
                return (self.see)(Reached::Unknown { text });
            }
            self.words(name, rest, text, depth.saturating_add(1))?;
        }
        ControlFlow::Continue(())
    }

    /// Each tail of the words may be the command.
    fn tails(&mut self, words: &[Word], text: &str, depth: usize) -> ControlFlow<()> {
        for (position, word) in words.iter().enumerate() {
            // `env -Srm x`
            let splits = word.literal && (word.text.starts_with("-S") || word.text.starts_with("--split-string="));
            for glued in glued_values(&word.text).into_iter().filter(|glued| splits && !glued.contains(' ')) {
                let rest = words.get(position.saturating_add(1)..).unwrap_or(&[]);
                self.invocation(&Word::literal(glued), rest, text)?;
            }
            let rest = words.get(position.saturating_add(1)..).unwrap_or(&[]);
            if word.literal && (word.text.starts_with('-') || is_assignment(&word.text) || word.text.is_empty()) {
                self.option_value(word, rest, text)?;
                continue;
            }
            self.invocation(word, rest, text)?;
            // Tails of tails are tails already; only inner text has to be looked at once more.
            let program = program(&word.text);
            match wrappers::reach(&program) {
                Some(Reach::Shell) => self.shell(rest, text, depth)?,
                Some(Reach::Text) => rest.iter().try_for_each(|word| self.inner_text(word, text, depth))?,
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    /// An option's value may be a program as well: `docker run --entrypoint=dd image if=/dev/zero`. Its arguments
    /// begin behind some later word.
    fn option_value(&mut self, option: &Word, rest: &[Word], text: &str) -> ControlFlow<()> {
        let (name, value, rest) = match option.text.split_once('=') {
            Some((name, value)) if name.starts_with('-') => (name, value, rest),
            _ => match rest.split_first() {
                Some((value, rest)) if option.text == "--entrypoint" => {
                    (option.text.as_str(), value.text.as_str(), rest)
                }
                _ => return ControlFlow::Continue(()),
            },
        };
        if value.is_empty() || value.contains(char::is_whitespace) {
            return ControlFlow::Continue(());
        }
        let value = Word::literal(value);
        self.invocation(&value, rest, text)?;
        let later = if name == "--entrypoint" { rest } else { &[] };
        (1..=later.len())
            .filter_map(|start| later.get(start..))
            .try_for_each(|rest| self.invocation(&value, rest, text))
    }

    /// Words with a blank may be shell text: `env -S 'rm x'`, `env '-Srm x'`, `flock f -c 'rm x'`.
    fn texts(&mut self, words: &[Word], text: &str, depth: usize, doubt: Doubt) -> ControlFlow<()> {
        for word in words.iter().filter(|word| word.literal && word.text.contains([' ', '\t', '\n'])) {
            let inner = word.text.as_str();
            let texts = if inner.starts_with('-') { glued_values(inner) } else { vec![inner] };
            for inner in texts.into_iter().map(str::trim).filter(|inner| !inner.is_empty()) {
                self.spend(inner, text)?;
                if doubt == Doubt::Unknown || read(inner).is_ok() {
                    self.inner_text(&Word::literal(inner), text, depth)?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// `sh -c text`; a script file counts by its name; standard input is unknown.
    fn shell(&mut self, arguments: &[Word], text: &str, depth: usize) -> ControlFlow<()> {
        let mut words = arguments.iter();
        let mut takes_text = false;
        let mut positional: Vec<&Word> = Vec::new();
        while let Some(word) = words.next() {
            let option = word.text.as_str();
            if !word.literal {
                return (self.see)(Reached::Unknown { text });
            }
            match option {
                "--version" | "--help" => return ControlFlow::Continue(()),
                "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                    words.next();
                }
                _ if is_text_option(option) => takes_text = true,
                _ if option.starts_with(['-', '+']) && positional.is_empty() => {}
                _ => positional.push(word),
            }
        }
        match positional.first() {
            None => (self.see)(Reached::Unknown { text }),
            Some(script) if !takes_text => self.invocation(script, &[], text),
            Some(_) => positional.iter().try_for_each(|word| self.inner_text(word, text, depth)),
        }
    }

    /// Counts text that is about to be read. Over the budget nothing more is, and the rest is unknown.
    fn spend(&mut self, inner: &str, text: &str) -> ControlFlow<()> {
        self.read = self.read.saturating_add(inner.len());
        if self.read <= MOST_INNER_BYTES {
            return ControlFlow::Continue(());
        }
        (self.see)(Reached::Unknown { text })?;
        ControlFlow::Break(())
    }

    /// An argument that is shell text.
    fn inner_text(&mut self, word: &Word, text: &str, depth: usize) -> ControlFlow<()> {
        if !word.literal || depth >= DEEPEST_TEXT {
            return (self.see)(Reached::Unknown { text });
        }
        self.seen = self.seen.saturating_add(1);
        // `alias name=text`
        let inner = match word.text.split_once('=') {
            Some((name, value)) if is_assignment(&word.text) && !name.is_empty() => value,
            _ => word.text.as_str(),
        };
        self.spend(inner, text)?;
        match read(inner) {
            Ok(line) => {
                line.all_redirections().try_for_each(|redirection| (self.see)(Reached::Redirection(redirection)))?;
                line.commands.iter().try_for_each(|command| self.inner_command(command, text, depth))?;
                match substituted(&line) {
                    Substituted::Line(known) => {
                        known
                            .all_redirections()
                            .try_for_each(|redirection| (self.see)(Reached::Redirection(redirection)))?;
                        known.commands.iter().try_for_each(|command| self.inner_command(command, text, depth))
                    }
                    Substituted::Same => ControlFlow::Continue(()),
                    Substituted::TooMuch => (self.see)(Reached::Unknown { text }),
                }
            }
            Err(_) if inner.contains(|character: char| !is_inert(character)) => (self.see)(Reached::Unknown { text }),
            Err(_) => ControlFlow::Continue(()),
        }
    }

    fn inner_command(&mut self, command: &SimpleCommand, text: &str, depth: usize) -> ControlFlow<()> {
        let Some(word) = &command.command_word else { return ControlFlow::Continue(()) };
        self.words(word, &command.arguments, text, depth.saturating_add(1))
    }

    fn open_runner(&mut self, program: &str, arguments: &[Word], text: &str, depth: usize) -> ControlFlow<()> {
        let rest = if matches!(program, "npx" | "bunx" | "uvx") {
            Some(arguments)
        } else {
            position_after(arguments, &["exec", "run", "x", "dlx", "shell", "--"])
        };
        // An expanded argument of these is far more often data than a command, and they are not wrappers.
        let known: Vec<Word> = rest.unwrap_or(&[]).iter().filter(|word| word.literal).cloned().collect();
        self.tails(&known, text, depth)?;
        let takes_text = listed_option(arguments, &["-c", "--call", "--shell-mode"]);
        if takes_text && arguments.iter().any(|word| !word.literal) {
            (self.see)(Reached::Unknown { text })?;
        }
        self.texts(arguments, text, depth, if takes_text { Doubt::Unknown } else { Doubt::Ignored })
    }
}

/// What becomes of a word with blanks that cannot be read as shell text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doubt {
    /// It may run anything.
    Unknown,
    /// It is data.
    Ignored,
}

/// What may be glued to an option: behind `=`, or behind the first letters of a bundle.
fn glued_values(option: &str) -> Vec<&str> {
    if option.starts_with("--") {
        return option.split_once('=').map(|(_, value)| value).into_iter().collect();
    }
    (2..=4).filter_map(|start| option.get(start..)).filter(|value| !value.is_empty()).collect()
}

fn listed_option(arguments: &[Word], options: &[&str]) -> bool {
    arguments.iter().any(|word| options.iter().any(|option| word.text.starts_with(option)))
}

/// `sudo rm x`: the command is certain when nothing but assignments stands before it.
fn direct_command<'a>(program: &str, arguments: &'a [Word]) -> Option<(&'a Word, &'a [Word])> {
    if !wrappers::takes_command_first(program) {
        return None;
    }
    let start = arguments.iter().position(|word| !word.literal || !is_assignment(&word.text))?;
    let (first, rest) = arguments.get(start..)?.split_first()?;
    (first.literal && !first.text.starts_with('-')).then_some((first, rest))
}

fn position_after<'a>(arguments: &'a [Word], options: &[&str]) -> Option<&'a [Word]> {
    let position = arguments.iter().position(|word| options.contains(&word.text.as_str()))?;
    arguments.get(position.saturating_add(1)..)
}

/// `-c`, `-lc`, `--command`, `-Command`, `/c`
fn is_text_option(option: &str) -> bool {
    let lower = option.to_ascii_lowercase();
    if lower.starts_with("--") {
        return lower.starts_with("--command") || lower.starts_with("--eval");
    }
    lower == "/c" || lower == "/k" || (lower.starts_with('-') && lower.contains('c'))
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
    })
}

/// Characters that cannot make a text run anything.
fn is_inert(character: char) -> bool {
    character.is_ascii_alphanumeric()
        || matches!(character, '-' | '_' | '.' | '/' | ':' | '@' | ',' | '=' | '+' | '{' | '}' | '%')
}
