//! Turns a line into an owned syntax tree of bounded depth and size.
//! Takes the line; gives a tree in which each byte belongs to a token or is a blank between tokens.
//! Refuses long lines, control characters, odd line continuations, syntax errors and deep nesting, so that
//! the walkers above may recurse without fear and never meet text the parser skipped.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, TreeCursor};

use crate::line::{LONGEST_LINE, Unparsable};
use crate::work;

const DEEPEST: usize = 200;
const MOST_HERE_DOCUMENTS: usize = 32;
const MOST_PIECES: usize = 20_000;
/// The parser reports progress about every hundred steps; an honest line of full length stays far below.
const MOST_REPORTS: u32 = 20_000;

#[derive(Debug)]
pub(super) struct Tree<'s> {
    source: &'s str,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
struct Piece {
    kind: &'static str,
    named: bool,
    start: usize,
    end: usize,
    children: Vec<usize>,
}

/// A node of the tree: cheap to copy.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'t> {
    tree: &'t Tree<'t>,
    piece: &'t Piece,
}

impl<'t> Node<'t> {
    /// The grammar's name of a named node; the token itself for the others.
    pub(super) fn kind(self) -> &'static str {
        self.piece.kind
    }

    pub(super) fn is_named(self) -> bool {
        self.piece.named
    }

    pub(super) fn start(self) -> usize {
        self.piece.start
    }

    pub(super) fn end(self) -> usize {
        self.piece.end
    }

    pub(super) fn text(self) -> &'t str {
        self.tree.between(self.piece.start, self.piece.end)
    }

    pub(super) fn source(self) -> &'t str {
        self.tree.source
    }

    pub(super) fn children(self) -> impl DoubleEndedIterator<Item = Node<'t>> {
        let tree = self.tree;
        self.piece
            .children
            .iter()
            .filter_map(move |index| tree.pieces.get(*index))
            .map(move |piece| Node { tree, piece })
    }

    pub(super) fn has_descendant(self, kind: &str) -> bool {
        self.children().any(|child| child.kind() == kind || child.has_descendant(kind))
    }

    /// The text between two offsets of the line; empty when they do not fit.
    pub(super) fn between(self, start: usize, end: usize) -> &'t str {
        self.tree.between(start, end)
    }

    /// The character just before this node.
    pub(super) fn preceding(self) -> Option<char> {
        self.between(0, self.start()).chars().next_back()
    }
}

impl<'s> Tree<'s> {
    pub(super) fn parse(source: &'s str) -> Result<Self, Unparsable> {
        work::went_through(source);
        check_characters(source)?;
        check_continuations(source)?;
        check_nesting(source)?;
        let parsed = run_parser(source)?;
        let root = parsed.root_node();
        if root.has_error() {
            return Err(Unparsable::Syntax);
        }
        let mut tree = Self { source, pieces: Vec::new() };
        let copied = tree.copy(root.walk());
        work::took(tree.pieces.len());
        copied?;
        tree.check_gaps()?;
        Ok(tree)
    }

    pub(super) fn root(&'s self) -> Result<Node<'s>, Unparsable> {
        let piece = self.pieces.first().ok_or(Unparsable::NoCommand)?;
        Ok(Node { tree: self, piece })
    }

    fn between(&self, start: usize, end: usize) -> &'s str {
        self.source.get(start..end).unwrap_or("")
    }

    /// Copies the parser's tree without recursion, counting depth and size.
    fn copy(&mut self, mut cursor: TreeCursor<'_>) -> Result<(), Unparsable> {
        let mut open: Vec<usize> = Vec::new();
        loop {
            let node = cursor.node();
            if node.is_error() || node.is_missing() {
                return Err(Unparsable::Syntax);
            }
            let index = self.pieces.len();
            if index >= MOST_PIECES || open.len() >= DEEPEST {
                return Err(Unparsable::TooComplex);
            }
            self.pieces.push(Piece {
                kind: node.kind(),
                named: node.is_named(),
                start: node.start_byte(),
                end: node.end_byte(),
                children: Vec::new(),
            });
            if let Some(parent) = open.last().and_then(|parent| self.pieces.get_mut(*parent)) {
                parent.children.push(index);
            }
            if cursor.goto_first_child() {
                open.push(index);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
                open.pop();
            }
        }
    }

