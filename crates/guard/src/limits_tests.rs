//! Every level counts, the narrowest says what bounds one call, and another table counts on.

use std::future::{pending, ready};
use std::time::Duration;

use toolwarden_core::{Layer, Origin, Reason};
use toolwarden_policy::input::{Declared, LimitsInput, ServerInput, ToolInput};

use super::{Defaults, Held, Limiter, Over, PerMinute, Uncounted};

const NONE: LimitsInput = LimitsInput {
    request_bytes: None,
    response_bytes: None,
    depth: None,
    time: None,
    in_flight: None,
    per_minute: None,
};

fn server(limits: LimitsInput, tools: &[(&str, LimitsInput)]) -> ServerInput {
    let mut input = ServerInput::new("s", Origin::record(Layer::Config, "test"), Declared::ByOperator);
    input.limits = limits;
    for (name, limits) in tools {
        input.tools.insert((*name).to_owned(), ToolInput { limits: *limits, ..ToolInput::default() });
    }
    input
}

fn limiter(gateway: LimitsInput, server: ServerInput) -> Limiter {
    Limiter::new(Defaults { request_bytes: 100, depth: 10, in_flight: 1000 }, &gateway, &[server])
}

/// Nobody counts beyond this process.
fn nobody(_: Vec<PerMinute>) -> std::future::Ready<Result<(), Uncounted>> {
    ready(Ok(()))
}

/// Without patience.
async fn call(limiter: &Limiter, tool: &str, now: u64) -> Result<Held, Over> {
    limiter.enter(Some(("s", tool)), || "a".to_owned(), now, ready(()), nobody).await
}

fn at_most(per_minute: u64) -> LimitsInput {
    LimitsInput { per_minute: Some(per_minute), ..NONE }
}

fn together(in_flight: u64) -> LimitsInput {
    LimitsInput { in_flight: Some(in_flight), ..NONE }
}

#[tokio::test]
async fn every_level_counts_calls_per_minute() {
    let cases = [
        (at_most(2), NONE, NONE, "the gateway"),
        (NONE, at_most(2), NONE, "server `s`"),
        (NONE, NONE, at_most(2), "tool `t` of server `s`"),
        (at_most(2), at_most(9), at_most(9), "the gateway"),
        (at_most(9), at_most(2), at_most(9), "server `s`"),
    ];
    for (gateway, of_server, of_tool, whose) in cases {
        let limiter = limiter(gateway, server(of_server, &[("t", of_tool)]));
        assert!(call(&limiter, "t", 0).await.is_ok() && call(&limiter, "t", 5).await.is_ok());
        let over = call(&limiter, "t", 7).await.map_err(|over| (over.reason, over.words, over.retry_after));
        let words = format!("{whose} takes 2 calls in a minute; come back in 54 s");
        assert_eq!(over.err(), Some((Reason::CallsPerMinute, words, 54)));
        // What was refused by one level counts at none.
        assert!(call(&limiter, "t", 61).await.is_ok());
        // What is no call has no rate.
        assert!(limiter.enter(None, || "a".to_owned(), 61, ready(()), nobody).await.is_ok());
    }
}

#[tokio::test]
async fn every_level_counts_calls_in_flight() {
    let cases = [
        (together(2), NONE, NONE, "the gateway"),
        (NONE, together(2), NONE, "server `s`"),
        (NONE, NONE, together(2), "tool `t` of server `s`"),
        (together(9), together(2), together(9), "server `s`"),
    ];
    for (gateway, of_server, of_tool, whose) in cases {
        let limiter = limiter(gateway, server(of_server, &[("t", of_tool)]));
        let first = call(&limiter, "t", 0).await;
        let second = call(&limiter, "T", 0).await;
        assert!(first.is_ok() && second.is_ok());
        let over = call(&limiter, "t", 0).await.err();
        assert_eq!(over.as_ref().map(|over| over.reason), Some(Reason::CallsInFlight));
        let words = over.map(|over| over.words).unwrap_or_default();
        assert!(words.starts_with(&format!("{whose} may have 2 calls on their way")), "{words}");
        drop(first);
        assert!(call(&limiter, "t", 0).await.is_ok());
        drop(second);
        assert_eq!(limiter.in_flight(), [("the gateway".to_owned(), 0)]);
    }
}

#[tokio::test]
async fn only_calls_of_a_tool_count_for_it() {
    let limiter = limiter(NONE, server(NONE, &[("t", together(1))]));
    let first = call(&limiter, "t", 0).await;
    assert!(first.is_ok() && call(&limiter, "t", 0).await.is_err());
    assert!(call(&limiter, "other", 0).await.is_ok());
    assert!(limiter.enter(None, || "a".to_owned(), 0, ready(()), nobody).await.is_ok());
}

#[tokio::test]
async fn what_found_no_place_does_not_count_in_the_minute() {
    let limiter = limiter(NONE, server(LimitsInput { in_flight: Some(1), per_minute: Some(2), ..NONE }, &[]));
    let first = call(&limiter, "t", 0).await;
    for _ in 0..5 {
        assert_eq!(call(&limiter, "t", 0).await.map_err(|over| over.reason).err(), Some(Reason::CallsInFlight));
    }
    drop(first);
    assert!(call(&limiter, "t", 0).await.is_ok());
    assert_eq!(call(&limiter, "t", 0).await.map_err(|over| over.reason).err(), Some(Reason::CallsPerMinute));
}

