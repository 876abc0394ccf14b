//! Reads loops, cases, functions, declarations, tests, arithmetic and comments.
//! Takes their nodes; walks every command inside and records why the line may not be auto-allowed where
//! shells differ, variables change or text is evaluated. Refuses tests that a shell would read as a list.

use crate::expansions;
use crate::line::{Obstacle, Unparsable, Word};
use crate::read::{Reader, empty_command};
use crate::tree::Node;

/// Loop variables that no program or shell gives a meaning to. Any other loop variable counts as an
/// assignment: `for PATH in ..`, `for path in ..` (zsh), `for http_proxy in ..`.
const LOOP_VARIABLES: [&str; 13] =
    ["file", "dir", "item", "line", "num", "idx", "pkg", "word", "arg", "entry", "crate", "branch", "commit"];

impl Reader {
    /// `declare`, `export`, `unset` and relatives have nodes of their own; they always change the shell.
    pub(super) fn declaration(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let mut command = empty_command(node.text());
        for child in node.children() {
            match child.kind() {
                "variable_assignment" => {
                    self.assignment(child)?;
                    command.arguments.push(Word::raw(child.text()));
                }
                "variable_name" => command.arguments.push(Word::literal(child.text())),
                name if !child.is_named() && command.name.is_none() => {
                    command.name = Some(name.to_owned());
                    command.command_word = Some(Word::literal(name));
                }
                _ => {
                    let word = self.word(child)?;
                    command.arguments.push(word);
                }
            }
        }
        self.push(command);
        Ok(())
    }

    pub(super) fn for_loop(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let mut variable = "";
        for child in node.children() {
            match child.kind() {
                "for" | "in" | ";" => {}
                "select" => self.object(Obstacle::Construct("`select`")),
                "variable_name" => {
                    let name = child.text();
                    variable = name;
                    self.loop_variables.push(name.to_owned());
                    let is_harmless = LOOP_VARIABLES.contains(&name)
                        || (name.len() == 1 && name.chars().all(|letter| letter.is_ascii_lowercase()));
                    if !is_harmless {
                        self.object(Obstacle::Assignment);
                    }
                }
                "do_group" | "compound_statement" => self.statement(child)?,
                _ => {
                    let word = self.word(child)?;
                    self.keep_word(variable, word);
                }
            }
        }
        Ok(())
    }

    pub(super) fn case(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        self.object(Obstacle::Construct("`case`"));
        for child in node.children() {
            match child.kind() {
                "case" | "in" | "esac" | "|" | "(" | ")" | ";;" | ";&" | ";;&" | ";" | "&" if !child.is_named() => {}
                "case_item" => self.case(child)?,
                kind if expansions::is_word(kind) => {
                    self.word(child)?;
                }
                _ => self.statement(child)?,
            }
        }
        Ok(())
    }

    pub(super) fn function(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        self.object(Obstacle::FunctionDefinition);
        for child in node.children() {
            match child.kind() {
                "function" | "(" | ")" => {}
                "word" => {
                    self.word(child)?;
                }
                "file_redirect" => self.file_redirect(child, None)?,
                "herestring_redirect" => self.here_string(child)?,
                _ => self.statement(child)?,
            }
        }
        Ok(())
    }

