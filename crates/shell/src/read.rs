//! Walks the syntax tree of a line and collects every simple command in it.
//! Takes the line; gives commands, redirections and obstacles. Each kind of node that may occur is named in
//! this file, `redirections`, `compounds` or `expansions`; any other kind, token or arrangement refuses the
//! line (fail closed).

use crate::line::{Obstacle, Redirection, ShellLine, SimpleCommand, Unparsable, Word};
use crate::obstacles;
use crate::readers::{is_loop_variable, is_one_operand, is_substituted, opens_files};
use crate::redirections;
use crate::tree::{Node, Tree};
use crate::words;
use crate::wrappers::program;

/// Reads a command line.
pub fn read(line: &str) -> Result<ShellLine, Unparsable> {
    let tree = Tree::parse(line)?;
    let mut reader = Reader::default();
    reader.statements(tree.root()?)?;
    reader.finish(line)
}

/// Collects what the walk finds. The other walkers add to it.
#[derive(Debug, Default)]
pub(super) struct Reader {
    commands: Vec<SimpleCommand>,
    redirections: Vec<Redirection>,
    other_words: Vec<Word>,
    variables: Vec<(String, Word)>,
    pub(super) loop_variables: Vec<String>,
    obstacle: Option<Obstacle>,
    /// How many pipes and redirections feed the standard input of the node that is being read.
    pub(super) fed: usize,
    /// How many substitutions enclose the node that is being read.
    pub(super) substitutions: usize,
}

/// Words that only a parser that lost its way would take for a command name.
const RESERVED: [&str; 20] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select",
    "function", "[[", "]]", "!", "{", "}",
];

impl Reader {
    /// The whole line can never be auto-allowed; the first reason is kept.
    pub(super) fn object(&mut self, obstacle: Obstacle) {
        self.obstacle.get_or_insert(obstacle);
    }

    /// A word that is no argument, but may become one by the variable of this name.
    pub(super) fn keep_word(&mut self, name: &str, word: Word) {
        self.variables.push((name.to_owned(), word.clone()));
        self.other_words.push(word);
    }

    /// A value of a variable that is put together from others.
    pub(super) fn note_value(&mut self, name: &str, word: Word) {
        self.variables.push((name.to_owned(), word));
    }

    pub(super) fn redirect_line(&mut self, redirection: Redirection) {
        self.redirections.push(redirection);
    }

    /// Reads a node that holds statements: the program, a group, a loop, a clause.
    pub(super) fn statements(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let fed = self.fed;
        let mut previous: Option<Node<'_>> = None;
        for child in node.children() {
            if child.is_named() {
                self.statement(child)?;
            } else {
                check_token(node, child, previous)?;
                if matches!(child.kind(), "|" | "|&" | ">(") {
                    self.fed = self.fed.saturating_add(1);
                }
            }
            previous = Some(child);
        }
        self.fed = fed;
        Ok(())
    }

    pub(super) fn statement(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        match node.kind() {
            "command" => {
                let command = self.command(node)?;
                self.commands.push(command);
                Ok(())
            }
            "list" | "pipeline" | "subshell" | "do_group" | "if_statement" | "elif_clause" | "else_clause"
            | "while_statement" => self.statements(node),
            "negated_command" => {
                check_negation(node)?;
                self.statements(node)
            }
            "compound_statement" if node.text().starts_with("((") => self.arithmetic_statement(node),
            // `{a,b} x; }` is a word and an error to a shell, a group to the parser.
            "compound_statement" => match node.text().chars().nth(1) {
                Some(' ' | '\t' | '\n') => self.statements(node),
                _ => Err(Unparsable::Syntax),
            },
            "redirected_statement" => self.redirected(node),
            "variable_assignment" => {
                self.object(Obstacle::Assignment);
                self.assignment(node)
            }
            "variable_assignments" => node.children().try_for_each(|child| self.statement(child)),
            "declaration_command" | "unset_command" => self.declaration(node),
            "test_command" => self.test(node),
            "for_statement" => self.for_loop(node),
            "c_style_for_statement" => self.c_style_loop(node),
            "case_statement" => self.case(node),
            "function_definition" => self.function(node),
            "comment" => self.comment(node),
            "file_redirect" => self.lonely_redirection(node),
            _ => Err(Unparsable::Ambiguous("a construct that is not understood")),
        }
    }

    /// Reads one simple command without storing it, so that a redirected statement can add to it.
    pub(super) fn command(&mut self, node: Node<'_>) -> Result<SimpleCommand, Unparsable> {
        let mut command = empty_command(node.text());
        let mut reached: Option<usize> = None;
        for child in node.children() {
            // Two words without a blank between them are one word to a shell.
            let glued = reached == Some(child.start())
                && child.kind() != "file_redirect"
                && child.kind() != "herestring_redirect";
            if glued {
                return Err(Unparsable::Ambiguous("words without a blank between them"));
            }
            reached = Some(child.end());
            match child.kind() {
                "variable_assignment" => {
                    command.obstacle.get_or_insert(Obstacle::Assignment);
                    self.assignment(child)?;
                }
                "command_name" => self.command_name(child, &mut command)?,
                "file_redirect" => self.file_redirect(child, Some(&mut command))?,
                "herestring_redirect" => self.here_string(child)?,
                _ => {
                    let word = self.word(child)?;
                    command.arguments.push(word);
                }
            }
        }
        check_prefix_word(node, &command)?;
        let is_fed = self.fed > 0 || node.children().any(redirections::feeds);
        if is_fed && command.obstacle.is_none() {
            command.obstacle = obstacles::obeys_input(&command);
        }
        Ok(command)
    }

