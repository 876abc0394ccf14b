//! Zero effect: whatever the door, the era and the reason, a refused call never reaches its server.

use std::collections::BTreeSet;

use toolwarden_conversations::Scope;
use toolwarden_core::{Decision, Reason};
use toolwarden_mcp::{Direction, Form, Method, Version, methods::METHODS};

use super::doors::{ENTRANCES, Entrance, Reach, SPEECHES, Speech, request, send, walk};
use super::house::{Given, House, ada};
use super::oracle_cases::{Case, cases};
use super::recorder::{ALL_KINDS, Speaks};

/// Reasons no call at an MCP door can meet, and why.
const ELSEWHERE: [(Reason, &str); 30] = [
    (Reason::NameAmbiguous, "MCP doors forgive no difference in case"),
    (Reason::MethodNotListed, "tested below, method by method"),
    (Reason::CannotBeHeld, "tested below: prompts and completion"),
    (Reason::ForeignId, "bindings.rs: cancels, answers and tasks of others"),
    (Reason::CallsPerMinute, "limits.rs"),
    (Reason::CallsInFlight, "limits.rs"),
    (Reason::CallsUncounted, "sharing.rs: a store that is away"),
    (Reason::LabelsUnknown, "sharing.rs: a store that is away"),
    (Reason::ResponseTooLarge, "limits.rs, the call has left"),
    (Reason::ResponseTooDeep, "limits.rs, the call has left"),
    (Reason::TimeOver, "limits.rs, the call has left"),
    (Reason::DomainDenied, "fetch"),
    (Reason::FetchReview, "fetch"),
    (Reason::UrlUnparsable, "fetch"),
    (Reason::CommandBlocked, "shell"),
    (Reason::CommandUnparsable, "shell"),
    (Reason::DeleteProtection, "shell"),
    (Reason::SelfProtection, "shell"),
    (Reason::DefinitionChanged, "pinned.rs: a server that changes"),
    (Reason::SchemaUnusable, "fitting.rs: a server that lists an unusable schema"),
    (Reason::DefinitionNew, "pinned.rs: a server that changes"),
    (Reason::PromptNotAccepted, "pinned.rs: a server that changes"),
    (Reason::Rejected, "held.rs: the same call before"),
    (Reason::RejectedOften, "held.rs: the same call before"),
    (Reason::OutcomeUnknown, "held.rs: the same call before"),
    (Reason::AlreadyRunning, "held.rs: the same call before"),
    (Reason::ApprovalUsed, "held.rs: the same call before"),
    (Reason::TooManyHeld, "the store: many calls"),
    (Reason::TooLargeToShow, "held.rs: a large call"),
    (Reason::ResultReview, "held_results.rs: the call was made"),
];

#[test]
fn every_reason_that_refuses_has_a_case() {
    let tried: BTreeSet<Reason> = cases().iter().map(|case| case.reason).collect();
    let elsewhere: BTreeSet<Reason> = ELSEWHERE.iter().map(|(reason, _)| *reason).collect();
    let refusing = Reason::ALL.iter().copied().filter(|reason| reason.decision() != Decision::Allow);
    let missing: Vec<_> = refusing.filter(|reason| !tried.contains(reason) && !elsewhere.contains(reason)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(tried.is_disjoint(&elsewhere));
}

/// Every way to be refused before a server of both eras, and of each.
fn cases_before_all_kinds() -> impl Iterator<Item = (Case, Speaks)> {
    ALL_KINDS.into_iter().flat_map(|speaks| cases().into_iter().map(move |case| (case, speaks)))
}

fn params(case: &Case, reach: Reach) -> String {
    let name = if reach == Reach::One { case.tool.to_owned() } else { format!("notes__{}", case.tool) };
    format!("\"name\":\"{name}\",\"arguments\":{}", case.arguments)
}

#[tokio::test]
async fn a_refused_tool_call_never_reaches_its_server() {
    for (case, speaks) in cases_before_all_kinds() {
        let house = House::before(&case.given, speaks).await;
        assert!(house.is_some(), "{:?}", case.reason);
        let Some(house) = house else { continue };
        for (reach, scope) in [(Reach::One, Scope::One("notes".into())), (Reach::All, Scope::All)] {
            for speech in SPEECHES {
                let text = request(speech, "tools/call", &params(&case, reach));
                let answer = walk(&house, case.caller.clone(), scope.clone(), speech, &text).await;
                let calls = house.recorder.calls();
                let place = format!("{:?} {reach:?} {speech:?} to {speaks:?}", case.reason);
                assert!(calls.is_empty(), "{place}: {calls:?}");
                assert!(says(&case, reach, &answer), "{place}: {answer}");
            }
        }
    }
}

/// Params that each method of the table needs, behind either door.
fn usual_params(method: &str, entrance: Entrance) -> String {
    match method {
        "tools/call" => format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name("write")),
        "prompts/get" => format!("\"name\":\"{}\"", entrance.name("hello")),
        "completion/complete" => format!(
            "\"ref\":{{\"type\":\"ref/prompt\",\"name\":\"{}\"}},\"argument\":{{\"name\":\"a\",\"value\":\"b\"}}",
            entrance.name("hello")
        ),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            format!("\"uri\":\"{}\"", entrance.uri("note://a"))
        }
        "logging/setLevel" => "\"level\":\"info\"".to_owned(),
        "subscriptions/listen" => "\"notifications\":{\"toolsListChanged\":true}".to_owned(),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => "\"taskId\":\"t1\"".to_owned(),
        _ => String::new(),
    }
}

