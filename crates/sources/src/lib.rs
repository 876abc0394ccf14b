//! The library: files people already have, plus what the store holds, into the judge's input.
//!
//! Everything arrives through `Locations`; nothing here reads the environment or the clock. A file
//! that is missing, untrusted or broken grants nothing, and a finding says so.

mod argument_paths;
pub mod earlier;
pub mod edit;
mod entries;
mod env_file;
mod files;
mod finding;
mod git_index;
mod git_places;
mod glob;
mod load;
mod locations;
mod lock;
pub mod lookup;
pub mod readers;
pub mod records;
mod report;
mod repositories;
pub mod stored;
mod trees;
pub mod trust;

use toolwarden_trees as tree;

pub use entries::List;
pub use files::FileError;
pub use finding::{Finding, Severity, merged};
pub use load::{Loaded, Refusal, SourceState, SourceStatus, StoreChoice, load, load_store};
pub use locations::{CONFIG_NAME, Locations, WorkspaceTrust};
pub use lock::DataLock;
pub use readers::config::audit::{AuditSection, RedactionRules};
pub use readers::config::screening::{HiddenText, Pattern, Screening, ScreeningRules};
pub use readers::config::{ConfigFile, WebhookSection};
pub use readers::server::{ServerDefinition, Share, Transport};
pub use readers::{SourceKind, check_bytes, check_file};
pub use report::{Reading, misspelt, nearest};
pub use stored::make_data_directory;
