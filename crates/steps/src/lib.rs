//! The steps of a call, one file each, and what they share. `gateway` calls them in order: read its
//! `pipeline.rs` first.

pub mod answer;
pub mod arrival;
pub mod audit;
pub mod budgets;
pub mod catalog;
mod classify;
pub mod decide;
pub mod ending;
pub mod exchange;
pub mod flow;
pub mod following;
pub mod forward;
pub mod gateway;
mod guesses;
pub mod identify;
pub mod identities;
pub mod inspect;
pub mod moding;
pub mod news;
pub mod over;
pub mod parameters;
pub mod parks;
pub mod pinning;
pub mod places;
pub mod protection;
pub mod replacing;
pub mod resolve;
pub mod results;
pub mod review;
pub mod roots;
pub mod runs;
mod seldom;
pub mod settings;
pub mod visible;
pub mod visits;
pub mod watching;
pub mod way;

pub use gateway::Gateway;
