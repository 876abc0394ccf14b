//! The machine that may pay for some holds: a model at an address, or a program, asked about one call at a time.
//!
//! Takes a held call as data; gives an opinion: allow, hold, or why there is none. Only a strict "allow" becomes a
//! payment, and whether that counts is the judge's word. Nothing here denies, and nothing here allows by default.

mod answer;
mod anthropic;
mod breaker;
mod budget;
mod cache;
mod classifier;
mod failure;
mod insistence;
mod ledger;
mod openai;
mod payment;
mod program;
mod question;
mod settings;

pub use classifier::{Classifier, Judged, Parts};
pub use failure::Failure;
pub use ledger::{Ledger, Spending, Unknown};
pub use payment::{goes_on, payment};
pub use question::{PROMPT_VERSION, Question};
pub use settings::{Kind, Money, Settings, Unusable};
