//! Every attack of the kit, by theme. SECURITY.md lists them; a house test holds both to each other.

mod json;

/// The kit's own child.
const CHILD: &str = env!("CARGO_BIN_EXE_toolwarden-hostile-child");
