//! `kill -9` at every step of an approval, with real gateways on one store: nothing runs twice, nothing runs unapproved,
//! and everything that is left says where it stands. With PostgreSQL another gateway lives on.
//!
//! `review/tests/desk` holds the desk to a model of this; here the program itself is ended, in the midst of its writes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{sleep, timeout};

use crate::caller::ECHO;
use crate::held_place::{Journaled, Place, Stop, journaled};
use crate::house::{Gateway, PATIENCE, report, soak};
use crate::upstream::bad::SILENT;

/// Longer than others wait for a gateway that says nothing.
const SILENCE: Duration = Duration::from_secs(120);
const HELD: &str = "Held by Toolwarden";

/// How far a call is before what its gateway is ended at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Far {
    Unmade,
    Held,
    Approved,
}

/// What its gateway is ended at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Nothing,
    /// The call is made, or made again.
    Call,
    /// The same by an agent whose token is used up.
    CallInVain,
    Approve,
    Deny,
    /// Time passes until it is over.
    Age,
    /// Its caller waits.
    Wait,
    /// Its caller waits, and leaves.
    Leave,
}

/// A moment at which a gateway is ended, and what is left then.
struct Moment {
    name: &'static str,
    far: Far,
    deed: Deed,
    /// Where in the store its write stops; none = it was done.
    stop: Option<Stop>,
    journal: Journaled,
    /// Calls that reached the server.
    sent: u32,
    /// The state that is left, none where nothing was kept, and the one after the gateway is started again.
    left: Option<&'static str>,
    found: Option<&'static str>,
}

const INSERT: Stop = Stop { table: "approvals", write: "INSERT", when: "NEW.state = 'held'" };
const COUNT: Stop = Stop { table: "tokens", write: "UPDATE", when: "NEW.calls <> OLD.calls" };

const fn at(when: &'static str) -> Option<Stop> {
    Some(Stop { table: "approvals", write: "UPDATE", when })
}

const TO_APPROVED: &str = "OLD.state = 'held' AND NEW.state = 'approved'";
const TO_REJECTED: &str = "OLD.state = 'held' AND NEW.state = 'rejected'";
const TO_CONSUMED: &str = "OLD.state = 'approved' AND NEW.state = 'consumed'";
const BACK: &str = "OLD.state = 'consumed' AND NEW.state = 'approved'";
const TO_DISPATCHED: &str = "OLD.state = 'consumed' AND NEW.state = 'dispatched'";
const TO_SUCCEEDED: &str = "OLD.state = 'dispatched' AND NEW.state = 'succeeded'";
const TO_EXPIRED: &str = "OLD.state <> 'expired' AND NEW.state = 'expired'";
const TO_CANCELLED: &str = "OLD.state = 'held' AND NEW.state = 'cancelled'";

const fn moment(name: &'static str, far: Far, deed: Deed, stop: Option<Stop>) -> Moment {
    let (left, found) = (Some("held"), Some("held"));
    Moment { name, far, deed, stop, journal: Journaled::Nothing, sent: 0, left, found }
}

impl Moment {
    const fn leaves(self, left: &'static str, found: &'static str) -> Self {
        Self { left: Some(left), found: Some(found), ..self }
    }

    const fn having(self, journal: Journaled, sent: u32) -> Self {
        Self { journal, sent, ..self }
    }

    fn tool(&self) -> &'static str {
        // The server never answers, so that the call is on its way for as long as its gateway lives.
        let is_on_its_way = self.sent == 1 && self.journal == Journaled::Intent;
        if is_on_its_way { SILENT } else { ECHO }
    }

    fn token<'a>(&self, place: &'a Place) -> &'a str {
        if self.deed == Deed::CallInVain { &place.tokens.spent } else { &place.tokens.agent }
    }
}

