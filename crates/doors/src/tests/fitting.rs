//! Arguments and results against the schemas of their tool (GATE-12): what does not fit does not pass, and the
//! answer says where and which rule.

use serde_json::{Value, json};

use super::doors::{ENTRANCES, Entrance, Reach, SPEECHES, Speech, send};
use super::house::{Given, House};
use super::recorder::{ALL_KINDS, Recorder, Speaks};

fn tool() -> Value {
    json!({
        "name": "count",
        "inputSchema": {
            "type": "object",
            "properties": { "of": { "type": "string", "maxLength": 8 } },
            "required": ["of"],
        },
        "outputSchema": {
            "type": "object",
            "properties": { "n": { "type": "integer", "minimum": 0 } },
            "required": ["n"],
        },
    })
}

async fn house(speaks: Speaks, tool: &Value) -> House {
    let Ok(recorder) = Recorder::start(speaks).await else { unreachable!("it is started") };
    recorder.lists("tools/list", vec![json!({ "tools": [tool] })]);
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"", ..Given::default() };
    let Some(house) = House::around(&given, recorder).await else { unreachable!("the house is built") };
    house
}

fn call(entrance: Entrance, arguments: &Value) -> String {
    format!("\"name\":\"{}\",\"arguments\":{arguments}", entrance.name("count"))
}

#[tokio::test]
async fn gate_12_a_result_that_breaks_the_output_schema_is_withheld_with_the_place_and_the_rule() {
    let good = json!({ "content": [], "structuredContent": { "n": 1 }, "resultType": "complete" });
    let failed = json!({ "content": [], "isError": true, "resultType": "complete" });
    let cases = [
        (&good, None),
        (&failed, None),
        (&json!({ "content": [], "structuredContent": { "n": -1 }, "resultType": "complete" }), Some("/n")),
        (&json!({ "content": [], "structuredContent": { "n": "secret" } }), Some("/n")),
        (&json!({ "content": [], "structuredContent": {} }), Some("required property")),
        (&json!({ "content": [{ "type": "text", "text": "secret" }] }), Some("no `structuredContent`")),
        // No way around it.
        (&json!({ "content": [], "task": { "taskId": "t" }, "structuredContent": {} }), Some("required property")),
        (&json!({ "content": [], "isError": false, "structuredContent": {} }), Some("required property")),
    ];
    for speaks in ALL_KINDS {
        let house = house(speaks, &tool()).await;
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                for (result, fault) in &cases {
                    let place = format!("{entrance:?} {speech:?} to {speaks:?}: {result}");
                    house.recorder.answers(&result.to_string());
                    let said =
                        send(&house, entrance, speech, "tools/call", &call(entrance, &json!({ "of": "x" }))).await;
                    match fault {
                        None => assert!(!said.contains("withheld") && said.contains("\"content\""), "{place}: {said}"),
                        Some(fault) => {
                            let told = said.contains("output schema") && said.contains(fault);
                            assert!(told && !said.contains("secret"), "{place}: {said}");
                        }
                    }
                }
            }
        }
        let statuses: Vec<Value> =
            house.records().await.iter().filter_map(|record| record.get("status").cloned()).collect();
        let broken = statuses.iter().filter(|status| **status == json!("upstream_error")).count();
        assert_eq!(broken, statuses.len() / cases.len() * 6, "every one of them is on record: {statuses:?}");
    }
}

/// `resultType` means nothing to clients of a legacy server, nor here.
#[tokio::test]
async fn gate_12_a_legacy_result_that_calls_itself_unfinished_is_held_to_the_schema() {
    let house = house(Speaks::Legacy, &tool()).await;
    for kind in ["task", "input_required", "odd"] {
        house
            .recorder
            .answers(&json!({ "content": [], "structuredContent": { "loud": 1 }, "resultType": kind }).to_string());
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                let said = send(&house, entrance, speech, "tools/call", &call(entrance, &json!({ "of": "x" }))).await;
                assert!(!said.contains("loud") && said.contains("error"), "{kind} {entrance:?} {speech:?}: {said}");
            }
        }
    }
}

/// In the modern era the result of a task comes with what is said of the task.
#[tokio::test]
async fn gate_12_what_came_of_a_task_is_held_to_the_schema() {
    let house = house(Speaks::Modern, &tool()).await;
    let entrance = Entrance::Http(Reach::One);
    house.recorder.answers(&json!({ "resultType": "task", "taskId": "t1", "status": "working" }).to_string());
    send(&house, entrance, Speech::Modern, "tools/call", &call(entrance, &json!({ "of": "x" }))).await;
    for (structured, passes) in [(json!({ "n": 4321 }), true), (json!({ "n": -4321 }), false)] {
        let result = json!({ "content": [], "structuredContent": structured });
        let done = json!({ "resultType": "complete", "taskId": "t1", "status": "completed", "result": result });
        house.recorder.lists("tasks/get", vec![done]);
        let said = send(&house, entrance, Speech::Modern, "tasks/get", "\"taskId\":\"t1\"").await;
        assert_eq!(said.contains("4321"), passes, "{said}");
        assert_eq!(said.contains("output schema"), !passes, "{said}");
    }
}

#[tokio::test]
async fn gate_12_arguments_that_break_the_input_schema_reach_nobody() {
    for speaks in ALL_KINDS {
        let house = house(speaks, &tool()).await;
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                for (arguments, fault) in
                    [(json!({}), "required"), (json!({ "of": 1 }), "/of"), (json!({ "of": "a-secret-value" }), "/of")]
                {
                    let said = send(&house, entrance, speech, "tools/call", &call(entrance, &arguments)).await;
                    let told = said.contains("schema_violation") && said.contains(fault);
                    assert!(told && !said.contains("a-secret-value"), "{entrance:?} {speech:?}: {said}");
                }
            }
        }
        assert_eq!(house.recorder.calls(), []);
    }
}

#[tokio::test]
async fn gate_12_a_schema_that_refers_elsewhere_is_not_followed() {
    let Ok(elsewhere) = Recorder::start(Speaks::Both).await else { unreachable!("it is started") };
    let remote = json!({ "type": "object", "properties": { "n": { "$ref": elsewhere.url } } });
    let entrance = Entrance::Http(Reach::One);
    for key in ["inputSchema", "outputSchema"] {
        let mut tool = tool();
        if let Some(tool) = tool.as_object_mut() {
            tool.insert(key.to_owned(), remote.clone());
        }
        let house = house(Speaks::Both, &tool).await;
        house.recorder.answers(r#"{"content":[],"structuredContent":{"n":1},"resultType":"complete"}"#);
        let said = send(&house, entrance, Speech::Modern, "tools/call", &call(entrance, &json!({ "of": "x" }))).await;
        assert!(said.contains("schema_unusable") && said.contains(key.trim_end_matches("Schema")), "{said}");
        assert_eq!(house.recorder.calls().len(), 0, "nothing leaves whose result nobody could check");
    }
    assert_eq!(elsewhere.all(), []);
}
