//! Reads words: quotes, expansions and substitutions, and the commands inside them.
//! Takes a node that stands for one word; gives its value, or its raw text when the value depends on the
//! shell. Refuses quoting that shells and the parser could read differently.

use crate::heredoc;
use crate::line::{Obstacle, Unparsable, Word};
use crate::read::{Reader, empty_command};
use crate::tree::Node;
use crate::words::{self, History};

/// Kinds of nodes that stand for (a part of) one word.
pub(super) fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "number"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
            | "extglob_pattern"
            | "regex"
    )
}

/// Where an expansion stands; quotes inside it mean different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Bare,
    /// In a double-quoted string or a here-document.
    Quoted,
}

impl Reader {
    /// Reads one word and walks every command inside it.
    pub(super) fn word(&mut self, node: Node<'_>) -> Result<Word, Unparsable> {
        if ends_in_history(node) {
            self.object(Obstacle::HistoryExpansion);
        }
        match node.kind() {
            "word" | "concatenation" if words::is_revision(node.text()) => Ok(Word::literal(node.text())),
            "word" | "number" if node.children().next().is_none() => self.unquoted(node.text()),
            "raw_string" => words::single_quoted(node.text()),
            "ansi_c_string" => {
                // Some shells read a `$` and single quotes instead.
                self.object(Obstacle::Construct("`$'..'`, which not every shell knows"));
                words::ansi_quoted(node.text())
            }
            "string" => self.string(node),
            "concatenation" => self.concatenation(node),
            "number" | "brace_expression" => {
                for child in node.children().filter(|child| child.is_named()) {
                    self.word(child)?;
                }
                Ok(Word::raw(node.text()))
            }
            "extglob_pattern" | "regex" => {
                self.object(Obstacle::Construct("an extended pattern"));
                words::check_expansion_text(node.text())?;
                Ok(Word::raw(node.text()))
            }
            "$" | "=" | "==" | "=~" if !node.is_named() => Ok(Word::raw(node.text())),
            _ => {
                self.expand(node, Place::Bare)?;
                Ok(Word::raw(node.text()))
            }
        }
    }

    fn unquoted(&mut self, raw: &str) -> Result<Word, Unparsable> {
        let (word, history) = words::unquoted(raw)?;
        self.note(history);
        Ok(word)
    }

    fn note(&mut self, history: History) {
        if history == History::Possible {
            self.object(Obstacle::HistoryExpansion);
        }
    }

    fn concatenation(&mut self, node: Node<'_>) -> Result<Word, Unparsable> {
        let mut joined = Word::literal("");
        for child in node.children() {
            let part = self.word(child)?;
            joined.literal &= part.literal;
            joined.text.push_str(&part.text);
        }
        let raw = node.text();
        let is_certain = joined.literal || raw == "{}";
        // Judged once more as a whole: `=~` may be split over two parts.
        let expands = raw.starts_with(['~', '=']) || raw.contains("=~") || raw.contains(":~");
        if is_certain && !expands {
            return Ok(if raw == "{}" { Word::literal(raw) } else { joined });
        }
        Ok(Word::raw(raw))
    }

    fn string(&mut self, node: Node<'_>) -> Result<Word, Unparsable> {
        let raw = node.text();
        if raw.len() < 2 || !raw.starts_with('"') || !raw.ends_with('"') {
            return Err(Unparsable::Ambiguous("odd double quotes"));
        }
        let mut value = String::new();
        let mut literal = true;
        let mut reached = node.start().saturating_add(1);
        let inner_end = node.end().saturating_sub(1);
        let read_stretch = |reader: &mut Self, start: usize, end: usize| -> Result<String, Unparsable> {
            let (text, history) = words::double_quoted(node.between(start, end))?;
            reader.note(history);
            Ok(text)
        };
        for child in node.children().filter(|child| is_expansion(child.kind())) {
            value.push_str(&read_stretch(self, reached, child.start())?);
            if child.preceding() == Some('!') {
                self.object(Obstacle::HistoryExpansion);
            }
            reached = child.end();
            // `"$(cat <<'EOF' ..)"` is the text of the document.
            let behind = node.between(child.end(), node.source().len());
            if let Some(text) = heredoc::printed(child.text(), behind) {
                value.push_str(text);
                let mut cat = empty_command(child.text());
                cat.name = Some("cat".to_owned());
                cat.command_word = Some(Word::literal("cat"));
                self.push(cat);
                continue;
            }
            literal = false;
            self.expand(child, Place::Quoted)?;
        }
        value.push_str(&read_stretch(self, reached, inner_end)?);
        check_string_parts(node)?;
        Ok(if literal { Word::literal(value) } else { Word::raw(raw) })
    }

    /// An expanded here-document is read like a string without quotes around it.
    pub(super) fn here_document_body(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let mut reached = node.start();
        for child in node.children() {
            if child.kind() == "heredoc_content" {
                continue;
            }
            words::here_document(node.between(reached, child.start()))?;
            self.expand(child, Place::Quoted)?;
            reached = child.end();
        }
        words::here_document(node.between(reached, node.end()))
    }

    fn expand(&mut self, node: Node<'_>, place: Place) -> Result<(), Unparsable> {
        match node.kind() {
            "simple_expansion" => check_simple_expansion(node),
            "expansion" => self.braced(node, place),
            "arithmetic_expansion" => node.children().try_for_each(|child| self.arithmetic(child)),
            "command_substitution" | "process_substitution" => self.substitution(node, place),
            _ => Err(Unparsable::Ambiguous("a word that is not understood")),
        }
    }

