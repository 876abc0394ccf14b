//! Asks the machine about one call, within its bounds, and says what came of it.
//!
//! Takes a question; gives an opinion: a verdict, or why there is none. Refuses to ask what is too long, too much, too dear or
//! too many at once, and a machine that keeps failing.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use toolwarden_core::{Clock, Digest, Keyring, MachineVerdict, Opinion, VERDICT, token};
use toolwarden_net::{Bounds, NetError, Place};

use crate::answer::{self, Answer, Usage};
use crate::breaker::Breaker;
use crate::budget::{self, Budget, Reserved};
use crate::cache::{Asked, Cache, Found};
use crate::insistence::{HELD, Insistence};
use crate::ledger::{Ledger, Spending, Unknown};
use crate::program::Program;
use crate::question::{MARK_BYTES, PROMPT_VERSION, Prompt, Question};
use crate::settings::{Kind, Settings, Unusable};
use crate::{Failure, anthropic, openai};

const LARGEST_ANSWER: usize = 64 * 1024;
const ID_BYTES: usize = 10;

/// What a classifier is made of.
#[derive(Debug)]
pub struct Parts {
    pub settings: Settings,
    pub keyring: Arc<dyn Keyring>,
    pub clock: Arc<dyn Clock>,
    /// What others of the same store asked and spent; without it this one is alone.
    pub ledger: Option<Arc<dyn Ledger>>,
}

/// One machine that is asked.
#[derive(Debug)]
pub struct Classifier {
    parts: Parts,
    machine: Machine,
    cache: Cache,
    budget: Budget,
    breaker: Breaker,
    places: Semaphore,
    insistence: Insistence,
}

#[derive(Debug)]
enum Machine {
    OpenAi(Place),
    Anthropic(Place),
    Program(Program),
}

/// What came of a question.
#[derive(Debug, Clone)]
pub struct Judged {
    pub opinion: Opinion,
    pub failure: Option<Failure>,
    /// It was asked before, or by somebody else at the same time.
    pub is_cached: bool,
    pub took: Duration,
}

impl Classifier {
    /// # Errors
    /// What is configured cannot be used.
    pub fn new(parts: Parts) -> Result<Self, Unusable> {
        let settings = &parts.settings;
        settings.check()?;
        let machine = match (settings.place()?, &settings.kind) {
            (Some(place), Kind::OpenAi { .. }) => Machine::OpenAi(place),
            (Some(place), _) => Machine::Anthropic(place),
            (None, Kind::Command { command, environment }) => Machine::Program(Program::new(command, environment)),
            (None, _) => return Err(Unusable::NoCommand),
        };
        Ok(Self {
            machine,
            cache: Cache::default(),
            budget: Budget::new(settings.per_hour, settings.money),
            breaker: Breaker::default(),
            places: Semaphore::new(settings.at_once.min(Semaphore::MAX_PERMITS)),
            insistence: Insistence::default(),
            parts,
        })
    }

    /// Whether it is only listened to.
    #[must_use]
    pub fn is_shadow(&self) -> bool {
        self.parts.settings.shadow
    }

    /// What tells a question from every other, as an opinion carries it.
    #[must_use]
    pub fn mark(&self, question: &Question) -> String {
        self.key(question).to_string()
    }

    fn key(&self, question: &Question) -> Digest {
        let settings = &self.parts.settings;
        let shadow = if settings.shadow { "shadow" } else { "" };
        let (kind, place) = match &self.machine {
            Machine::OpenAi(place) => ("openai", place.name()),
            Machine::Anthropic(place) => ("anthropic", place.name()),
            Machine::Program(_) => ("command", String::new()),
        };
        question.key(&[kind, &place, &settings.model, shadow], &settings.allow, &settings.block)
    }

    /// What the machine says of a call. Never fails: where there is no verdict, that is the opinion.
    pub async fn judge(&self, question: &Question) -> Judged {
        let (key, began) = (self.key(question), Instant::now());
        let finding = self.cache.found(key, self.parts.clock.now(), async || self.find(question, key).await);
        let ((opinion, failure), asked) = finding.await;
        Judged { opinion, failure, is_cached: asked == Asked::Before, took: began.elapsed() }
    }

    async fn find(&self, question: &Question, key: Digest) -> Found {
        let asked = self.ask(question).await;
        let mut random = [0; ID_BYTES];
        let asked = self.parts.keyring.random(&mut random).map_err(|_| Failure::Random).and(asked);
        let (verdict, words, failure) = match asked {
            Ok(Answer { verdict, words }) => (Some(verdict), words, None),
            Err(failure) => (None, failure.to_string(), Some(failure)),
        };
        let opinion = Opinion {
            id: format!("{VERDICT}{}", token::letters(&random)),
            verdict,
            words,
            model: self.parts.settings.model.clone(),
            prompt_version: PROMPT_VERSION,
            at: self.parts.clock.now(),
            question: key.to_string(),
            is_shadow: self.parts.settings.shadow,
        };
        (opinion, failure)
    }