    /// The parser silently skips what it calls extras. Only blanks may be skipped, and a newline only where
    /// every shell would also read on.
    fn check_gaps(&self) -> Result<(), Unparsable> {
        for (index, piece) in self.pieces.iter().enumerate() {
            let rule = GapRule::of(piece.kind);
            if piece.children.is_empty() || rule == GapRule::Unchecked {
                continue;
            }
            // The root may start late and end early; what it leaves out is checked like a gap.
            let (mut reached, end) = if index == 0 { (0, self.source.len()) } else { (piece.start, piece.end) };
            let mut previous: Option<&Piece> = None;
            for child in piece.children.iter().filter_map(|child| self.pieces.get(*child)) {
                if child.start < reached || !rule.after(previous).accepts(self.between(reached, child.start)) {
                    return Err(Unparsable::Ambiguous("text between its words"));
                }
                reached = child.end;
                previous = Some(child);
            }
            if !rule.after(previous).accepts(self.between(reached, end)) {
                return Err(Unparsable::Ambiguous("text between its words"));
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GapRule {
    /// Strings and here-documents keep their blanks; `words` and `heredoc` check them.
    Unchecked,
    None,
    Blanks,
    /// A newline may follow `&&`, `||`, `|`.
    AfterOperator,
    Newlines,
}

impl GapRule {
    fn of(kind: &str) -> Self {
        match kind {
            "string" | "heredoc_body" => Self::Unchecked,
            "concatenation" | "command_name" | "simple_expansion" | "variable_assignment" | "translated_string" => {
                Self::None
            }
            "command"
            | "declaration_command"
            | "unset_command"
            | "file_redirect"
            | "herestring_redirect"
            | "variable_assignments"
            | "negated_command"
            | "test_command"
            | "unary_expression"
            | "binary_expression"
            | "redirected_statement"
            | "expansion"
            | "subscript"
            | "brace_expression" => Self::Blanks,
            "list" | "pipeline" => Self::AfterOperator,
            _ => Self::Newlines,
        }
    }

    /// In lists and pipelines the line may be broken behind an operator, not before it.
    fn after(self, previous: Option<&Piece>) -> Self {
        let operator = previous.is_some_and(|piece| matches!(piece.kind, "&&" | "||" | "|" | "|&"));
        match self {
            Self::AfterOperator if operator => Self::Newlines,
            Self::AfterOperator => Self::Blanks,
            other => other,
        }
    }

    fn accepts(self, gap: &str) -> bool {
        let gap = gap.replace("\\\n", "  ");
        match self {
            Self::Unchecked => true,
            Self::None => gap.is_empty(),
            Self::Blanks | Self::AfterOperator => gap.chars().all(|character| matches!(character, ' ' | '\t')),
            Self::Newlines => gap.chars().all(|character| matches!(character, ' ' | '\t' | '\n')),
        }
    }
}

fn run_parser(source: &str) -> Result<tree_sitter::Tree, Unparsable> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).map_err(|_| Unparsable::Syntax)?;
    let mut reports = 0_u32;
    let mut watch = |state: &ParseState| {
        reports = reports.saturating_add(1);
        // Error recovery is the slow part, and a line with an error is refused anyway.
        if state.has_error() || reports > MOST_REPORTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let shadow = ascii_shadow(source);
    parser
        .parse_with_options(
            &mut |offset, _| shadow.get(offset..).unwrap_or(&[]),
            None,
            Some(ParseOptions::new().progress_callback(&mut watch)),
        )
        .ok_or(Unparsable::Syntax)
}

/// The line with each byte beyond ASCII replaced by `%`, an ordinary character of words. To a shell such bytes
/// are ordinary too; the parser's scanner reads outside its tables on them (`{` and an emoji crash it).
/// Offsets stay the same, so texts are taken from the real line.
fn ascii_shadow(source: &str) -> Vec<u8> {
    source.bytes().map(|byte| if byte.is_ascii() { byte } else { b'%' }).collect()
}

/// Control and invisible characters make a line look different from what runs, and shells and the parser
/// disagree on which of them separate words.
fn check_characters(source: &str) -> Result<(), Unparsable> {
    if source.len() > LONGEST_LINE {
        return Err(Unparsable::TooLong);
    }
    if source.chars().any(is_forbidden) { Err(Unparsable::ControlCharacter) } else { Ok(()) }
}

fn is_forbidden(character: char) -> bool {
    match character {
        '\t' | '\n' | ' ' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control() || other.is_whitespace(),
    }
}

/// A line continuation may stand where a blank could stand, nowhere else: `$\⏎(x)` and `r\⏎m` are read
/// as one token by shells only.
fn check_continuations(source: &str) -> Result<(), Unparsable> {
    if source.ends_with('\\') {
        return Err(Unparsable::Syntax);
    }
    for (position, _) in source.match_indices("\\\n") {
        let before = source.get(..position).and_then(|text| text.chars().next_back());
        if !matches!(before, Some(' ' | '\t')) {
            return Err(Unparsable::Ambiguous("a line continuation inside a word"));
        }
    }
    Ok(())
}

/// A cheap look at brackets and here-documents keeps absurd nesting away from the parser itself.
fn check_nesting(source: &str) -> Result<(), Unparsable> {
    if source.matches("<<").count() > MOST_HERE_DOCUMENTS {
        return Err(Unparsable::TooComplex);
    }
    let mut depth = 0_usize;
    for character in source.chars() {
        match character {
            '(' | '{' => depth = depth.saturating_add(1),
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(Unparsable::TooComplex);
        }
    }
    Ok(())
}
