//! Limits of calls (GATE-13), at every level.

use toolwarden_policy::PolicySet;
use toolwarden_policy::input::LimitsInput;

use super::Found;

/// Those of the gateway, which count where no server or tool says otherwise.
pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let nothing = LimitsInput::default();
    if are_raised((nothing, before.base().limits), (nothing, after.base().limits)) {
        found.add("limit_raised", "the gateway has higher limits", None);
    }
}

/// Whether a level, over the one around it, lets more through than before.
pub(super) fn are_raised(
    (old, old_around): (LimitsInput, LimitsInput),
    (new, new_around): (LimitsInput, LimitsInput),
) -> bool {
    let (old_whole, new_whole) = (old.or(old_around), new.or(new_around));
    // Counts of calls act at every level by themselves.
    let counted = [(old, new), (old_around, new_around)];
    is_raised(old_whole.request_bytes, new_whole.request_bytes)
        || is_raised(old_whole.response_bytes, new_whole.response_bytes)
        || is_raised(old_whole.depth, new_whole.depth)
        || is_raised(old_whole.time, new_whole.time)
        || counted.iter().any(|(old, new)| is_raised(old.in_flight, new.in_flight))
        || counted.iter().any(|(old, new)| is_raised(old.per_minute, new.per_minute))
}

/// No limit is the highest. One that is set in place of a default counts as lower: the judge knows no defaults.
fn is_raised<T: Ord>(old: Option<T>, new: Option<T>) -> bool {
    old.is_some_and(|old| new.is_none_or(|new| new > old))
}