/// Every way to be refused, with every request of the table: what is answered with a refusal had no
/// effect, and whoever may not reach the server at all reaches it by no method.
#[tokio::test]
async fn no_method_has_an_effect_when_it_is_refused() {
    let (mut shut_cases, mut passed) = (0, 0);
    for (case, speaks) in cases_before_all_kinds() {
        let house = House::before(&case.given, speaks).await;
        assert!(house.is_some(), "{:?}", case.reason);
        let Some(house) = house else { continue };
        let is_shut = !house.gateway.may_reach(&std::sync::Arc::new(case.caller.clone()), &"notes".into());
        shut_cases += usize::from(is_shut);
        let mut decided_against = 0;
        for entrance in [Entrance::Http(Reach::One), Entrance::Http(Reach::All)] {
            for speech in SPEECHES {
                let version = if speech == Speech::Legacy { Version::LATEST_LEGACY } else { Version::LATEST_MODERN };
                let rows = METHODS.iter().filter(|row| {
                    Method::find(row.name, Direction::ToServer, Form::Request, version).is_some()
                        && row.direction == Direction::ToServer
                });
                for row in rows {
                    let text = request(speech, row.name, &usual_params(row.name, entrance));
                    house.recorder.forget();
                    let answer = walk(&house, case.caller.clone(), entrance.scope(), speech, &text).await;
                    let calls = house.recorder.calls();
                    let place =
                        format!("{:?} {entrance:?} {speech:?} to {speaks:?} {}: {answer}", case.reason, row.name);
                    let is_refused = answer.contains("toolwarden/decision") || answer.contains("\"error\"");
                    assert!(!is_refused || calls.is_empty(), "{place}: {calls:?}");
                    decided_against +=
                        usize::from(answer.contains("toolwarden/decision") || answer.contains("Unknown tool"));
                    passed += calls.len();
                    if is_shut {
                        assert!(house.recorder.all().is_empty(), "{place}: {:?}", house.recorder.all());
                    }
                }
            }
        }
        let records = house.records().await;
        let refusals = records.iter().filter(|record| record.get("kind").is_some_and(|kind| kind == "refusal")).count();
        assert!(refusals >= decided_against, "{:?}: {decided_against} refused, {refusals} recorded", case.reason);
    }
    assert!(shut_cases >= 5 && passed > 0, "{shut_cases} shut, {passed} passed: it would show nothing");
}

/// The answer names the reason, or is that of an unknown tool.
fn says(case: &Case, reach: Reach, answer: &str) -> bool {
    let named = answer.contains(&format!("\"reason\":\"{}\"", case.reason.code()));
    let unknown = answer.contains("Unknown tool") || answer.contains("initialize");
    let hidden = case.caller.is_agent() || reach == Reach::All || case.reason == Reason::UnknownTool;
    // A server nobody may open a conversation with lists nothing, so none of its tools is known.
    let closed = [Reason::ModeServerOptIn, Reason::ModeServer, Reason::ModeGroup, Reason::ModeWindow]
        .contains(&case.reason)
        || [Reason::ModeUnknown, Reason::ModeRefused, Reason::ModeRequired, Reason::ModeCondition]
            .contains(&case.reason);
    named || (unknown && (hidden || closed))
}

