//! Programs that read what they are given and never change it, and which words of a command are paths.
//! Takes a program's name and its arguments; gives what self-protection and the places whose files are executed need
//! to know of them. Any program that is not listed may write to each of its arguments.

use crate::effects::sed_operands;
use crate::line::Word;
use crate::reader_options;
use crate::wrappers::listed;

const READERS: &str = "\
    cat ls head tail more grep egrep fgrep rg stat wc diff file md5sum sha1sum sha256sum sha512sum cmp cd pwd echo \
    printf test [ true false realpath dirname basename du";

/// Whether the program only reads.
pub(super) fn is_reader(program: &str) -> bool {
    listed(READERS, program)
}

/// These open no file they are given.
const SPEAKERS: &str = "echo printf test [ true false basename dirname pwd";

/// Whether the program opens files it is given.
pub(super) fn opens_files(program: &str) -> bool {
    !listed(SPEAKERS, program)
}

/// The arguments that may be paths. Patterns and scripts are left out where every option of the line is known.
pub(super) fn path_words<'a>(program: &str, arguments: &'a [Word]) -> Vec<&'a Word> {
    if listed(SPEAKERS, program) {
        return Vec::new();
    }
    let known = match program {
        "sed" | "gsed" => Some(sed_operands(arguments)),
        // A filter may read modules: `import "x" as $y`, `include "x"`.
        "jq" if arguments.iter().any(|word| word.text.contains("import") || word.text.contains("include")) => None,
        _ => reader_options::path_words(program, arguments),
    };
    known.unwrap_or_else(|| arguments.iter().collect())
}

/// Readers that show what is in the files they are given.
const SHOWS: &str = "cat head tail more grep egrep fgrep rg diff cmp";

/// Whether the program shows contents of files, rather than their names, sizes or digests.
pub(super) fn shows_contents(program: &str) -> bool {
    listed(SHOWS, program)
}

/// Whether a reader may go through whole trees. Wide: abbreviated options count, and so do others that look like them.
pub(super) fn is_recursive(program: &str, arguments: &[Word]) -> bool {
    let has_modes = listed("grep egrep fgrep diff", program);
    let may_recurse = |word: &Word| match (word.text.strip_prefix("--"), word.text.strip_prefix('-')) {
        (Some(long), _) => long.contains("recurs") || (has_modes && long.starts_with(['r', 'd'])),
        (None, Some(bundle)) => bundle.contains(['r', 'R']) || (has_modes && bundle.contains('d')),
        (None, None) => false,
    };
    matches!(program, "rg" | "du") || arguments.iter().any(may_recurse)
}

/// Whether a word is nothing but a variable as loops have them (`$f`, `"${file}"`): the words a loop gives it are looked
/// at by themselves. Those of the environment have capital letters, and `$_` is the last word of another command.
pub(super) fn is_loop_variable(word: &Word) -> bool {
    variable(word).is_some()
}

/// The name of the variable that is the whole word.
fn variable(word: &Word) -> Option<&str> {
    // A quoted `$d` is a script of sed.
    if word.literal {
        return None;
    }
    let text = word.text.trim_matches('"');
    let braced = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let is_name = |name: &&str| {
        name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    braced.or_else(|| text.strip_prefix('$')).filter(is_name)
}

/// Whether a variable is one of the loops of its line and stands for exactly one operand each time: a shell parts an
/// unquoted one at blanks, also in the names of files that a pattern matches.
pub(super) fn is_one_operand(word: &Word, loops: &[String], values: &[Word]) -> bool {
    let is_quoted = word.text.starts_with('"');
    let is_operand = |value: &Word| {
        let text = value.text.as_str();
        let is_whole = is_quoted || (value.literal && !text.contains(char::is_whitespace));
        is_whole && !text.is_empty() && !text.starts_with(['-', '\'', '"', '$'])
    };
    variable(word).is_some_and(|name| loops.iter().any(|one| one == name)) && values.iter().all(is_operand)
}

/// Whether a word begins with `~bob`, `~-` or `~2`: a directory that only the shell knows. `~` and `~+` are known.
pub(super) fn names_other_home(text: &str) -> bool {
    text.strip_prefix('~').is_some_and(|rest| !matches!(rest.chars().next(), None | Some('/' | '+')))
}

/// Whether a word is what a command prints: names that come from programs.
pub(super) fn is_substituted(word: &Word) -> bool {
    !word.literal && (word.text.contains("$(") || word.text.contains('`'))
}

/// Whether a word is expanded to something that cannot be known from the line. The home and the working directory
/// are known.
pub(super) fn is_unknowable(word: &Word) -> bool {
    if names_other_home(&word.text) {
        return true;
    }
    if word.literal {
        return false;
    }
    let mut text = word.text.replace(['"', '\''], "");
    for known in ["${HOME}", "${PWD}", "$HOME/", "$PWD/"] {
        text = text.replace(known, "/");
    }
    let text = ["$HOME", "$PWD"].iter().fold(text.as_str(), |text, known| text.strip_suffix(known).unwrap_or(text));
    text.contains(['$', '`']) || text.contains("<(") || text.contains(">(")
}
