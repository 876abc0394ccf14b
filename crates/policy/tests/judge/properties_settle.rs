//! Paying for a hold: only listed payers lower it, and what has become denied stays denied (CORE-3, CORE-5).

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use toolwarden_core::{Decision, Payer, Payment, Reason, Stage};
use toolwarden_policy::{Verdict, decide, settle};

use crate::ask::{cases, compile};
use crate::generate::{queries, world};
use crate::generate_rules::{permit_all, print};
use crate::rule::{Effect, Rule};

#[expect(clippy::disallowed_methods, reason = "tests pay")]
fn paid_by(payer: Payer) -> Payment {
    Payment::by(payer, "receipt")
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn only_listed_payers_pay(world in world(), queries in queries(40)) {
        let policy = compile(&world)?;
        for query in &queries {
            let Verdict::Hold(pending) = decide(&policy, query) else { continue };
            let held = pending.explanation().clone();
            for payer in Payer::ALL {
                let settled = settle(&policy, (*pending).clone(), &paid_by(payer), query.time);
                let explanation = settled.explanation();
                match settled.decision() {
                    Decision::Allow => {
                        // A second person is a person, where one is asked for.
                        let listed = if payer == Payer::SecondPerson { Payer::Person } else { payer };
                        prop_assert!(held.reason.payers().contains(&listed), "{:?} {:?}", payer, held);
                        prop_assert!(held.payers.contains(&payer));
                        prop_assert_eq!(explanation.reason, Reason::Paid);
                    }
                    Decision::Hold => {
                        prop_assert_eq!(explanation, &held);
                        prop_assert!(held.stage == Stage::MandatoryHold || !held.payers.contains(&payer));
                    }
                    Decision::Deny => prop_assert!(false, "paying denied {:?}", held),
                }
            }
        }
    }

    #[test]
    fn what_became_denied_stays_denied(world in world(), queries in queries(40)) {
        let policy = compile(&world)?;
        let mut stricter = world.clone();
        stricter.rules.push(Rule { effect: Effect::Forbid, ..permit_all() });
        stricter.input.base.rules = print(&stricter.rules);
        let later = compile(&stricter)?;
        for query in &queries {
            let Verdict::Hold(pending) = decide(&policy, query) else { continue };
            for payer in Payer::ALL {
                let settled = settle(&later, (*pending).clone(), &paid_by(payer), query.time);
                prop_assert_eq!(settled.decision(), Decision::Deny);
            }
        }
    }

    #[test]
    fn a_credential_that_ended_pays_for_nothing(world in world(), queries in queries(40)) {
        let policy = compile(&world)?;
        for query in &queries {
            let Verdict::Hold(pending) = decide(&policy, query) else { continue };
            let Some(end) = query.caller.token.expires_at else { continue };
            let settled = settle(&policy, (*pending).clone(), &paid_by(Payer::Person), end);
            prop_assert_eq!(settled.explanation().reason, Reason::CredentialExpired);
        }
    }
}