#[tokio::test]
async fn the_real_doors_hold_and_deny_without_effect() {
    let forbidding = "permit(principal, action, resource);\nforbid(principal, action, resource);";
    let denied = Given { rules: Some(forbidding), ..Given::default() };
    let everything = "[auto_run]\nmode = \"run_everything\"\nask = [\"notes:*\"]\n";
    let asking = Given { config: everything, ..Given::default() };
    let held = "permit(principal, action, resource);\n@hold(\"why\")\nforbid(principal, action, resource);";
    let holding = Given { config: "[auto_run]\nmode = \"run_everything\"\n", rules: Some(held), ..Given::default() };
    let cases = [
        (Given::default(), vec!["tools/call", "resources/read"]),
        (denied, vec!["tools/call", "resources/read", "prompts/get", "completion/complete", "resources/subscribe"]),
        // Nobody can be asked about these, so what would ask denies (CORE-4, MODE-4).
        (asking, vec!["tools/call", "resources/read", "prompts/get", "completion/complete"]),
        (holding, vec!["tools/call", "resources/read", "prompts/get", "completion/complete"]),
    ];
    for ((given, methods), speaks) in cases.iter().flat_map(|case| ALL_KINDS.map(|speaks| (case, speaks))) {
        let house = House::before(given, speaks).await;
        assert!(house.is_some());
        let Some(house) = house else { unreachable!("the gateway is built") };
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                for method in methods {
                    let is_of_era = speech == Speech::Legacy || *method != "resources/subscribe";
                    if is_of_era {
                        refuses(&house, entrance, speech, method).await;
                    }
                }
            }
        }
    }
}

async fn refuses(house: &House, entrance: Entrance, speech: Speech, method: &str) {
    let params = usual_params(method, entrance);
    let answer = send(house, entrance, speech, method, &params).await;
    let calls = house.recorder.calls();
    assert!(calls.is_empty(), "{entrance:?} {speech:?} {method}: {calls:?}");
    assert!(answer.contains("toolwarden/decision"), "{entrance:?} {speech:?} {method}: {answer}");
}

#[tokio::test]
async fn a_method_no_table_lists_is_refused() {
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"", ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    for entrance in ENTRANCES {
        for speech in SPEECHES {
            let unlisted = ["shell/run", "tools/Call", "tools/call ", "notifications/x", "sampling/createMessage", ""];
            for method in unlisted {
                let answer = send(&house, entrance, speech, method, "").await;
                // A header cannot hold every method; then the mirror speaks first.
                let refused = answer.contains("-32601") || answer.contains("-32020");
                assert!(refused, "{entrance:?} {speech:?} {method}: {answer}");
            }
            for row in METHODS.iter().filter(|row| row.direction == Direction::ToServer) {
                let other_era = match speech {
                    Speech::Legacy => row.since.era() == toolwarden_mcp::Era::Modern,
                    Speech::Modern => row.until.era() == toolwarden_mcp::Era::Legacy,
                };
                if other_era && row.form == Form::Request {
                    let answer = send(&house, entrance, speech, row.name, "").await;
                    assert!(
                        answer.contains("-32601") || answer.contains("-32602"),
                        "{entrance:?} {speech:?} {}: {answer}",
                        row.name
                    );
                }
            }
        }
    }
    let calls = house.recorder.calls();
    assert!(calls.is_empty(), "{calls:?}");
    let long = "x/".repeat(10_000);
    send(&house, Entrance::Http(Reach::One), Speech::Legacy, &long, "").await;
    let records = house.records().await;
    let refused =
        |record: &&serde_json::Value| record.get("reason").is_some_and(|reason| reason == "method_not_listed");
    let named =
        |name: &str| records.iter().filter(refused).any(|record| record.get("method").is_some_and(|is| is == name));
    assert!(named("shell/run") && named(&"x/".repeat(128)), "{records:?}");
}

#[tokio::test]
async fn an_allowed_call_reaches_its_server_once_and_is_recorded_before() {
    for speaks in ALL_KINDS {
        an_allowed_call_reaches_once(speaks).await;
    }
}

async fn an_allowed_call_reaches_once(speaks: Speaks) {
    let given = Given { allowlist: &["notes:*"], ..Given::default() };
    let Some(house) = House::before(&given, speaks).await else { unreachable!("no house before {speaks:?}") };
    for entrance in ENTRANCES {
        for speech in SPEECHES {
            house.recorder.forget();
            let params = format!("\"name\":\"{}\",\"arguments\":{{\"a\":1}}", entrance.name("write"));
            let answer = send(&house, entrance, speech, "tools/call", &params).await;
            assert!(answer.contains("done"), "{entrance:?} {speech:?} to {speaks:?}: {answer}");
            let calls = house.recorder.calls();
            assert_eq!(calls.len(), 1, "{entrance:?} {speech:?} to {speaks:?}: {calls:?}");
            let sent = calls.first().map(|(_, text)| text.clone()).unwrap_or_default();
            assert!(sent.contains(r#""name":"write","arguments":{"a":1}"#), "{sent}");
        }
    }
    let records = house.records().await;
    let count = |kind: &str| records.iter().filter(|record| record.get("kind").is_some_and(|is| is == kind)).count();
    assert_eq!((count("intent"), count("outcome"), count("refusal")), (8, 8, 0), "{records:?}");
    assert_eq!(ada().user.as_deref(), Some("ada"));
}

/// A server somebody may not reach is not even asked what it has.
#[tokio::test]
async fn a_server_that_is_off_hears_nothing_at_all() {
    for server in ["enabled = false", "default_enabled = false"] {
        let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", server, ..Given::default() };
        let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                let params = format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name("write"));
                let said = send(&house, entrance, speech, "tools/call", &params).await;
                assert!(!said.contains("done"), "{entrance:?} {speech:?}: {said}");
            }
        }
        assert!(house.recorder.all().is_empty(), "{server}: {:?}", house.recorder.all());
    }
}

