//! The judge.

pub mod input;
mod input_modes;
