//! Calls on their way: a place is held as long as anything of a call is, in every era, and given back on every way out
//! (GATE-13). The time of a call ends it, and its server hears of it.

use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{Speech, get_in_session, open_session, post_in_session};
use super::eras::puppet::{Puppet, Wire};
use super::giving_up::{call, cancel, meta};
use super::house::{Given, House, ada};
use super::limits::{is_quiet, last, levels};
use super::narrowing::EVERYWHERE;
use super::parking::{self, EVERYTHING};
use super::patience::eventually;
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};
use super::resuming::whole;

const RUN: &str = "[auto_run]\nmode = \"run_everything\"\n";

async fn before(wire: Wire, given: Given) -> (House, Puppet) {
    let puppet = Puppet::start(wire).await;
    assert!(puppet.is_ok());
    let Ok(puppet) = puppet else { unreachable!("asserted") };
    let given = Given { turn_time: Some(given.turn_time.unwrap_or(Duration::from_millis(20))), ..given };
    let house = House::around(&given, Recorder::absent(puppet.url.clone(), Speaks::Both)).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    (house, puppet)
}

fn notes() -> Scope {
    Scope::One("notes".into())
}

#[tokio::test]
async fn gate_13_so_many_calls_on_their_way_and_no_more() {
    for (config, server, whose) in levels("in_flight = 2", "act") {
        for (wire, speech) in EVERYWHERE {
            let (house, puppet) = before(wire, Given { config, server, ..Given::default() }).await;
            let mut pipe = Pipe::open(&house, notes(), speech).await;
            for id in [7, 8] {
                pipe.say(&call(speech, id, &["HangAtOnce"])).await;
            }
            assert!(eventually(async || puppet.hanging() == 2).await, "{wire:?} {speech:?}");
            pipe.say(&call(speech, 9, &[])).await;
            let refused = pipe.hear().await.to_string();
            let words = format!("{whose} may have 2 calls on their way, and none ended in time; come back in 1 s");
            assert!(refused.contains(&words) && refused.contains("calls_in_flight"), "{wire:?} {speech:?}: {refused}");
            let record = last(&house, "refusal").await;
            assert_eq!(record.get("reason"), Some(&json!("calls_in_flight")), "{record}");
            assert_eq!(puppet.calls(), 2, "{wire:?} {speech:?}");
            // A place that is given back is there for the next.
            pipe.say(&cancel(7)).await;
            let passes = async || {
                pipe.say(&call(speech, 10, &[])).await;
                pipe.hear().await.to_string().contains("done t")
            };
            assert!(eventually(passes).await, "{wire:?} {speech:?}");
            pipe.say(&cancel(8)).await;
            assert!(is_quiet(&house).await, "{wire:?} {speech:?}: {:?}", house.gateway.in_flight());
        }
    }
}

#[tokio::test]
async fn gate_13_whoever_waits_gets_the_place_that_gets_free() {
    let given = Given {
        config: RUN,
        server: "limits = { in_flight = 1 }",
        turn_time: Some(Duration::from_secs(60)),
        ..Given::default()
    };
    let (house, puppet) = before(Wire::Modern, given).await;
    let mut pipe = Pipe::open(&house, notes(), Speech::Modern).await;
    pipe.say(&call(Speech::Modern, 7, &["HangAtOnce"])).await;
    assert!(eventually(async || puppet.hanging() == 1).await);
    pipe.say(&call(Speech::Modern, 8, &[])).await;
    // Whoever gives up waiting leaves, and is no call that was made.
    pipe.say(&call(Speech::Modern, 9, &[])).await;
    pipe.say(&cancel(9)).await;
    pipe.say(&cancel(7)).await;
    let said = pipe.hear().await;
    assert_eq!(said.get("id"), Some(&json!(8)), "{said}");
    assert_eq!(puppet.calls(), 2);
    assert!(is_quiet(&house).await);
}

/// A place is held while an answer streams, and given back when its connection is dropped.
#[tokio::test]
async fn gate_13_a_place_is_held_while_an_answer_streams() {
    for (wire, steps) in [(Wire::Legacy, ["Progress", "Hang"]), (Wire::Legacy, ["HalfALargeAnswer", ""])] {
        let (house, puppet) = before(wire, Given { config: RUN, ..Given::default() }).await;
        let session = open_session(&house).await;
        let response = post_in_session(&house, &session, &call(Speech::Legacy, 7, &steps).to_string()).await;
        assert!(eventually(async || puppet.hanging() == 1).await);
        assert_eq!(
            house.gateway.in_flight().len(),
            2,
            "the gateway's and the server's: {:?}",
            house.gateway.in_flight()
        );
        drop(response);
        assert!(is_quiet(&house).await, "{steps:?}: {:?}", house.gateway.in_flight());
    }
}

