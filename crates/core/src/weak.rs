//! Holes made on purpose: an attack proves something only if it succeeds where its guard is off.
//!
//! Without the feature `weak`, which `tests/hostile` alone switches on, no guard can be off, and the
//! compiler removes every question for it.

// A build of the whole workspace would bring the feature into programs for people.
#[cfg(all(feature = "weak", not(debug_assertions)))]
compile_error!("guards can be off in tests only: build `-p toolwarden`, or leave `toolwarden-hostile` out");

/// A guard that can be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weakness {
    /// Unknown and disabled servers and tools can be called: the stage `server` passes.
    Servers,
    /// Tools that are switched off or blocked can be called: the stage `switch` passes.
    Switches,
    /// No mode restricts anything: the stage `mode` passes.
    Modes,
    /// Any arguments fit any schema: the stage `schema` passes.
    Arguments,
    /// No call needs a person for itself: no hold is mandatory.
    Holds,
    /// Every call runs without being asked about: auto-run allows.
    AutoRun,
    /// Any name is a good name, and two may be the same.
    Names,
    /// Headers need not say what the body says, and any version is served.
    Ladder,
    /// Texts that two parsers read differently pass.
    Json,
    /// Nothing is too large, too deep, too many or too late.
    Limits,
    /// Any web page may call.
    Hosts,
    /// A credential nobody issued counts as none.
    Credentials,
    /// Every header of a client goes on to servers.
    Headers,
    /// Any session can be found by anybody, and none ends.
    Sessions,
    /// What belongs to one caller belongs to all.
    Owners,
    /// A sealed text is plain, fits everywhere and lasts.
    Seals,
    /// Requests on a shared child keep the ids of their callers.
    Routes,
    /// Servers may ask anything, in any words.
    Questions,
    /// Servers may answer anything.
    Answers,
    /// Methods nobody lists pass.
    Methods,
    /// Files of a workspace count before anybody looked at them.
    Trust,
    /// Children get the whole environment, and may outlive the gateway.
    Children,
    /// Logs show what servers write, byte for byte.
    Logs,
    /// Definitions of servers count as they come.
    Pins,
    /// An approval counts for whatever is called, by anybody, again and again, and anybody gives one.
    Approvals,
    /// A schema that cannot be used fits everything.
    Schemas,
    /// An entry for a tool covers its twin, whose name differs only in case.
    Twins,
    /// An entry for a tool of one server covers tools of that name on every server.
    Shadows,
    /// An entry for one tool of a server covers the resources of that server.
    Wholes,
}

impl Weakness {
    pub const ALL: [Self; 29] = [
        Self::Servers,
        Self::Switches,
        Self::Modes,
        Self::Arguments,
        Self::Holds,
        Self::AutoRun,
        Self::Names,
        Self::Ladder,
        Self::Json,
        Self::Limits,
        Self::Hosts,
        Self::Credentials,
        Self::Headers,
        Self::Sessions,
        Self::Owners,
        Self::Seals,
        Self::Routes,
        Self::Questions,
        Self::Answers,
        Self::Methods,
        Self::Trust,
        Self::Children,
        Self::Logs,
        Self::Pins,
        Self::Approvals,
        Self::Schemas,
        Self::Twins,
        Self::Shadows,
        Self::Wholes,
    ];
}

/// Whether a guard is off: never.
#[cfg(not(feature = "weak"))]
#[must_use]
pub const fn is(_: Weakness) -> bool {
    false
}

/// Compiled only if it holds: what is built for people has no holes.
#[cfg(not(feature = "weak"))]
const _: () = {
    let mut index = 0;
    while let Some((_, rest)) = Weakness::ALL.split_at_checked(index)
        && let [first, ..] = rest
    {
        assert!(!is(*first));
        index += 1;
    }
    assert!(index == Weakness::ALL.len());
};

/// A bound, or none where bounds are off.
#[must_use]
pub fn limit(bound: usize) -> usize {
    if is(Weakness::Limits) { usize::MAX } else { bound }
}

/// Notes work that was done (steps of checks, values, names that were looked up), for tests that hold it to a budget.
#[cfg(not(feature = "weak"))]
pub const fn worked(_: u64) {}

#[cfg(feature = "weak")]
pub use switched::{Switched, is, switch, work_done, worked};

#[cfg(feature = "weak")]
mod switched {
    //! Guards that are off in this process. One attack at a time: others wait for its end.

    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::Weakness;

    static OFF: AtomicU32 = AtomicU32::new(0);
    static TURN: Mutex<()> = Mutex::new(());
    static WORK: AtomicU64 = AtomicU64::new(0);

    /// Notes steps, whoever took them.
    pub fn worked(steps: u64) {
        WORK.fetch_add(steps, Ordering::SeqCst);
    }

    /// All steps since guards were switched last.
    #[must_use]
    pub fn work_done() -> u64 {
        WORK.load(Ordering::SeqCst)
    }

    /// Whether a guard is off.
    #[must_use]
    pub fn is(weakness: Weakness) -> bool {
        OFF.load(Ordering::SeqCst) & bit(weakness) != 0
    }

    fn bit(weakness: Weakness) -> u32 {
        1 << (weakness as u32)
    }

    /// Guards are off for as long as this lives.
    #[derive(Debug)]
    pub struct Switched(#[expect(dead_code, reason = "it is held, not read")] MutexGuard<'static, ()>);

    /// Switches guards off; none for a gateway as people run it. Waits for whoever has a turn.
    pub fn switch(weaknesses: &[Weakness]) -> Switched {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        WORK.store(0, Ordering::SeqCst);
        OFF.store(weaknesses.iter().fold(0, |all, one| all | bit(*one)), Ordering::SeqCst);
        Switched(turn)
    }

    impl Drop for Switched {
        fn drop(&mut self) {
            OFF.store(0, Ordering::SeqCst);
        }
    }
}