/// Every gateway looks after what expired: these are alone while it is ended.
fn alone() -> Vec<Moment> {
    vec![
        moment("held calls expire", Far::Held, Deed::Age, at(TO_EXPIRED)).leaves("held", "expired"),
        moment("approvals expire", Far::Approved, Deed::Age, at(TO_EXPIRED)).leaves("approved", "expired"),
        moment("expired", Far::Held, Deed::Age, None).leaves("expired", "expired"),
    ]
}

fn beside_another() -> Vec<Moment> {
    use Journaled::{Intent, Outcome};
    vec![
        Moment { left: None, found: None, ..moment("is being held", Far::Unmade, Deed::Call, Some(INSERT)) },
        moment("held", Far::Held, Deed::Nothing, None),
        moment("is being approved", Far::Held, Deed::Approve, at(TO_APPROVED)),
        moment("approved", Far::Held, Deed::Approve, None).leaves("approved", "approved"),
        moment("is being rejected", Far::Held, Deed::Deny, at(TO_REJECTED)),
        moment("rejected", Far::Held, Deed::Deny, None).leaves("rejected", "rejected"),
        moment("is being taken", Far::Approved, Deed::Call, at(TO_CONSUMED)).leaves("approved", "approved"),
        moment("taken, not recorded", Far::Approved, Deed::Call, Some(COUNT)).leaves("consumed", "approved"),
        moment("is being given back", Far::Approved, Deed::CallInVain, at(BACK)).leaves("consumed", "approved"),
        moment("recorded, not sent", Far::Approved, Deed::Call, at(TO_DISPATCHED))
            .leaves("consumed", "unknown")
            .having(Intent, 0),
        moment("on its way", Far::Approved, Deed::Call, None).leaves("dispatched", "unknown").having(Intent, 1),
        moment("ended, not told", Far::Approved, Deed::Call, at(TO_SUCCEEDED))
            .leaves("dispatched", "succeeded")
            .having(Outcome, 1),
        moment("succeeded", Far::Approved, Deed::Call, None).leaves("succeeded", "succeeded").having(Outcome, 1),
    ]
}

/// With `hold = "wait"`.
fn waiting() -> Vec<Moment> {
    vec![
        moment("waited for", Far::Unmade, Deed::Wait, None),
        moment("is being given up", Far::Unmade, Deed::Leave, at(TO_CANCELLED)),
        moment("given up", Far::Unmade, Deed::Leave, None).leaves("cancelled", "cancelled"),
    ]
}

/// A table of moments on one store, and the gateways that meet them.
struct Table {
    place: Place,
    first: Gateway,
    second: Option<Gateway>,
    /// What was left of every moment in the end.
    ended: Vec<(String, String)>,
}

