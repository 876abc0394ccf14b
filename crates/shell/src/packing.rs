//! Reads the arguments of `tar`, as far as it packs or lists.
//! Takes them; gives the archive that is written and what is packed. Refuses unpacking and every option that is not
//! listed here: abbreviations, names from files, changed names, programs.

use crate::effects::Effects;
use crate::line::Word;
use crate::wrappers::listed;

/// Short options without a value. `x` and the like are not among them.
const LETTERS: &str = "ctvzjJZaphSlWok";
/// Long options, alone or with a value behind `=` that is no path.
const FLAGS: &str = "\
    create list verbose gzip bzip2 xz zstd lzma lzip compress auto-compress dereference no-recursion preserve-permissions \
    same-permissions exclude exclude-vcs exclude-vcs-ignores exclude-caches exclude-backups sort mtime owner group \
    numeric-owner format sparse one-file-system totals utc help version same-owner no-same-owner ungzip gunzip";
/// Long options whose value may be the next word.
const VALUED: &str = "exclude sort mtime owner group format";

/// The state of reading.
#[derive(Default)]
struct Packing {
    effects: Effects,
    /// The directories of `-C` so far, each seen from the one before.
    directory: String,
    letters: String,
    archive: Option<Word>,
}

/// What packing or listing does. Fails with the word that is neither.
pub(super) fn tar(arguments: &[Word]) -> Result<Effects, &str> {
    let mut packing = Packing::default();
    let mut words = arguments.iter();
    let mut is_first = true;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let is_old_style = is_first && !text.starts_with('-');
        is_first = false;
        if text == "--" {
            words.by_ref().for_each(|operand| packing.operand(operand));
        } else if let Some(option) = text.strip_prefix("--") {
            packing.long(option, &mut words).ok_or(text)?;
        } else if is_old_style {
            // The values of old-style letters stand behind them in the same order.
            for letter in text.chars() {
                packing.letter(letter, "", &mut words).ok_or(text)?;
            }
        } else if let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
            packing.bundle(bundle, &mut words).ok_or(text)?;
        } else {
            packing.operand(word);
        }
    }
    let first = arguments.first().map_or("", |word| word.text.as_str());
    packing.finish().ok_or(first)
}

impl Packing {
    fn operand(&mut self, word: &Word) {
        let text = crate::ground::unquoted(word);
        let is_rooted = text.starts_with(['/', '~']) || self.directory.is_empty();
        let joined = if is_rooted { text } else { format!("{}/{text}", self.directory) };
        self.effects.sources.push(Word { text: joined, literal: word.literal });
    }

    fn enter(&mut self, directory: &str) {
        let is_rooted = directory.starts_with(['/', '~']) || self.directory.is_empty();
        self.directory = if is_rooted { directory.to_owned() } else { format!("{}/{directory}", self.directory) };
    }

    fn bundle<'a>(&mut self, bundle: &str, words: &mut impl Iterator<Item = &'a Word>) -> Option<()> {
        for (at, letter) in bundle.char_indices() {
            let glued = bundle.get(at.saturating_add(letter.len_utf8())..).unwrap_or_default();
            if self.letter(letter, glued, words)? == Took::Rest {
                return Some(());
            }
        }
        Some(())
    }

    /// One short option; `None` for one that is not listed or has no value.
    fn letter<'a>(&mut self, letter: char, glued: &str, words: &mut impl Iterator<Item = &'a Word>) -> Option<Took> {
        if LETTERS.contains(letter) {
            self.letters.push(letter);
            return Some(Took::Nothing);
        }
        let value = if glued.is_empty() { words.next().cloned()? } else { Word::raw(glued) };
        match letter {
            'f' => self.archive = Some(value),
            'C' => self.enter(&crate::ground::unquoted(&value)),
            'b' => {}
            _ => return None,
        }
        Some(Took::Rest)
    }

    fn long<'a>(&mut self, option: &str, words: &mut impl Iterator<Item = &'a Word>) -> Option<()> {
        let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        match name {
            "file" | "directory" => {
                let letter = if name == "file" { 'f' } else { 'C' };
                self.letter(letter, value.unwrap_or_default(), words)?;
                return Some(());
            }
            "create" => self.letters.push('c'),
            "list" => self.letters.push('t'),
            "dereference" => self.letters.push('h'),
            _ if !listed(FLAGS, name) => return None,
            _ => {}
        }
        if value.is_none() && listed(VALUED, name) {
            words.next()?;
        }
        Some(())
    }

    fn finish(mut self) -> Option<Effects> {
        // An archive on another machine is reached by a program; `k` and `l` only matter where files are written.
        let is_remote = |word: &Word| word.text.split('/').next().is_some_and(|host| host.contains(':'));
        if self.archive.as_ref().is_some_and(is_remote) {
            return None;
        }
        let packs = self.letters.contains('c');
        if packs == self.letters.contains('t') {
            return matches!(self.letters.as_str(), "").then_some(self.effects);
        }
        if packs {
            self.effects.written.extend(self.archive);
            self.effects.follows_links = self.letters.contains('h');
        } else {
            // Listing compares the operands with the names in the archive.
            self.effects.sources = self.archive.into_iter().collect();
        }
        self.effects.reads_the_rest = true;
        Some(self.effects)
    }
}

/// How much of a bundle a letter used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Took {
    Nothing,
    Rest,
}
