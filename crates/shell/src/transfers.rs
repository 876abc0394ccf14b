//! Programs that fetch and send files by address: curl and wget.
//! Takes one and its arguments; gives the word by which it would do what no word of the line says: file names that
//! come from outside, variables, files written by a format. Addresses of files are paths, whoever their host is.

use crate::addresses::file_paths;
use crate::encodings::decoded;
use crate::ground::unquoted;
use crate::line::Word;

/// The word by which a transfer does what the line does not show.
pub(super) fn doubt<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    match program {
        "curl" => curl_doubt(arguments),
        "wget" => arguments.iter().map(|word| word.text.as_str()).find(|text| is_pattern_of_ftp(text)),
        _ => None,
    }
}

/// `ftp://host/*`: the server says which names there are.
fn is_pattern_of_ftp(text: &str) -> bool {
    let is_ftp = |text: &str| {
        let scheme = text.split(':').next().unwrap_or_default();
        text.contains(':') && ["ftp", "ftps"].iter().any(|known| known.eq_ignore_ascii_case(scheme))
    };
    text.contains(['*', '?', '[']) && is_ftp(text)
}

/// Short options of curl that take a value.
const CURL_VALUED: &str = "AbcCdDeEFhHKmoPQrtTuUwxXyYz";

fn curl_doubt(arguments: &[Word]) -> Option<&str> {
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        // `--expand-output '{{name}}'`, `--variable name@file`
        if text.starts_with("--expand") || text.starts_with("--remote-name-") {
            return Some(text);
        }
        let next = words.peek().map(|next| next.text.as_str());
        let value = match (text.strip_prefix("--"), text.strip_prefix('-')) {
            (Some(name), _) => {
                next.filter(|_| name.len() > 1 && ["write-out", "url"].iter().any(|known| known.starts_with(name)))
            }
            (None, Some(bundle)) => match bundle.char_indices().find(|(_, letter)| CURL_VALUED.contains(*letter)) {
                Some((at, 'w')) => bundle.get(at.saturating_add(1)..).filter(|glued| !glued.is_empty()).or(next),
                _ => None,
            },
            (None, None) => None,
        };
        // A format that writes files, and formats and addresses that stand in a file.
        if value.is_some_and(|value| value.starts_with('@') || value.contains("%output")) {
            return value;
        }
    }
    None
}

/// Files to which a transfer writes by an address, or by the last name of one.
pub(super) fn written(program: &str, arguments: &[Word]) -> Vec<Word> {
    let texts = || arguments.iter().filter(|word| !word.text.starts_with('-'));
    match program {
        "curl" => {
            let uploads = arguments.iter().any(|word| is_given(&word.text, 'T', "upload-file"));
            let keeps_name = arguments.iter().any(|word| is_given(&word.text, 'O', "remote-name"));
            let paths = texts().filter(|_| uploads).flat_map(addressed);
            let names = texts().filter(|_| keeps_name).filter_map(called);
            paths.chain(names).collect()
        }
        "wget" => texts().filter_map(called).collect(),
        _ => Vec::new(),
    }
}

/// The files that an address of files means.
fn addressed(word: &Word) -> Vec<Word> {
    let text = unquoted(word);
    let decode = |path: &str| decoded(path).unwrap_or_else(|| path.to_owned());
    let first = file_paths(&text).find(|path| path.starts_with('/')).or_else(|| file_paths(&text).next());
    first.map(|path| Word { text: decode(path), literal: word.literal }).into_iter().collect()
}

/// What a download from an address with a host is called: its last name.
fn called(word: &Word) -> Option<Word> {
    let text = unquoted(word);
    let (scheme, rest) = text.split_once("://").unwrap_or(("", &text));
    let (_, path) = rest.split_once('/')?;
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    let is_address = scheme.chars().all(|letter| letter.is_ascii_alphanumeric());
    let text = decoded(name).unwrap_or_else(|| name.to_owned());
    is_address.then_some(Word { text, literal: word.literal })
}

/// Whether a word is an option of curl or holds it among others.
fn is_given(text: &str, letter: char, long: &str) -> bool {
    if let Some(name) = text.strip_prefix("--") {
        return name.len() > 1 && long.starts_with(name.split('=').next().unwrap_or(name));
    }
    let Some(bundle) = text.strip_prefix('-') else { return false };
    let own = |other: &char| *other != letter && CURL_VALUED.contains(*other);
    bundle.chars().take_while(|other| !own(other)).any(|other| other == letter)
}
