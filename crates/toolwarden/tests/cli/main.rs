//! The program as people use it: real files in a fresh home, the real binary, its words and exit codes.

mod allowing;
mod breaking;
mod explaining;
mod house;
mod linting;
mod looking;
mod reference;
mod trusting;
