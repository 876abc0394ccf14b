//! How much this thread has read, for tests that hold a call to its budget (WORK-1). Nothing is decided by it.

use std::cell::Cell;

/// So many bytes are one step.
const SIZE_OF_A_STEP: usize = 64;

thread_local! {
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Notes steps.
pub(super) fn took(steps: usize) {
    TAKEN.set(TAKEN.get().saturating_add(u64::try_from(steps).unwrap_or(u64::MAX)));
}

/// Notes that a text was gone through.
pub(super) fn went_through(text: &str) {
    took(1 + text.len() / SIZE_OF_A_STEP);
}

/// The steps since somebody asked last.
#[must_use]
pub fn work_taken() -> u64 {
    TAKEN.take()
}
