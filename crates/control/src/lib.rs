//! The clerk: every operation a person can do, one file each.
//!
//! An operation takes the clerk, who asks, and a request; gives an outcome. Requests and outcomes
//! travel as JSON, so the command line does the same beside a running server and without one.

mod actor;
mod changes;
mod clerk;
mod definitions;
mod error;
mod operation;
pub mod operations;
mod place;
mod remark;
mod seen;
mod selection;
mod servers;

pub use actor::{Actor, Via};
pub use changes::{Changes, Follower};
pub use clerk::{Clerk, ClerkParts};
pub use definitions::{DefinitionView, WaitingView};
pub use error::{ControlError, Fault};
pub use operation::{Kind, Needs, Operation};
pub use place::Place;
pub use remark::Remark;
pub use selection::Selection;
pub use servers::{RefusedPolicy, ServerView, Servers, ToolView};
