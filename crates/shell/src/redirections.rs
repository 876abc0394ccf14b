//! Reads redirections, here-strings and here-documents.
//! Takes their nodes; gives each file they open to the command or to the line. Arguments that the parser
//! hangs below a redirection go back to the command they belong to. Refuses what has no clear owner.

use crate::expansions;
use crate::heredoc;
use crate::line::{Direction, Obstacle, Redirection, SimpleCommand, Unparsable, Word};
use crate::read::{Reader, empty_command, one_line};
use crate::tree::Node;

impl Reader {
    /// `body redirection..`. The parser takes arguments behind a redirection for further targets; they are
    /// arguments of the command.
    pub(super) fn redirected(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let fed = self.fed;
        if node.children().any(feeds) {
            self.fed = self.fed.saturating_add(1);
        }
        let result = self.redirected_parts(node);
        self.fed = fed;
        result
    }

    fn redirected_parts(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        let mut command: Option<SimpleCommand> = None;
        let mut is_simple = true;
        for (position, child) in node.children().enumerate() {
            match child.kind() {
                "file_redirect" => self.file_redirect(child, command.as_mut())?,
                "herestring_redirect" => self.here_string(child)?,
                "heredoc_redirect" => self.here_document(child, command.as_mut())?,
                "command" if position == 0 => {
                    let mut read = self.command(child)?;
                    read.text = one_line(node.text());
                    command = Some(read);
                }
                _ if position == 0 => {
                    is_simple = false;
                    self.statement(child)?;
                }
                _ => return Err(Unparsable::Syntax),
            }
        }
        let starts_with_redirection = node.children().next().is_some_and(|first| first.kind().ends_with("_redirect"));
        if let Some(command) = command {
            self.push(command);
        } else if is_simple && starts_with_redirection {
            self.nameless(node);
        }
        Ok(())
    }

    /// A redirection without command still opens its file; some shells even run a pager on it.
    fn nameless(&mut self, node: Node<'_>) {
        let mut command = empty_command(node.text());
        command.obstacle = Some(Obstacle::NoName);
        self.push(command);
    }

    /// `$(<file)` has a redirection where a statement is expected.
    pub(super) fn lonely_redirection(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        self.file_redirect(node, None)
    }

    /// Reads a redirection into the command it belongs to, or into the line.
    pub(super) fn file_redirect(
        &mut self,
        node: Node<'_>,
        mut command: Option<&mut SimpleCommand>,
    ) -> Result<(), Unparsable> {
        // `{name}>file` opens a new descriptor; the parser sees the word `{name}`.
        if node.preceding() == Some('}') {
            return Err(Unparsable::Syntax);
        }
        let mut operator = "";
        let mut has_target = false;
        for child in node.children() {
            if child.kind() == "file_descriptor" {
                check_descriptor(child)?;
            } else if !child.is_named() && operator.is_empty() {
                operator = child.kind();
                has_target = matches!(operator, "<&-" | ">&-");
            } else if has_target {
                let word = self.word(child)?;
                let owner = command.as_deref_mut().ok_or(Unparsable::Syntax)?;
                owner.arguments.push(word);
            } else {
                has_target = true;
                check_target(child)?;
                let target = self.word(child)?;
                let direction = direction(operator, &target)?;
                let redirection = Redirection { target, direction };
                match command.as_deref_mut() {
                    Some(owner) => owner.redirections.push(redirection),
                    None => self.redirect_line(redirection),
                }
            }
        }
        if has_target { Ok(()) } else { Err(Unparsable::Syntax) }
    }

    pub(super) fn here_string(&mut self, node: Node<'_>) -> Result<(), Unparsable> {
        for child in node.children() {
            match child.kind() {
                "<<<" => {}
                "file_descriptor" => check_descriptor(child)?,
                _ => {
                    check_target(child)?;
                    self.word(child)?;
                }
            }
        }
        Ok(())
    }

    /// A here-document; the rest of its first line (arguments, pipes, lists) hangs below it in the tree.
    fn here_document(&mut self, node: Node<'_>, mut command: Option<&mut SimpleCommand>) -> Result<(), Unparsable> {
        if self.substitutions > 0 {
            return Err(Unparsable::Ambiguous("a here-document inside a substitution"));
        }
        let body = heredoc::check(node)?;
        for child in node.children() {
            match child.kind() {
                "<<" | "<<-" | "heredoc_start" | "heredoc_end" | "&&" | "||" | "|" | "|&" | ";" | "&" => {}
                "file_descriptor" => check_descriptor(child)?,
                "heredoc_body" if body == heredoc::Body::Expanded => self.here_document_body(child)?,
                "heredoc_body" => {}
                "file_redirect" => self.file_redirect(child, command.as_deref_mut())?,
                "herestring_redirect" => self.here_string(child)?,
                kind if expansions::is_word(kind) => {
                    let word = self.word(child)?;
                    command.as_deref_mut().ok_or(Unparsable::Syntax)?.arguments.push(word);
                }
                _ => self.statement(child)?,
            }
        }
        Ok(())
    }
}

/// Whether a redirection gives its command something to read.
pub(super) fn feeds(node: Node<'_>) -> bool {
    match node.kind() {
        "heredoc_redirect" | "herestring_redirect" => true,
        "file_redirect" => {
            let text = node.text();
            let target = text.trim_start_matches(|character: char| character.is_ascii_digit());
            target.strip_prefix('<').is_some_and(|target| target.trim() != "/dev/null")
        }
        _ => false,
    }
}

/// `a2>b` is the word `a2`; a descriptor must stand alone before its operator.
fn check_descriptor(node: Node<'_>) -> Result<(), Unparsable> {
    let stands_alone = matches!(node.preceding(), None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '`'));
    let is_number = node.text().chars().all(|digit| digit.is_ascii_digit());
    let next = node.between(node.end(), node.source().len()).chars().next();
    if stands_alone && is_number && matches!(next, Some('<' | '>')) { Ok(()) } else { Err(Unparsable::Syntax) }
}

fn direction(operator: &str, target: &Word) -> Result<Direction, Unparsable> {
    // zsh reads `>! file` as a forced `> file`.
    if target.text.starts_with('!') {
        return Err(Unparsable::Ambiguous("a redirection to `!`"));
    }
    let digits = target.text.strip_suffix('-').unwrap_or(&target.text);
    let is_descriptor = target.literal
        && (target.text == "-" || (!digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit())));
    match operator {
        ">&" | "<&" if is_descriptor => Ok(Direction::Duplicates),
        "<" | "<&" => Ok(Direction::Reads),
        ">" | ">>" | "&>" | "&>>" | ">|" | ">&" => Ok(Direction::Writes),
        _ => Err(Unparsable::Syntax),
    }
}

/// In `> 2>&1` the `2` belongs to the second operator.
fn check_target(node: Node<'_>) -> Result<(), Unparsable> {
    let next = node.between(node.end(), node.source().len()).chars().next();
    let is_number = node.text().chars().all(|digit| digit.is_ascii_digit());
    if is_number && matches!(next, Some('<' | '>')) { Err(Unparsable::Syntax) } else { Ok(()) }
}
