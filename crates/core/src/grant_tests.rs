//! What a grant is for, member by member.

use super::{GrantClaims, GrantedCall};
use crate::Caller;

fn text(words: &str) -> Option<String> {
    Some(words.to_owned())
}

#[test]
fn review_9_everything_a_grant_names_must_be_so() {
    let mut caller = Caller::agent("worker", text("ada"));
    caller.token.id = text("t1");
    caller.context.run = text("r1");
    let call = GrantedCall { caller: &caller, session: Some("s1"), server: "notes", tool: "write", definition: "d1" };
    let of = |claims: GrantClaims| GrantClaims { server: "notes".to_owned(), ..claims };
    let for_token = of(GrantClaims { token: text("t1"), ..GrantClaims::default() });
    assert!(for_token.covers(&call));
    let also = |change: fn(&mut GrantClaims)| {
        let mut claims = for_token.clone();
        change(&mut claims);
        claims.covers(&call)
    };
    assert!(also(|claims| claims.tool = text("write")) && !also(|claims| claims.tool = text("Write")));
    assert!(also(|claims| claims.definition = text("d1")) && !also(|claims| claims.definition = text("d2")));
    assert!(also(|claims| claims.session = text("s1")) && !also(|claims| claims.session = text("s2")));
    assert!(also(|claims| claims.user = text("ada")) && !also(|claims| claims.user = text("bob")));
    assert!(also(|claims| claims.run = text("r1")) && !also(|claims| claims.run = text("r2")));
    assert!(!also(|claims| claims.token = text("t2")) && !also(|claims| claims.server = "other".to_owned()));
    assert!(!of(GrantClaims::default()).covers(&call), "nobody's is for nobody");
}
