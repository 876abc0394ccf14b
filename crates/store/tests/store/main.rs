//! The journal and its index, from outside: recovery, tampering, crashes, delivery, queries; and the state people make.

mod approvals;
mod crash;
mod full_disk;
mod held_tasks;
mod indexing;
mod journaling;
mod kit;
mod properties;
mod retaining;
mod roots;
mod sharing;
mod state;
mod tampering;
mod tokens;
mod upgrades;
