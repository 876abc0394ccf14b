//! The loop behind the screen: keys, signals, time, and one request at a time.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tokio::sync::mpsc::UnboundedReceiver;
use toolwarden_control::operations::{
    ApprovalsApprove, ApprovalsDeny, ApprovalsList, ApprovalsShow, approvals_answer, approvals_approve, approvals_deny,
    approvals_show,
};
use toolwarden_control::{ApprovalView, Operation};
use toolwarden_watch::board::{Answer, Board, Verb, Wish};
use toolwarden_watch::content::Style;
use toolwarden_watch::keys::{Decoder, Key};
use toolwarden_watch::screen::{Screen, Size};
use toolwarden_watch::terminal::{self, FullScreen, Signals, Told};

use super::in_words;
use super::{PAUSE, held};
use crate::clerk::Desk;
use crate::environment;
use crate::output::{Exit, in_one_line};

/// An Escape that nothing follows for so long is the key.
const ESCAPE: Duration = Duration::from_millis(60);
/// Calls that ended are looked up one by one, so many at once.
const MOST_ENDED: usize = 20;

/// What a request gave.
enum Report {
    /// None where nothing moved.
    Listed(Result<Option<Moved>>),
    LookedUp(Result<ApprovalView>),
    Offered(Result<ApprovalView>),
    Answered(Result<approvals_answer::Outcome>),
}

/// The calls that are held, and those that are no longer.
struct Moved {
    held: Vec<ApprovalView>,
    ended: Vec<ApprovalView>,
}

/// A request that waits for its turn.
enum Job {
    List,
    LookUp(String),
    Offers(String),
    Send(Box<Answer>),
}

/// The way to the calls: the server that ran at the start, or the store itself.
struct Way<'a> {
    desk: &'a Desk,
    is_served: bool,
}

impl Way<'_> {
    /// Where a server ran at the start, only a server is asked: opening the store could need a passphrase, for which the
    /// screen has no place.
    async fn ask<O: Operation>(&self, request: O::Request) -> Result<O::Outcome> {
        if !self.is_served {
            return self.desk.answer::<O>(request).await;
        }
        let answer = self.desk.answer_of_server::<O>(&request).await?;
        answer.ok_or_else(|| anyhow!("the server does not answer; trying again"))
    }

    async fn show(&self, id: String, narrowed: bool) -> Result<ApprovalView> {
        self.ask::<ApprovalsShow>(approvals_show::Request { id, narrowed }).await
    }

    async fn list(&self, mut since: Option<u64>, known: BTreeSet<String>) -> (Option<u64>, Report) {
        let listed = async {
            let ask = async |request| self.ask::<ApprovalsList>(request).await;
            let Some(held) = held(ask, &mut since).await? else { return Ok(None) };
            let gone = known.into_iter().filter(|id| held.iter().all(|view| view.id != *id));
            let mut ended = Vec::new();
            for id in gone.take(MOST_ENDED) {
                // One that is forgotten by now leaves the list without a word.
                ended.extend(self.show(id, false).await.ok());
            }
            anyhow::Ok(Some(Moved { held, ended }))
        };
        let listed = listed.await;
        // After a failure everything is looked at again.
        (since.filter(|_| listed.is_ok()), Report::Listed(listed))
    }

    async fn send(&self, answer: Answer) -> Report {
        let Answer { id, digest, verb, note } = answer;
        // A server of an older version gives no digest, and knows none.
        let digest = Some(digest).filter(|digest| !digest.is_empty());
        Report::Answered(match verb {
            Verb::Approve { scope, conditions, free, .. } => {
                let request =
                    approvals_approve::Request { id, scope: Some(scope), note, again: false, conditions, free, digest };
                Box::pin(self.ask::<ApprovalsApprove>(request)).await
            }
            Verb::Deny { remember } => {
                let request = approvals_deny::Request { id, remember, note, take_back: false, digest };
                self.ask::<ApprovalsDeny>(request).await
            }
        })
    }
}

/// Watches until a person leaves, or a signal ends it.
pub fn run(desk: &Desk) -> Result<Exit> {
    // Before the screen is taken: a passphrase may be asked for, and errors are read.
    let is_served = desk.is_served()?;
    let way = Way { desk, is_served };
    desk.run(async {
        let (since, first) = way.list(None, BTreeSet::new()).await;
        let Report::Listed(first) = first else { return Ok(Exit::Failed) };
        let first = first?;
        let screen = FullScreen::enter().context("the terminal cannot be used")?;
        let mut watch = Watch::new(&way, screen, since);
        if let Some(Moved { held, ended }) = first {
            watch.board.take(held, &ended);
        }
        watch.run().await?;
        Ok(Exit::Done)
    })
}

struct Watch<'a> {
    way: &'a Way<'a>,
    screen: FullScreen,
    board: Board,
    typed: UnboundedReceiver<Vec<u8>>,
    decoder: Decoder,
    jobs: VecDeque<Job>,
    since: Option<u64>,
    has_colour: bool,
    /// What is on the terminal, and at which size.
    drawn: Option<(Screen, Size)>,
}

/// What happened.
enum Event {
    Typed(Vec<u8>),
    /// Nothing followed an Escape.
    Idle,
    Tick,
    Reported(Option<u64>, Box<Report>),
    Told(Told),
}

type Running<'a> = Pin<Box<dyn Future<Output = (Option<u64>, Report)> + 'a>>;

impl<'a> Watch<'a> {
    fn new(way: &'a Way<'a>, screen: FullScreen, since: Option<u64>) -> Self {
        let (board, decoder) = (Board::new(environment::now()), Decoder::default());
        let has_colour = environment::wants_colour();
        let typed = terminal::typed();
        Self { way, screen, board, typed, decoder, jobs: VecDeque::new(), since, has_colour, drawn: None }
    }

