//! Secrets in a text: one pass over all beginnings and words that may mean one, then a look at each place.
//!
//! Every look is bounded, and goes on behind what it found, so a text costs its length and no more.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::assigned;
use super::entropy;
use super::shapes::{Letters, SHAPES, Shape};

const PRIVATE_KEY: &str = "private-key";
const JWT: &str = "jwt";
const BEARER: &str = "bearer-token";
const BASIC: &str = "basic-credentials";
const URL: &str = "url-password";
const ENTROPY: &str = "high-entropy";

/// No key in a block of its own is longer.
const LONGEST_BLOCK: usize = 16 * 1024;
const LONGEST_AUTHORITY: usize = 512;
const LONGEST_TOKEN: usize = 8 * 1024;

/// What stands behind a word that may mean a secret.
#[derive(Debug, Clone, Copy)]
enum Rule {
    Shape(&'static Shape),
    Block,
    Jwt,
    Bearer,
    Basic,
    Url,
    Named,
}

const WORDS: [(&str, Rule); 13] = [
    ("-----begin ", Rule::Block),
    ("eyj", Rule::Jwt),
    ("bearer ", Rule::Bearer),
    ("authorization: basic ", Rule::Basic),
    ("authorization\": \"basic ", Rule::Basic),
    ("://", Rule::Url),
    ("key", Rule::Named),
    ("secret", Rule::Named),
    ("token", Rule::Named),
    ("passw", Rule::Named),
    ("passphrase", Rule::Named),
    ("pwd", Rule::Named),
    ("credential", Rule::Named),
];

/// Finds secrets.
#[derive(Debug, Clone)]
pub struct Secrets {
    words: AhoCorasick,
    rules: Vec<Rule>,
}

impl Secrets {
    /// None where the table of words cannot be built.
    #[must_use]
    pub fn new() -> Option<Self> {
        let shapes = SHAPES.iter().map(|shape| (shape.start, Rule::Shape(shape)));
        let (words, rules): (Vec<&str>, Vec<Rule>) = shapes.chain(WORDS).unzip();
        let mut builder = AhoCorasick::builder();
        builder.ascii_case_insensitive(true).match_kind(MatchKind::LeftmostLongest).kind(Some(AhoCorasickKind::DFA));
        Some(Self { words: builder.build(words).ok()?, rules })
    }

