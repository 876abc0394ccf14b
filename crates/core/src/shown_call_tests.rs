//! Nothing of a call is hidden from whoever answers for it.

use super::ShownCall;

#[test]
fn review_4_a_person_sees_what_is_sent_whatever_a_parser_makes_of_it() {
    let sent = r#"{"name":"w","arguments":{"n":123456789012345678901234567890,"e":1e999,"t":"a\u202eb","l":[1,{"x":null}],"o":{}},"task":{"ttl":5},"_meta":{"progressToken":1,"io.modelcontextprotocol/clientInfo":{},"own":1e999}}"#;
    let shown = ShownCall::of("tools/call", sent);
    let expected = "{\n  \"n\": 123456789012345678901234567890,\n  \"e\": 1e999,\n  \"t\": \"a\\u202eb\",\n  \"l\": [\n    1,\n    \
                    {\n      \"x\": null\n    }\n  ],\n  \"o\": {}\n}";
    assert_eq!(shown.laid_out, expected);
    assert_eq!(shown.besides.as_deref(), Some("\"task\": {\"ttl\":5}\n_meta \"own\": 1e999"));
    // Of what is no tool call everything is shown, also what calls itself arguments.
    let read = ShownCall::of("resources/read", r#"{"uri":"note://a","arguments":{}}"#);
    assert!(read.laid_out.contains("note://a"));
    assert_eq!(ShownCall::of("tools/call", "no json").laid_out, "no json");
    assert_eq!(ShownCall::of("tools/call", r#"{"name":"w"}"#).arguments, "{}");
}

#[test]
fn review_5_a_person_is_shown_every_member_of_meta_that_the_digest_holds() {
    let sent =
        r#"{"name":"w","_meta":{"io.modelcontextprotocol/other":"x","progress\u0054oken":"y","traceparent":"z"}}"#;
    let besides = ShownCall::of("tools/call", sent).besides.unwrap_or_default();
    assert!(besides.contains(r#""io.modelcontextprotocol/other": "x""#), "{besides}");
    assert!(besides.contains(r#""y""#) && !besides.contains(r#""z""#), "{besides}");
}
