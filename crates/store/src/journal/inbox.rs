//! Where writers leave their records, and how they learn what became of them.
//!
//! Handing in takes one short lock and never waits for the disk. Whoever finds nobody writing takes
//! everything that lies here and writes it at once: records that come together share one write.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use toolwarden_core::RecordKind;

use super::background::{FLUSH_AFTER, IDLE};
use super::shared::Shared;
use super::{JournalError, Receipt};

pub(super) type Answer = Result<Receipt, JournalError>;

/// A record on its way into the chain. Its members lie in the text beside the letters, in order.
pub(super) struct Letter {
    pub(super) kind: RecordKind,
    pub(super) call: u64,
    pub(super) length: usize,
    /// Whoever waits for it to be written; nobody waits for an outcome.
    pub(super) writer: Option<oneshot::Sender<Answer>>,
}

/// Letters and their text.
#[derive(Default)]
pub(super) struct Letters {
    pub(super) letters: Vec<Letter>,
    pub(super) text: Vec<u8>,
}

impl Letters {
    pub(super) fn clear(&mut self) {
        self.letters.clear();
        self.text.clear();
    }
}

/// What writers and the background thread tell one another.
pub(super) struct Inbox {
    pub(super) mail: Letters,
    /// How many letters have somebody waiting.
    pub(super) awaited: usize,
    /// Who waits until everything is synced.
    pub(super) flushes: Vec<oneshot::Sender<Result<(), String>>>,
    /// How soon the background thread has something to do, as far as it was told.
    pub(super) due: Duration,
    /// How long the background thread means to sleep now; nothing while it is awake.
    pub(super) sleeps_for: Duration,
    pub(super) stops: bool,
    /// The background thread has had its last round.
    pub(super) ended: bool,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            mail: Letters::default(),
            awaited: 0,
            flushes: Vec::new(),
            due: IDLE,
            sleeps_for: Duration::ZERO,
            stops: false,
            ended: false,
        }
    }

    pub(super) fn push(&mut self, letter: Letter, members: &[u8]) {
        self.awaited += usize::from(letter.writer.is_some());
        self.mail.text.extend_from_slice(members);
        self.mail.letters.push(letter);
    }
}

/// Whether the record stands in the chain, on disk or not.
pub(super) fn is_in_chain(answer: &Answer) -> bool {
    matches!(answer, Ok(_) | Err(JournalError::Sync(_)))
}

/// A record that was handed in. Dropped before it is kept, its call will never leave: then an intent
/// is taken back, so that it is not found open after a crash.
pub(super) struct HandedIn<'s> {
    shared: &'s Arc<Shared>,
    kind: RecordKind,
    call: u64,
    answer: oneshot::Receiver<Answer>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Unanswered,
    /// It is in the chain.
    Written,
    /// Nothing is left to do about it.
    Done,
}

impl<'s> HandedIn<'s> {
    pub(super) fn new(shared: &'s Arc<Shared>, letter: (RecordKind, u64), answer: oneshot::Receiver<Answer>) -> Self {
        Self { shared, kind: letter.0, call: letter.1, answer, stage: Stage::Unanswered }
    }

    /// The record's place once it is where its level wants it.
    pub(super) async fn answer(&mut self) -> Answer {
        let answer = (&mut self.answer).await.unwrap_or(Err(JournalError::Closed));
        self.stage = if is_in_chain(&answer) { Stage::Written } else { Stage::Done };
        answer
    }

    /// The call may leave.
    pub(super) fn keep(mut self) {
        self.stage = Stage::Done;
    }
}

impl Drop for HandedIn<'_> {
    fn drop(&mut self) {
        let is_written = match self.stage {
            Stage::Done => false,
            Stage::Written => true,
            Stage::Unanswered => {
                // From here on a send fails, and whoever sends takes the record back.
                self.answer.close();
                // If nobody has written it yet, nobody else may come.
                self.shared.nudge(&mut self.shared.inbox(), FLUSH_AFTER);
                self.answer.try_recv().is_ok_and(|answer| is_in_chain(&answer))
            }
        };
        if is_written {
            self.shared.take_back(self.kind, self.call);
        }
    }
}
