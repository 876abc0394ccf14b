//! Changing one list of a JSON file with comments, and nothing else in it.
//!
//! Takes the text, a key and an entry; gives the new text, in the style of its neighbours. What was
//! added and is removed again leaves the bytes as they were. The result is read back and compared;
//! an edit that would change anything else gives nothing.

mod sequence;

use jsonc_parser::tokens::{Token, TokenAndRange};
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, parse_to_ast};
use serde_json::{Value, json};

use crate::tree::{self, BYTE_ORDER_MARK, Format, STRICT};
use sequence::{Change, Sequence, apply};

/// Adds an entry at the end of a list; a missing list is added to the file.
pub(super) fn append(text: &str, key: &str, entry: &str) -> Option<String> {
    let (mark, body) = split_mark(text);
    let quoted = serde_json::to_string(entry).ok()?;
    let tokens = tokens(body)?;
    let changes = match find_list(&tokens, key) {
        Some(open) => Sequence::read(&tokens, open)?.append(body, &tokens, &quoted),
        None => {
            let root = first_token(&tokens)?;
            let property = format!("{}: [{quoted}]", serde_json::to_string(key).ok()?);
            Sequence::read(&tokens, root)?.append(body, &tokens, &property)
        }
    };
    let edited = apply(body, changes)?;
    let mut expected = parse(body)?;
    let list = expected.as_object_mut()?.entry(key).or_insert_with(|| json!([]));
    list.as_array_mut()?.push(entry.into());
    (parse(&edited)? == expected).then(|| format!("{mark}{edited}"))
}

/// Removes every entry of a list that fits.
pub(super) fn remove(text: &str, key: &str, fits: impl Fn(&str) -> bool) -> Option<String> {
    let (mark, body) = split_mark(text);
    let mut expected = parse(body)?;
    expected.get_mut(key)?.as_array_mut()?.retain(|entry| !entry.as_str().is_some_and(&fits));
    let mut edited = body.to_owned();
    while let Some(changes) = removal(&edited, key, &fits)? {
        edited = apply(&edited, changes)?;
    }
    (parse(&edited)? == expected).then(|| format!("{mark}{edited}"))
}

/// The changes that remove the first entry that fits; none where nothing fits any more.
fn removal(body: &str, key: &str, fits: impl Fn(&str) -> bool) -> Option<Option<Vec<Change>>> {
    let tokens = tokens(body)?;
    let sequence = Sequence::read(&tokens, find_list(&tokens, key)?)?;
    let position = sequence.items.iter().position(|item| match tokens.get(item.first).map(|token| &token.token) {
        Some(Token::String(text)) => fits(text),
        _ => false,
    });
    Some(position.map(|position| sequence.remove(body, &tokens, position)))
}

fn split_mark(text: &str) -> (&str, &str) {
    match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(body) => text.split_at_checked(text.len() - body.len()).unwrap_or(("", text)),
        None => ("", text),
    }
}

fn parse(body: &str) -> Option<Value> {
    tree::parse(body.as_bytes(), Format::Jsonc).ok().map(|node| node.to_json())
}

fn tokens(body: &str) -> Option<Vec<TokenAndRange<'_>>> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::AsTokens, tokens: true };
    parse_to_ast(body, &collect, &STRICT).ok()?.tokens
}

fn first_token(tokens: &[TokenAndRange<'_>]) -> Option<usize> {
    tokens.iter().position(|token| !sequence::is_comment(&token.token))
}

/// The `[` of the list a key of the root object holds.
fn find_list(tokens: &[TokenAndRange<'_>], key: &str) -> Option<usize> {
    let root = Sequence::read(tokens, first_token(tokens)?)?;
    let property = root.items.iter().find(
        |item| matches!(tokens.get(item.first).map(|token| &token.token), Some(Token::String(text)) if text == key),
    )?;
    let open = (property.first..=property.last)
        .find(|index| matches!(tokens.get(*index).map(|token| &token.token), Some(Token::OpenBracket)))?;
    Some(open)
}

#[cfg(test)]
#[path = "splice_tests.rs"]
mod tests;
