//! Memory: the audit journal, and a database with the index over it.
//!
//! A record is first a line in this node's hash-chained journal, then, delivered once, a row that
//! can be asked for. The journal is the truth; the index can be thrown away and built again.

pub mod database;
pub mod index;
pub mod journal;
mod keys;
mod sql;
pub mod state;

pub use database::{Database, DatabaseError, Engine, Location};
pub use index::{Index, IndexError};
pub use journal::{Health, Journal, JournalError, JournalOptions, Receipt, Recovery, SyncLevel};
pub use keys::{KeyRow, MasterKey, Phase, Roots, RootsError, Standing};
pub use state::{State, StateError};
