//! What all processes of a data directory and all replicas of a store share of a caller's protection (WORK-3).
//!
//! Takes callers; gives the anchors their flow labels are kept under, and counts beyond this process. Nothing that a client
//! says of itself is part of an anchor, so that another name, session, process or replica gives nobody a fresh start.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_conversations::sessions::identity;
use toolwarden_core::digest::hex;
use toolwarden_core::{Caller, Keyring, Purpose, TokenClaims};
use toolwarden_guard::{PerMinute, Uncounted};
use toolwarden_store::State;
use toolwarden_store::state::{Anchor, AnchorKind, Claim, Claimed, StateError, Tally};

/// How long the store may take: one that hangs must not keep a call's place.
const PATIENCE: Duration = Duration::from_secs(5);

/// Slots of a second that count for a minute; the one that runs is one of them.
const SECONDS: u32 = 61;

/// The store behind a gateway's protection.
#[derive(Debug)]
pub struct Protection {
    state: State,
    keyring: Arc<dyn Keyring>,
    /// The directory this process serves.
    workspace: Option<PathBuf>,
}

/// What flow labels are kept for, as this process knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) kind: AnchorKind,
    /// Tells it from every other.
    pub(crate) text: String,
}

impl Kept {
    fn new(kind: AnchorKind, parts: &[&str]) -> Self {
        let mut text = String::from(match kind {
            AnchorKind::Token => "token",
            AnchorKind::Run => "run",
            AnchorKind::Person => "person",
        });
        for part in parts {
            // Lengths stand before texts, so that no two anchors are the same.
            text.push_str(&format!("\u{1f}{}\u{1f}{part}", part.len()));
        }
        Self { kind, text }
    }

    /// What the text of one was made of.
    pub(crate) fn of_text(text: String) -> Self {
        let kind = match text.split('\u{1f}').next() {
            Some("run") => AnchorKind::Run,
            Some("person") => AnchorKind::Person,
            _ => AnchorKind::Token,
        };
        Self { kind, text }
    }

    pub(crate) fn of_token(id: &str) -> Self {
        Self::new(AnchorKind::Token, &[id])
    }

    pub(crate) fn of_run(run: &str) -> Self {
        Self::new(AnchorKind::Run, &[run])
    }
}

/// What a caller's flow labels are kept for: the token, and the run it was issued for, which other tokens may share; without
/// a token the person, in the workspace of this process.
pub(crate) fn kept_for(caller: &Caller, workspace: Option<&Path>) -> Vec<Kept> {
    let mut kept = Vec::with_capacity(2);
    match (&caller.token.id, &caller.user) {
        (Some(id), _) => kept.push(Kept::of_token(id)),
        (None, Some(user)) if !caller.is_agent() => {
            let workspace = workspace.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
            kept.push(Kept::new(AnchorKind::Person, &[user, &workspace]));
        }
        (None, _) => kept.push(Kept::new(AnchorKind::Token, &["", &identity(caller)])),
    }
    kept.extend(caller.context.run.as_deref().map(Kept::of_run));
    kept
}

impl Protection {
    /// Remembers that a call with this token was not permitted, though nobody can answer it: it counts for the token and
    /// for those that it was issued with (SELF-5).
    pub(crate) async fn was_not_permitted(&self, token: &TokenClaims, now: Timestamp) {
        for id in token.id.iter().chain(&token.ancestors) {
            let tally = Tally::calls_not_permitted(id);
            let added = tokio::time::timeout(PATIENCE, self.state.add_to_tally(&tally, tally.slot(now), 1)).await;
            if !matches!(added, Ok(Ok(()))) {
                tracing::error!("it cannot be remembered that a call was not permitted: the store does not answer");
                return;
            }
        }
    }

    #[must_use]
    pub fn new(state: State, keyring: Arc<dyn Keyring>, workspace: Option<PathBuf>) -> Self {
        Self { state, keyring, workspace }
    }

    pub(crate) fn workspace(&self) -> Option<&Path> {
        self.workspace.as_deref()
    }

    /// Keyed, so that whoever reads the database learns nobody's workspace.
    pub(crate) fn anchor(&self, kept: &Kept) -> Anchor {
        Anchor { kind: kept.kind, mark: hex(&self.keyring.mark(Purpose::Record, kept.text.as_bytes())) }
    }

    /// The labels met under these, one list for each; none where that cannot be said.
    pub(crate) async fn labels(&self, kept: &[Kept], now: Timestamp) -> Option<Vec<Vec<String>>> {
        let anchors: Vec<Anchor> = kept.iter().map(|kept| self.anchor(kept)).collect();
        let found = within("flow labels cannot be read", self.state.labels(&anchors, now)).await?;
        let of = |anchor: &Anchor| {
            let own = found.iter().filter(|(mark, _)| *mark == anchor.mark);
            own.map(|(_, label)| label.clone()).collect()
        };
        Some(anchors.iter().map(of).collect())
    }

