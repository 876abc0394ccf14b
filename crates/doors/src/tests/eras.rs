//! Random conversations across the eras, legal and not, from both sides: what belongs to one call reaches
//! that call and no other, nothing that is nobody's reaches anybody, and everything ends.
//!
//! Each call carries a tag and tells the puppet server what to do, step by step. The puppet puts the tag
//! into everything it says for the call, and the word `wrong` into everything nobody may hear. Ids,
//! progress tokens and question ids of different clients are the same on purpose.

mod clients;
pub(super) mod puppet;

use std::time::Duration;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof, proptest};
use toolwarden_mcp::Era;

use self::clients::{Client, Heard};
use self::puppet::{Puppet, Wire};
use super::house::{Given, House};
use super::recorder::{Recorder, Speaks};

/// What the server does for a call before it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Progress,
    /// Asks the client to fill in a form.
    Ask,
    /// Asks for what it may not ask for.
    AskTooMuch,
    /// Answers a request that is another's, or nobody's.
    AnswerForeign,
    /// Reports progress for a token that is not this call's.
    ProgressForeign,
    /// A notification no table lists.
    Unlisted,
    Junk,
    ListChanged,
    Pause,
}

/// What a client does besides calling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noise {
    /// Answers a question nobody asked it.
    AnswerUnasked,
    /// Cancels a request that is not its own.
    CancelForeign,
    Malformed,
    UnknownMethod,
}

/// How a client answers a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    Accept,
    Decline,
    /// A legacy client answers with an error, a modern one leaves the answer out once.
    Awkward,
    /// Gives the call up as soon as it hears anything of it.
    GiveUp,
}

#[derive(Debug, Clone)]
pub(super) struct Plan {
    steps: Vec<Step>,
    reaction: Reaction,
    noise: Option<Noise>,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Progress),
        3 => Just(Step::Ask),
        1 => Just(Step::AskTooMuch),
        1 => Just(Step::AnswerForeign),
        1 => Just(Step::ProgressForeign),
        1 => Just(Step::Unlisted),
        1 => Just(Step::Junk),
        1 => Just(Step::ListChanged),
        1 => Just(Step::Pause),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let reaction = prop_oneof![4 => Just(Reaction::Accept), 1 => Just(Reaction::Decline), 1 => Just(Reaction::Awkward), 1 => Just(Reaction::GiveUp)];
    let noise = prop_oneof![
        3 => Just(None),
        1 => Just(Some(Noise::AnswerUnasked)),
        1 => Just(Some(Noise::CancelForeign)),
        1 => Just(Some(Noise::Malformed)),
        1 => Just(Some(Noise::UnknownMethod)),
    ];
    (prop::collection::vec(step(), 0..5), reaction, noise).prop_map(|(steps, reaction, noise)| Plan {
        steps,
        reaction,
        noise,
    })
}

/// The calls of one client, which run at the same time.
type Calls = Vec<Plan>;

fn conversations() -> impl Strategy<Value = Vec<(bool, bool, Calls)>> {
    prop::collection::vec((any::<bool>(), any::<bool>(), prop::collection::vec(plan(), 1..4)), 1..4)
}

const PATIENCE: Duration = Duration::from_secs(30);

fn usual_cases() -> u32 {
    ProptestConfig::default().cases
}

proptest! {
    // `PROPTEST_CASES` makes it longer.
    #![proptest_config(ProptestConfig { cases: usual_cases() / 2, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn conversations_across_eras_do_not_mix(
        wire in prop_oneof![Just(Wire::Modern), Just(Wire::Legacy), Just(Wire::Oldest)],
        common in any::<bool>(),
        clients in conversations(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        assert!(runtime.is_ok());
        if let Ok(runtime) = runtime {
            runtime.block_on(converse(wire, common, &clients));
        }
    }
}

async fn converse(wire: Wire, common: bool, clients: &[(bool, bool, Calls)]) {
    let puppet = Puppet::start(wire).await;
    let Ok(puppet) = puppet else { unreachable!("the puppet does not start") };
    let recorder = Recorder::absent(puppet.url.clone(), Speaks::Both);
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", ..Given::default() };
    let Some(house) = House::around(&given, recorder).await else { unreachable!("no house around it") };
    let conversing = clients.iter().enumerate().map(|(number, (is_modern, on_pipe, calls))| {
        let era = if *is_modern { Era::Modern } else { Era::Legacy };
        let client = Client::new(&house, era, *on_pipe, common);
        async move { client.converse(number, calls).await }
    });
    let all = tokio::time::timeout(PATIENCE, futures_util::future::join_all(conversing)).await;
    assert!(all.is_ok(), "something hangs: {clients:?}");
    let heard: Vec<Heard> = all.unwrap_or_default().into_iter().flatten().collect();
    let wanted: usize = clients.iter().map(|(_, _, calls)| calls.len()).sum();
    assert_eq!(heard.len(), wanted);
    for call in &heard {
        call.check(wire);
    }
    assert_eq!(puppet.complaints(), Vec::<String>::new());
    house.gateway.close().await;
}