/// A call that waits for its client keeps its place; whoever comes back with the answer needs no other.
#[tokio::test]
async fn gate_13_a_call_that_asked_keeps_its_place() {
    let server = "limits = { in_flight = 1, per_minute = 2 }\nmay_ask = [\"elicitation\", \"url\"]";
    for wire in [Wire::Legacy, Wire::Oldest] {
        let (house, puppet) = before(wire, Given { config: RUN, server, ..Given::default() }).await;
        let steps = ["Ask", "Ask"];
        let mut said = parking::call(&house, ada(), &steps, EVERYTHING, &json!({})).await;
        for round in 1..=2 {
            let state = said.pointer("/result/requestState").cloned().unwrap_or_default();
            assert!(state.is_string(), "{said}");
            let other = parking::call(&house, ada(), &[], EVERYTHING, &json!({})).await;
            assert!(other.to_string().contains("calls_in_flight"), "{wire:?} {round}: {other}");
            let accept = json!({"action": "accept", "content": {"tag": "t;"}});
            let back = json!({"requestState": state, "inputResponses": {format!("q{round}-1"): accept}});
            said = parking::call(&house, ada(), &steps, EVERYTHING, &back).await;
        }
        let done = said;
        assert!(done.to_string().contains("done t;"), "{wire:?}: {done}");
        assert!(is_quiet(&house).await, "{:?}", house.gateway.in_flight());
        // Nobody comes back: the place is given back with the call.
        let asked = parking::call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
        assert!(asked.to_string().contains("input_required"), "{asked}");
        house.gateway.close().await;
        assert!(is_quiet(&house).await, "{:?}", house.gateway.in_flight());
        assert_eq!(puppet.calls(), 2);
    }
}

