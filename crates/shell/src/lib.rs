//! Reads one shell command line and says what it would run.
//! Takes the text an agent wants to run; gives its simple commands, whether a terminal allowlist covers
//! them, whether a blocklist, a deletion or Toolwarden itself is touched. Pure: no files, no clock, no shell.
//! Refuses (as `Unparsable`) every line whose tree is not fully understood; what is doubtful but readable
//! becomes an `Obstacle`, which no allowlist entry overcomes.

mod addresses;
mod allowlist;
mod argued;
mod blocked;
mod braces;
mod compounds;
mod deletion;
mod effects;
mod encodings;
mod entry;
mod executed;
mod expansions;
mod facts;
mod folded;
mod followers;
mod git;
mod git_forms;
mod ground;
mod handed;
mod heredoc;
mod interpreters;
mod line;
mod lookups;
mod modules;
mod obstacles;
mod options;
mod packing;
mod paths;
mod patterns;
mod places;
mod processes;
mod reach;
mod read;
mod reader_options;
mod readers;
mod redirections;
mod sed_scripts;
mod self_protection;
mod stopping;
mod transfers;
mod tree;
mod unpacking;
mod variables;
mod verbs;
mod words;
mod work;
mod wrappers;

#[cfg(test)]
mod bash_oracle_tests;
#[cfg(test)]
mod entry_tests;
#[cfg(test)]
mod git_oracle_tests;
#[cfg(test)]
mod lookups_tests;
#[cfg(test)]
mod property_tests;
#[cfg(test)]
mod reach_tests;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod self_protection_tests;
#[cfg(test)]
mod table_tests;

pub use addresses::{file_paths, is_file_address};
pub use allowlist::{Coverage, ShellAllowlist, candidate};
pub use argued::{is_toolwarden, text_changes_toolwarden, verb_behind, words_change_toolwarden};
pub use blocked::{BlockedMatch, Blocklist};
pub use deletion::{Deletion, deletes};
pub use encodings::decoded;
pub use entry::{EntryFault, Glob, ShellEntry};
pub use executed::executed_below;
pub use facts::{FileFacts, Gathered, Questions, Real, Repository, Tree};
pub use line::{Direction, Obstacle, Redirection, ShellLine, SimpleCommand, Unparsable, Word};
pub use lookups::{Position, questions, strays};
pub use paths::{normalise, redirections_stay_inside};
pub use places::Places;
pub use processes::shows_processes;
pub use reach::command_names;
pub use read::read;
pub use self_protection::{Belongings, changes_toolwarden, touches_toolwarden};
pub use work::work_taken;
