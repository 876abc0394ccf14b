//! A mode's hours: days, times of day, and a time zone (MODE-11).

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use toolwarden_core::name;

use crate::input::Window;

const MINUTES_OF_A_DAY: u16 = 24 * 60;

/// A window that is open at all is open within a week of any moment.
const DAYS_AHEAD: i64 = 8;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WindowFault {
    #[error("unknown time zone `{0}`; use an IANA name such as `Europe/Berlin` or `UTC`")]
    TimeZone(String),
    #[error("unknown day `{0}`; use mon, tue, wed, thu, fri, sat, sun")]
    Day(String),
    #[error("`{0}` is no range of hours; write `HH:MM-HH:MM`")]
    Hours(String),
}

/// A window with its zone looked up.
#[derive(Debug, Clone)]
pub(crate) struct CompiledWindow {
    zone: TimeZone,
    /// Monday first; empty was turned into all.
    days: [bool; 7],
    /// Minutes of the day, end exclusive; an end not after its start runs past midnight.
    ranges: Vec<(u16, u16)>,
}

impl CompiledWindow {
    pub(crate) fn compile(window: &Window) -> Result<Self, WindowFault> {
        let zone = TimeZone::get(&window.time_zone)
            .map_err(|_| WindowFault::TimeZone(name::shown(&window.time_zone).into_owned()))?;
        let mut days = [window.days.is_empty(); 7];
        for text in &window.days {
            let day = weekday(text).and_then(|day| days.get_mut(day_index(day)));
            *day.ok_or_else(|| WindowFault::Day(name::shown(text).into_owned()))? = true;
        }
        let mut ranges = Vec::new();
        for text in &window.hours {
            ranges.push(hours(text).ok_or_else(|| WindowFault::Hours(name::shown(text).into_owned()))?);
        }
        if ranges.is_empty() {
            ranges.push((0, MINUTES_OF_A_DAY));
        }
        Ok(Self { zone, days, ranges })
    }

    pub(crate) fn contains(&self, time: Timestamp) -> bool {
        let local = self.zone.to_datetime(time);
        let minute = minute_of_day(local.time());
        let today = self.has(local.date());
        let yesterday = local.date().yesterday().is_ok_and(|date| self.has(date));
        self.ranges.iter().any(|(start, end)| {
            if start < end {
                today && (*start..*end).contains(&minute)
            } else {
                (today && minute >= *start) || (yesterday && minute < *end)
            }
        })
    }

    /// Whether it is open only while the other is.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        self.zone == other.zone
            && self.days.iter().zip(other.days).all(|(own, other)| !own || other)
            && self.ranges.iter().all(|range| other.ranges.contains(range))
    }

    /// The next moment at which `contains` may answer otherwise.
    pub(crate) fn next_edge(&self, time: Timestamp) -> Option<Timestamp> {
        let today = self.zone.to_datetime(time).date();
        let minutes: Vec<u16> = self.ranges.iter().flat_map(|(start, end)| [*start, *end]).collect();
        let mut edges: Vec<Timestamp> = Vec::new();
        for offset in 0..=DAYS_AHEAD {
            let Ok(date) = today.checked_add(Span::new().days(offset)) else { continue };
            edges.extend(minutes.iter().flat_map(|minute| self.moments(date, *minute)));
        }
        // Where clocks change, local time jumps into or out of a window.
        edges.extend(self.zone.following(time).take(2).map(|transition| transition.timestamp()));
        edges.retain(|edge| *edge > time);
        edges.sort_unstable();
        let now = self.contains(time);
        edges.into_iter().find(|edge| self.contains(*edge) != now)
    }

    /// The moments at which the clock shows this minute: two where an hour is repeated.
    fn moments(&self, date: Date, minute: u16) -> impl Iterator<Item = Timestamp> {
        let start = date.to_datetime(Time::midnight());
        let local = start.checked_add(Span::new().minutes(i64::from(minute))).ok();
        let both = local.map(|local| {
            let ambiguous = self.zone.to_ambiguous_timestamp(local);
            [ambiguous.earlier().ok(), ambiguous.later().ok()]
        });
        both.into_iter().flatten().flatten()
    }

    fn has(&self, date: Date) -> bool {
        self.days.get(day_index(date.weekday())).copied().unwrap_or(false)
    }
}

fn day_index(day: Weekday) -> usize {
    usize::try_from(day.to_monday_zero_offset()).unwrap_or(0)
}

fn weekday(text: &str) -> Option<Weekday> {
    let days = [
        (Weekday::Monday, "monday"),
        (Weekday::Tuesday, "tuesday"),
        (Weekday::Wednesday, "wednesday"),
        (Weekday::Thursday, "thursday"),
        (Weekday::Friday, "friday"),
        (Weekday::Saturday, "saturday"),
        (Weekday::Sunday, "sunday"),
    ];
    let text = text.to_ascii_lowercase();
    days.into_iter().find(|(_, name)| *name == text || name.get(..3) == Some(text.as_str())).map(|(day, _)| day)
}

fn hours(text: &str) -> Option<(u16, u16)> {
    let (start, end) = text.split_once('-')?;
    let (start, end) = (clock(start.trim())?, clock(end.trim())?);
    (start != end && start < MINUTES_OF_A_DAY).then_some((start, end))
}

fn clock(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let is_number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(hour) || minute.len() != 2 || !is_number(minute) {
        return None;
    }
    let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
    let total = hour * 60 + minute;
    (minute < 60 && total <= MINUTES_OF_A_DAY).then_some(total)
}

fn minute_of_day(time: Time) -> u16 {
    u16::try_from(i32::from(time.hour()) * 60 + i32::from(time.minute())).unwrap_or(0)
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
