//! Limits of calls (GATE-13), each from both sides and at every level: the error is clear, the journal says why, the
//! server sees no more than it may, and nothing stays behind.

use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;

use super::doors::{ENTRANCES, Entrance, Reach, SPEECHES, Speech, request, send, walk};
use super::house::{Given, House};
use super::patience::eventually;
use super::recorder::{ALL_KINDS, Speaks};

/// A limit as it is written at each level.
pub(super) fn levels(limit: &str, tool: &str) -> [(&'static str, &'static str, String); 3] {
    let leaked = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let run = "[auto_run]\nmode = \"run_everything\"\n";
    let gateway = leaked(format!("{run}[gateway]\nlimits = {{ {limit} }}\n"));
    [
        (gateway, "", "the gateway".to_owned()),
        (run, leaked(format!("limits = {{ {limit} }}")), "server `notes`".to_owned()),
        (
            run,
            leaked(format!("tools.{tool} = {{ limits = {{ {limit} }} }}")),
            format!("tool `{tool}` of server `notes`"),
        ),
    ]
}

/// Whether nothing is on its way.
pub(super) async fn is_quiet(house: &House) -> bool {
    eventually(async || house.gateway.in_flight() == [("the gateway".to_owned(), 0)]).await
}

/// The last record of a kind.
pub(super) async fn last(house: &House, kind: &str) -> Value {
    let records = house.records().await;
    records.into_iter().rfind(|record| record.get("kind") == Some(&json!(kind))).unwrap_or_default()
}

fn said(record: &Value, key: &str) -> String {
    record.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn built(config: &'static str, server: &'static str, speaks: Speaks) -> House {
    let given = Given { config, server, turn_time: Some(Duration::from_millis(20)), ..Given::default() };
    let house = House::before(&given, speaks).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    house
}

/// `write` through a door.
async fn write(house: &House, entrance: Entrance, speech: Speech) -> String {
    let params = format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name("write"));
    send(house, entrance, speech, "tools/call", &params).await
}

const PLAIN: Entrance = Entrance::Http(Reach::One);

