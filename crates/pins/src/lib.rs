//! Pins (GATE-12): what a person accepted of a server's definitions, and what is waiting to be.
//!
//! First sight is the baseline. Later an unknown definition is a new version: until somebody accepts it
//! the last accepted one is shown, and what is new is not shown at all. Several versions of one definition
//! can be accepted, because servers may answer differently to different credentials.

mod accepted;
mod addition;
mod book;
mod choice;
mod diff;
mod file;
mod irregular;
mod launch;
mod looks;
mod offers;
mod pins;
mod sighting;
mod told;
mod veil;

pub use book::{Book, Next};
pub use choice::{Waiting, choose, digest_of_waiting};
pub use diff::{Change, changes};
pub use file::{All, accept, all, fill, find, path, read, standing};
pub use pins::{Changes, Given, How, Kind, NotAccepted, Pin, Section, ServerPins, Standing, Version, short};
pub use sighting::{Noted, Shown, Sighted, Sighting};
pub use told::{Side, Told, reached, told};
pub use veil::{arguments_without_secrets, without_secrets};
