//! Every attack of the kit, by theme. SECURITY.md lists them; a house test holds both to each other.

mod headers;
mod json;
mod judged;
mod sessions;
mod states;

/// The kit's own child.
const CHILD: &str = env!("CARGO_BIN_EXE_toolwarden-hostile-child");
