//! The `check` path: results that are looked into before anybody gets them (GATE-12).
//!
//! Most results pass as they stream. Those of a tool with an output schema, and everything of a server that is
//! screened, are gathered, read once, and sent as the same bytes; or without what was found, or not at all. Large ones
//! are looked into away from the threads that serve, and so are small ones that their schema makes much of (WORK-1).

use std::sync::Arc;

use tokio::time::sleep;
use toolwarden_conversations::Failure;
use toolwarden_conversations::sessions::identity;
use toolwarden_core::json::{Kind, Part, Value};
use toolwarden_core::{Operation, Weakness, weak};
use toolwarden_guard::Screen;
use toolwarden_guard::screen::{Findings, Seen};
use toolwarden_mcp::Era;
use toolwarden_mcp::compose::object_with;
use toolwarden_policy::{Schema, briefly};

use crate::audit::Trail;
use crate::gateway::Gateway;
use crate::over;
use crate::resolve::{Asked, What};
use crate::results::Reviewed;
use toolwarden_refusals::Refusal;

/// Where a result, or an error, says what was found in it.
const SCREENED: &str = "toolwarden/screened";
/// Answers of more bytes are looked into away from the threads that serve.
const LARGE: usize = 32 * 1024;

/// What came of looking into an answer: what is shown instead of it, if anything is, and what was found.
struct Looked {
    shown: Result<Option<Result<Part, Part>>, Failure>,
    found: Option<Findings>,
}

/// What an answer is checked for.
#[derive(Debug, Clone)]
pub struct Check {
    schema: Option<Arc<Schema>>,
    screen: Option<Arc<Screen>>,
    /// A legacy client asked for a task, whose result comes later.
    may_make_task: bool,
    /// In whose words the server answers.
    era: Era,
    /// The result is that of a task, below what is said of the task.
    is_of_task: bool,
    /// A person looks at the result first.
    reviewed: Option<Reviewed>,
}

impl Check {
    /// None where an answer passes as it is.
    pub fn of(gateway: &Gateway, asked: &Asked) -> Option<Self> {
        if weak::is(Weakness::Answers) {
            return None;
        }
        let screen = gateway.screens.get(&asked.upstream.name);
        let schema = schema(gateway, asked);
        let reviewed = Reviewed::of(&asked.policy(gateway), asked);
        (screen.is_some() || schema.is_some() || reviewed.is_some()).then(|| {
            let era = asked.arrival.version.era();
            let may_make_task = era == Era::Legacy && asked.task_maker().is_some();
            Self { schema, screen, may_make_task, era, is_of_task: &*asked.method == "tasks/get", reviewed }
        })
    }

    /// The same where the server answers in the words of another era than the client's.
    #[must_use]
    pub fn in_words_of(self, era: Era) -> Self {
        Self { era, ..self }
    }

    /// The same as `judge`, for whoever can wait: a result that a person has to look at first is kept for them.
    pub async fn show(
        &self,
        (gateway, asked): (&Gateway, &Asked),
        outcome: &Result<Part, Part>,
        trail: Option<&mut Trail>,
    ) -> Result<Option<Result<Part, Part>>, Failure> {
        let judged = self.looked_into((gateway, asked), outcome, trail).await?;
        match (&self.reviewed, judged.as_ref().unwrap_or(outcome)) {
            (Some(reviewed), Ok(result)) if self.waits(result.value())? => {
                reviewed.withheld(gateway, asked, result, self.era).await.map(|told| Some(Ok(told)))
            }
            _ => Ok(judged),
        }
    }

    /// Whether a person has to look at this first: at everything but a question, and a word on a task that has no result
    /// yet. A server cannot get past them by saying of a result that it is something else.
    fn waits(&self, result: Value<'_>) -> Result<bool, Failure> {
        if self.is_of_task {
            return Ok(result.get("result").is_some());
        }
        let kind = self.kind(result);
        if kind.as_deref() == Some("task") || self.makes_task(result) {
            return Err(Failure::Withheld("it made a task, whose result nobody could look at first".to_owned()));
        }
        Ok(kind.as_deref() != Some("input_required"))
    }

