//! The judge as tables: roles, modes, and every example of the seed documents.

mod admin;
mod bound;
mod edges;
mod kit;
mod modes;
mod own_files;
mod own_files_together;
mod owners;
mod reviewed;
mod roles;
mod seeds;
mod settling;
mod traces;
mod unknown;