    fn command_name(&mut self, node: Node<'_>, command: &mut SimpleCommand) -> Result<(), Unparsable> {
        let raw = node.text();
        // `name[` starts a subscript that a shell reads up to its `]`, across blanks and operators.
        if RESERVED.contains(&raw) || (raw.contains('[') && raw != "[") {
            return Err(Unparsable::Syntax);
        }
        let mut parts = node.children();
        let (Some(only), None) = (parts.next(), parts.next()) else { return Err(Unparsable::Syntax) };
        command.command_word = Some(self.word(only)?);
        if only.kind() == "word" && words::is_plain_name(raw) {
            command.name = Some(raw.to_owned());
        }
        Ok(())
    }

    /// Adds what only the finished command tells, then spreads the line's own reason.
    fn finish(mut self, line: &str) -> Result<ShellLine, Unparsable> {
        if self.commands.is_empty() {
            return Err(Unparsable::NoCommand);
        }
        // A loop hands what a command prints to its commands by a variable.
        if self.other_words.iter().any(is_substituted) {
            self.object(Obstacle::TargetNotKnown("a variable".to_owned()));
        }
        let changes_directory = self.commands.iter().any(obstacles::changes_directory);
        for command in &mut self.commands {
            if command.obstacle.is_none() {
                command.obstacle = obstacles::obstacle(command);
            }
            let is_split =
                |word: &Word| is_loop_variable(word) && !is_one_operand(word, &self.loop_variables, &self.other_words);
            let name = command.name.as_deref().filter(|name| opens_files(&program(name)));
            if let Some(name) = name.filter(|_| command.obstacle.is_none() && command.arguments.iter().any(is_split)) {
                command.obstacle = Some(Obstacle::TargetNotKnown(name.to_owned()));
            }
            if command.obstacle.is_none() && changes_directory && obstacles::is_relative(command) {
                command.obstacle = Some(Obstacle::RelativeAfterDirectoryChange);
            }
            if command.obstacle.is_none() {
                command.obstacle.clone_from(&self.obstacle);
            }
        }
        Ok(ShellLine {
            source: line.to_owned(),
            commands: self.commands,
            redirections: self.redirections,
            other_words: self.other_words,
            variables: self.variables,
            changes_directory,
            obstacle: self.obstacle,
        })
    }

    pub(super) fn push(&mut self, command: SimpleCommand) {
        self.commands.push(command);
    }
}

pub(super) fn empty_command(text: &str) -> SimpleCommand {
    SimpleCommand {
        text: one_line(text),
        name: None,
        command_word: None,
        arguments: Vec::new(),
        redirections: Vec::new(),
        obstacle: None,
    }
}

pub(super) fn one_line(text: &str) -> String {
    text.replace("\\\n", " ").replace(['\n', '\t'], " ")
}

/// Tokens between statements. The parser forgives misplaced ones that a shell does not.
fn check_token(parent: Node<'_>, token: Node<'_>, previous: Option<Node<'_>>) -> Result<(), Unparsable> {
    let after_statement = previous.is_some_and(Node::is_named);
    let fits = match token.kind() {
        // `;&` and `;;` are tokens of their own, in `case` only.
        ";" => after_statement && !matches!(following(token), Some(';' | '&')),
        "&" => after_statement,
        "&&" | "||" | "|" | "|&" => matches!(parent.kind(), "list" | "pipeline"),
        "(" | ")" | "{" | "}" | "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "!"
        | "$(" | "`" | "<(" | ">(" => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(Unparsable::Syntax) }
}

fn following(token: Node<'_>) -> Option<char> {
    token.between(token.end(), token.source().len()).chars().next()
}

/// `time` and `coproc` are words of the grammar that the parser takes for commands; what follows them may be
/// any statement, so only a simple command is accepted behind `time`, and nothing behind `coproc`.
fn check_prefix_word(node: Node<'_>, command: &SimpleCommand) -> Result<(), Unparsable> {
    match command.name.as_deref() {
        Some("time") => {}
        Some("coproc") => return Err(Unparsable::Ambiguous("`coproc`")),
        _ => return Ok(()),
    }
    let mut words = node.children().skip(1).map(Node::text).skip_while(|word| word.starts_with('-'));
    match words.next() {
        Some("time" | "coproc") => Err(Unparsable::Syntax),
        Some(word) if !RESERVED.contains(&word) && !word.contains('[') => Ok(()),
        _ => Err(Unparsable::Syntax),
    }
}

/// A shell takes `!` as a word of its own (`!x` is a name, or the history) and only before a whole pipeline.
fn check_negation(node: Node<'_>) -> Result<(), Unparsable> {
    let before = node.between(0, node.start()).trim_end_matches([' ', '\t', '\n', '\\']);
    let in_pipeline = before.ends_with("|&") || (before.ends_with('|') && !before.ends_with("||"));
    if in_pipeline || !node.text().starts_with("! ") { Err(Unparsable::Syntax) } else { Ok(()) }
}
