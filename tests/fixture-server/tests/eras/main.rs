//! Servers of one era: what they do, and what they say to clients of the other.

mod http;
mod program;
mod questions;
mod sse;
mod stdio;
mod tasks;
