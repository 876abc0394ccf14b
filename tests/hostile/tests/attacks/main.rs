//! Every attack of the kit, by theme. SECURITY.md lists them; a house test holds both to each other.

mod answers;
mod bridged;
mod changed;
mod costly;
mod followed;
mod headers;
mod held;
mod json;
mod judged;
mod names;
mod pipes;
mod questions;
mod screened;
mod secrets;
mod sessions;
mod states;
mod workspace;

/// The kit's own child.
const CHILD: &str = env!("CARGO_BIN_EXE_toolwarden-hostile-child");