#[tokio::test]
async fn whoever_has_patience_gets_the_next_place() {
    let limiter = limiter(NONE, server(together(1), &[]));
    let first = call(&limiter, "t", 0).await;
    let second = limiter.enter(Some(("s", "t")), || "b".to_owned(), 0, pending(), nobody);
    let (second, ()) = tokio::join!(second, async { drop(first) });
    assert!(second.is_ok());
}

#[tokio::test]
async fn another_table_counts_on() {
    let both = LimitsInput { in_flight: Some(1), per_minute: Some(2), ..NONE };
    let limiter = limiter(NONE, server(NONE, &[("t", NONE)]));
    let first = call(&limiter, "t", 0).await;
    assert!(call(&limiter, "t", 0).await.is_ok());
    limiter.replace(&NONE, &[server(both, &[])]);
    assert_eq!(call(&limiter, "t", 0).await.map_err(|over| over.reason).err(), Some(Reason::CallsInFlight));
    drop(first);
    assert!(call(&limiter, "t", 0).await.is_ok());
    limiter.replace(&NONE, &[server(both, &[("x", together(1))])]);
    assert!(call(&limiter, "t", 0).await.is_ok());
    assert_eq!(call(&limiter, "t", 0).await.map_err(|over| over.reason).err(), Some(Reason::CallsPerMinute));
    limiter.replace(&NONE, &[server(NONE, &[])]);
    assert!(call(&limiter, "t", 0).await.is_ok());
}

#[test]
fn the_narrowest_level_says_what_bounds_a_call() {
    let time = |seconds: u64| LimitsInput { time: Some(Duration::from_secs(seconds)), ..NONE };
    let gateway = LimitsInput { response_bytes: Some(9), ..time(1) };
    let limiter = limiter(gateway, server(time(2), &[("Deploy", time(3)), ("deploy", time(4))]));
    let times = |server: &str| limiter.of_server(server).map(|limits| limits.time.map(|time| time.as_secs()));
    assert_eq!((times("s"), times("other")), ([Some(1), Some(2)], [Some(1), None]));
    // Of two spellings the smaller counts, however the call spells it.
    assert_eq!(limiter.of_tool("s", "DEPLOY").and_then(|tool| tool.time), Some(Duration::from_secs(3)));
    assert_eq!(limiter.of_tool("s", "other"), None);
}

#[test]
fn requests_are_read_up_to_the_largest_limit() {
    let bytes = |request_bytes: usize, depth: usize| LimitsInput {
        request_bytes: Some(request_bytes),
        depth: Some(depth),
        ..NONE
    };
    assert_eq!(limiter(NONE, server(NONE, &[])).request(), (100, 10));
    assert_eq!(limiter(bytes(50, 5), server(NONE, &[])).request(), (50, 5));
    assert_eq!(limiter(bytes(50, 5), server(bytes(70, 4), &[("t", bytes(60, 8))])).request(), (70, 8));
}

#[tokio::test]
async fn work_3_a_call_counts_here_and_beyond_or_nowhere() {
    let limiter = limiter(NONE, server(at_most(3), &[("t", at_most(5))]));
    let call = async |tool: &str, now, answer: Result<(), Uncounted>| {
        let mut told = Vec::new();
        let beyond = |levels: Vec<PerMinute>| {
            told = levels;
            ready(answer)
        };
        let entered = limiter.enter(Some(("s", tool)), || "a".to_owned(), now, ready(()), beyond).await;
        (entered.map(drop).map_err(|over| (over.reason, over.retry_after)), told)
    };
    let levels = |names: &[(&str, u64)]| -> Vec<PerMinute> {
        names.iter().map(|(name, most)| PerMinute { name: (*name).to_owned(), most: *most }).collect()
    };
    let both = levels(&[("tool:s:t", 5), ("server:s", 3)]);
    // However often it is refused beyond, nothing is counted here.
    for _ in 0..10 {
        let (unknown, told) = call("t", 0, Err(Uncounted::Unknown)).await;
        assert_eq!((unknown, told), (Err((Reason::CallsUncounted, 1)), both.clone()));
    }
    for _ in 0..2 {
        assert_eq!(call("t", 0, Ok(())).await, (Ok(()), both.clone()));
    }
    let full = Err(Uncounted::Full { level: 1, wait: 40 });
    assert_eq!(call("t", 1, full).await.0, Err((Reason::CallsPerMinute, 40)));
    // A minute that is full beyond is not asked about again before its time.
    assert_eq!(call("t", 11, Ok(())).await, (Err((Reason::CallsPerMinute, 30)), Vec::new()));
    assert_eq!(call("other", 40, Ok(())).await, (Err((Reason::CallsPerMinute, 1)), Vec::new()));
    assert_eq!(call("t", 41, Ok(())).await, (Ok(()), both));
    assert_eq!(call("other", 41, Ok(())).await.0.map_err(|(reason, _)| reason), Err(Reason::CallsPerMinute));
    // Where no limit per minute is written, nothing is asked beyond.
    limiter.replace(&NONE, &[server(NONE, &[])]);
    assert_eq!(call("t", 41, Err(Uncounted::Unknown)).await, (Ok(()), Vec::new()));
}
