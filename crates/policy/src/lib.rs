//! The judge: a policy and a question in, allow, hold or deny out, with the reasons.
//!
//! Pure and synchronous: no files, no network, no clock (time is in the question). Read `decide.rs`
//! first, then `authorize.rs` and `autorun.rs`; everything else is what they look things up in.

mod admit;
mod allowlist;
mod approvers;
mod authorize;
mod autorun;
mod contents;
mod decide;
pub mod finding;
mod holds;
mod hosts;
mod housekeeping;
pub mod input;
mod input_modes;
mod instructions;
mod lists;
pub mod modes;
mod narrow_entry;
mod narrowed;
mod nearest;
mod numbers;
mod pattern;
mod permit;
mod query;
mod resolve;
pub mod roles;
mod roots;
pub mod rules;
mod schema;
mod self_protection;
pub mod servers;
mod set;
mod settings;
mod settle;
pub mod shipped;
mod subject;
mod verdict;

pub use admit::{METHODS as ADMITTED_METHODS, Message, WATCHING as WATCHING_METHODS, admit, is_call, known_methods};
pub use contents::{AdminContents, Contents, ListContents, LocalContents, UserContents};
pub use decide::{decide, is_visible, needs_labels_met};
pub use finding::{Finding, Severity};
pub use housekeeping::{METHODS as HOUSEKEEPING_METHODS, NotHousekeeping, acknowledge, decline, housekeeping};
pub use input::PolicyInput;
pub use instructions::Instructions;
pub use narrow_entry::{Likeness, NarrowEntry, NarrowFault, Narrowing};
pub use nearest::{NearestMiss, nearest_miss};
pub use permit::Permit;
pub use query::{Definition, Launcher, Query, Question, Tracing, Transport};
pub use resolve::{FlatName, resolve_flat_name};
pub use roots::permits_root;
pub use schema::{Schema, Work, briefly, missing_input_schema, read_input_schema, read_schema};
pub use set::{Base, PolicySet, Refused};
pub use settings::{AUTO_REVIEW, Settings, names_tool};
pub use settle::{Pending, settle};
/// The shell reader, under the name the judge uses for it.
pub use toolwarden_shell as shell;
pub use verdict::{Explanation, Outcome, RuleRef, Step, Verdict};
