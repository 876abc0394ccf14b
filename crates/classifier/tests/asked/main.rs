//! A classifier asks stand-ins of real machines: what they are sent, and what of their answers counts.

mod bounds;
mod machines;
mod program;
mod standin;
mod strictness;
