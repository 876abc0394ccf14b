//! The real desk, held to the model: random walks of the model are done with real gateways, and after every step the row
//! must be where the model says.

use toolwarden_core::Status;
use toolwarden_review::Taken;
use toolwarden_store::state::Moved;

use crate::engines::on_both;
use crate::kit::{Fallible, Node, Outcome, Place, gone};
use crate::model::{Action, START, World, actions};

/// How many walks, and how long each is.
const WALKS: u64 = 40;
const STEPS: usize = 24;
/// Longer than a gateway may be silent, and than anybody has to answer.
const SILENCE: i64 = 120;
const FOR_EVER: i64 = 2 * 24 * 60 * 60;

/// Numbers that look random, and are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % sides.max(1)
    }
}

/// Two gateways as they really are.
struct Real<'a> {
    place: &'a Place,
    walk: u64,
    nodes: [Option<Node>; 2],
    taken: [Option<Taken>; 2],
    numbers: [u64; 2],
    id: String,
}

const NAMES: [&str; 2] = ["one", "two"];

impl Real<'_> {
    fn node(&self, at: usize) -> Fallible<&Node> {
        self.nodes.get(at).and_then(Option::as_ref).ok_or_else(|| "it is down".into())
    }

    /// Whichever is up: persons and clocks are nobody's.
    async fn any(&self) -> Fallible<Node> {
        self.place.node("desk").await
    }

    fn slot<T>(all: &mut [Option<T>; 2], at: usize) -> Fallible<&mut Option<T>> {
        all.get_mut(at).ok_or_else(|| "there are two".into())
    }

    async fn act(&mut self, action: Action) -> Outcome {
        let clock = &self.place.clock;
        match action {
            Action::Raise => self.id = self.any().await?.held(&format!("walk {}", self.walk)).await?,
            Action::Approve => assert!(self.any().await?.approve(&self.id, clock).await?),
            Action::Reject => assert!(self.any().await?.reject(&self.id, clock).await?),
            Action::TakeBack => assert!(self.any().await?.take_back(&self.id, clock).await?),
            Action::Cancel => self.any().await?.desk.cancel(&self.id).await,
            Action::Expire => {
                let state = self.any().await?.state;
                clock.go_on(FOR_EVER);
                let now = toolwarden_core::Clock::now(&**clock);
                state.expire_approvals(now).await?;
            }
            Action::GiveUp => {
                let state = self.any().await?.state;
                clock.go_on(SILENCE);
                let now = toolwarden_core::Clock::now(&**clock);
                state.give_up_approvals(now, now).await?;
            }
            Action::Take(at) => {
                let taken = self.node(at)?.desk.take(&self.id).await.map_err(|why| format!("{why:?}"))?;
                *Self::slot(&mut self.taken, at)? = Some(taken);
            }
            Action::GiveBack(at) => {
                drop(Self::slot(&mut self.taken, at)?.take());
                self.node(at)?.settled(&self.id).await?;
            }
            Action::Record(at) => {
                let number = self.node(at)?.intends(&self.id, clock).await?;
                *self.numbers.get_mut(at).ok_or("there are two")? = number;
            }
            Action::Leave(at) => {
                let mut taken = Self::slot(&mut self.taken, at)?.take().ok_or("it was taken")?;
                taken.leaves().await;
            }
            Action::End(at) => {
                let number = self.numbers.get(at).copied().unwrap_or_default();
                self.node(at)?.ends(&self.id, number, Status::Ok, clock)?;
            }
            Action::Tell(at) => {
                let node = self.node(at)?;
                node.desk.ended(&self.id, Status::Ok);
                node.settled(&self.id).await?;
            }
            Action::Crash(at) => {
                // What a process holds in memory does nothing any more.
                if let Some(taken) = Self::slot(&mut self.taken, at)?.take() {
                    gone(taken);
                }
                if let Some(node) = Self::slot(&mut self.nodes, at)?.take() {
                    node.dies().await?;
                }
            }
            Action::Restart(at) => {
                let name = NAMES.get(at).copied().unwrap_or_default();
                let node = self.place.node(name).await?;
                node.recovers().await?;
                *Self::slot(&mut self.nodes, at)? = Some(node);
            }
        }
        Ok(())
    }
}

async fn review_4_the_desk_does_what_the_model_says(place: Place) -> Outcome {
    let mut dice = Dice(7);
    for walk in 0..WALKS {
        let mut real = Real {
            place: &place,
            walk,
            nodes: [Some(place.node("one").await?), Some(place.node("two").await?)],
            taken: [None, None],
            numbers: [0, 0],
            id: String::new(),
        };
        let mut world: World = START;
        let mut path = Vec::new();
        for _ in 0..STEPS {
            let possible: Vec<_> =
                actions().into_iter().filter_map(|action| Some((action, world.after(action)?))).collect();
            let Some((action, next)) = possible.get(dice.roll(possible.len())).copied() else { break };
            path.push(action);
            real.act(action).await.map_err(|error| format!("{path:?}: {error}"))?;
            let row = real.any().await?.state.approval(&real.id).await?.map(|approval| approval.state);
            assert_eq!(row, next.row, "{path:?}");
            world = next;
        }
        for at in [0, 1] {
            real.act(Action::Crash(at)).await?;
        }
    }
    Ok(())
}

on_both!(review_4_the_desk_does_what_the_model_says);

/// What one gateway took is not another's to give back, also if that one had it before.
#[tokio::test]
async fn review_4_who_was_given_up_moves_nothing_that_another_took_since() -> Outcome {
    let place = Place::new(false)?;
    let (one, two) = (place.node("one").await?, place.node("two").await?);
    let id = one.held("a").await?;
    one.approve(&id, &place.clock).await?;
    let lost = one.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    place.clock.go_on(SILENCE);
    let now = toolwarden_core::Clock::now(&*place.clock);
    assert_eq!(two.state.give_up_approvals(now, now).await?.len(), 1);
    assert!(two.approve(&id, &place.clock).await?);
    let taken = two.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    drop(lost);
    one.settled(&id).await?;
    let moved = one.state.consume_approval(&id, "three", toolwarden_core::Clock::now(&*place.clock)).await?;
    assert!(matches!(moved, Moved::Not(_)), "it is the second one's");
    drop(taken);
    Ok(())
}