/// A child that dies takes its calls with it, and their places.
#[tokio::test]
async fn gate_13_a_child_that_dies_leaves_no_place_taken() -> Result<(), Box<dyn std::error::Error>> {
    let config = r#"
[auto_run]
mode = "run_everything"
[servers.child]
command = "sh"
limits = { in_flight = 1 }
args = ["-c", '''
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *server/discover*) result='{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;
    *tools/list*) result='{"resultType":"complete","tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
    *) exit 1 ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']
"#;
    let house = House::build(&Given { config, ..Given::default() }).await.ok_or("no gateway")?;
    let mut pipe = Pipe::open(&house, Scope::One("child".into()), Speech::Modern).await;
    pipe.say(&call(Speech::Modern, 7, &[])).await;
    let said = pipe.hear().await.to_string();
    assert!(said.contains("ended while the call was on its way"), "{said}");
    assert!(is_quiet(&house).await);
    Ok(())
}

/// Neither a server that says nothing nor one that never stops saying something has more time than it has.
#[tokio::test]
async fn gate_13_a_call_has_so_much_time_and_no_more() {
    let endless: Vec<&str> = std::iter::repeat_n(["Progress", "Pause"], 2_000).flatten().collect();
    for (config, server, whose) in levels("time = \"500ms\"", "act") {
        for (wire, speech) in EVERYWHERE {
            for steps in [&["HangAtOnce"][..], &endless] {
                let (house, puppet) = before(wire, Given { config, server, ..Given::default() }).await;
                let mut pipe = Pipe::open(&house, notes(), speech).await;
                pipe.say(&call(speech, 6, &["Progress", "Pause"])).await;
                let in_time = answer(&mut pipe, 6).await;
                assert!(in_time.contains("done t"), "{whose} {wire:?} {speech:?}: {in_time}");
                pipe.say(&call(speech, 7, steps)).await;
                let late = answer(&mut pipe, 7).await;
                let words = format!("the server did not answer in time: `time` of {whose} is 0.5 s");
                assert!(late.contains(&words), "{whose} {wire:?} {speech:?}: {late}");
                let is_recorded = eventually(async || {
                    let record = last(&house, "outcome").await;
                    [record.get("status"), record.get("reason")] == [Some(&json!("timeout")), Some(&json!("time_over"))]
                });
                assert!(is_recorded.await, "{whose} {wire:?} {speech:?}: {}", last(&house, "outcome").await);
                assert!(is_quiet(&house).await, "{wire:?} {speech:?}: {:?}", house.gateway.in_flight());
                if steps.len() < 10 {
                    let told = eventually(async || puppet.cancelled() + puppet.hung_up() > 0).await;
                    assert!(told, "{whose} {wire:?} {speech:?} {steps:?}: the server was not told");
                }
            }
        }
    }
}

/// A call whose stream broke off may be answered another way; it has no more time than others for that.
#[tokio::test]
async fn gate_13_a_call_whose_stream_broke_off_keeps_its_place_no_longer_than_its_time() {
    let config = "[auto_run]\nmode = \"run_everything\"\n[gateway]\nlimits = { time = \"500ms\", in_flight = 1 }\n";
    let (house, puppet) = before(Wire::Legacy, Given { config, ..Given::default() }).await;
    let session = open_session(&house).await;
    let broken = call(Speech::Legacy, 7, &["BreakOff"]).to_string();
    let said = whole(post_in_session(&house, &session, &broken).await.into_body()).await;
    assert!(!said.contains("result") && !said.contains("error"), "{said}");
    assert_eq!(house.gateway.in_flight().first().map(|(_, calls)| *calls), Some(1), "it waits for its answer");
    // The session is used all the time.
    let is_over = eventually(async || {
        let said = post_in_session(&house, &session, &call(Speech::Legacy, 8, &[]).to_string()).await;
        whole(said.into_body()).await.contains("done t")
    });
    assert!(is_over.await, "{:?}", house.gateway.in_flight());
    let records = house.records().await;
    let late = |record: &&Value| record.get("reason") == Some(&json!("time_over"));
    assert_eq!(records.iter().filter(late).count(), 1, "{records:?}");
    assert!(is_quiet(&house).await, "{:?}", house.gateway.in_flight());
    assert!(eventually(async || puppet.cancelled() > 0).await, "the server was not told");
}

/// The answer of this id, past everything said before.
async fn answer(pipe: &mut Pipe, id: u64) -> String {
    loop {
        let said = pipe.hear().await;
        if said.is_null() || said.get("id") == Some(&json!(id)) {
            return said.to_string();
        }
    }
}

/// Records of sessions and streams that were one too many, each with its caller.
async fn limits_reached(house: &House) -> usize {
    let records = house.all_records().await;
    let is = |record: &&Value| {
        record.get("method") == Some(&json!("limit_reached")) && record.get("user") == Some(&json!("ada"))
    };
    records.iter().filter(is).count()
}

/// What is no call counts for the gateway, at both doors; streams of news have their own bound.
#[tokio::test]
async fn gate_13_lists_count_among_the_requests_of_the_gateway() {
    let config = "[auto_run]\nmode = \"run_everything\"\n[gateway]\nlimits = { in_flight = 1 }\n";
    for scope in [notes(), Scope::All] {
        let (house, puppet) = before(Wire::Modern, Given { config, ..Given::default() }).await;
        let mut other = Pipe::open(&house, notes(), Speech::Modern).await;
        other.say(&call(Speech::Modern, 7, &["HangAtOnce"])).await;
        assert!(eventually(async || puppet.hanging() == 1).await);
        let mut pipe = Pipe::open(&house, scope.clone(), Speech::Modern).await;
        let list =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta(Speech::Modern)}});
        pipe.say(&list).await;
        let refused = pipe.hear().await;
        assert_eq!(refused.pointer("/error/code"), Some(&json!(4030)), "{scope:?}: {refused}");
        assert!(refused.to_string().contains("calls_in_flight"), "{scope:?}: {refused}");
        other.say(&cancel(7)).await;
        assert!(is_quiet(&house).await);
        pipe.say(&list).await;
        let listed = pipe.hear().await;
        assert!(listed.pointer("/result/tools").is_some(), "{scope:?}: {listed}");
        assert!(is_quiet(&house).await);
    }
}

#[tokio::test]
async fn gate_13_one_caller_has_so_many_sessions_and_streams() {
    let given = || Given { config: RUN, most_of_one: Some(2), ..Given::default() };
    let (house, _puppet) = before(Wire::Legacy, given()).await;
    let session = open_session(&house).await;
    let _second = open_session(&house).await;
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let third = super::doors::post_plain(&house, &hello.to_string()).await;
    assert_eq!(third.status(), http::StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(limits_reached(&house).await, 1);
    let streams = [get_in_session(&house, &session).await, get_in_session(&house, &session).await];
    assert!(streams.iter().all(|stream| stream.status() == http::StatusCode::OK));
    assert_eq!(get_in_session(&house, &session).await.status(), http::StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(limits_reached(&house).await, 2);
    drop(streams);
    assert_eq!(get_in_session(&house, &session).await.status(), http::StatusCode::OK);
    // Subscriptions of modern clients are streams, too.
    for scope in [notes(), Scope::All] {
        let (house, _puppet) = before(Wire::Modern, given()).await;
        let mut pipe = Pipe::open(&house, scope, Speech::Modern).await;
        let listen = |id: u64| {
            json!({"jsonrpc": "2.0", "id": id, "method": "subscriptions/listen", "params": {
            "notifications": {"toolsListChanged": true}, "_meta": meta(Speech::Modern)}})
        };
        for id in [1, 2] {
            pipe.say(&listen(id)).await;
            let first = pipe.hear().await.to_string();
            assert!(first.contains("acknowledged"), "{first}");
        }
        pipe.say(&listen(3)).await;
        let refused = pipe.hear().await.to_string();
        assert!(refused.contains("too many streams"), "{refused}");
        assert_eq!(limits_reached(&house).await, 1);
        pipe.say(&cancel(1)).await;
        let has_room = async || {
            pipe.say(&listen(4)).await;
            pipe.hear().await.to_string().contains("acknowledged")
        };
        assert!(eventually(has_room).await);
    }
}
