//! Who pays for a hold: persons, by answers that are kept; each answer good for the one call it was given for.
//!
//! Takes held calls from the corridor; gives payments, which `policy::settle` weighs. Knows neither the wire nor where
//! persons are.

mod agreement;
mod desk;
mod grants;
mod keeping;
mod payment;
mod standing;
mod taken;
mod tasks;

pub use desk::{Asking, Desk, Marks, NotKept, Parts, Raised, Times, Turned};
pub use grants::may_be_granted;
pub use keeping::RecoveryError;
pub use payment::{goes_on, payment};
pub use standing::Standing;
pub use taken::{NotTaken, Taken};
pub use tasks::TASK_PREFIX;
pub use toolwarden_store::state::{Approval, HeldTask, StateError};
