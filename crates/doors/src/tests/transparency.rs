//! What passes, passes as it was written: arguments to the server, results to the client.

use proptest::prelude::{BoxedStrategy, Just, Strategy, any, prop, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::doors::{ENTRANCES, SPEECHES, send};
use super::house::{Given, House};

/// Numbers in any spelling, of any size: nobody checks those of results.
fn odd() -> BoxedStrategy<String> {
    prop_oneof![
        "-?(0|[1-9][0-9]{0,40})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        Just("12345678901234567890123".to_owned()),
        exact(),
    ]
    .boxed()
}

/// Numbers in any spelling whose value 64 bits hold: arguments with others fit no schema (WORK-2).
fn exact() -> BoxedStrategy<String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_filter_map("JSON has no infinity", |number| number.is_finite().then(|| number.to_string())),
        "-?(0|[1-9][0-9]{0,11})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        Just("18446744073709551615".to_owned()),
        Just("1e2".to_owned()),
        Just("-0".to_owned()),
        Just("1.0".to_owned()),
    ]
    .boxed()
}

/// JSON as people and programs write it: odd numbers, all of Unicode, escapes, white space, depth.
fn json(number: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let text = prop_oneof![
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
        Just(r#""\u0041\ud83d\ude00\/\b""#.to_owned()),
        Just("\"\u{2028}\u{202e}\u{0}\"".replace('\u{0}', "")),
    ];
    let leaf = prop_oneof![number, text, Just("null".to_owned()), Just("true".to_owned())];
    leaf.prop_recursive(8, 64, 6, |inner| {
        let space = prop_oneof![Just(""), Just(" "), Just("\t"), Just(" \n ")];
        let array = (prop::collection::vec(inner.clone(), 0..6), space.clone())
            .prop_map(|(items, space)| format!("[{space}{}]", items.join(&format!("{space},"))));
        let object = (prop::collection::vec(inner, 0..6), space).prop_map(|(values, space)| {
            let members: Vec<_> =
                values.iter().enumerate().map(|(at, value)| format!("\"k{at}é\"{space}:{value}")).collect();
            format!("{{{}}}", members.join(&format!(",{space}")))
        });
        prop_oneof![array, object]
    })
}

#[tokio::test]
async fn arguments_and_results_pass_byte_for_byte() {
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"", ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    let mut runner = TestRunner::deterministic();
    for case in 0..60 {
        let trees = (json(exact()).new_tree(&mut runner), json(odd()).new_tree(&mut runner));
        let (Ok(arguments), Ok(result)) = trees else { continue };
        let arguments = format!("{{\"x\":{}, \"vendor\" :1E5}}", arguments.current());
        let structured = result.current();
        // On a pipe a line break is white space between tokens, and only there.
        let result = format!("{{\"content\":[], \"structuredContent\":{structured},\"z\":10.50}}");
        house.recorder.answers(&result);
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                house.recorder.forget();
                let params = format!("\"name\":\"{}\",\"arguments\":{arguments}", entrance.name("write"));
                let one_line = params.replace('\n', " ");
                let is_pipe = matches!(entrance, super::doors::Entrance::Stdio(_));
                let sent = if is_pipe { &one_line } else { &params };
                let answer = send(&house, entrance, speech, "tools/call", sent).await;
                let calls = house.recorder.calls();
                let expected = if is_pipe { arguments.replace('\n', " ") } else { arguments.clone() };
                let arrived =
                    calls.first().is_some_and(|(_, text)| text.contains(&format!("\"arguments\":{expected}")));
                assert!(
                    arrived && calls.len() == 1,
                    "case {case} {entrance:?} {speech:?}\n{sent}\n{calls:?}\n{answer}"
                );
                let result = if is_pipe { result.replace('\n', " ") } else { result.clone() };
                assert!(answer.contains(&result), "case {case} {entrance:?} {speech:?}\n{result}\n{answer}");
            }
        }
    }
}
