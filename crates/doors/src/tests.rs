//! The corridor against a server that records everything it receives.

mod asking;
mod bindings;
mod children;
mod doors;
mod eras;
mod fitting;
mod giving_up;
mod house;
mod leaving;
mod narrowing;
mod of_the_moment;
mod oldest;
mod one_roof;
mod open_questions;
mod oracle;
mod oracle_cases;
mod parking;
mod patience;
mod pinned;
mod pipe;
mod recorder;
mod resuming;
mod standing;
mod tasks;
mod transparency;
mod wire;
