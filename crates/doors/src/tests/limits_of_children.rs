//! Limits of what children answer, and of the time they take (GATE-13): met from both sides, at every level, in both
//! eras.

use std::path::Path;

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::Speech;
use super::giving_up::call;
use super::house::{Given, House};
use super::limits::{is_quiet, last, nested};
use super::patience::eventually;
use super::pipe::Pipe;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A child that answers calls with what is in a file, or not at all where there is none, and notes what it is told.
fn config(directory: &Path, speech: Speech, [gateway, server, tool]: [&str; 3]) -> String {
    let greeting = match speech {
        Speech::Modern => {
            r#"*server/discover*) result='{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}' ;;"#
        }
        Speech::Legacy => {
            r#"*'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}' ;;"#
        }
    };
    let script = r#"while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    GREETING
    *tools/list*) result='{"resultType":"complete","tools":[{"name":"act","inputSchema":{"type":"object"}}]}' ;;
    *tools/call*) test -e PLACE/answer || continue; result=$(cat PLACE/answer) ;;
    *notifications/cancelled*) touch PLACE/told; continue ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;
    let script = script.replace("GREETING", greeting).replace("PLACE", &directory.display().to_string());
    format!(
        "[auto_run]\nmode = \"run_everything\"\n{gateway}\n[servers.child]\ncommand = \"sh\"\n{server}\n{tool}\n\
         args = [\"-c\", '''\n{script}\n''']\n"
    )
}

/// The limit at each level, and whose it is.
fn levels(limit: &str) -> [([String; 3], &'static str); 3] {
    let limits = format!("limits = {{ {limit} }}");
    [
        ([format!("[gateway]\n{limits}"), String::new(), String::new()], "the gateway"),
        ([String::new(), limits.clone(), String::new()], "server `child`"),
        ([String::new(), String::new(), format!("tools.act = {{ {limits} }}")], "tool `act` of server `child`"),
    ]
}

/// Calls with a limit at every level; the words of the answer are `refused`, or those of the child.
async fn meets(limit: &str, answer: Option<&str>, refused: Option<(&str, &str, &str)>) -> Outcome {
    for (written, whose) in levels(limit) {
        for speech in [Speech::Legacy, Speech::Modern] {
            let place = format!("{limit} of {whose}, {speech:?}");
            let directory = tempfile::tempdir()?;
            if let Some(answer) = answer {
                std::fs::write(directory.path().join("answer"), answer)?;
            }
            let [gateway, server, tool] = &written;
            let config = config(directory.path(), speech, [gateway, server, tool]).into_boxed_str();
            // A config of a test lives as long as the test.
            let house =
                House::build(&Given { config: Box::leak(config), ..Given::default() }).await.ok_or("no house")?;
            let mut pipe = Pipe::open(&house, Scope::One("child".into()), speech).await;
            pipe.say(&call(speech, 7, &[])).await;
            let said = pipe.hear_besides(&["tools"]).await;
            let (status, reason) = match refused {
                None => ("ok", Value::Null),
                Some((words, status, reason)) => {
                    let words = words.replace("WHOSE", whose);
                    assert!(said.to_string().contains(&words), "{place}: {said}");
                    (status, json!(reason))
                }
            };
            assert_eq!(said.get("result").is_some(), refused.is_none(), "{place}: {said}");
            let record = last(&house, "outcome").await;
            let ended = [record.get("status"), record.get("reason")].map(|one| one.cloned().unwrap_or_default());
            assert_eq!(ended, [json!(status), reason], "{place}: {record}");
            assert!(is_quiet(&house).await, "{place}: {:?}", house.gateway.in_flight());
            if answer.is_none() {
                let told = directory.path().join("told");
                assert!(eventually(async || told.exists()).await, "{place}: the child was not told");
            }
        }
    }
    Ok(())
}

fn result(size: usize) -> String {
    let (start, end) = ("{\"resultType\":\"complete\",\"content\":[{\"type\":\"text\",\"text\":\"", "\"}]}");
    format!("{start}{}{end}", "x".repeat(size - start.len() - end.len()))
}

#[tokio::test]
async fn gate_13_a_childs_answer_is_as_large_as_the_limit_and_no_larger() -> Outcome {
    let answer = result(1000);
    let whole = format!("{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{answer}}}").len();
    meets(&format!("response_bytes = {whole}"), Some(&answer), None).await?;
    let words = format!("larger than the limit: `response_bytes` of WHOSE is {} bytes", whole - 1);
    let refused = (words.as_str(), "too_large", "response_too_large");
    meets(&format!("response_bytes = {}", whole - 1), Some(&answer), Some(refused)).await
}

#[tokio::test]
async fn gate_13_a_childs_answer_nests_as_deep_as_the_limit_and_no_deeper() -> Outcome {
    meets("depth = 20", Some(&nested(20)), None).await?;
    let words = "nested deeper than the limit: `depth` of WHOSE is 20 levels";
    meets("depth = 20", Some(&nested(21)), Some((words, "too_large", "response_too_deep"))).await
}

#[tokio::test]
async fn gate_13_a_child_has_so_much_time_and_no_more() -> Outcome {
    meets("time = \"20s\"", Some(&result(200)), None).await?;
    let words = "the server did not answer in time: `time` of WHOSE is 0.4 s";
    meets("time = \"400ms\"", None, Some((words, "timeout", "time_over"))).await
}
