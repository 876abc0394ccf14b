//! Advice: what people are told about a policy without a call being judged.
//!
//! Mistakes in it (`lint`), what a new one newly allows (`widens`), and what a caller may use, as prompt
//! text (`describe`). Reads what the judge compiled, by the same views as everybody, and decides nothing.

mod describe;
mod lint;
mod widening;

pub use describe::describe;
pub use lint::{LABELS, annotations, lint};
pub use widening::{Widening, widens};
