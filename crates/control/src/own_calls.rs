//! A policy change is no way to answer one's own call (SELF-5).
//!
//! Takes the credential that makes a change; refuses what would newly allow something while a call of the same
//! credential was asked for and not permitted. The local person at the machine itself is not concerned.

use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::ApprovalState;
use toolwarden_store::state::{ApprovalFilter, Tally};

use crate::{Actor, Clerk, ControlError};

/// How long a call that nobody permitted counts. Longer than a held call waits.
const COUNTS: Duration = Duration::from_secs(24 * 60 * 60);
const PAGE: u32 = 200;
/// With more calls than these in a day nobody looks through them: the change is refused.
const MOST_PAGES: usize = 50;

/// Calls that somebody asked for and nobody permitted.
const NOT_PERMITTED: [ApprovalState; 4] =
    [ApprovalState::Held, ApprovalState::Rejected, ApprovalState::Expired, ApprovalState::Cancelled];

impl Clerk {
    /// Refuses a change that newly allows something, made with a credential whose own calls nobody permitted.
    ///
    /// # Errors
    /// There is such a call, or it cannot be looked up.
    pub(crate) async fn must_not_answer_itself(&self, actor: &Actor) -> Result<(), ControlError> {
        let Some(token) = actor.acting_token() else { return Ok(()) };
        let now = self.parts.clock.now();
        for id in &token.line() {
            if self.state()?.tally(&Tally::calls_not_permitted(id), now).await? > 0 {
                return Err(refused("a call was made with this credential and not permitted"));
            }
        }
        let since = now.checked_sub(COUNTS).unwrap_or(Timestamp::MIN);
        let mut filter = ApprovalFilter { states: NOT_PERMITTED.to_vec(), limit: PAGE, ..ApprovalFilter::default() };
        for _ in 0..MOST_PAGES {
            let page = self.state()?.approvals(&filter).await?;
            let mut recent = page.approvals.iter().filter(|approval| approval.held_at >= since);
            if let Some(own) = recent.find(|approval| approval.call.caller.called_with(&token)) {
                return Err(refused(&format!("the call {} was made with this credential and not permitted", own.id)));
            }
            let is_last = page.approvals.last().is_some_and(|oldest| oldest.held_at < since);
            match page.next.filter(|_| !is_last) {
                Some(next) => filter.after = Some(next),
                None => return Ok(()),
            }
        }
        Err(refused("more calls were held within a day than can be looked through"))
    }
}

fn refused(why: &str) -> ControlError {
    ControlError::Forbidden(format!(
        "this would newly allow calls, and {why}: a token does not answer its own calls by changing the \
         policy, nor do tokens that were issued by the same token. Make the change by command at the machine itself, or \
         with a token that was issued by command"
    ))
}
