//! The program as people use it: real files in a fresh home, the real binary, its words and exit codes.

mod allowing;
mod beside;
mod breaking;
mod comparing;
mod confirming;
mod doctoring;
mod ending;
mod explaining;
mod hiding;
mod house;
mod identifying;
mod linting;
mod looking;
mod observing;
mod pinning;
mod recording;
mod reference;
mod restarting;
mod server;
mod signals;
mod socket;
mod stopping;
mod storing;
mod tailing;
mod trusting;
mod unseen;
