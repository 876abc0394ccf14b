//! Carries what lies in the outbox: each message until somebody takes it, one gateway at a time, and not for ever.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_control::{ApprovalView, Clerk};
use toolwarden_core::{ApprovalState, AuditRecord, Clock, RecordKind};
use toolwarden_net::Bounds;
use toolwarden_store::state::{Approval, Feed, Notice, StateError};
use toolwarden_store::{Journal, State};

use crate::payload;
use crate::signature::{self, sign};
use crate::webhook::Webhook;

/// How often it is looked, where nothing rings.
const LOOK: Duration = Duration::from_secs(2);
const BOUNDS: Bounds = Bounds { patience: Duration::from_secs(10), largest_answer: 64 * 1024 };
/// So long a message is one gateway's: longer than a delivery takes.
const CLAIM: Duration = Duration::from_secs(30);
const MOST_AT_ONCE: u32 = 16;
/// Some half an hour.
const MOST_ATTEMPTS: u32 = 12;
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Whoever delivers.
#[derive(Debug)]
pub struct Courier {
    pub state: State,
    pub clerk: Arc<Clerk>,
    pub journal: Journal,
    pub clock: Arc<dyn Clock>,
    pub webhooks: Vec<Webhook>,
    /// Rings when a held call moves.
    pub feed: Arc<Feed>,
}

impl Courier {
    /// Delivers until the process ends, to each webhook by itself: one that is down keeps no other from its messages.
    pub async fn run(self) {
        let courier = Arc::new(self);
        let mut carrying = tokio::task::JoinSet::new();
        for place in 0..courier.webhooks.len() {
            let courier = courier.clone();
            carrying.spawn(async move {
                if let Some(webhook) = courier.webhooks.get(place) {
                    courier.serve(webhook).await;
                }
            });
        }
        while carrying.join_next().await.is_some() {}
    }

    async fn serve(&self, webhook: &Webhook) {
        let mut is_well = true;
        // Before looking: what moves in between rings.
        let mut moves = self.feed.bells().listen();
        loop {
            match self.round(webhook).await {
                Ok(Round::Nothing) => {
                    is_well = true;
                    // Whichever comes first; that some were missed is a ring as well.
                    let _ = tokio::time::timeout(LOOK, moves.recv()).await;
                }
                Ok(Round::Taken) => is_well = true,
                Ok(Round::Refused) => tokio::time::sleep(LOOK).await,
                Err(error) => {
                    if is_well {
                        tracing::warn!("messages to the webhook `{}` are not delivered: {error}", webhook.name());
                    }
                    is_well = false;
                    tokio::time::sleep(LOOK).await;
                }
            }
        }
    }

    /// Delivers what is due to one webhook, until it takes one no more.
    async fn round(&self, webhook: &Webhook) -> Result<Round, StateError> {
        let due = self.state.due_notices(webhook.name(), self.clock.now(), MOST_AT_ONCE).await?;
        let mut round = Round::Nothing;
        for notice in &due {
            // As of now: those before may have taken long.
            if !self.state.claim_notice(notice, later(self.clock.now(), CLAIM)).await? {
                continue;
            }
            round = self.carry(webhook, notice).await?;
            if round == Round::Refused {
                break;
            }
        }
        Ok(round)
    }

    async fn carry(&self, webhook: &Webhook, notice: &Notice) -> Result<Round, StateError> {
        let approval = match self.state.approval(&notice.approval).await {
            Ok(approval) => approval,
            // Somebody changed the row: nothing of it is told.
            Err(StateError::Approval(_) | StateError::NotAuthentic(_)) => None,
            Err(error) => return Err(error),
        };
        // What is over by now is nobody's news.
        let Some(approval) = approval.filter(|approval| is_news(notice, approval)) else {
            self.state.end_notice(&notice.id).await?;
            return Ok(Round::Taken);
        };
        let why = match self.deliver(webhook, notice, approval.clone()).await {
            Ok(()) => {
                self.tell("webhook_delivered", &approval, &format!("to `{}`", webhook.name()));
                self.state.end_notice(&notice.id).await?;
                return Ok(Round::Taken);
            }
            Err(why) => why,
        };
        if notice.attempts + 1 >= MOST_ATTEMPTS {
            let name = webhook.name();
            tracing::error!("the webhook `{name}` is not told of {}: {why}; given up", approval.id);
            self.tell("webhook_given_up", &approval, &format!("`{name}`: {why}"));
            self.state.end_notice(&notice.id).await?;
            return Ok(Round::Refused);
        }
        if notice.attempts == 0 {
            tracing::warn!("the webhook `{}` does not take its message: {why}; tried again", webhook.name());
        }
        let pause = LONGEST_PAUSE.min(Duration::from_secs(2_u64.saturating_pow(notice.attempts)));
        self.state.put_off_notice(&notice.id, later(self.clock.now(), pause)).await?;
        Ok(Round::Refused)
    }

    async fn deliver(&self, webhook: &Webhook, notice: &Notice, approval: Approval) -> Result<(), String> {
        let url = self.url(webhook, &approval);
        let view = ApprovalView::from(approval);
        let body = payload::body(webhook, &view, notice.state, url.as_deref());
        let time = self.clock.now().as_second().to_string();
        let secret = webhook.parts.secret.as_ref();
        let signed = secret.and_then(|secret| sign(secret, &notice.id, &time, body.as_bytes()));
        let mut headers = vec![(signature::ID, notice.id.as_str()), (signature::TIME, time.as_str())];
        if let Some(signed) = &signed {
            headers.push((signature::SIGNATURE, signed));
        }
        let answered = webhook.place.post_json(body, &headers, BOUNDS).await.map_err(|error| error.to_string())?;
        match answered.status {
            200..=299 => Ok(()),
            status => Err(format!("{} answers {status}", webhook.place.name())),
        }
    }

    /// Where the call is looked at: by a link of the one person the webhook reaches, else after a login.
    fn url(&self, webhook: &Webhook, approval: &Approval) -> Option<String> {
        let user = webhook.parts.user.as_deref().filter(|_| approval.state == ApprovalState::Held);
        let link = user.and_then(|user| self.clerk.link_to(approval, user, &webhook.parts.groups));
        link.or_else(|| self.clerk.page_of(&approval.id))
    }

    fn tell(&self, what: &'static str, approval: &Approval, detail: &str) {
        let mut record = AuditRecord::new(RecordKind::Event, self.clock.now(), self.journal.next_call());
        (record.method, record.approval_id, record.detail) = (Some(what), Some(approval.id.as_str()), Some(detail));
        (record.server, record.tool) = (Some(approval.call.server.as_str()), Some(approval.call.tool.as_str()));
        if let Err(error) = self.journal.note(&record) {
            tracing::error!("what became of a message to a webhook could not be recorded ({what}): {error}");
        }
    }
}

/// What became of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Nothing,
    Taken,
    /// It does not take what it is told: left alone for a moment.
    Refused,
}

/// That a call waits is news as long as it does; how it was answered always is.
fn is_news(notice: &Notice, approval: &Approval) -> bool {
    notice.state != ApprovalState::Held || approval.state == ApprovalState::Held
}

fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}
