//! The journal and its index, from outside: recovery, tampering, crashes, delivery, queries.

mod crash;
mod full_disk;
mod indexing;
mod journaling;
mod kit;
mod properties;
mod tampering;
