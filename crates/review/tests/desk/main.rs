//! The desk from outside: what becomes of held calls when gateways end at every step, on both databases.

mod answering;
mod crashing;
mod engines;
mod following;
mod kit;
mod model;
mod telling;
