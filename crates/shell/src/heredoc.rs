//! Checks here-documents: where one ends decides what is text and what is a command.
//! Takes the parser's node; gives whether its body is expanded. Refuses unusual delimiters, two documents
//! on one line, and every case in which a plain scan of the lines finds another end than the parser did.

use crate::line::Unparsable;
use crate::tree::Node;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The delimiter was quoted: plain text.
    Verbatim,
    /// Substitutions in the body are carried out.
    Expanded,
}

const REFUSED: Unparsable = Unparsable::Ambiguous("a here-document with an unclear end");

pub(super) fn check(node: Node<'_>) -> Result<Body, Unparsable> {
    if node.children().any(|child| child.has_descendant("heredoc_redirect")) {
        return Err(Unparsable::Ambiguous("two here-documents on one line"));
    }
    let find = |kind: &str| node.children().find(|child| child.kind() == kind);
    let (Some(start), Some(end)) = (find("heredoc_start"), find("heredoc_end")) else { return Err(REFUSED) };
    let strips_tabs = find("<<-").is_some();
    let (delimiter, body) = read_delimiter(start.text())?;
    let source = node.source();

    let rest = node.between(start.end(), source.len());
    let first_line = rest.find('\n').ok_or(REFUSED)?;
    let body_start = start.end().saturating_add(first_line).saturating_add(1);
    let document_end = scan_end(node.between(body_start, source.len()), delimiter, strips_tabs.into())
        .map(|offset| body_start.saturating_add(offset))
        .ok_or(REFUSED)?;
    if document_end != end.end() || end.text().trim_start_matches('\t') != delimiter {
        return Err(REFUSED);
    }
    for child in node.children() {
        let fits = match child.kind() {
            "heredoc_body" => child.start() >= body_start && child.end() <= end.start(),
            "heredoc_end" => child.start() >= body_start,
            _ => child.end() < body_start,
        };
        if !fits {
            return Err(REFUSED);
        }
    }
    Ok(body)
}

/// The text that `$(cat <<'EOF' ..)` prints, where it is nothing but that: a quoted delimiter, the document, its end.
/// `behind` is what follows in the line. Refuses documents whose quotes or parentheses an older shell, which looks for
/// the closing parenthesis before it reads the document, would take for the end.
pub(super) fn printed<'s>(substitution: &'s str, behind: &str) -> Option<&'s str> {
    let inner = substitution.strip_prefix("$(cat <<")?.strip_suffix(')')?;
    let (raw, rest) = inner.split_once('\n')?;
    let (delimiter, body) = read_delimiter(raw.trim()).ok()?;
    let end = scan_end(rest, delimiter, Indent::Kept)?;
    let (document, last) = (rest.get(..end)?.strip_suffix(delimiter)?, rest.get(end..)?);
    let is_plain = body == Body::Verbatim && last.trim_matches(['\n', ' ']).is_empty() && last.starts_with('\n');
    let is_closed =
        [Comments::Read, Comments::Skipped].into_iter().all(|comments| stays_open(document, behind, comments));
    (is_plain && is_closed).then(|| document.trim_end_matches('\n'))
}

/// Whether a shell that looks for a closing parenthesis takes `#` for the start of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comments {
    Read,
    Skipped,
}

/// Whether such a shell finds no end inside of a document, nor a quote that reaches beyond it.
fn stays_open(document: &str, behind: &str, comments: Comments) -> bool {
    // Inside of such quotes these begin something else.
    if document.contains('"') && document.contains(['\\', '$']) {
        return false;
    }
    let mut depth = 0_usize;
    let mut letters = document.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '(' => depth = depth.saturating_add(1),
            ')' => match depth.checked_sub(1) {
                Some(left) => depth = left,
                None => return false,
            },
            '\\' => {
                letters.next();
            }
            '`' => return false,
            '#' if comments == Comments::Skipped => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            '\'' | '"' => {
                let is_ended = letters.by_ref().any(|other| other == letter);
                // A quote without an end is an error there, unless the line has another one.
                if !is_ended && (behind.matches(letter).count() > usize::from(letter == '"')) {
                    return false;
                }
                if !is_ended {
                    return depth == 0;
                }
            }
            _ => {}
        }
    }
    depth == 0
}

/// Only a bare or wholly quoted word is accepted as delimiter.
fn read_delimiter(raw: &str) -> Result<(&str, Body), Unparsable> {
    let quoted = raw
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
        .or_else(|| raw.strip_prefix('"').and_then(|text| text.strip_suffix('"')));
    let (name, body) = match quoted {
        Some(name) => (name, Body::Verbatim),
        None => (raw, Body::Expanded),
    };
    let plain = !name.is_empty()
        && name.len() <= 64
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if plain { Ok((name, body)) } else { Err(Unparsable::Ambiguous("an unusual here-document delimiter")) }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Indent {
    Kept,
    TabsStripped,
}

impl From<bool> for Indent {
    fn from(strips_tabs: bool) -> Self {
        if strips_tabs { Self::TabsStripped } else { Self::Kept }
    }
}

/// The offset just behind the delimiter on the first line that consists of it.
fn scan_end(text: &str, delimiter: &str, indent: Indent) -> Option<usize> {
    let mut offset = 0_usize;
    for line in text.split('\n') {
        let compared = if indent == Indent::TabsStripped { line.trim_start_matches('\t') } else { line };
        if compared == delimiter {
            return Some(offset.saturating_add(line.len()));
        }
        offset = offset.saturating_add(line.len()).saturating_add(1);
    }
    None
}
