//! What braces in a word may become.
//! Takes a word without its quotes; gives every text a shell may make of `{a,b}`; a range `{1..9}` becomes `*`. Work
//! is bounded: `None` where there are too many.

use crate::work;

const MOST_TEXTS: usize = 100;

pub(super) fn expanded(text: &str) -> Option<Vec<String>> {
    let mut finished = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(text) = open.pop() {
        work::went_through(&text);
        // The innermost pair first.
        let braces = text.rsplit_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
        match braces {
            Some((before, (inner, after))) if inner.contains("..") && !inner.contains(',') => {
                open.push(format!("{before}*{after}"));
            }
            Some((before, (inner, after))) => {
                open.extend(inner.split(',').map(|part| format!("{before}{part}{after}")));
            }
            None => finished.push(text),
        }
        if finished.len().saturating_add(open.len()) > MOST_TEXTS {
            return None;
        }
    }
    Some(finished)
}
