//! Whether anybody would hear of a call that is held for a person.

use toolwarden_control::operations::{Nothing, Status, TokensList};
use toolwarden_core::ApprovalState;
use toolwarden_policy::PolicySet;
use toolwarden_sources::{Loaded, Locations};

use super::Check;
use crate::clerk::Desk;
use crate::store;

const NAME: &str = "held calls";
const NEXT: &str = "run `toolwarden approvals watch`, add [control.webhooks.NAME] to toolwarden.toml, or give a person's \
                    client a token with `toolwarden tokens issue --person --may-answer`";

pub(super) fn check(desk: &Desk, loaded: &Loaded, locations: &Locations) -> Check {
    if loaded.config.gateway.hold.as_deref() == Some("deny") {
        return Check::ok(NAME, "calls that would be held are denied");
    }
    if PolicySet::compile(&loaded.input).is_ok_and(|policy| !policy.may_hold()) {
        return Check::ok(NAME, "no call is held by this policy");
    }
    match desk.ask_server::<Status>(&Nothing {}).ok().flatten().and_then(|status| status.is_attended) {
        Some(true) => Check::ok(NAME, "somebody hears of calls that are held"),
        Some(false) => {
            let message = "calls can be held for a person, and nobody hears of it: no webhook is told, nobody watches, \
                           no client may be asked";
            Check::warning(NAME, message, NEXT)
        }
        // No server runs: what is written says who will hear.
        None => {
            let is_told = loaded.store.webhooks.iter().any(|webhook| webhook.states.contains(&ApprovalState::Held));
            // Nobody makes a store to look into it.
            let is_stored = store::exists(locations, &loaded.store).unwrap_or(false);
            if is_told || is_stored && is_asked(desk) {
                return Check::ok(NAME, "a webhook is told of held calls, or a person's client may be asked");
            }
            Check::warning(NAME, "calls can be held for a person, and nobody hears of it unless they watch", NEXT)
        }
    }
}

fn is_asked(desk: &Desk) -> bool {
    let tokens = desk.ask::<TokensList>(Nothing {}).map(|found| found.tokens).unwrap_or_default();
    tokens.iter().any(|token| token.claims.may_answer && token.state == "active")
}
