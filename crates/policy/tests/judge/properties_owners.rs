//! GATE-8: for everybody else a policy with somebody's servers is the policy without them.

use std::collections::HashMap;

use proptest::prelude::{prop_assert_eq, proptest};
use proptest::test_runner::TestCaseError;
use toolwarden_core::name::registration_key;
use toolwarden_policy::{Message, PolicySet, Query, admit, decide, is_visible};

use crate::ask::{cases, compile};
use crate::generate::{queries, world};
use crate::naive::World;
use crate::naive_names::is_there;

/// The policy without what is not there for a caller; none where a name of it stands in the way of another.
fn without(world: &World, query: &Query) -> Result<Option<PolicySet>, TestCaseError> {
    let (mut there, hidden) = (world.clone(), world.input.servers.iter().filter(|one| !is_there(one, query)));
    there.input.servers.retain(|server| is_there(server, query));
    let keys: Vec<String> = there.input.servers.iter().map(|server| registration_key(&server.name)).collect();
    let mut hidden = hidden.map(|server| registration_key(&server.name));
    if hidden.any(|key| keys.contains(&key)) {
        return Ok(None);
    }
    compile(&there).map(Some)
}

fn said(policy: &PolicySet, query: &Query) -> String {
    let message = Message::Listed { method: "tools/list".to_owned() };
    let verdict = decide(policy, query);
    format!("{:?} {} {:?}", verdict.explanation(), is_visible(policy, query), admit(policy, query, message).err())
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn gate_8_what_belongs_to_others_changes_no_word(world in world(), queries in queries(60)) {
        let policy = compile(&world)?;
        let mut reduced: HashMap<Option<String>, Option<PolicySet>> = HashMap::new();
        for query in queries {
            let user = query.caller.user.clone();
            if !reduced.contains_key(&user) {
                reduced.insert(user.clone(), without(&world, &query)?);
            }
            let query = query.traced();
            if let Some(Some(other)) = reduced.get(&user) {
                prop_assert_eq!(said(&policy, &query), said(other, &query), "{:?}", query);
            }
        }
    }
}
