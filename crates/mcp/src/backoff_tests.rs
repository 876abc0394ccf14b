//! Delays double, stop growing, and start over after a healthy life.

use std::time::Duration;

use super::Backoff;

#[test]
fn delays_double_up_to_half_a_minute_and_reset_after_a_minute_of_life() {
    let mut backoff = Backoff::new();
    let delays: Vec<u128> = (0..10).map(|_| backoff.delay_after(Duration::ZERO).as_millis()).collect();
    assert_eq!(delays, [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
    assert_eq!(backoff.delay_after(Duration::from_millis(59_999)).as_millis(), 30000);
    assert_eq!(backoff.delay_after(Duration::from_secs(60)).as_millis(), 250);
    assert_eq!(backoff.delay_after(Duration::ZERO).as_millis(), 500);
}