impl Table {
    /// Brings a call to a moment, and ends the gateway there. Gives the approval that is left.
    async fn ends_at(&mut self, moment: &Moment, number: &str) -> Result<Option<String>> {
        let (tool, token) = (moment.tool(), moment.token(&self.place).to_owned());
        let mut id = None;
        if moment.far != Far::Unmade {
            let said = self.place.call(&self.first, &token, tool, number).await?;
            id = self.place.row().await?.map(|(id, _)| id);
            ensure!(said.contains(HELD) && id.as_deref().is_some_and(|id| said.contains(id)), "{said}");
        }
        if moment.far == Far::Approved {
            self.answers("approve", id.as_deref()).await?;
        }
        if let Some(stop) = moment.stop {
            self.place.stop_at(stop).await?;
        }
        match moment.deed {
            Deed::Nothing => {}
            Deed::Call | Deed::CallInVain => {
                self.place.calls(&self.first, &token, tool, number);
            }
            Deed::Approve | Deed::Deny if moment.stop.is_none() => {
                let answer = if moment.deed == Deed::Approve { "approve" } else { "deny" };
                self.answers(answer, id.as_deref()).await?;
            }
            Deed::Approve | Deed::Deny => {
                let answer = if moment.deed == Deed::Approve { "approve" } else { "deny" };
                let path = format!("/api/v1/approvals/{answer}");
                let (base, person) = (self.first.base().to_owned(), self.place.tokens.person.clone());
                let body = serde_json::json!({ "id": id });
                tokio::spawn(async move { crate::caller::post(&base, &path, &person, &body).await });
            }
            Deed::Age => self.ages("expires_us", id.as_deref()).await?,
            Deed::Wait | Deed::Leave => {
                let before = self.place.row().await?;
                let mut waits = self.place.waits(&self.first, tool, number).await?;
                let held =
                    self.until(|| async { Ok(self.place.row().await?.filter(|row| Some(row) != before.as_ref())) });
                id = Some(held.await?.0);
                if moment.deed == Deed::Leave {
                    waits.give_up().await?;
                }
            }
        }
        match (moment.stop, moment.left, &id) {
            (Some(_), _, _) => self.place.stopped().await?,
            (None, Some(left), Some(id)) => {
                let is = |state: Option<(String, String)>| state.filter(|row| row == &(id.clone(), left.to_owned()));
                self.until(|| async { Ok(is(self.place.row().await?)) }).await?;
            }
            (None, _, _) => {}
        }
        if let Some(id) = &id {
            // Whatever it says there is in the file before it is ended: the record is what is asked afterwards.
            let said = || async { Ok((journaled(&self.place.first, id) == moment.journal).then_some(())) };
            self.until(said).await.context("the journal")?;
            let sent = || async { Ok((self.place.seen(number) == moment.sent).then_some(())) };
            self.until(sent).await.context("the server")?;
        }
        Ok(id)
    }

