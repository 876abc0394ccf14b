//! What servers return, looked through for secrets and for characters that people do not see.
//!
//! Takes a result, an error or news as JSON; says what was found and what is to be shown instead. Nothing that
//! was found is repeated: a finding is a kind, a place and a length. Finds what leaks, not what is smuggled: a
//! server that encodes a secret gets it through.

mod assigned;
mod entropy;
mod findings;
mod hidden;
mod secrets;
mod shapes;
mod walk;

use std::cmp::Reverse;
use std::ops::Range;

use regex::RegexSet;
use toolwarden_core::json::Part;
use toolwarden_core::weak;
use toolwarden_sources::{HiddenText, Pattern, Screening, ScreeningRules};

pub use findings::{Finding, Findings};
pub use secrets::Secrets;
pub(crate) use secrets::of_member;
use walk::Walk;

/// So many places of one text are looked at; no honest one has more.
const MOST_PLACES: usize = 4096;
/// So many bytes are one step, where somebody counts them.
const SIZE_OF_A_STEP: usize = 64;
/// What a result is called that could not be looked through.
const UNSCREENED: &str = "unscreened";

/// How the results of one server are looked through.
#[derive(Debug)]
pub struct Screen {
    secrets_mode: Screening,
    hidden_mode: HiddenText,
    /// None where it could not be built: then nothing is shown.
    secrets: Option<Secrets>,
    patterns: Vec<Pattern>,
    /// All patterns at once; none where together they are too large.
    any_pattern: Option<RegexSet>,
}

/// What came of a look.
#[derive(Debug, Default)]
pub struct Seen {
    pub findings: Findings,
    /// The text to show instead; none where it stays as it is.
    pub changed: Option<String>,
    /// Whoever gets it is to be told what was found.
    pub is_marked: bool,
    /// It is not to be shown.
    pub is_withheld: bool,
}

/// Something in a text.
#[derive(Debug, Clone)]
struct Place<'s> {
    kind: &'s str,
    range: Range<usize>,
    /// Of two that overlap the lower one names the finding.
    rank: u8,
}

impl Screen {
    /// None where nothing is looked for.
    #[must_use]
    pub fn of(rules: &ScreeningRules) -> Option<Self> {
        if rules.secrets == Screening::Off && rules.hidden == HiddenText::Pass {
            return None;
        }
        let sources = rules.patterns.iter().map(|pattern| pattern.regex.as_str());
        Some(Self {
            secrets_mode: rules.secrets,
            hidden_mode: rules.hidden,
            secrets: Secrets::new(),
            any_pattern: RegexSet::new(sources).ok(),
            patterns: rules.patterns.clone(),
        })
    }

    /// Whether it was made by these rules.
    pub(crate) fn has_rules(&self, rules: &ScreeningRules) -> bool {
        let same = |(known, other): (&Pattern, &Pattern)| known.is_same(other);
        (self.secrets_mode, self.hidden_mode) == (rules.secrets, rules.hidden)
            && self.patterns.len() == rules.patterns.len()
            && self.patterns.iter().zip(&rules.patterns).all(same)
    }

    /// Whether something would be shown by these rules that is not now.
    pub(crate) fn is_stricter_than(&self, rules: &ScreeningRules) -> bool {
        let is_dropped = |known: &Pattern| !rules.patterns.iter().any(|other| known.is_same(other));
        self.secrets_mode > rules.secrets
            || self.hidden_mode > rules.hidden
            || (self.secrets_mode != Screening::Off && self.patterns.iter().any(is_dropped))
    }

    /// Looks through a result, an error or the params of news.
    #[must_use]
    pub fn look(&self, said: &Part) -> Seen {
        weak::worked(u64::try_from(1 + said.raw().len() / SIZE_OF_A_STEP).unwrap_or(u64::MAX));
        if self.secrets.is_none() && self.secrets_mode != Screening::Off {
            let mut seen = Seen { is_withheld: true, ..Seen::default() };
            seen.findings.add(UNSCREENED, "", 0);
            return seen;
        }
        Walk::through(self, said)
    }

    /// The secrets of one text, in order and apart from one another. `name` is that of the member whose value it
    /// is; `is_encoded` is a picture or the like.
    fn secrets_in(&self, text: &str, name: Option<&str>, is_encoded: bool) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        let Some(secrets) = self.secrets.as_ref().filter(|_| self.secrets_mode != Screening::Off) else {
            return places;
        };
        let beside = name.and_then(|name| of_member(name, text));
        places.extend(beside.map(|(kind, range)| Place { kind, range, rank: 1 }));
        secrets.find(text, !is_encoded, |kind, range, rank| {
            if places.len() < MOST_PLACES {
                places.push(Place { kind, range, rank });
            }
        });
        self.patterns_in(text, &mut places);
        if places.len() >= MOST_PLACES {
            // Too many to tell apart: all of it is one.
            return vec![Place { kind: UNSCREENED, range: 0..text.len(), rank: 0 }];
        }
        apart(places)
    }

    fn patterns_in<'s>(&'s self, text: &str, places: &mut Vec<Place<'s>>) {
        if self.any_pattern.as_ref().is_some_and(|any| !any.is_match(text)) {
            return;
        }
        for pattern in &self.patterns {
            let found = pattern.regex.find_iter(text).filter(|found| !found.is_empty());
            let left = MOST_PLACES.saturating_sub(places.len());
            places.extend(found.take(left).map(|found| Place { kind: &pattern.name, range: found.range(), rank: 0 }));
        }
    }

    /// The first pattern that a number matches. The other secrets are no numbers.
    fn pattern_of_number(&self, number: &str) -> Option<Place<'_>> {
        let mut places = Vec::new();
        if self.secrets_mode != Screening::Off {
            self.patterns_in(number, &mut places);
        }
        places.into_iter().next()
    }
}

/// Places that overlap become one.
fn apart(mut places: Vec<Place<'_>>) -> Vec<Place<'_>> {
    if places.len() < 2 {
        return places;
    }
    places.sort_by_key(|place| (place.range.start, Reverse(place.range.end)));
    let mut joined: Vec<Place<'_>> = Vec::with_capacity(places.len());
    for place in places {
        match joined.last_mut().filter(|last| place.range.start < last.range.end) {
            Some(last) => {
                last.range.end = last.range.end.max(place.range.end);
                if place.rank < last.rank {
                    (last.kind, last.rank) = (place.kind, place.rank);
                }
            }
            None => joined.push(place),
        }
    }
    joined
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
