//! House rules as tests: sizes, names, module docs, attacks, and who may depend on whom.

mod attacks;
mod dependencies;
mod forging;
mod honest;
mod remedies;
mod requirements;
mod settings;
mod sizes;
mod stable_names;
mod workspace;
