//! What is counted is what is shown, and nothing else.

use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::{Decision, Reason, Status};

use super::{Door, TurnedAway};
use crate::{JournalObserved, Observed, ServerObserved, Telemetry, render};

fn observed(names: &[&str]) -> Observed {
    let server = |name: &&str| ServerObserved { name: (*name).to_owned(), state: "idle", lines: 2 };
    let journal = JournalObserved { written: 7, failed: 1, behind: Some(3), is_writable: true };
    Observed { sessions: 4, servers: names.iter().map(server).collect(), journal, ..Observed::default() }
}

#[test]
fn a_call_is_in_flight_until_it_ends_and_then_counted_once() {
    let telemetry = Telemetry::new(["notes".into(), "other".into()], None, Timestamp::UNIX_EPOCH);
    let notes = telemetry.metrics.server(Some("notes"));
    notes.left(Duration::from_micros(40), 100);
    let page = render(&telemetry, &observed(&["notes", "other"]));
    assert!(page.contains("toolwarden_calls_in_flight{server=\"notes\"} 1\n"), "{page}");
    assert!(page.contains("toolwarden_calls_in_flight{server=\"other\"} 0\n"), "{page}");
    assert!(!page.contains("toolwarden_calls_total{"), "{page}");
    notes.ended(Door::Http, Status::ToolError, Duration::from_millis(3), 50);
    let page = render(&telemetry, &observed(&["notes", "other"]));
    for line in [
        "toolwarden_calls_in_flight{server=\"notes\"} 0\n",
        "toolwarden_calls_total{server=\"notes\",door=\"mcp_http\",decision=\"allow\",status=\"tool_error\"} 1\n",
        "toolwarden_call_admission_seconds_bucket{server=\"notes\",le=\"0.000025\"} 0\n",
        "toolwarden_call_admission_seconds_bucket{server=\"notes\",le=\"0.00005\"} 1\n",
        "toolwarden_call_duration_seconds_bucket{server=\"notes\",le=\"0.001\"} 0\n",
        "toolwarden_call_duration_seconds_bucket{server=\"notes\",le=\"0.005\"} 1\n",
        "toolwarden_call_duration_seconds_bucket{server=\"notes\",le=\"+Inf\"} 1\n",
        "toolwarden_call_duration_seconds_sum{server=\"notes\"} 0.003\n",
        "toolwarden_request_bytes_total{server=\"notes\"} 100\n",
        "toolwarden_response_bytes_total{server=\"notes\"} 50\n",
        "toolwarden_sessions 4\n",
        "toolwarden_server_state{server=\"notes\",state=\"idle\"} 1\n",
        "toolwarden_server_lines{server=\"notes\"} 2\n",
        "toolwarden_journal_undelivered_records 3\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn every_door_decision_and_status_has_a_place_of_its_own() {
    let telemetry = Telemetry::new(["s".into()], None, Timestamp::UNIX_EPOCH);
    let server = telemetry.metrics.server(Some("s"));
    let decisions = [Some(Decision::Allow), Some(Decision::Hold), Some(Decision::Deny), None];
    let mut kinds = 0;
    for door in Door::ALL {
        for decision in decisions {
            for status in Status::ALL {
                server.refused(door, decision, None, status);
                kinds += 1;
            }
        }
    }
    assert_eq!(server.calls().count(), kinds);
    assert!(server.calls().all(|(.., count)| count == 1));
}

#[test]
fn refusals_are_counted_by_reason_and_what_named_no_server_apart() {
    let telemetry = Telemetry::new(["s".into()], None, Timestamp::UNIX_EPOCH);
    for (place, reason) in Reason::ALL.iter().enumerate() {
        assert_eq!(*reason as usize, place);
    }
    let (held, unknown) = (Reason::NotInAllowlist, Reason::UnknownTool);
    telemetry.metrics.server(Some("s")).refused(Door::Stdio, Some(Decision::Hold), Some(held), Status::Held);
    telemetry.metrics.server(None).refused(Door::Events, Some(Decision::Deny), Some(unknown), Status::Denied);
    telemetry.metrics.turned_away(TurnedAway::Unusable);
    let page = render(&telemetry, &observed(&["s"]));
    for line in [
        "toolwarden_calls_total{server=\"s\",door=\"mcp_stdio\",decision=\"hold\",status=\"held\"} 1\n",
        "toolwarden_calls_total{server=\"\",door=\"mcp_sse\",decision=\"deny\",status=\"denied\"} 1\n",
        "toolwarden_refusals_total{decision=\"hold\",reason=\"not_in_allowlist\"} 1\n",
        "toolwarden_refusals_total{decision=\"deny\",reason=\"unknown_tool\"} 1\n",
        "toolwarden_refusals_total{decision=\"deny\",reason=\"rule_forbid\"} 0\n",
        "toolwarden_messages_turned_away_total{why=\"unusable\"} 1\n",
        "toolwarden_messages_turned_away_total{why=\"host\"} 0\n",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[test]
fn a_hostile_name_of_a_server_stays_one_label() {
    let name = "a\"} 1\nfake_metric 9\n\\\u{1b}[31m";
    let telemetry = Telemetry::new([name.into()], None, Timestamp::UNIX_EPOCH);
    let page = render(&telemetry, &observed(&[name]));
    let escaped = r#"{server="a\"} 1\\u{a}fake_metric 9\\u{a}\\\\u{1b}[31m"} 0"#;
    assert!(page.contains(&format!("toolwarden_calls_in_flight{escaped}\n")), "{page}");
    assert!(page.lines().all(|line| line.starts_with("toolwarden_") || line.starts_with("# ")), "{page}");
}

#[test]
fn a_refused_policy_is_told_until_the_next_good_one() {
    let telemetry = Telemetry::new([], None, Timestamp::UNIX_EPOCH);
    let at = |second| Timestamp::from_second(second).unwrap_or_default();
    let page = || render(&telemetry, &Observed::default());
    assert!(page().contains("toolwarden_policy_is_current 1\n"));
    telemetry.reloads.refuse(at(100), "line 3 is wrong");
    telemetry.reloads.refuse(at(101), "line 3 is wrong");
    let refused = page();
    assert!(refused.contains("toolwarden_policy_is_current 0\n"), "{refused}");
    assert!(refused.contains("toolwarden_policy_reloads_total{result=\"refused\"} 1\n"), "{refused}");
    assert!(refused.contains("toolwarden_policy_last_refused_timestamp_seconds 100\n"), "{refused}");
    assert!(!refused.contains("line 3"), "{refused}");
    let refusal = telemetry.reloads.refusal();
    assert!(refusal.is_some_and(|refusal| refusal.error == "line 3 is wrong" && refusal.since == at(100)));
    telemetry.reloads.accepted(at(200));
    assert!(page().contains("toolwarden_policy_is_current 1\n") && telemetry.reloads.refusal().is_none());
    assert!(page().contains("toolwarden_policy_last_taken_timestamp_seconds 200\n"));
}