/// A tool behind a shut server: the caller hears why, or that there is no such tool, and the record is true.
#[tokio::test]
async fn a_shut_server_is_recorded_as_what_it_is() {
    let config =
        "[auto_run]\nmode = \"run_everything\"\n[modes.m]\ngroups = [\"mcp\"]\nallowed_servers = [\"other\"]\n";
    let given = Given { config, ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    let mut caller = ada();
    caller.mode = Some("m".to_owned());
    for entrance in [Entrance::Http(Reach::One), Entrance::Http(Reach::All)] {
        for speech in SPEECHES {
            let params = format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name("write"));
            let text = request(speech, "tools/call", &params);
            let said = walk(&house, caller.clone(), entrance.scope(), speech, &text).await;
            assert!(said.contains("does not permit this server"), "{entrance:?} {speech:?}: {said}");
        }
    }
    assert!(house.recorder.calls().is_empty());
    let records = house.records().await;
    let told =
        records.iter().filter_map(|record| Some((record.get("reason")?, record.get("server")?, record.get("tool")?)));
    let told: Vec<_> = told
        .filter(|(reason, server, tool)| *reason == "mode_server" && *server == "notes" && *tool == "write")
        .collect();
    assert_eq!(told.len(), 4, "{records:?}");
}

/// A call to a server that cannot be reached is on record, though the judge was never asked.
#[tokio::test]
async fn a_call_to_a_server_that_cannot_start_is_recorded() {
    let config = "[auto_run]\nmode = \"run_everything\"\n[servers.dead]\ncommand = \"/no/such/program\"\n";
    let given = Given { config, ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    for _ in 0..2 {
        let text = request(Speech::Legacy, "tools/call", r#""name":"dead__x","arguments":{}"#);
        let said = walk(&house, ada(), Scope::All, Speech::Legacy, &text).await;
        assert!(said.contains("cannot be reached") && said.contains("/no/such/program"), "{said}");
    }
    for speech in [Speech::Modern, Speech::Legacy] {
        let text = request(speech, "tools/call", r#""name":"x","arguments":{}"#);
        let said = walk(&house, ada(), Scope::One("dead".into()), speech, &text).await;
        assert!(!said.contains("Unknown tool"), "{speech:?}: {said}");
    }
    let records = house.records().await;
    let told = records.iter().filter(|record| record.get("status").is_some_and(|status| status == "upstream_error"));
    let named = told.filter(|record| record.get("server").is_some_and(|server| server == "dead"));
    assert_eq!(named.filter(|record| record.get("tool").is_some_and(|tool| tool == "x")).count(), 3, "{records:?}");
}

#[tokio::test]
async fn records_say_which_resource_prompt_or_argument() {
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    let one = Entrance::Http(Reach::One);
    send(&house, one, Speech::Legacy, "resources/read", r#""uri":"note://a?key=1""#).await;
    send(&house, one, Speech::Legacy, "prompts/get", r#""name":"hello""#).await;
    let reference = r#""ref":{"type":"ref/prompt","name":"hey"},"argument":{"name":"x","value":""}"#;
    send(&house, one, Speech::Legacy, "completion/complete", reference).await;
    let records = house.records().await;
    let details: Vec<_> = records.iter().filter_map(|record| record.get("detail")?.as_str()).collect();
    assert_eq!(details, ["note://a", "hello", "hey"], "{records:?}");
}

#[tokio::test]
async fn without_a_record_nothing_leaves() {
    let given = Given { allowlist: &["notes:*"], ..Given::default() };
    for speaks in ALL_KINDS {
        let house = House::before(&given, speaks).await;
        assert!(house.is_some());
        let Some(house) = house else { unreachable!("the gateway is built") };
        assert!(house.journal.clone().close().await.is_ok());
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                let params = format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name("write"));
                let answer = send(&house, entrance, speech, "tools/call", &params).await;
                assert!(answer.contains("audit record"), "{entrance:?} {speech:?} to {speaks:?}: {answer}");
            }
        }
        assert!(house.recorder.calls().is_empty());
    }
}