    /// What a result says it is, where clients look at that.
    fn kind<'a>(&self, result: Value<'a>) -> Option<std::borrow::Cow<'a, str>> {
        result.get("resultType").filter(|_| self.era == Era::Modern).and_then(Value::as_str)
    }

    fn makes_task(&self, result: Value<'_>) -> bool {
        self.may_make_task && result.get("task").is_some()
    }

    /// The result or the error as it may be shown; none where it stays as it is. What was found is told to the
    /// trail. A result that waits for a person is shown to nobody here.
    pub async fn judge(
        &self,
        whose: (&Gateway, &Asked),
        outcome: &Result<Part, Part>,
        trail: Option<&mut Trail>,
    ) -> Result<Option<Result<Part, Part>>, Failure> {
        let judged = self.looked_into(whose, outcome, trail).await?;
        match (&self.reviewed, judged.as_ref().unwrap_or(outcome)) {
            (Some(_), Ok(result)) if self.waits(result.value())? => {
                Err(Failure::Withheld("it waits for a person, who cannot be asked here".to_owned()))
            }
            _ => Ok(judged),
        }
    }

    /// Looks into an answer, where nobody else waits for it.
    async fn looked_into(
        &self,
        (gateway, asked): (&Gateway, &Asked),
        outcome: &Result<Part, Part>,
        trail: Option<&mut Trail>,
    ) -> Result<Option<Result<Part, Part>>, Failure> {
        let (Ok(said) | Err(said)) = outcome;
        let at_once = if said.raw().len() > LARGE { None } else { briefly(|| self.look(outcome)) };
        let looked = match at_once {
            Some(looked) => looked,
            None => self.look_elsewhere((gateway, asked), outcome).await?,
        };
        looked.told(trail)
    }

    async fn look_elsewhere(
        &self,
        (gateway, asked): (&Gateway, &Asked),
        outcome: &Result<Part, Part>,
    ) -> Result<Looked, Failure> {
        let patience = sleep(gateway.settings.turn_time);
        let turn = gateway.large_results.turn(|| identity(&asked.arrival.caller), patience).await;
        let turn =
            turn.map_err(|_| Failure::Withheld("too many large results are looked into at a time".to_owned()))?;
        let (check, outcome) = (self.clone(), outcome.clone());
        let looking = tokio::task::spawn_blocking(move || {
            let looked = check.look(&outcome);
            // Also where nobody waits for it any more, the next one begins only now.
            drop(turn);
            looked
        });
        // It ended without a word: the gateway is being stopped.
        looking.await.map_err(|_| Failure::Withdrawn)
    }

    fn look(&self, outcome: &Result<Part, Part>) -> Looked {
        let mut found = None;
        let shown = match outcome {
            Ok(result) => self.look_at_result(result, &mut found).map(|shown| shown.map(Ok)),
            Err(error) => self.screened(error, "data", &mut found).map(|shown| shown.map(Err)),
        };
        Looked { shown, found }
    }

    fn look_at_result(&self, result: &Part, found: &mut Option<Findings>) -> Result<Option<Part>, Failure> {
        // As the server gave it; what follows makes it no better.
        self.fits(result.value())?;
        let shown = self.screened(result, "_meta", found)?;
        if let Some(shown) = &shown {
            self.fits(shown.value())?;
        }
        Ok(shown)
    }

    /// Whether a result is what the tool's output schema says.
    fn fits(&self, result: Value<'_>) -> Result<(), Failure> {
        let Some(schema) = &self.schema else { return Ok(()) };
        let result = if self.is_of_task { result.get("result") } else { Some(result) };
        let Some(result) = result else { return Ok(()) };
        let is_error = result.get("isError").is_some_and(|is| is.kind() == Kind::True);
        let is_unfinished = self.kind(result).is_some_and(|kind| kind != "complete") || self.makes_task(result);
        if is_error || is_unfinished {
            return Ok(());
        }
        let checked = schema.check_result(result);
        checked.map_err(|fault| Failure::Withheld(format!("it breaks the tool's output schema: {fault}")))
    }

    fn screened(&self, said: &Part, marked: &str, found: &mut Option<Findings>) -> Result<Option<Part>, Failure> {
        let Some(screen) = &self.screen else { return Ok(None) };
        let seen = screen.look(said);
        if seen.is_clean() {
            return Ok(None);
        }
        *found = Some(seen.findings.clone());
        shown(said, marked, seen)
    }
}

impl Looked {
    fn told(self, trail: Option<&mut Trail>) -> Result<Option<Result<Part, Part>>, Failure> {
        if let (Some(trail), Some(found)) = (trail, &self.found) {
            trail.found(found);
        }
        self.shown
    }
}

fn schema(gateway: &Gateway, asked: &Asked) -> Option<Arc<Schema>> {
    let tool = match &asked.what {
        What::Call if asked.query.call.requested_operation() == Operation::CallTool => &asked.query.call.tool,
        What::Task(Some(tool)) if matches!(&*asked.method, "tasks/result" | "tasks/get") => tool,
        _ => return None,
    };
    let policy = asked.policy(gateway);
    policy.servers().get(&asked.upstream.name)?.tool(tool)?.output.clone()
}

/// What is shown of something with findings; none where it stays as it is.
fn shown(said: &Part, marked: &str, seen: Seen) -> Result<Option<Part>, Failure> {
    if seen.is_withheld {
        return Err(Failure::Withheld(format!("what must not be shown was found in it: {}", seen.findings)));
    }
    let changed = seen.changed.map(Part::composed).transpose()?;
    if !seen.is_marked {
        return Ok(changed);
    }
    let said = changed.as_ref().unwrap_or(said);
    let place = said.value().get(marked);
    // What is no object has no room for it; the record says it all the same.
    if place.is_some_and(|place| place.kind() != Kind::Object) || said.value().kind() != Kind::Object {
        return Ok(changed);
    }
    let mark = object_with(place, &[(SCREENED, Some(&seen.findings.mark()))]);
    Ok(Some(Part::composed(object_with(Some(said.value()), &[(marked, Some(&mark))]))?))
}

/// A refusal as it is told: with the error of a server in it as it may be shown, with the limit it is about.
pub fn told_refusal(gateway: &Gateway, asked: &Asked, refusal: Refusal, trail: Option<&mut Trail>) -> Refusal {
    let Refusal::Upstream(Failure::Answered { status, error }) = refusal else {
        return over::named_refusal(gateway, asked, refusal);
    };
    let Some(screen) = gateway.screens.get(&asked.upstream.name).filter(|_| !weak::is(Weakness::Answers)) else {
        return Refusal::Upstream(Failure::Answered { status, error });
    };
    let check = Check {
        schema: None,
        screen: Some(screen),
        may_make_task: false,
        era: Era::Legacy,
        is_of_task: false,
        reviewed: None,
    };
    let judged = Part::composed(error.clone()).map_err(Failure::from);
    let judged = judged.and_then(|error| check.look(&Err(error)).told(trail));
    Refusal::Upstream(match judged {
        Ok(Some(Ok(shown) | Err(shown))) => Failure::Answered { status, error: shown.raw().to_owned() },
        Ok(None) => Failure::Answered { status, error },
        Err(withheld) => withheld,
    })
}
