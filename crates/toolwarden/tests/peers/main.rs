//! The gateway between programs nobody here wrote: real clients, real servers, and the conformance suite.
//!
//! What they need is installed by `make peers`; a test whose programs are missing fails. After each test the
//! journal of its home must verify, with an intent for every call that reached the fixture server.

mod approving;
mod bridged;
mod cancelling;
mod channels;
mod conformance;
mod crowd;
mod dying;
mod eras;
mod following;
mod headers;
mod house;
mod methods;
mod news;
mod pairs;
mod pairs_table;
mod peers;
mod processes;
mod questions;
mod refusals;