#[tokio::test]
async fn gate_13_so_many_calls_in_a_minute_and_the_next_is_told_when_to_come_back() {
    for (config, server, whose) in levels("per_minute = 2", "write") {
        for (entrance, speech) in ENTRANCES.into_iter().flat_map(|one| SPEECHES.map(|speech| (one, speech))) {
            let house = built(config, server, Speaks::Both).await;
            for _ in 0..2 {
                let answer = write(&house, entrance, speech).await;
                assert!(answer.contains("done"), "{entrance:?} {speech:?}: {answer}");
            }
            let answer = write(&house, entrance, speech).await;
            let words = format!("{whose} takes 2 calls in a minute; come back in ");
            assert!(answer.contains(&words), "{entrance:?} {speech:?}: {answer}");
            assert!(answer.contains("Reason: calls_per_minute."), "{answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
            let decision = answer.pointer("/result/_meta/toolwarden~1decision").cloned().unwrap_or_default();
            let seconds = decision.get("retry_after_seconds").and_then(Value::as_u64);
            assert!(seconds.is_some_and(|seconds| (55..=61).contains(&seconds)), "{answer}");
            assert_eq!(house.recorder.calls().len(), 2, "{entrance:?} {speech:?}");
            let record = last(&house, "refusal").await;
            let why = ["decision", "stage", "reason", "status", "rule"].map(|key| said(&record, key));
            let rule = format!("per_minute = 2 of {whose}");
            assert_eq!(why, ["deny", "limits", "calls_per_minute", "denied", &rule]);
            assert!(is_quiet(&house).await);
        }
    }
}

#[tokio::test]
async fn gate_13_a_limit_of_one_tool_is_no_limit_of_others() {
    let [_, _, (config, server, _)] = levels("per_minute = 0, in_flight = 0", "write");
    let house = built(config, server, Speaks::Both).await;
    assert!(write(&house, PLAIN, Speech::Modern).await.contains("calls_per_minute"));
    let other = send(&house, PLAIN, Speech::Modern, "tools/call", "\"name\":\"other\",\"arguments\":{}").await;
    assert!(other.contains("done"), "{other}");
    assert!(!send(&house, PLAIN, Speech::Modern, "tools/list", "").await.contains("error"));
    assert_eq!(house.recorder.calls().len(), 1);
}

/// A limit in a file acts on the next call, at every level, in both directions.
#[tokio::test]
async fn gate_13_another_limit_acts_on_the_next_call() {
    for (config, server, _) in levels("per_minute = 1, response_bytes = 90", "write") {
        let house = built("[auto_run]\nmode = \"run_everything\"\n", "", Speaks::Both).await;
        assert!(write(&house, PLAIN, Speech::Modern).await.contains("done"));
        house.judge_by(&Given { config, server, ..Given::default() });
        // The size shows that the first call of the minute was let through.
        assert!(write(&house, PLAIN, Speech::Modern).await.contains("larger than the limit"));
        assert!(write(&house, PLAIN, Speech::Modern).await.contains("calls_per_minute"));
        house.judge_by(&Given { config: "[auto_run]\nmode = \"run_everything\"\n", ..Given::default() });
        assert!(write(&house, PLAIN, Speech::Modern).await.contains("done"));
        assert!(is_quiet(&house).await);
    }
}

/// What of a request is read, and what the judge makes of its arguments.
#[tokio::test]
async fn gate_13_requests_are_bounded_at_every_level() {
    let big = format!("{{\"a\":\"{}\"}}", "x".repeat(492));
    assert_eq!(big.len(), 500);
    for (limit, arguments, reason) in [
        ("request_bytes = 499", big.as_str(), Some("larger than the limit")),
        ("request_bytes = 800", &big, None),
        ("depth = 4", "{\"a\":[[[[]]]]}", Some("nested deeper than the limit")),
        ("depth = 7", "{\"a\":[[[[]]]]}", None),
    ] {
        for (config, server, whose) in levels(limit, "write") {
            let house = built(config, server, Speaks::Both).await;
            let params = format!("\"name\":\"write\",\"arguments\":{arguments}");
            let answer = send(&house, PLAIN, Speech::Modern, "tools/call", &params).await;
            assert_eq!(answer.contains("done"), reason.is_none(), "{limit} {whose}: {answer}");
            assert!(answer.contains(reason.unwrap_or_default()), "{limit} {whose}: {answer}");
            // What no level permits is not even read.
            let is_unread = answer.contains("not acceptable JSON") && whose == "the gateway";
            assert_eq!(answer.contains(&whose) || is_unread, reason.is_some(), "{limit} {whose}: {answer}");
            assert_eq!(house.recorder.calls().len(), usize::from(reason.is_none()));
            assert!(is_quiet(&house).await);
        }
    }
}

/// A narrower level may also permit more.
#[tokio::test]
async fn gate_13_a_tool_may_take_more_than_others() {
    let config = "[auto_run]\nmode = \"run_everything\"\n[gateway]\nlimits = { request_bytes = 300, response_bytes = 80, depth = 3 }\n";
    let server = "tools.write = { limits = { request_bytes = 900, response_bytes = 900, depth = 9 } }";
    let house = built(config, server, Speaks::Both).await;
    let arguments = format!("{{\"a\":[[[[\"{}\"]]]]}}", "x".repeat(400));
    for (tool, passes) in [("write", true), ("other", false)] {
        let params = format!("\"name\":\"{tool}\",\"arguments\":{arguments}");
        let answer = walk(
            &house,
            Caller::local_person("ada"),
            Scope::One("notes".into()),
            Speech::Modern,
            &request(Speech::Modern, "tools/call", &params),
        )
        .await;
        assert_eq!(answer.contains("done"), passes, "{answer}");
    }
    assert_eq!(house.recorder.calls().len(), 1);
}

pub(super) fn nested(depth: usize) -> String {
    // The result itself, `content`, its first item, and what is in there.
    let inner = depth - 4;
    format!(
        "{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"done\",\"_meta\":{{\"x\":{}{}}}}}]}}",
        "[".repeat(inner),
        "]".repeat(inner)
    )
}

#[tokio::test]
async fn gate_13_results_nest_as_deep_as_the_limit_and_no_deeper() {
    for (config, server, whose) in levels("depth = 20", "write") {
        for (speaks, speech) in ALL_KINDS.into_iter().flat_map(|one| SPEECHES.map(|speech| (one, speech))) {
            let house = built(config, server, speaks).await;
            for (depth, passes) in [(20, true), (21, false), (600, false)] {
                house.recorder.answers(&nested(depth));
                let answer = write(&house, PLAIN, speech).await;
                assert_eq!(answer.contains("done"), passes, "{whose} {speaks:?} {speech:?} {depth}: {answer}");
                let words = format!("nested deeper than the limit: `depth` of {whose} is 20 levels");
                assert_eq!(answer.contains(&words), !passes, "{depth}: {answer}");
                assert_eq!(answer.contains(r#""data":{"reason":"response_too_deep"}"#), !passes, "{depth}: {answer}");
                let record = last(&house, "outcome").await;
                let (status, reason) = if passes { ("ok", "") } else { ("too_large", "response_too_deep") };
                assert_eq!([said(&record, "status"), said(&record, "reason")], [status, reason], "{depth}");
            }
            assert!(is_quiet(&house).await);
        }
    }
}

#[tokio::test]
async fn gate_13_answers_are_as_large_as_the_limit_and_no_larger() {
    for (limit, size, passes) in
        [(600, 600, true), (599, 600, false), (300_000, 300_000, true), (299_999, 300_000, false)]
    {
        for (config, server, whose) in levels(&format!("response_bytes = {limit}"), "write") {
            for speaks in ALL_KINDS {
                let house = built(config, server, speaks).await;
                // Known before: what is listed is as large as it is.
                let frame = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":}".len();
                let shell = "{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}".len();
                let text = "x".repeat(size - frame - shell);
                house.recorder.answers(&format!(
                    "{{\"resultType\":\"complete\",\"content\":[{{\"type\":\"text\",\"text\":\"done{text}\"}}]}}"
                ));
                let speech = if speaks == Speaks::Legacy { Speech::Legacy } else { Speech::Modern };
                let answer = write(&house, PLAIN, speech).await;
                let shown = answer.get(..200.min(answer.len())).unwrap_or_default();
                assert_eq!(answer.ends_with("]}}"), passes, "{whose} {speaks:?} {size}: {shown}");
                // What is streamed already can only be cut off.
                let words = format!("larger than the limit: `response_bytes` of {whose} is {limit} bytes");
                assert_eq!(answer.contains(&words), !passes && size < 1_000, "{speaks:?} {size}: {shown}");
                let record = last(&house, "outcome").await;
                let ended = if passes { ["ok", ""] } else { ["too_large", "response_too_large"] };
                assert_eq!([said(&record, "status"), said(&record, "reason")], ended, "{whose} {speaks:?} {size}");
                assert!(is_quiet(&house).await);
            }
        }
    }
}

/// One caller sends fifty calls at once, another two: the other's are served in turn with the first's.
#[tokio::test]
async fn gate_13_one_caller_does_not_starve_another() {
    let given = Given {
        config: "[auto_run]\nmode = \"run_everything\"\n",
        server: "limits = { in_flight = 1 }",
        turn_time: Some(Duration::from_secs(60)),
        ..Given::default()
    };
    let house = House::build(&given).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("the gateway is built") };
    // Everything that is asked once has been asked.
    assert!(write(&house, PLAIN, Speech::Modern).await.contains("done"));
    house.recorder.forget();
    let call = |who: &'static str| {
        let params = format!("\"name\":\"write\",\"arguments\":{{\"who\":\"{who}\"}}");
        let text = request(Speech::Modern, "tools/call", &params);
        let house = &house;
        async move { walk(house, Caller::local_person(who), Scope::One("notes".into()), Speech::Modern, &text).await }
    };
    let all = (0..50).map(|_| call("greedy")).chain((0..2).map(|_| call("modest")));
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(|answer| answer.contains("done")), "{answers:?}");
    let order = house.recorder.calls();
    let modest: Vec<usize> =
        order.iter().enumerate().filter(|(_, (_, text))| text.contains("modest")).map(|(place, _)| place).collect();
    // From where both wait on, every second place is the other's; some of the first's are served before that.
    assert_eq!(order.len(), 52);
    assert!(matches!(modest.as_slice(), [first, second] if *first < 25 && *second == first + 2), "{modest:?}");
    assert!(is_quiet(&house).await);
}
