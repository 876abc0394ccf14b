//! The clerk: every operation a person can do, one file each.
//!
//! An operation takes the clerk, who asks, and a request; gives an outcome. Requests and outcomes
//! travel as JSON, so the command line does the same beside a running server and without one.

mod actor;
mod approvals;
mod changes;
mod clerk;
mod deciding;
mod definitions;
mod editing;
mod error;
mod links;
mod naming;
mod narrowing;
mod operation;
pub mod operations;
mod own_calls;
mod place;
mod redact;
mod remark;
mod seen;
mod selection;
mod servers;
mod sessions;
mod watching;

pub use actor::{Actor, Role, TokenInUse, Via};
pub use approvals::{ApprovalView, Offer};
pub use changes::{Changes, Follower};
pub use clerk::{AnswerTimes, Clerk, ClerkParts};
pub use deciding::{Done, Terms};
pub use definitions::{DefinitionView, WaitingView};
pub use error::{ControlError, Fault, Sides};
pub use links::LINK_MARK;
pub use naming::{most_alike, or_nearest};
pub use narrowing::NarrowedOffer;
pub use operation::{Kind, Needs, Operation};
pub use place::Place;
pub use remark::Remark;
pub use selection::Selection;
pub use toolwarden_store::index::Used;

pub use servers::{RefusedPolicy, ServerView, Servers, ToolView};
pub use sessions::{SessionView, Stays};
pub use watching::{ControlEvent, Listening};
