//! What every operation is: a name, a path, a request, an outcome, and a function between them.

use std::fmt::Debug;
use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::actor::{Actor, Role};
use crate::clerk::Clerk;
use crate::error::ControlError;

/// How a request travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Asks only, and is small and flat: GET, in the query string.
    Read,
    /// Changes something, or says too much for a query string: POST, as JSON.
    Post,
}

/// What an operation cannot do without, so that the command line opens no more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Files,
    /// What people decided, where anything was; nothing is made for it.
    Policy,
    Index,
    IndexAndKey,
    IndexAndPolicy,
    /// What people decided, to be read.
    State,
    /// The journal and what people decided, to be changed.
    Journal,
}

/// One operation.
pub trait Operation: Debug + Send + Sync + 'static {
    const PATH: &'static str;
    const KIND: Kind;
    const NEEDS: Needs;
    /// Who may ask for it. Admins may ask for everything.
    const FOR: Role;
    /// Who else.
    const ALSO_FOR: Option<Role> = None;
    type Request: Serialize + DeserializeOwned + Debug + Send;
    type Outcome: Serialize + DeserializeOwned + Debug + Send;

    /// Whether somebody may ask for it.
    #[must_use]
    fn is_for(actor: &Actor) -> bool {
        actor.is(Self::FOR) || Self::ALSO_FOR.is_some_and(|role| actor.is(role))
    }

    /// The rights it is for, in words.
    #[must_use]
    fn rights() -> String {
        let also = Self::ALSO_FOR.map(|role| format!(" or {}", role.as_str())).unwrap_or_default();
        format!("{}{also}", Self::FOR.as_str())
    }

    /// Does it.
    fn run(
        clerk: &Clerk,
        actor: &Actor,
        request: Self::Request,
    ) -> impl Future<Output = Result<Self::Outcome, ControlError>> + Send;
}