    fn substitution(&mut self, node: Node<'_>, place: Place) -> Result<(), Unparsable> {
        let raw = node.text();
        if raw.starts_with('`') {
            // Inside backquotes a shell removes backslashes before it reads anything.
            let nested = raw.matches('`').count() != 2;
            if nested || raw.contains('\\') || (place == Place::Quoted && raw.contains('"')) {
                return Err(Unparsable::Ambiguous("quoting inside backquotes"));
            }
        }
        self.substitutions = self.substitutions.saturating_add(1);
        let result = self.statements(node);
        self.substitutions = self.substitutions.saturating_sub(1);
        result
    }

    /// `${..}`. Plain use and default values are harmless; the other operators evaluate, assign or differ.
    fn braced(&mut self, node: Node<'_>, place: Place) -> Result<(), Unparsable> {
        let mut is_first = true;
        for child in node.children() {
            match child.kind() {
                "${" | "}" => {}
                "variable_name" | "special_variable_name" => is_first = false,
                ":-" | "-" | ":+" | "+" if !child.is_named() && !is_first => {}
                "#" if !child.is_named() && is_first => {}
                "word" | "regex" | "extglob_pattern" | "number" if child.children().next().is_none() => {
                    words::check_expansion_text(child.text())?;
                }
                "raw_string" | "ansi_c_string" | "string" if place == Place::Quoted => {
                    return Err(Unparsable::Ambiguous("quotes inside a quoted expansion"));
                }
                "concatenation" => self.braced_parts(child, place)?,
                "simple_expansion"
                | "expansion"
                | "arithmetic_expansion"
                | "command_substitution"
                | "process_substitution" => self.expand(child, place)?,
                "raw_string" | "ansi_c_string" | "string" => {
                    self.word(child)?;
                }
                "subscript"
                | "binary_expression"
                | "unary_expression"
                | "parenthesized_expression"
                | "ternary_expression"
                | "postfix_expression" => {
                    self.object(Obstacle::Construct("an expansion that computes"));
                    self.arithmetic(child)?;
                }
                _ if !child.is_named() => self.object(Obstacle::Construct("an expansion that transforms or assigns")),
                _ => return Err(Unparsable::Ambiguous("an expansion that is not understood")),
            }
        }
        Ok(())
    }

    fn braced_parts(&mut self, node: Node<'_>, place: Place) -> Result<(), Unparsable> {
        for child in node.children() {
            match child.kind() {
                "word" | "number" if child.children().next().is_none() => words::check_expansion_text(child.text())?,
                "raw_string" | "ansi_c_string" | "string" if place == Place::Bare => {
                    self.word(child)?;
                }
                kind if is_expansion(kind) => self.expand(child, place)?,
                _ => return Err(Unparsable::Ambiguous("quotes inside an expansion")),
            }
        }
        Ok(())
    }
}

/// `a!$x`, `"a!"$x`, `a!;ls`: a `!` at the end of a part whose neighbour an interactive shell would take in.
fn ends_in_history(node: Node<'_>) -> bool {
    let text = node.text();
    let next = node.between(node.end(), node.source().len()).chars().next();
    let Some(next) = next.filter(|next| !matches!(next, ' ' | '\t' | '\n')) else { return false };
    match node.kind() {
        "raw_string" | "ansi_c_string" => false,
        "string" | "concatenation" if text.ends_with('"') => {
            text.ends_with("!\"") && !matches!(next, ';' | '&' | '|' | ')' | '<' | '>' | '`')
        }
        _ => text.ends_with('!'),
    }
}

fn is_expansion(kind: &str) -> bool {
    matches!(
        kind,
        "simple_expansion" | "expansion" | "arithmetic_expansion" | "command_substitution" | "process_substitution"
    )
}

fn check_string_parts(node: Node<'_>) -> Result<(), Unparsable> {
    let known = node
        .children()
        .all(|child| is_expansion(child.kind()) || matches!(child.kind(), "\"" | "string_content" | "$"));
    if known { Ok(()) } else { Err(Unparsable::Ambiguous("a string that is not understood")) }
}

fn check_simple_expansion(node: Node<'_>) -> Result<(), Unparsable> {
    let known = node.children().all(|child| matches!(child.kind(), "$" | "variable_name" | "special_variable_name"));
    if known { Ok(()) } else { Err(Unparsable::Ambiguous("an expansion that is not understood")) }
}

impl Reader {
    /// `name=value`, `name+=value`, `name=(..)`: walks the commands inside.
    pub(super) fn assignment(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let mut name = "";
        let mut is_added = false;
        for child in node.children() {
            match child.kind() {
                "variable_name" => name = child.text(),
                "=" => {}
                "+=" => is_added = true,
                "subscript" => {
                    name = child.text().split('[').next().unwrap_or_default();
                    self.arithmetic(child)?;
                }
                "array" => {
                    for element in child.children().filter(|element| element.is_named()) {
                        if element.kind() == "variable_assignment" {
                            self.assignment(element)?;
                        } else {
                            let word = self.word(element)?;
                            self.keep_word(name, word);
                        }
                    }
                }
                _ => {
                    let word = self.word(child)?;
                    if is_added {
                        self.note_value(name, Word::raw(format!("${{{name}}}{}", word.text)));
                    }
                    self.keep_word(name, word);
                }
            }
        }
        Ok(())
    }
}