    async fn run(&mut self) -> Result<()> {
        let mut signals = Signals::new().context("signals cannot be waited for")?;
        let mut running: Option<Running<'a>> = None;
        let mut tick = tokio::time::interval(PAUSE);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if let Some(id) = self.board.wanted() {
                self.jobs.push_back(Job::LookUp(id));
            }
            self.draw()?;
            if running.is_none() {
                running = self.jobs.pop_front().map(|job| self.start(job));
            }
            let event = tokio::select! {
                typed = self.typed.recv() => typed.map_or(Event::Told(Told::End), Event::Typed),
                () = tokio::time::sleep(ESCAPE), if self.decoder.is_waiting() => Event::Idle,
                (since, report) = on(&mut running), if running.is_some() => {
                    running = None;
                    Event::Reported(since, Box::new(report))
                }
                told = signals.next() => Event::Told(told),
                _ = tick.tick() => Event::Tick,
            };
            if self.happens(event)? == Next::Leave {
                return Ok(());
            }
        }
    }

    fn start(&self, job: Job) -> Running<'a> {
        let (way, since) = (self.way, self.since);
        let known = self.board.entries.iter().filter(|entry| entry.ended.is_none()).map(|entry| entry.view.id.clone());
        let known: BTreeSet<String> = known.collect();
        Box::pin(async move {
            match job {
                Job::List => way.list(since, known).await,
                Job::LookUp(id) => (since, Report::LookedUp(way.show(id, false).await)),
                Job::Offers(id) => (since, Report::Offered(way.show(id, true).await)),
                Job::Send(answer) => (since, Box::pin(way.send(*answer)).await),
            }
        })
    }

    fn happens(&mut self, event: Event) -> Result<Next> {
        self.board.tick(environment::now());
        match event {
            Event::Told(Told::End) => return Ok(Next::Leave),
            Event::Told(Told::Resized) => {}
            Event::Told(Told::Suspend) => self.suspend()?,
            Event::Tick => {
                if !self.jobs.iter().any(|job| matches!(job, Job::List)) {
                    self.jobs.push_back(Job::List);
                }
            }
            Event::Reported(since, report) => {
                self.since = since;
                self.take(*report);
            }
            Event::Idle => {
                let keys = self.decoder.idle();
                return self.press(keys);
            }
            Event::Typed(bytes) => {
                let keys = self.decoder.feed(&bytes);
                return self.press(keys);
            }
        }
        Ok(Next::GoOn)
    }

    fn press(&mut self, keys: Vec<Key>) -> Result<Next> {
        for key in keys {
            // A key means what is on the screen: what the former key changed is drawn before the next one counts.
            self.draw()?;
            match self.board.press(&key) {
                Wish::Nothing => {}
                Wish::Leave => return Ok(Next::Leave),
                Wish::Suspend => self.suspend()?,
                Wish::Redraw => self.drawn = None,
                Wish::Offers(id) => self.jobs.push_front(Job::Offers(id)),
                Wish::Send(answer) => self.jobs.push_front(Job::Send(answer)),
            }
            if self.board.drops_input() {
                self.forget_typed();
                break;
            }
        }
        Ok(Next::GoOn)
    }

    fn forget_typed(&mut self) {
        self.decoder.clear();
        while self.typed.try_recv().is_ok() {}
        self.screen.forget_typed();
    }

    fn suspend(&mut self) -> Result<()> {
        if !self.screen.suspend().context("the terminal cannot be used any more")? {
            self.board.say("there is no shell to go back to", Style::Caution);
        }
        self.drawn = None;
        Ok(())
    }

    fn take(&mut self, report: Report) {
        let failed = |error: anyhow::Error| in_one_line(&format!("{error:#}"));
        match report {
            Report::Listed(Ok(None)) => self.board.trouble = None,
            Report::Listed(Ok(Some(Moved { held, ended }))) => self.board.take(held, &ended),
            Report::Listed(Err(error)) => self.board.fails(&failed(error)),
            Report::LookedUp(Ok(view)) => self.board.looked_up(view),
            Report::Offered(Ok(view)) => {
                self.board.offered(&view);
                if self.board.drops_input() {
                    self.forget_typed();
                }
            }
            Report::LookedUp(Err(error)) | Report::Offered(Err(error)) => self.board.say(&failed(error), Style::Bad),
            Report::Answered(outcome) => {
                let words = match outcome {
                    Ok(outcome) => match &outcome.not_done {
                        Some(not_done) => Err(not_done.clone()),
                        None => Ok(in_one_line(&in_words(&outcome))),
                    },
                    Err(error) => Err(failed(error)),
                };
                self.board.answered(words);
                self.jobs.push_front(Job::List);
            }
        }
    }

    /// Draws the state, if it looks different from what is there.
    fn draw(&mut self) -> Result<()> {
        let (width, height) = self.screen.size();
        let size = Size { width, height };
        let screen = self.board.draw(size);
        if self.drawn.as_ref().is_none_or(|drawn| *drawn != (screen.clone(), size)) {
            let is_new_size = self.drawn.as_ref().is_none_or(|(_, former)| *former != size);
            self.screen.write(screen.in_escapes(self.has_colour, is_new_size).as_bytes())?;
            // A terminal that changed its size meanwhile may have shown less.
            if self.screen.size() != (width, height) {
                self.drawn = None;
                return Ok(());
            }
            self.drawn = Some((screen.clone(), size));
        }
        self.board.was_drawn(&screen);
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    Leave,
}

async fn on<'a>(running: &mut Option<Running<'a>>) -> (Option<u64>, Report) {
    match running {
        Some(running) => running.await,
        None => std::future::pending().await,
    }
}