    /// Adds labels; false where that is not certain.
    pub(crate) async fn add(&self, kept: &[Kept], labels: &[String], now: Timestamp) -> bool {
        let anchors: Vec<Anchor> = kept.iter().map(|kept| self.anchor(kept)).collect();
        within("flow labels cannot be written", self.state.add_labels(&anchors, labels, now)).await.is_some()
    }

    /// Counts a call in the minutes of these levels.
    pub(crate) async fn count(&self, levels: Vec<PerMinute>, now: Timestamp) -> Result<(), Uncounted> {
        let claim = |level: PerMinute| Claim {
            tally: Tally { name: format!("minute:{}", level.name), unit: 1, slots: SECONDS },
            amount: 1,
            most: level.most,
        };
        let claims: Vec<Claim> = levels.into_iter().map(claim).collect();
        match within("a call cannot be counted", self.state.claim(&claims, now)).await {
            Some(Claimed::Taken) => Ok(()),
            Some(Claimed::Full { claim, wait }) => Err(Uncounted::Full { level: claim, wait }),
            None => Err(Uncounted::Unknown),
        }
    }

    /// Notes which callers were here, so that what they have met lives on.
    pub(crate) async fn note_use(&self, used: &[(Kept, Arc<[String]>)], now: Timestamp) -> bool {
        let anchors: Vec<Anchor> = used.iter().map(|(kept, _)| self.anchor(kept)).collect();
        let noted = async {
            self.state.note_use(&anchors, now).await?;
            // Somebody may have deleted what this process knows, while the store could not be reached.
            for ((_, labels), anchor) in used.iter().zip(&anchors).filter(|((_, labels), _)| !labels.is_empty()) {
                self.state.add_labels(std::slice::from_ref(anchor), labels, now).await?;
            }
            Ok(())
        };
        within("the use of flow labels cannot be noted", noted).await.is_some()
    }

    /// Deletes what has ended. `live` are the tokens and runs that have not.
    pub(crate) async fn forget(&self, live: &[Kept], now: Timestamp) {
        let live: std::collections::HashSet<String> = live.iter().map(|kept| self.anchor(kept).mark).collect();
        let forgotten = async {
            self.state.forget_labels(now, |mark| live.contains(mark)).await?;
            self.state.forget_tallies(now).await
        };
        within("what has ended cannot be deleted", forgotten).await;
    }
}

/// What the store answers in time; why it does not is for the log.
async fn within<T>(what: &str, asked: impl Future<Output = Result<T, StateError>>) -> Option<T> {
    match tokio::time::timeout(PATIENCE, asked).await {
        Ok(Ok(answer)) => Some(answer),
        Ok(Err(error)) => {
            tracing::error!("{what}: {error}");
            None
        }
        Err(_) => {
            tracing::error!("{what}: the store does not answer");
            None
        }
    }
}

#[cfg(test)]
#[test]
fn work_3_what_a_caller_says_of_itself_is_no_part_of_its_anchor() {
    let (home, other) = (Path::new("/home/ada/a"), Path::new("/home/ada/b"));
    let ada = Caller::local_person("ada");
    let kept = |caller: &Caller, workspace| kept_for(caller, Some(workspace));
    let in_mode = Caller { mode: Some("code".to_owned()), ..ada.clone() };
    assert_eq!(kept(&ada, home), kept(&in_mode, home));
    assert_ne!(kept(&ada, home), kept(&ada, other));
    assert_ne!(kept(&ada, home), kept(&Caller::local_person("eve"), home));
    // A token is one caller wherever it is used and whatever secret it has; its run is shared.
    let token = |id: &str, run: Option<&str>, digest: &str| {
        let mut caller = Caller::agent("worker", Some("ada".to_owned()));
        caller.token.id = Some(id.to_owned());
        caller.token.digest = Some(digest.to_owned());
        caller.context.run = run.map(str::to_owned);
        caller
    };
    assert_eq!(kept(&token("t", None, "1"), home), kept(&token("t", None, "2"), other));
    let [one, two] = ["t", "u"].map(|id| kept(&token(id, Some("r"), ""), home));
    assert_eq!(one.last(), two.last());
    assert_ne!(one.first(), two.first());
    for kept in one {
        assert_eq!(Kept::of_text(kept.text.clone()), kept);
    }
    // No user and workspace can be written so that they are another's.
    assert_ne!(
        kept(&Caller::local_person("a\u{1f}1\u{1f}b"), Path::new("")),
        kept(&Caller::local_person("a"), Path::new("b"))
    );
}
