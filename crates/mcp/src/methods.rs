//! Every method of every revision: who sends it, what it is, and how the corridor treats it.
//!
//! The table is the whole of what may pass; a method that is not in it is refused. A test compares
//! it with the method names of the published schemas.

use crate::versions::Version;

/// Who sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    ToServer,
    ToClient,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    Request,
    Notification,
}

/// What the corridor does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// Opens a conversation: `initialize`, `server/discover`.
    Opening,
    /// A call: judged whole, recorded before it leaves.
    Call,
    /// A list: passes with its server, filtered entry by entry.
    List,
    /// Watches something: `resources/subscribe`, `subscriptions/listen`.
    Watch,
    /// Speaks of a task, which belongs to whoever started it.
    Task,
    /// Protocol housekeeping: passes with its server.
    Plain,
    /// Speaks of a request by its id; only of the sender's own.
    Cancel,
    /// Something a server asks of a client (GATE-18).
    Question,
    /// News from a server.
    News,
}

/// One row.
#[derive(Debug, Clone, Copy)]
pub struct Method {
    pub name: &'static str,
    pub direction: Direction,
    pub form: Form,
    pub treatment: Treatment,
    pub since: Version,
    pub until: Version,
}

use Direction::{ToClient, ToServer};
use Form::{Notification, Request};
use Version::{V2024_11_05, V2025_06_18, V2025_11_25, V2026_07_28};

const fn row(
    name: &'static str,
    direction: Direction,
    form: Form,
    treatment: Treatment,
    since: Version,
    until: Version,
) -> Method {
    Method { name, direction, form, treatment, since, until }
}

/// The table.
pub const METHODS: &[Method] = &[
    row("initialize", ToServer, Request, Treatment::Opening, V2024_11_05, V2025_11_25),
    row("notifications/initialized", ToServer, Notification, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("server/discover", ToServer, Request, Treatment::Opening, V2026_07_28, V2026_07_28),
    row("ping", ToServer, Request, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("tools/list", ToServer, Request, Treatment::List, V2024_11_05, V2026_07_28),
    row("tools/call", ToServer, Request, Treatment::Call, V2024_11_05, V2026_07_28),
    row("resources/list", ToServer, Request, Treatment::List, V2024_11_05, V2026_07_28),
    row("resources/templates/list", ToServer, Request, Treatment::List, V2024_11_05, V2026_07_28),
    row("resources/read", ToServer, Request, Treatment::Call, V2024_11_05, V2026_07_28),
    row("resources/subscribe", ToServer, Request, Treatment::Watch, V2024_11_05, V2025_11_25),
    row("resources/unsubscribe", ToServer, Request, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("subscriptions/listen", ToServer, Request, Treatment::Watch, V2026_07_28, V2026_07_28),
    row("prompts/list", ToServer, Request, Treatment::List, V2024_11_05, V2026_07_28),
    row("prompts/get", ToServer, Request, Treatment::Call, V2024_11_05, V2026_07_28),
    row("completion/complete", ToServer, Request, Treatment::Call, V2024_11_05, V2026_07_28),
    row("logging/setLevel", ToServer, Request, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("notifications/cancelled", ToServer, Notification, Treatment::Cancel, V2024_11_05, V2026_07_28),
    row("notifications/progress", ToServer, Notification, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("notifications/roots/list_changed", ToServer, Notification, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("tasks/get", ToServer, Request, Treatment::Task, V2025_11_25, V2026_07_28),
    row("tasks/result", ToServer, Request, Treatment::Task, V2025_11_25, V2025_11_25),
    row("tasks/list", ToServer, Request, Treatment::Task, V2025_11_25, V2025_11_25),
    row("tasks/cancel", ToServer, Request, Treatment::Task, V2025_11_25, V2026_07_28),
    row("tasks/update", ToServer, Request, Treatment::Task, V2026_07_28, V2026_07_28),
    row("notifications/tasks/status", ToServer, Notification, Treatment::Plain, V2025_11_25, V2025_11_25),
    row("ping", ToClient, Request, Treatment::Plain, V2024_11_05, V2025_11_25),
    row("sampling/createMessage", ToClient, Request, Treatment::Question, V2024_11_05, V2026_07_28),
    row("elicitation/create", ToClient, Request, Treatment::Question, V2025_06_18, V2026_07_28),
    row("roots/list", ToClient, Request, Treatment::Question, V2024_11_05, V2026_07_28),
    row("tasks/get", ToClient, Request, Treatment::Task, V2025_11_25, V2025_11_25),
    row("tasks/result", ToClient, Request, Treatment::Task, V2025_11_25, V2025_11_25),
    row("tasks/list", ToClient, Request, Treatment::Task, V2025_11_25, V2025_11_25),
    row("tasks/cancel", ToClient, Request, Treatment::Task, V2025_11_25, V2025_11_25),
    row("notifications/cancelled", ToClient, Notification, Treatment::Cancel, V2024_11_05, V2026_07_28),
    row("notifications/progress", ToClient, Notification, Treatment::News, V2024_11_05, V2026_07_28),
    row("notifications/message", ToClient, Notification, Treatment::News, V2024_11_05, V2026_07_28),
    row("notifications/resources/list_changed", ToClient, Notification, Treatment::News, V2024_11_05, V2026_07_28),
    row("notifications/resources/updated", ToClient, Notification, Treatment::News, V2024_11_05, V2026_07_28),
    row("notifications/tools/list_changed", ToClient, Notification, Treatment::News, V2024_11_05, V2026_07_28),
    row("notifications/prompts/list_changed", ToClient, Notification, Treatment::News, V2024_11_05, V2026_07_28),
    row("notifications/elicitation/complete", ToClient, Notification, Treatment::News, V2025_11_25, V2025_11_25),
    row("notifications/tasks/status", ToClient, Notification, Treatment::News, V2025_11_25, V2025_11_25),
    row("notifications/tasks", ToClient, Notification, Treatment::News, V2026_07_28, V2026_07_28),
    row("notifications/subscriptions/acknowledged", ToClient, Notification, Treatment::News, V2026_07_28, V2026_07_28),
];

impl Method {
    /// The row of a method in one revision; none = refused.
    #[must_use]
    pub fn find(name: &str, direction: Direction, form: Form, version: Version) -> Option<&'static Self> {
        METHODS.iter().find(|row| {
            row.name == name
                && row.direction == direction
                && row.form == form
                && (row.since..=row.until).contains(&version)
        })
    }
}
