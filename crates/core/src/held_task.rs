//! A held call that its caller follows as a task: how far it is, as data.

use serde::{Deserialize, Serialize};

/// How far the task of a held call is. Sealed where it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStage {
    /// A person has to say whether the call may be made; then it is made.
    Call,
    /// The call was made, and a person has to look at its result.
    Review,
    /// The call was made, and its server asks the client something first.
    Asks(TaskQuestions),
    /// Its server made a task of it: that one is followed.
    Passed(String),
    /// What the call gave: a result, as JSON.
    Result(String),
    /// Why it was not made, or what it gave is not shown: a result, as JSON.
    Refused(String),
    /// The same where it is an error.
    Error(String),
    Cancelled,
}

/// What a server asks in the course of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskQuestions {
    /// Each by its key, as JSON.
    pub requests: String,
    /// What the client said so far: keys, and answers as JSON.
    #[serde(default)]
    pub answers: Vec<(String, String)>,
    /// What the call has to bring back.
    #[serde(default)]
    pub state: Option<String>,
}
