//! House rules as tests: sizes, names, module docs, and who may depend on whom.

mod dependencies;
mod forging;
mod remedies;
mod requirements;
mod sizes;
mod workspace;
