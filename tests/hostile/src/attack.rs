//! One attack: its name, what it is, the guard it is aimed at, and the proof that this guard refuses it.

use std::fmt::Display;
use std::time::Duration;

use toolwarden_core::weak;

use crate::{Fault, Weakness};

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
}

/// Tries an attack against the gateway as it is, and against one without the guard.
///
/// # Errors
/// It succeeds where it must not, does not where it must, or could not be tried.
pub fn prove<F: Future<Output = Tried>>(attack: &Attack, attempt: impl Fn() -> F) -> Result<(), Fault> {
    let Attack { name, sentence, weaknesses } = attack;
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

/// A table of attacks: name, guards, sentence. Each is a test, and a function of that name beside it.
#[macro_export]
macro_rules! attacks {
    ($($name:ident: $($weakness:ident)|+, $sentence:literal;)+) => {
        mod refused {
            $(
                #[test]
                fn $name() -> Result<(), $crate::Fault> {
                    let attack = $crate::attack::Attack {
                        name: stringify!($name),
                        sentence: $sentence,
                        weaknesses: &[$($crate::Weakness::$weakness),+],
                    };
                    $crate::attack::prove(&attack, super::$name)
                }
            )+
        }
    };
}
