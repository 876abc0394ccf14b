//! `approvals watch`: held calls as they come, answered by key.
//!
//! The screen and its rules are the room `watch`; the loop around it is in `running`.

mod running;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use toolwarden_control::ApprovalView;
use toolwarden_control::operations::{ApprovalsList, approvals_list};
use toolwarden_core::name::shown_json;
use toolwarden_watch::terminal;

use super::in_words;
use crate::clerk::Desk;
use crate::output::{self, BadInput, Exit};

const PAUSE: Duration = Duration::from_millis(500);
const PAGE: u32 = 200;
const MOST_PAGES: usize = 25;

pub fn watch(desk: &Desk, json: bool) -> Result<Exit> {
    if json {
        return lines(desk);
    }
    if !terminal::is_there() {
        return Err(BadInput(
            "`approvals watch` needs a terminal for its keys and its screen; use `toolwarden approvals list`, or \
             `toolwarden approvals watch --json` for a line of JSON for each call"
                .to_owned(),
        )
        .into());
    }
    running::run(desk)
}

/// The calls that are held, if anything moved since the last look; the oldest first. Page by page, so that the many
/// calls of one caller hide nobody else's.
async fn held(
    ask: impl AsyncFn(approvals_list::Request) -> Result<approvals_list::Outcome>,
    seen: &mut Option<u64>,
) -> Result<Option<Vec<ApprovalView>>> {
    let asked = approvals_list::Request { limit: Some(PAGE), since: *seen, ..approvals_list::Request::default() };
    let mut page = ask(asked).await?;
    if *seen == Some(page.version) {
        return Ok(None);
    }
    *seen = Some(page.version);
    let mut found = page.approvals;
    for _ in 1..MOST_PAGES {
        let Some(after) = page.next else { break };
        let asked =
            approvals_list::Request { limit: Some(PAGE), after: Some(after), ..approvals_list::Request::default() };
        page = ask(asked).await?;
        found.append(&mut page.approvals);
    }
    found.reverse();
    Ok(Some(found))
}

/// One line of JSON for each call that comes, until nobody reads.
fn lines(desk: &Desk) -> Result<Exit> {
    let (mut known, mut seen) = (BTreeSet::new(), None);
    loop {
        let found = desk.run(held(async |request| desk.answer::<ApprovalsList>(request).await, &mut seen))?;
        if let Some(found) = found {
            for view in found.iter().filter(|view| !known.contains(&view.id)) {
                let line = shown_json(&format!("{}\n", serde_json::to_string(view)?)).into_owned();
                if !output::text_read(&line)? {
                    return Ok(Exit::Done);
                }
            }
            known = found.into_iter().map(|view| view.id).collect();
        }
        desk.pause(PAUSE);
    }
}
