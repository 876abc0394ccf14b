//! Files on a disk into the judge's input: one test program, one module for each theme.

mod broken;
mod editing;
mod following;
mod following_calls;
mod following_everywhere;
mod following_git;
mod granting;
mod home;
mod keys;
mod layers;
mod properties;
mod real_files;
mod stored;
mod trust;
mod unusual;