    async fn until<T, F: Future<Output = Result<Option<T>>>>(&self, look: impl Fn() -> F) -> Result<T> {
        let looking = async {
            loop {
                if let Some(found) = look().await? {
                    return anyhow::Ok(found);
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, looking).await.with_context(|| format!("it never came\n{}", self.first.log()))?
    }

    async fn answers(&self, answer: &str, id: Option<&str>) -> Result<()> {
        let (status, said) = self.place.answer(self.first.base(), id.unwrap_or_default(), answer).await?;
        ensure!(status == 200, "{answer}: {status} {said}");
        Ok(())
    }

    /// Makes a time of an approval lie back further than it counts.
    async fn ages(&self, time: &str, id: Option<&str>) -> Result<()> {
        let back = Duration::from_secs(30 * 24 * 60 * 60).as_micros();
        let id = id.unwrap_or_default();
        self.place.sql(&format!("UPDATE approvals SET {time} = {time} - {back} WHERE id = '{id}'")).await
    }

    /// One row of the table.
    async fn meets(mut self, moment: &Moment) -> Result<Self> {
        let (number, before) = (moment.name, self.place.row().await?);
        let id = self.ends_at(moment, number).await?;
        self.first.kill().await;
        self.place.let_go().await?;
        let Some((id, left, found)) =
            id.zip(moment.left.zip(moment.found)).map(|(id, (left, found))| (id, left, found))
        else {
            ensure!(self.place.row().await? == before, "something was kept of what was never held");
            self.first = self.place.first.serve().await;
            let said = self.place.call(&self.first, moment.token(&self.place), moment.tool(), number).await?;
            ensure!(said.contains(HELD) && self.place.seen(number) == 0, "{said}");
            return Ok(self);
        };
        ensure!(journaled(&self.place.first, &id) == moment.journal, "{:?}", journaled(&self.place.first, &id));
        ensure!(self.place.state(&self.place.first, &id).await? == left, "without a gateway");
        let mut found = found.to_owned();
        if let Some(second) = self.second.take() {
            let now = again(&self.place, &second, moment, &id, left).await.context("at the other gateway")?;
            // One that could be used was, by the other one.
            if left == "approved" && now == "succeeded" {
                found = now;
            }
            self.second = Some(second);
        }
        self.first = self.place.first.serve().await;
        let state = self.place.becomes(&self.place.first, &id, &found).await?;
        ensure!(state == found, "{state} after a start, not {found}\n{}", self.first.log());
        let listed = self.place.told(&self.place.first, &["approvals", "list", "--state", &found]).await?;
        ensure!(listed.to_string().contains(&id), "not listed as {found}: {listed}");
        if matches!(moment.deed, Deed::Wait | Deed::Leave) && found == "held" {
            // Whoever makes it again waits again: it is answered first.
            self.answers("approve", Some(&id)).await?;
            "approved".clone_into(&mut found);
        }
        let ended = again(&self.place, &self.first, moment, &id, &found).await?;
        self.ended.push((id, ended));
        Ok(self)
    }

    /// What a person can do about a call of which nobody knows how it ended.
    async fn permits_once_more(&self, number: &str, id: &str) -> Result<()> {
        let sent = self.place.seen(number);
        let (status, said) = self.place.answer(self.first.base(), id, "approve").await?;
        ensure!(status == 422 && said.contains("--again"), "not without saying so: {status} {said}");
        let (status, said) = self.place.approve_again(self.first.base(), id).await?;
        ensure!(status == 200, "{status} {said}");
        let said = self.place.call(&self.first, &self.place.tokens.agent, ECHO, number).await?;
        ensure!(!said.contains("isError\":true") && self.place.seen(number) == sent + 1, "{said}");
        let said = self.place.call(&self.first, &self.place.tokens.agent, ECHO, number).await?;
        ensure!(said.contains(HELD) && self.place.seen(number) == sent + 1, "{said}");
        Ok(())
    }

    /// A gateway that does not come back: what it had on its way is given up by the other one, after a while.
    async fn loses_it_at(mut self, moment: &Moment, number: &'static str) -> Result<Self> {
        let lost = Moment { name: number, ..*moment };
        let id = self.ends_at(&lost, number).await?.context("an approval")?;
        self.first.kill().await;
        self.place.let_go().await?;
        let second = self.second.take().context("another gateway")?;
        let said = self.place.call(&second, lost.token(&self.place), lost.tool(), number).await?;
        ensure!(said.contains("already_running"), "{said}");
        if soak() == 1 {
            let back = SILENCE.as_micros();
            self.place.sql(&format!("UPDATE approvals SET seen_us = seen_us - {back} WHERE id = '{id}'")).await?;
        }
        let state = self.place.becomes(&self.place.first, &id, "unknown").await?;
        ensure!(state == "unknown", "{state}");
        ensure!(again(&self.place, &second, &lost, &id, "unknown").await? == "unknown", "the other one made it");
        self.first = self.place.first.serve().await;
        ensure!(again(&self.place, &self.first, &lost, &id, "unknown").await? == "unknown", "it came back and made it");
        ensure!(self.place.seen(number) == lost.sent, "the server saw it {} times", self.place.seen(number));
        self.second = Some(second);
        self.ended.push((id, "unknown".to_owned()));
        Ok(self)
    }

    async fn meet_all(mut self, moments: &[Moment]) -> Result<Self> {
        for moment in moments {
            self = self.meets(moment).await.with_context(|| moment.name)?;
        }
        Ok(self)
    }
}

/// Makes the call again, twice, where its approval is in a state; gives the state it is in then.
async fn again(place: &Place, gateway: &Gateway, moment: &Moment, id: &str, state: &str) -> Result<String> {
    let number = moment.name;
    let sent = place.seen(number);
    let waits = matches!(moment.deed, Deed::Wait | Deed::Leave);
    let mut after = state;
    for round in 0..2 {
        if waits && matches!(after, "held" | "cancelled" | "succeeded") {
            // Whoever makes it again waits again.
            break;
        }
        let said = place.call(gateway, moment.token(place), moment.tool(), number).await?;
        let reason = match after {
            "held" => format!("approve call {id}"),
            "approved" if moment.deed == Deed::CallInVain => "credential_exhausted".to_owned(),
            "approved" => {
                ensure!(!said.contains("isError\":true") && place.seen(number) == sent + 1, "{said}");
                after = "succeeded";
                continue;
            }
            "rejected" => "Reason: rejected".to_owned(),
            "consumed" | "dispatched" => "already_running".to_owned(),
            "unknown" => "outcome_unknown".to_owned(),
            // It is over: a person is asked anew.
            _ => HELD.to_owned(),
        };
        ensure!(said.contains(&reason), "{state}, round {round}: {said}");
        ensure!(HELD != reason || !said.contains(id), "{said}");
    }
    let may = u32::from(state == "approved" && after == "succeeded");
    ensure!(place.seen(number) == sent + may, "the server saw it {} times", place.seen(number));
    // How it ended is told beside the answer.
    let now = place.becomes(&place.first, id, after).await?;
    ensure!(now == after, "{state} became {now}, not {after}");
    Ok(now)
}

async fn every_moment(on_postgres: bool) -> Result<()> {
    let place = Place::new(on_postgres).await?;
    let first = place.first.serve().await;
    // Its one call is used up.
    let number = "spends a token";
    let said = place.call(&first, &place.tokens.spent, ECHO, number).await?;
    let (id, _) = place.row().await?.with_context(|| said)?;
    place.answer(first.base(), &id, "approve").await?;
    let said = place.call(&first, &place.tokens.spent, ECHO, number).await?;
    ensure!(place.seen(number) == 1, "{said}");

    let mut table = Table { place, first, second: None, ended: Vec::new() };
    table = table.meet_all(&alone()).await?;
    if let Some(second) = &table.place.second {
        table.second = Some(second.serve().await);
    }
    table = table.meet_all(&beside_another()).await?;
    let recorded = "recorded, not sent";
    let (id, _) = table.ended.iter().find(|(_, state)| state == "unknown").cloned().context("one is unknown")?;
    table.permits_once_more(recorded, &id).await?;
    table.ended.retain(|(other, _)| *other != id);
    if table.second.is_some() {
        for (name, number) in [("taken, not recorded", "lost with it"), ("on its way", "lost on its way")] {
            let all = beside_another();
            let moment = all.iter().find(|moment| moment.name == name).context("a moment")?;
            table = table.loses_it_at(moment, number).await.context(number)?;
        }
    }
    table.place.configure("wait");
    for gateway in [Some(table.first), table.second.take()].into_iter().flatten() {
        gateway.stop().await;
    }
    table.first = table.place.first.serve().await;
    if let Some(second) = &table.place.second {
        table.second = Some(second.serve().await);
    }
    table = table.meet_all(&waiting()).await?;
    nothing_moved(table, recorded).await
}

/// One more end and start of everything, after which all is as it was.
async fn nothing_moved(table: Table, twice_permitted: &str) -> Result<()> {
    let Table { place, first, second, ended } = table;
    first.kill().await;
    if let Some(second) = second {
        second.kill().await;
    }
    place.verifies().await?;
    let first = place.first.serve().await;
    let all = place.told(&place.first, &["approvals", "list", "--state", "all", "--limit", "500"]).await?;
    for (id, state) in &ended {
        let row = all.as_array().into_iter().flatten().find(|row| row.get("id").is_some_and(|found| found == id));
        let found = row.and_then(|row| row.get("state")?.as_str());
        ensure!(found == Some(state), "{id} was {state} and is {found:?}");
    }
    for (number, times) in place.upstream.calls() {
        ensure!(times == 1, "the server saw `{number}` {times} times");
    }
    ensure!(place.seen(twice_permitted) == 1, "the first permission of it was not sent");
    place.verifies().await?;
    first.stop().await;
    report(&format!("{} approvals survived as they should", ended.len()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_4_a_killed_gateway_leaves_every_approval_as_it_stands_on_a_file() -> Result<()> {
    every_moment(false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_4_a_killed_gateway_leaves_every_approval_as_it_stands_on_postgres() -> Result<()> {
    every_moment(true).await
}
