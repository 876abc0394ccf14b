//! Who counts as watching.

use jiff::Timestamp;

use super::Attendance;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}

#[test]
fn somebody_watches_as_long_as_they_are_there_and_for_a_moment_after_they_looked() {
    let attendance = Attendance::default();
    assert!(!attendance.is_watched(at(1_000)));
    let (one, two) = (attendance.attend(), attendance.attend());
    assert!(attendance.is_watched(at(1_000)));
    drop(one);
    assert!(attendance.is_watched(at(1_000)));
    drop(two);
    assert!(!attendance.is_watched(at(1_000)));
    attendance.looked(at(1_000));
    assert!(attendance.is_watched(at(1_015)) && !attendance.is_watched(at(1_016)));
}
