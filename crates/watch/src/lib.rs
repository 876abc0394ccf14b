//! The screen of `approvals watch`: held calls, the chosen one in full, and the keys that answer it.
//!
//! `board` has the state and its rules, `screen` draws it as data, `terminal` brings it to a terminal and reads keys.
//! Requests are made elsewhere: the board only says what it wishes.

pub mod board;
pub mod content;
mod describing;
pub mod keys;
pub mod screen;
pub mod terminal;
pub mod words;
