//! Who is told of held calls elsewhere: webhooks, signed, delivered from the store's outbox until somebody takes them.
//!
//! What an integration answers comes back here, too: signed by the same secret, and in the name of the one person the
//! config says it speaks for.

mod answers;
mod courier;
mod payload;
mod signature;
pub mod upgrading;
mod webhook;

pub use answers::{Answers, NotAnswered};
pub use courier::Courier;
pub use signature::{NotSigned, Signed};
pub use webhook::{Format, Webhook, WebhookError, WebhookParts};