    /// An interactive zsh does not know comments: what looks like one is then run. Hence only a comment on a
    /// line of its own, without any special character, is harmless.
    pub(super) fn comment(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let rest = node.between(node.end(), node.source().len());
        let before = node.preceding();
        let starts_word = matches!(before, None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')'));
        if self.substitutions > 0 || !starts_word || !(rest.is_empty() || rest.starts_with('\n')) {
            return Err(Unparsable::Ambiguous("a comment inside a command"));
        }
        let line_start = node.between(0, node.start()).rsplit('\n').next().unwrap_or("");
        let plain = |character: char| {
            character.is_ascii_alphanumeric()
                || matches!(character, ' ' | ',' | '.' | '-' | '_' | '/' | ':' | '#' | '+')
        };
        if !line_start.trim().is_empty() || !node.text().chars().all(plain) {
            self.object(Obstacle::Construct("a comment that some shells would run"));
        }
        Ok(())
    }

    /// `[ .. ]` is the command `[` to a shell; `[[ .. ]]` is a construct of its own.
    pub(super) fn test(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        if node.text().starts_with("[[") {
            self.object(Obstacle::Construct("`[[ ]]`"));
            return node.children().try_for_each(|child| self.double_bracket(child));
        }
        let mut command = empty_command(node.text());
        command.name = Some("[".to_owned());
        command.command_word = Some(Word::literal("["));
        for child in node.children() {
            if child.kind() == "[" || child.kind() == "]" {
                continue;
            }
            self.single_bracket(child, &mut command.arguments)?;
        }
        command.arguments.push(Word::literal("]"));
        self.push(command);
        Ok(())
    }

    /// The parser reads `[ a && b ]` as one test; a shell reads two commands. Only operators that are
    /// plain words to a shell are accepted.
    fn single_bracket(&mut self, node: Node<'_>, arguments: &mut Vec<Word>) -> Result<(), Unparsable> {
        match node.kind() {
            "unary_expression" | "binary_expression" => {
                node.children().try_for_each(|child| self.single_bracket(child, arguments))
            }
            "test_operator" | "=" | "!=" | "==" | "!" | "-a" | "-o" => {
                arguments.push(Word::literal(node.text()));
                Ok(())
            }
            kind if expansions::is_word(kind) => {
                let word = self.word(node)?;
                arguments.push(word);
                Ok(())
            }
            _ => Err(Unparsable::Ambiguous("an operator inside `[ ]`")),
        }
    }

    fn double_bracket(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        match node.kind() {
            "unary_expression" | "binary_expression" | "parenthesized_expression" | "postfix_expression" => {
                node.children().try_for_each(|child| self.double_bracket(child))
            }
            kind if expansions::is_word(kind) => self.word(node).map(drop),
            "test_operator" => Ok(()),
            _ if !node.is_named() => Ok(()),
            _ => Err(Unparsable::Ambiguous("a test that is not understood")),
        }
    }

    pub(super) fn arithmetic_statement(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        self.object(Obstacle::Construct("`(( ))`"));
        node.children().try_for_each(|child| self.arithmetic(child))
    }

    pub(super) fn c_style_loop(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        self.object(Obstacle::Construct("`for (( ))`"));
        for child in node.children() {
            match child.kind() {
                "do_group" | "compound_statement" => self.statement(child)?,
                _ => self.arithmetic(child)?,
            }
        }
        Ok(())
    }

    /// Arithmetic evaluates the text of variables, array indices included, so only numbers are harmless.
    pub(super) fn arithmetic(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        match node.kind() {
            "number" if node.children().next().is_none() => Ok(()),
            "binary_expression"
            | "unary_expression"
            | "postfix_expression"
            | "ternary_expression"
            | "parenthesized_expression" => node.children().try_for_each(|child| self.arithmetic(child)),
            "variable_assignment" | "subscript" => {
                self.object(Obstacle::Construct("arithmetic with variables"));
                node.children().try_for_each(|child| self.arithmetic(child))
            }
            "word" | "variable_name" => {
                self.object(Obstacle::Construct("arithmetic with variables"));
                let plain = node.text().chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                if plain { Ok(()) } else { Err(Unparsable::Ambiguous("text inside arithmetic")) }
            }
            "simple_expansion" | "expansion" | "command_substitution" | "arithmetic_expansion" => {
                self.object(Obstacle::Construct("arithmetic with variables"));
                self.word(node).map(drop)
            }
            "`" | "$`" | "\"" | "$" => Err(Unparsable::Ambiguous("text inside arithmetic")),
            _ if !node.is_named() => Ok(()),
            _ => Err(Unparsable::Ambiguous("text inside arithmetic")),
        }
    }
}