    /// One question, if there is room, budget and money for it, and the machine is well.
    async fn ask(&self, question: &Question) -> Result<Answer, Failure> {
        let (settings, clock) = (&self.parts.settings, &self.parts.clock);
        let subject = question.subject();
        // Where it pays nothing, nobody gains by asking again.
        if !settings.shadow {
            self.insistence.enter(subject, clock.now())?;
            self.asks_others(subject).await?;
        }
        let mut random = [0; MARK_BYTES];
        self.parts.keyring.random(&mut random).map_err(|_| Failure::Random)?;
        let prompt = question.prompt(&random, &settings.allow, &settings.block)?;
        let body = self.body(&prompt);
        let _place = self.places.try_acquire().map_err(|_| Failure::Busy)?;
        let pass = self.breaker.enter(clock.now())?;
        // No machine makes more tokens of a text than it has bytes.
        let most = Usage { input: body.len() as u64, output: openai::MOST_TOKENS.max(anthropic::MOST_TOKENS) };
        let reserved = self.budget.reserve(most, clock.now())?;
        let spending = self.spending(&reserved);
        self.reserve_with_others(&spending).await?;
        let said = timeout(settings.patience, self.exchange(body)).await.unwrap_or(Err(Failure::Late));
        let mut used = None;
        let answer = said.and_then(|(said, usage)| {
            self.budget.settle(&reserved, usage, clock.now());
            used = usage;
            answer::read(&said?, &prompt.mark)
        });
        if matches!(&answer, Ok(Answer { verdict: MachineVerdict::Hold, .. })) {
            self.insistence.held(subject, clock.now());
        }
        self.tells_others(subject, spending, used, &answer).await;
        match answer {
            Ok(_) => pass.answered(),
            Err(failure) => {
                tracing::warn!("the classifier gave no verdict: {failure}");
                pass.failed(clock.now());
            }
        }
        answer
    }

    /// Whether the machine held calls of this caller and tool again and again, whichever process asked.
    async fn asks_others(&self, subject: Digest) -> Result<(), Failure> {
        let Some(ledger) = &self.parts.ledger else { return Ok(()) };
        match ledger.held(subject, self.parts.clock.now()).await {
            Ok(held) if held < HELD as u64 => Ok(()),
            Ok(_) => Err(Failure::Insists),
            Err(Unknown) => Err(Failure::Uncounted),
        }
    }

    fn spending(&self, reserved: &Reserved) -> Spending {
        let settings = &self.parts.settings;
        Spending {
            at: self.parts.clock.now(),
            per_hour: settings.per_hour,
            money: reserved.money(),
            per_day: settings.money.map(|money| money.per_day),
        }
    }

    /// Sets the question and its money aside where others see it.
    async fn reserve_with_others(&self, spending: &Spending) -> Result<(), Failure> {
        match &self.parts.ledger {
            Some(ledger) => ledger.reserve(spending).await,
            None => Ok(()),
        }
    }

    /// Tells others what the question cost, and that it was held.
    async fn tells_others(
        &self,
        subject: Digest,
        spending: Spending,
        used: Option<Usage>,
        answer: &Result<Answer, Failure>,
    ) {
        let Some(ledger) = &self.parts.ledger else { return };
        if let (Some(money), Some(used)) = (self.parts.settings.money, used) {
            ledger.settle(spending, budget::cost_of(money, used)).await;
        }
        let is_held = matches!(answer, Ok(Answer { verdict: MachineVerdict::Hold, .. }));
        if is_held && !self.parts.settings.shadow {
            ledger.note_held(subject, self.parts.clock.now()).await;
        }
    }

    fn body(&self, prompt: &Prompt) -> String {
        let model = &self.parts.settings.model;
        match &self.machine {
            Machine::OpenAi(_) => openai::body(model, prompt),
            Machine::Anthropic(_) => anthropic::body(model, prompt),
            Machine::Program(_) => Program::body(model, prompt),
        }
    }

    /// What the machine said, whatever it is, and what it says that cost: a refusal costs, too.
    async fn exchange(&self, body: String) -> Result<(Result<String, Failure>, Option<Usage>), Failure> {
        let place = match &self.machine {
            Machine::OpenAi(place) | Machine::Anthropic(place) => place,
            Machine::Program(program) => {
                let text = program.ask(body).await?;
                return Ok((Ok(text), None));
            }
        };
        let bounds = Bounds { patience: self.parts.settings.patience, largest_answer: LARGEST_ANSWER };
        let answered = place.post_json(body, &[("accept", "application/json")], bounds).await.map_err(failure)?;
        if answered.status != 200 {
            return Err(Failure::Status(answered.status));
        }
        if !answered.is_json {
            return Err(Failure::Answer("it is not marked as JSON"));
        }
        let document = answer::document(&answered.body)?;
        let root = document.root();
        Ok(match &self.machine {
            Machine::OpenAi(_) => (openai::said(root), openai::usage(root)),
            _ => (anthropic::said(root), anthropic::usage(root)),
        })
    }
}

fn failure(error: NetError) -> Failure {
    match error {
        NetError::Late { .. } => Failure::Late,
        NetError::TooLong { .. } => Failure::AnswerTooLong,
        error => {
            tracing::warn!("the classifier: {error}");
            Failure::Unreachable
        }
    }
}
