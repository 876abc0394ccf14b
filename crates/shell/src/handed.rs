//! What one command of a line finds or says for another: `find .. | xargs cat`, `cat $(echo x)`.
//! Takes a read line, or the arguments of `find`; gives whether words are handed over, and the protected path that may be
//! among them. Only names that stand in the line are judged: what other programs print is not known.

use std::path::{Path, PathBuf};

use crate::ground::{Ground, forms};
use crate::line::{ShellLine, SimpleCommand, Word};
use crate::paths::normalise;
use crate::patterns;
use crate::wrappers::{listed, program};

pub(super) fn reads(place: &Path) -> String {
    format!("reads {}, which holds keys or data of toolwarden", place.display())
}

/// Whether what one command of a line prints may become words of another.
pub(super) fn hands_over(line: &ShellLine) -> bool {
    let gives = |one: &SimpleCommand| {
        one.command_word.as_ref().is_some_and(|word| {
            let name = program(&word.text);
            listed("xargs gxargs parallel read mapfile readarray", &name)
                || one.arguments.iter().any(|word| word.text == "xargs")
        })
    };
    line.source.contains("$(") || line.source.contains('`') || line.commands.iter().any(gives)
}

impl Ground<'_> {
    /// The protected path that `find` may give to another command: below one of its directories, and of a name that fits.
    pub(super) fn found_by(&self, arguments: &[Word]) -> Option<&Path> {
        let names = |path: &Path| -> Vec<String> {
            path.iter().map(|name| name.to_string_lossy().to_ascii_lowercase()).filter(|name| name != "/").collect()
        };
        let texts = || arguments.iter().map(|word| word.text.as_str());
        let is_simple = !texts().any(|text| matches!(text, "-o" | "-or" | "!" | "-not" | ","));
        let mut pairs = arguments.windows(2).filter_map(|pair| match pair {
            [option, value] if matches!(option.text.as_str(), "-name" | "-iname") => Some(value),
            _ => None,
        });
        let name = pairs.next().filter(|value| is_simple && value.literal).map(|value| value.text.to_ascii_lowercase());
        let here = Word::literal(".");
        let given: Vec<&Word> = arguments
            .iter()
            .take_while(|word| !word.text.starts_with(['-', '!', '(']) || word.text.len() < 2)
            .collect();
        let roots = if given.is_empty() { vec![&here] } else { given };
        let spots: Vec<PathBuf> = roots.into_iter().flat_map(forms).flat_map(|form| self.spots(&form)).collect();
        self.protected.iter().map(PathBuf::as_path).find(|place| {
            spots.iter().any(|spot| {
                let mut pattern = names(&normalise(spot));
                pattern.extend(["**".to_owned(), name.clone().unwrap_or_else(|| "**".to_owned())]);
                let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
                patterns::reaches(&pattern, &names(place))
            })
        })
    }
}