    /// What looks like a secret, with its kind and place, in the order of the text; places may overlap.
    /// The number says how little the kind explains.
    pub fn find(&self, text: &str, by_entropy: bool, mut found: impl FnMut(&'static str, Range<usize>, u8)) {
        let (mut behind, mut behind_named) = (0, 0);
        for word in self.words.find_iter(text) {
            let Some(rule) = self.rules.get(word.pattern().as_usize()) else { continue };
            // A value beside a name may have a shape of its own, which says more.
            if matches!(rule, Rule::Named) {
                if word.start() >= behind_named {
                    let (value, name_end) = assigned::value(text, word.range());
                    behind_named = value.as_ref().map_or(name_end, |(_, place)| place.end);
                    value.into_iter().for_each(|(kind, place)| found(kind, place, 1));
                }
            } else if word.start() >= behind
                && let Some((kind, place)) = rule.look(text, word.range())
            {
                behind = place.end;
                found(kind, place, 0);
            }
        }
        if by_entropy {
            entropy::candidates(text, |place| found(ENTROPY, place, 2));
        }
    }
}

/// What the value of a member is, by the member's name.
pub(crate) fn of_member(name: &str, value: &str) -> Option<(&'static str, Range<usize>)> {
    const SCHEME: &str = "basic ";
    let is_basic = value.get(..SCHEME.len()).is_some_and(|start| start.eq_ignore_ascii_case(SCHEME));
    if is_basic && name.to_ascii_lowercase().ends_with("authorization") {
        return Rule::Basic.look(value, 0..SCHEME.len());
    }
    assigned::member(name, value).map(|kind| (kind, 0..value.len()))
}

impl Rule {
    fn look(self, text: &str, word: Range<usize>) -> Option<(&'static str, Range<usize>)> {
        match self {
            Self::Shape(shape) => shaped(text, word, shape).map(|place| (shape.kind, place)),
            Self::Block => block(text, word).map(|place| (PRIVATE_KEY, place)),
            Self::Jwt => jwt(text, word).map(|place| (JWT, place)),
            Self::Bearer => shown_to_servers(text, word.end).map(|place| (BEARER, place)),
            Self::Basic => {
                run(text, word.end, Letters::Dotted).filter(|place| place.len() >= 8).map(|place| (BASIC, place))
            }
            Self::Url => password(text, word).map(|place| (URL, place)),
            // Looked at apart, because it may hold one of the others.
            Self::Named => None,
        }
    }
}

/// The letters of a kind from a place on.
fn run(text: &str, start: usize, letters: Letters) -> Option<Range<usize>> {
    let rest = text.as_bytes().get(start..)?;
    let length = rest.iter().take(LONGEST_TOKEN).take_while(|byte| letters.has(**byte)).count();
    Some(start..start + length)
}

/// Whether a token may begin here: behind a letter it is part of a word, unless an escape put the letter there.
fn begins(text: &str, start: usize) -> bool {
    let before = text.as_bytes().get(start.saturating_sub(3)..start).unwrap_or_default();
    match before {
        [.., b'\\', b'n' | b'r' | b't'] | [b'%', _, _] => true,
        [.., last] => !last.is_ascii_alphanumeric(),
        [] => true,
    }
}

fn shaped(text: &str, word: Range<usize>, shape: &Shape) -> Option<Range<usize>> {
    let is_spelled = text.get(word.clone())? == shape.start;
    if !is_spelled || !begins(text, word.start) {
        return None;
    }
    let rest = run(text, word.end, shape.letters)?;
    let drawn = text.get(rest.clone())?;
    let fits = (shape.least..=shape.most).contains(&rest.len()) && is_varied(drawn);
    fits.then_some(word.start..rest.end)
}

/// Real tokens have letters of many kinds; those of examples are `xxxx` or words.
fn is_varied(token: &str) -> bool {
    let mut seen = 0_u128;
    token.bytes().take(64).for_each(|byte| seen |= 1 << (byte & 0x7F));
    seen.count_ones() >= 6 && token.bytes().any(|byte| byte.is_ascii_digit())
}

/// A private key as PEM has it, to its end or as far as it goes.
fn block(text: &str, word: Range<usize>) -> Option<Range<usize>> {
    let rest = text.get(word.end..)?;
    let title_end = rest.bytes().take(64).position(|byte| byte == b'-')?;
    if !rest.get(..title_end)?.contains("PRIVATE KEY") {
        return None;
    }
    let most = rest.floor_char_boundary(LONGEST_BLOCK);
    let block = rest.get(..most)?;
    let end = match block.find("-----END ") {
        Some(end) => {
            let closing = block.get(end + 9..)?;
            end + 9 + closing.find("-----").map_or(0, |dashes| dashes + 5)
        }
        None => most,
    };
    Some(word.start..word.end + end)
}

/// Three parts with dots between, the first two of them JSON.
fn jwt(text: &str, word: Range<usize>) -> Option<Range<usize>> {
    if text.get(word.clone())? != "eyJ" || !begins(text, word.start) {
        return None;
    }
    let head = run(text, word.start, Letters::Url)?;
    let after = |place: &Range<usize>| text.as_bytes().get(place.end) == Some(&b'.');
    if head.len() < 12 || !after(&head) {
        return None;
    }
    let claims = run(text, head.end + 1, Letters::Url)?;
    if claims.len() < 8 || !after(&claims) || !text.get(claims.clone())?.starts_with('e') {
        return None;
    }
    let signature = run(text, claims.end + 1, Letters::Url)?;
    Some(word.start..signature.end)
}

/// A token after `Bearer`.
fn shown_to_servers(text: &str, start: usize) -> Option<Range<usize>> {
    let place = run(text, start, Letters::Dotted)?;
    let token = text.get(place.clone())?;
    let is_mixed =
        token.bytes().any(|byte| byte.is_ascii_digit()) && token.bytes().any(|byte| byte.is_ascii_alphabetic());
    (token.len() >= 16 && is_mixed && is_varied(token)).then_some(place)
}

/// The password of an address.
fn password(text: &str, word: Range<usize>) -> Option<Range<usize>> {
    let before = word.start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
    if !before.is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let rest = text.as_bytes().get(word.end..)?;
    let ends = |byte: &u8| {
        matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\') || byte.is_ascii_whitespace()
    };
    let length = rest.iter().take(LONGEST_AUTHORITY).position(ends).unwrap_or(rest.len().min(LONGEST_AUTHORITY));
    let authority = rest.get(..length)?;
    let at = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority.iter().take(at).position(|byte| *byte == b':')?;
    let place = word.end + colon + 1..word.end + at;
    let said = text.get(place.clone())?;
    (said.len() >= 3 && !assigned::is_placeholder(said)).then_some(place)
}
