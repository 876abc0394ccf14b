//! MODE-11: hours, days, zones, midnight, and the edges at which decisions expire.

use jiff::Timestamp;
use toolwarden_core::{Layer, Origin};

use super::CompiledWindow;
use crate::input::Window;

fn window(days: &[&str], hours: &[&str], zone: &str) -> Result<CompiledWindow, String> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let window = Window {
        origin: Origin::record(Layer::Config, "test"),
        days: owned(days),
        hours: owned(hours),
        time_zone: zone.to_owned(),
    };
    CompiledWindow::compile(&window).map_err(|fault| fault.to_string())
}

fn contains(days: &[&str], hours: &[&str], zone: &str, time: &str) -> Option<bool> {
    window(days, hours, zone).ok().zip(time.parse::<Timestamp>().ok()).map(|(window, time)| window.contains(time))
}

#[test]
fn mode_11_days_and_hours() {
    let weekdays = ["mon", "tue", "Wednesday", "thu", "fri"];
    // 2026-11-13 is a Friday.
    for (hours, zone, time, expected) in [
        ("09:00-17:00", "UTC", "2026-11-13T09:00:00Z", true),
        ("09:00-17:00", "UTC", "2026-11-13T17:00:00Z", false),
        ("09:00-17:00", "UTC", "2026-11-14T12:00:00Z", false),
        ("09:00-17:00", "Europe/Berlin", "2026-11-13T08:30:00Z", true),
        ("09:00-17:00", "America/New_York", "2026-11-13T13:30:00Z", false),
        ("22:00-06:00", "UTC", "2026-11-13T23:00:00Z", true),
        ("22:00-06:00", "UTC", "2026-11-14T05:59:00Z", true),
        ("22:00-06:00", "UTC", "2026-11-14T06:00:00Z", false),
        ("22:00-06:00", "UTC", "2026-11-16T05:00:00Z", false),
        ("00:00-24:00", "UTC", "2026-11-13T23:59:59Z", true),
    ] {
        assert_eq!(contains(&weekdays, &[hours], zone, time), Some(expected), "{hours} {zone} {time}");
    }
}

#[test]
fn mode_11_faults() {
    for (days, hours, zone, part) in [
        (&["someday"][..], &[][..], "UTC", "unknown day"),
        (&[], &["9-17"], "UTC", "no range of hours"),
        (&[], &["09:00-09:00"], "UTC", "no range of hours"),
        (&[], &["09:00-25:00"], "UTC", "no range of hours"),
        (&[], &["09:60-10:00"], "UTC", "no range of hours"),
        (&[], &[], "Mars/Olympus", "unknown time zone"),
    ] {
        let fault = window(days, hours, zone).err().unwrap_or_default();
        assert!(fault.contains(part), "{fault}");
    }
}

#[test]
fn mode_11_next_edge_is_where_the_answer_changes() {
    for (time, expected) in [
        ("2026-11-13T10:00:00Z", "2026-11-13T17:00:00Z"),
        ("2026-11-13T17:00:00Z", "2026-11-16T09:00:00Z"),
        ("2026-11-13T08:00:00Z", "2026-11-13T09:00:00Z"),
    ] {
        let found = window(&["mon", "fri"], &["09:00-17:00"], "UTC").ok();
        let edge = found.zip(time.parse().ok()).and_then(|(window, time)| window.next_edge(time));
        assert_eq!(edge, expected.parse().ok(), "{time}");
    }
}
