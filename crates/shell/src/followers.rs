//! Readers that follow links below the directories they are given, and programs that take names from files.
//! Takes a program and its arguments; gives the words whose trees have to be looked at, or the option behind which names
//! stand that the line does not show.

use crate::effects::Effects;
use crate::line::Word;
use crate::readers::path_words;
use crate::wrappers::listed;

/// Readers with the letters and the long options by which they follow links below a directory.
const FOLLOWERS: &[(&str, &str, &str)] = &[
    ("grep egrep fgrep zgrep", "R", "dereference-recursive"),
    ("rg ag ack fd fdfind", "Lf", "follow"),
    ("diff gdiff colordiff", "r", "recursive"),
    ("du gdu", "L", "dereference"),
    ("tree", "l", ""),
];

/// The trees a reader looks through, following links.
pub(super) fn effects(program: &str, arguments: &[Word]) -> Effects {
    let row = FOLLOWERS.iter().find(|(programs, _, _)| listed(programs, program));
    let follows = row.is_some_and(|(_, letters, long)| {
        arguments.iter().any(|word| match word.text.strip_prefix("--") {
            Some(option) => option.len() > 1 && long.starts_with(option),
            None => {
                word.text.strip_prefix('-').is_some_and(|bundle| bundle.contains(|letter| letters.contains(letter)))
            }
        })
    });
    if !follows {
        return Effects::default();
    }
    let is_operand = |word: &&Word| !word.text.starts_with('-');
    let mut sources: Vec<Word> = path_words(program, arguments).into_iter().filter(is_operand).cloned().collect();
    // Without a directory these search the one they run in.
    if sources.is_empty() || listed("rg ag ack fd fdfind", program) {
        sources.push(Word::literal("."));
    }
    Effects { sources, follows_links: true, ..Effects::default() }
}

/// Programs with the long options and the letters behind which a file with names stands.
const LISTS: &[(&str, &str, &str, &str)] = &[
    ("wc gwc du gdu sort gsort", "files0-from", "", ""),
    ("file", "files-from", "f", "FmeP"),
    ("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum sha2sum b2sum cksum md sha sum shasum", "check", "c", "a"),
    ("zip", "names-stdin", "@", ""),
    ("cloc", "list-file", "", ""),
    ("ctags", "", "L", ""),
];

/// Long options by which any program may take names from a file.
const LIST_OPTIONS: &str = "\
    files-from files0-from file-list filelist list-file input-file file-from pathspec-from-file paths-from names-from \
    from-file-list";

/// The option by which a program takes names from a file, which the line does not show.
pub(super) fn takes_names<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    let rows: Vec<_> = LISTS.iter().filter(|(programs, ..)| listed(programs, program)).collect();
    arguments.iter().map(|word| word.text.as_str()).find(|text| {
        if let Some(option) = text.strip_prefix("--") {
            let name = option.split('=').next().unwrap_or(option);
            let is_abbreviated = |(_, long, ..): &&(&str, &str, &str, &str)| {
                long.split_ascii_whitespace().any(|long| long.starts_with(name))
            };
            return !name.is_empty() && (listed(LIST_OPTIONS, name) || rows.iter().any(is_abbreviated));
        }
        let Some(bundle) = text.strip_prefix('-') else { return false };
        rows.iter().any(|(_, _, letters, valued)| {
            let own = bundle.split(|letter| valued.contains(letter)).next().unwrap_or(bundle);
            own.contains(|letter| letters.contains(letter))
        })
    })
}
