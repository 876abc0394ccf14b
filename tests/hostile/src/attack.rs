//! One attack: its name, what it is, the guard it is aimed at, and the proof that this guard refuses it.

use std::fmt::Display;
use std::time::Duration;

use toolwarden_core::weak;

use crate::{Fault, Weakness};

/// The claim is read by nobody, so that nothing refuses the call but that it is held.
pub const NOBODY_READS_IT: &str = "what the message claims is read by nobody, so the only guard is the hold itself";
/// The call is made as it is.
pub const NOTHING_ELSE: &str = "nothing is forged: that the call is held is the guard in question";
/// The message goes another way, on which it is judged like any other.
pub const ANOTHER_WAY: &str =
    "another way leads to the same judge, so the guard in question is that it holds there too";
/// Several guards refuse it, each alone.
pub const ONE_OF_SEVERAL: &str =
    "a tool that nobody listed is unknown, not accepted and in no allowlist, and each refuses it";

/// No attack needs this long; one that does hangs.
const LONGEST: Duration = Duration::from_secs(90);

/// What an attempt came to.
#[derive(Debug)]
pub enum Outcome {
    Refused(String),
    Bitten(String),
}

pub type Tried = Result<Outcome, Fault>;

/// What became of an attempt. One that is neither refused as expected nor successful shows nothing.
///
/// # Errors
/// It is neither, or both.
pub fn outcome(bitten: bool, refused: bool, words: impl Display) -> Tried {
    match (bitten, refused) {
        (true, false) => Ok(Outcome::Bitten(words.to_string())),
        (false, true) => Ok(Outcome::Refused(words.to_string())),
        (false, false) => Err(format!("neither refused nor successful: {words}").into()),
        (true, true) => Err(format!("refused and successful at once: {words}").into()),
    }
}

/// One attack.
#[derive(Debug)]
pub struct Attack {
    pub name: &'static str,
    /// What it tries, in one sentence.
    pub sentence: &'static str,
    /// The guards without which it succeeds. Several stand where each of them would refuse it alone: a tool that was never
    /// listed is unknown, not accepted and in no allowlist.
    pub weaknesses: &'static [Weakness],
    /// Why all of auto-run is off, where it is: the whole decision says little about the guard in question.
    pub because: Option<&'static str>,
}

/// Tries an attack against the gateway as it is, and against one without the guard.
///
/// # Errors
/// It succeeds where it must not, does not where it must, or could not be tried.
pub fn prove<F: Future<Output = Tried>>(attack: &Attack, attempt: impl Fn() -> F) -> Result<(), Fault> {
    let Attack { name, sentence, weaknesses, because } = attack;
    if weaknesses.contains(&Weakness::AutoRun) && because.is_none() {
        return Err(format!("{name} has all of auto-run off, and does not say why").into());
    }
    match once(&[], &attempt).map_err(|fault| format!("{name}, guarded: {fault}"))? {
        Outcome::Refused(_) => {}
        Outcome::Bitten(words) => return Err(format!("{name} succeeds: {sentence} {words}").into()),
    }
    match once(weaknesses, &attempt).map_err(|fault| format!("{name}, without {weaknesses:?}: {fault}"))? {
        Outcome::Bitten(_) => Ok(()),
        Outcome::Refused(words) => Err(format!("{name} is refused even without {weaknesses:?}: {words}").into()),
    }
}

fn once<F: Future<Output = Tried>>(weaknesses: &[Weakness], attempt: &impl Fn() -> F) -> Tried {
    let _turn = weak::switch(weaknesses);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tried = runtime.block_on(async { tokio::time::timeout(LONGEST, attempt()).await });
    runtime.shutdown_background();
    tried.map_err(|_| "it hangs")?
}

/// A table of attacks: name, guards, sentence, and why all of auto-run is off where it is. Each is a test, and a function
/// of that name beside it.
#[macro_export]
macro_rules! attacks {
    ($($name:ident: $($weakness:ident)|+, $sentence:literal $(, because $why:ident)?;)+) => {
        mod refused {
            $(
                #[test]
                fn $name() -> Result<(), $crate::Fault> {
                    let attack = $crate::attack::Attack {
                        name: stringify!($name),
                        sentence: $sentence,
                        weaknesses: &[$($crate::Weakness::$weakness),+],
                        because: [$(Some(super::$why),)? None].into_iter().next().flatten(),
                    };
                    $crate::attack::prove(&attack, super::$name)
                }
            )+
        }
    };
}
