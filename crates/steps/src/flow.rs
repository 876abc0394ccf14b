//! Flow labels of a call (GATE-20): what its caller has met so far, and what it meets now.
//!
//! Kept in the store (WORK-3), for a token and its run, else for a person in a workspace. Labels are there before the call
//! that meets them leaves, so that whoever decides after its result was handed out sees them. Where the store cannot say
//! what was met, and a rule depends on it, the call is held.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use toolwarden_core::{Reason, Stage};
use toolwarden_policy::{Explanation, PolicySet, Query, needs_labels_met};
use toolwarden_refusals::{Denial, Refusal};
use toolwarden_store::state::{AnchorKind, IDLE_LIFE, NOTED_WITHIN};

use crate::gateway::Gateway;
use crate::protection::{Kept, kept_for};
use crate::resolve::Asked;

/// How long this process believes what it knows of a caller who makes no calls here.
const KNOWN_FOR: Duration = Duration::from_secs(60 * 60);
/// How often is noted who was here.
const NOTING: Duration = Duration::from_secs(NOTED_WITHIN.as_secs() / 2);
/// Every so many times, what has ended is deleted.
const FORGETTING: u32 = 30;
/// Every label there is, for a caller of whom nobody knows which were met.
const ALL: [&str; 3] = ["reads_private", "reads_untrusted", "sends_out"];

/// The labels a caller has met before a call.
#[derive(Debug)]
pub(crate) enum Seen {
    Known(Arc<[String]>),
    /// A rule needs them, and the store cannot say which. Every label there is.
    Unknown(Arc<[String]>),
}

/// Proof that the labels of a call were kept before it leaves.
#[derive(Debug)]
pub struct Met(());

/// The labels its caller has met, where a rule needs them.
pub(crate) async fn seen(gateway: &Gateway, policy: &PolicySet, query: &Query, asked: &Asked) -> Seen {
    let is_needed = needs_labels_met(policy, query);
    if !is_needed && !policy.servers().have_labels() {
        return Seen::Known(Arc::default());
    }
    let kept = kept_here(gateway, asked);
    kept.iter().for_each(|kept| gateway.flows.used(&kept.text, now(), life(gateway, kept)));
    if !is_needed {
        return Seen::Known(Arc::default());
    }
    if let Some(protection) = &gateway.protection {
        let found = Box::pin(protection.labels(&kept, gateway.clock.now())).await;
        let Some(found) = found else { return Seen::Unknown(ALL.map(str::to_owned).into()) };
        for (kept, labels) in kept.iter().zip(found) {
            gateway.flows.add(&kept.text, &labels, now());
        }
    }
    let known = kept.iter().map(|kept| gateway.flows.known(&kept.text, now(), life(gateway, kept)));
    let labels: BTreeSet<String> = known.flat_map(|labels| labels.to_vec()).collect();
    Seen::Known(labels.into_iter().collect())
}

/// Keeps the labels of a call that is about to be made with its caller.
///
/// # Errors
/// They cannot be kept, so the call is held.
pub async fn meets(gateway: &Gateway, asked: &Asked) -> Result<Met, Refusal> {
    let (policy, call) = (asked.policy(gateway), &asked.query.call);
    let labels = policy.servers().get(&call.server).map(|server| server.labels(&call.tool)).unwrap_or_default();
    if labels.is_empty() {
        return Ok(Met(()));
    }
    let mut kept = kept_here(gateway, asked);
    kept.retain(|kept| {
        let known = gateway.flows.known(&kept.text, now(), life(gateway, kept));
        !labels.iter().all(|label| known.contains(label))
    });
    if kept.is_empty() {
        return Ok(Met(()));
    }
    if let Some(protection) = &gateway.protection
        && !Box::pin(protection.add(&kept, labels, gateway.clock.now())).await
    {
        return Err(unknown(&policy));
    }
    kept.iter().for_each(|kept| gateway.flows.add(&kept.text, labels, now()));
    Ok(Met(()))
}

/// A call of a caller of whom nobody knows what labels were met. Nobody can be asked either: the store is away.
pub(crate) fn unknown(policy: &PolicySet) -> Refusal {
    let reason = Reason::LabelsUnknown;
    let explanation = Explanation {
        decision: reason.decision(),
        stage: Stage::MandatoryHold,
        reason,
        rule: None,
        detail: None,
        candidates: Vec::new(),
        payers: reason.payers().to_vec(),
        trace: Vec::new(),
        policy_version: policy.version(),
        valid_until: None,
    };
    let message = format!("{}; {}", reason.sentence(), reason.remedy());
    Refusal::Held(Box::new(Denial::new(explanation, message)))
}

fn kept_here(gateway: &Gateway, asked: &Asked) -> Vec<Kept> {
    let workspace = gateway.protection.as_ref().and_then(|protection| protection.workspace());
    kept_for(&asked.arrival.caller, workspace)
}

/// How long what this process knows counts without a call. Without a store nobody else knows better.
fn life(gateway: &Gateway, kept: &Kept) -> Duration {
    match kept.kind {
        _ if gateway.protection.is_some() => KNOWN_FOR,
        AnchorKind::Person => IDLE_LIFE,
        AnchorKind::Token | AnchorKind::Run => Duration::MAX,
    }
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Notes now and then which callers were here, and deletes what has ended, until the gateway is gone.
pub async fn keep_noting(gateway: Weak<Gateway>) {
    let mut round = 0_u32;
    let mut unnoted = Vec::new();
    loop {
        tokio::time::sleep(NOTING).await;
        let Some(gateway) = gateway.upgrade() else { return };
        unnoted = note(&gateway, unnoted).await;
        if round.is_multiple_of(FORGETTING)
            && let (Some(protection), Some(live)) = (&gateway.protection, gateway.identities.live(gateway.clock.now()))
        {
            protection.forget(&live, gateway.clock.now()).await;
        }
        round = round.wrapping_add(1);
    }
}

/// Gives back who could not be noted.
async fn note(gateway: &Gateway, mut used: Vec<(Kept, Arc<[String]>)>) -> Vec<(Kept, Arc<[String]>)> {
    let Some(protection) = &gateway.protection else { return Vec::new() };
    for (text, labels) in gateway.flows.take_used() {
        used.retain(|(kept, _)| kept.text != text);
        used.push((Kept::of_text(text), labels));
    }
    if used.is_empty() || protection.note_use(&used, gateway.clock.now()).await { Vec::new() } else { used }
}

impl Gateway {
    /// Notes which callers were here, before the process ends.
    pub async fn note_flows(&self) {
        note(self, Vec::new()).await;
    }
}
