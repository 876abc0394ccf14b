//! Goes one step on in a rotation of the root that seals the store; begins one where none is under way.
//!
//! Who asks goes on asking until it is done. Every step is one that a crash may follow: the next one to ask goes on
//! from what is stored, and never begins a second rotation beside the first.

use serde::{Deserialize, Serialize};
use toolwarden_store::state::EVERYBODY_KNOWS;
use toolwarden_store::{Phase, Standing};

use super::vault_status::word;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// Values that are sealed again for one request, so that whoever asks hears how far it is.
const MOST: u64 = 2_000;

/// The operation.
#[derive(Debug)]
pub struct VaultRotateKey;

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Go on with the rotation to this root, and begin no other one when it is over.
    #[serde(default)]
    pub root: Option<u32>,
    /// First seal all roots by a new master key.
    #[serde(default)]
    pub master: bool,
}

/// A master key that took the place of another.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewMaster {
    pub mark: String,
    /// The mark of the former one.
    pub former: String,
    pub place: String,
}

impl NewMaster {
    /// What is to be done with both keys.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { mark, former, place } = self;
        format!(
            "the master key is {mark}, in {place}; the former one is kept as {place}.{former}: delete it once no backup of \
             the store needs it. Copy the new file to every machine that shares this store\n"
        )
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// The root of the rotation.
    pub root: u32,
    /// `waiting` until every gateway knows it, `sealing` again what others sealed, or `done`.
    pub state: String,
    /// Values that were sealed again by this step.
    pub sealed_again: u64,
    /// Values that do not open: somebody changed them. They stay as they are.
    pub unreadable: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<NewMaster>,
}

impl Outcome {
    fn of(standing: Standing) -> Self {
        let state = word(standing.phase).unwrap_or("done").to_owned();
        Self { root: standing.root, state, sealed_again: 0, unreadable: 0, master: None }
    }

    #[must_use]
    pub fn is_done(&self) -> bool {
        self.state == "done"
    }
}

impl Operation for VaultRotateKey {
    const PATH: &'static str = "/api/v1/vault/rotate_key";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let master = if request.master { Some(renew(clerk, actor).await?) } else { None };
        Ok(Outcome { master, ..step(clerk, actor, request).await? })
    }
}

/// Another master key: whoever has the former one opens no list of roots that is stored from now on.
async fn renew(clerk: &Clerk, actor: &Actor) -> Result<NewMaster, ControlError> {
    let state = clerk.state()?;
    let former = state.roots().map(|roots| roots.master_key().mark).unwrap_or_default();
    clerk
        .record(
            actor,
            "vault_rotate_key",
            &format!("the roots are sealed by a new master key, in the place of {former}"),
        )
        .await?;
    let key = state.renew_master().await?;
    Ok(NewMaster { mark: key.mark, former, place: key.place })
}

async fn step(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
    let state = clerk.state()?;
    let standing = state.standing().await?;
    if let Some(root) = request.root {
        if root > standing.root {
            return Err(ControlError::BadInput(format!("there is no rotation to root {root}")));
        }
        if root < standing.root || standing.phase == Phase::Settled {
            return Ok(Outcome::of(Standing { phase: Phase::Settled, root }));
        }
    }
    let root = standing.root;
    let record = |detail: String| async move { clerk.record(actor, "vault_rotate_key", &detail).await };
    match standing.phase {
        Phase::Settled => {
            record(format!("a root after root {root} is added, and waits until every gateway knows it")).await?;
            Ok(Outcome::of(state.advance(standing, 0).await?))
        }
        Phase::Waiting => {
            record(format!("root {root} is to seal in the place of the former one")).await?;
            // Whoever stored it may have done so just now.
            tokio::time::sleep(EVERYBODY_KNOWS).await;
            Ok(Outcome::of(state.advance(standing, 0).await?))
        }
        Phase::Sealing => {
            record(format!("what former roots sealed is sealed again by root {root}")).await?;
            let sealed = state.seal_again(MOST).await?;
            let mut outcome = Outcome::of(standing);
            if sealed.is_through {
                record(format!("roots before root {root} seal nothing any more, and are kept")).await?;
                outcome = Outcome::of(state.advance(standing, sealed.unreadable).await?);
            }
            Ok(Outcome { sealed_again: sealed.values, unreadable: sealed.unreadable, ..outcome })
        }
    }
}
