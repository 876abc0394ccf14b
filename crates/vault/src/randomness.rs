//! Bytes nobody can guess, from the operating system.
//!
//! Not from the library of ciphers: before its first byte that measures the jitter of the processor, which takes 30 ms
//! of every start.

use aws_lc_rs::error::Unspecified;

/// # Errors
/// The operating system gives none.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), Unspecified> {
    getrandom::fill(bytes).map_err(|_| Unspecified)
}
