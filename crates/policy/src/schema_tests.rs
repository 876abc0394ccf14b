//! WORK-1 and GATE-12: a schema that cannot be used fits nothing, and no check takes more than its budget.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Layer, Origin};

use super::budget::MOST_STEPS;
use super::{MOST_VALUES, Room, Schema, Work, briefly, read_input_schema, read_schema};
use crate::input::{Declared, ServerInput, ToolDefinition};
use crate::{PolicyInput, PolicySet};

fn measured(schema: &Value, arguments: &str) -> (Result<(), String>, Work) {
    let document = Document::parse(arguments, Limits { bytes: 64 << 20, depth: 1024 });
    assert!(document.is_ok(), "{:?}", document.err());
    Schema::compile(schema).measured(document.as_ref().ok().map(Document::root))
}

fn from_text(schema: &str) -> Schema {
    let document = Document::parse(schema, Limits { bytes: 64 << 20, depth: 1024 });
    Schema::compile(&document.map_or(Value::Null, |document| read_schema(document.root())))
}

#[test]
fn work_1_a_schema_that_cannot_be_used_fits_nothing() {
    let deep = format!("{{\"not\":{}{{}}{}}}", "{\"not\":".repeat(200), "}".repeat(200));
    let wide = format!("{{\"enum\":[{}0]}}", "0,".repeat(60_000));
    let pattern = format!("{{\"pattern\":\"(a{{1000}}){{1000}}{}\"}}", "(b{500}){500}".repeat(20));
    for schema in [
        "false",
        "true",
        "null",
        "[]",
        "\"x\"",
        "0",
        deep.as_str(),
        wide.as_str(),
        pattern.as_str(),
        r#"{"maximum":1e999}"#,
        r#"{"properties":{"n":{"minimum":-1e999}}}"#,
        r#"{"properties":{"n":{"enum":[18446744073709551616]}}}"#,
        r#"{"properties":{"n":{"maximum":18446744073709551616}}}"#,
        r#"{"properties":{"n":{"const":0.1000000000000000000001}}}"#,
        r#"{"default":9007199254740993.0}"#,
        r#"{"type":"objekt"}"#,
        r#"{"type":7}"#,
        r#"{"required":"a"}"#,
        r#"{"properties":[]}"#,
        r#"{"anyOf":{}}"#,
        r#"{"anyOf":[]}"#,
        r#"{"pattern":"("}"#,
        r#"{"pattern":"a(?=b)"}"#,
        r#"{"patternProperties":{"[":{}}}"#,
        r#"{"$schema":"https://example.test/unknown"}"#,
        r#"{"$schema":"","type":"object","required":["a"]}"#,
        r#"{"$schema":" ","type":"object"}"#,
        r##"{"$schema":"#","type":"object"}"##,
        r#"{"$id":"https://example.test/own","$schema":"https://example.test/own","required":["a"]}"#,
        r#"{"$schema":"json-schema:///","required":["a"]}"#,
        r#"{"$schema":5,"type":"object"}"#,
        r#"{"$schema":null,"type":"object"}"#,
        r#"{"properties":{"a":{"$schema":"","type":"string"}}}"#,
        r#"{"$ref":"https://example.test/schema.json"}"#,
        r#"{"$ref":"file:///etc/passwd"}"#,
        r#"{"$ref":"other.json#/x"}"#,
        r##"{"$ref":"#/nowhere"}"##,
        r##"{"$ref":"#anchor","$defs":{"a":{"$anchor":"anchor"}}}"##,
        r##"{"$ref":"#"}"##,
        r##"{"allOf":[{"$ref":"#"}]}"##,
        r##"{"anyOf":[{"type":"object"},{"not":{"$ref":"#"}}]}"##,
        r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"properties":{"x":{"$ref":"#/$defs/a"}}}"##,
        r##"{"dependentSchemas":{"x":{"$ref":"#"}}}"##,
        r##"{"$dynamicRef":"#x"}"##,
        r##"{"$recursiveRef":"#"}"##,
        r#"{"$ref":5}"#,
        r##"{"properties":{"a":{"$id":"https://example.test/b","$ref":"#/$defs/c"}},"$defs":{"c":{}}}"##,
    ] {
        let compiled = from_text(schema);
        let shown: String = schema.chars().take(80).collect();
        assert!(compiled.fault().is_some(), "{shown}");
        assert!(compiled.check(None).is_err_and(|why| why.contains("cannot be used")), "{shown}");
    }
}

/// A schema of definitions, each made of its number and the pointer to the next one.
fn chain(links: usize, link: impl Fn(usize, &str) -> String) -> String {
    let definitions: Vec<String> =
        (0..links).map(|at| format!("\"f{at}\":{}", link(at, &format!("#/$defs/f{}", at + 1)))).collect();
    let definitions = definitions.join(",");
    format!(
        r##"{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/f0"}}}},"$defs":{{{definitions},"f{links}":{{}}}}}}"##
    )
}

#[test]
fn work_1_keywords_for_what_is_not_evaluated_are_bounded_before_they_are_compiled() {
    let both = |next: &str| format!(r#"{{"$ref":"{next}"}},{{"$ref":"{next}"}}"#);
    for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
        for schema in [
            chain(18, |_, next| format!(r#"{{"anyOf":[{}],"{keyword}":false}}"#, both(next))),
            chain(40, |_, next| format!(r#"{{"allOf":[{}],"{keyword}":{{}}}}"#, both(next))),
            chain(18, |_, next| format!(r#"{{"$ref":"{next}","if":{{"$ref":"{next}"}},"{keyword}":false}}"#)),
            chain(18, |_, next| {
                format!(r#"{{"dependentSchemas":{{"a":{{"$ref":"{next}"}}}},"{keyword}":{{"$ref":"{next}"}}}}"#)
            }),
            chain(18, |_, next| {
                format!(
                    r#"{{"additionalProperties":{{"$ref":"{next}"}},"items":{{"$ref":"{next}"}},"{keyword}":false}}"#
                )
            }),
            chain(3_000, |_, next| format!(r#"{{"$ref":"{next}","{keyword}":false}}"#)),
            chain(2_000, |at, next| {
                format!(
                    r#"{{"$ref":"{next}"{}}}"#,
                    if at == 0 { format!(r#","{keyword}":false"#) } else { String::new() }
                )
            }),
        ] {
            let compiled = from_text(&schema);
            assert!(compiled.fault().is_some_and(|fault| fault.contains("unevaluated")), "{:?}", compiled.fault());
        }
    }
    // Schemas as people write them stay well below.
    let usual = json!({
        "$defs": { "base": { "type": "object", "properties": { "id": { "type": "string" } } },
                   "named": { "allOf": [{ "$ref": "#/$defs/base" }], "properties": { "name": {} }, "unevaluatedProperties": false } },
        "type": "object",
        "properties": { "list": { "type": "array", "prefixItems": [{ "$ref": "#/$defs/named" }], "unevaluatedItems": false },
                        "tree": { "type": "object", "properties": { "below": { "$ref": "#" } }, "unevaluatedProperties": false } },
        "unevaluatedProperties": false,
    });
    assert_eq!(Schema::compile(&usual).fault(), None);
    for (arguments, fits) in [
        (r#"{"list":[{"id":"a","name":1}],"tree":{"below":{"list":[]}}}"#, true),
        (r#"{"list":[{"id":"a","other":1}]}"#, false),
        (r#"{"list":[{"id":"a"},{"id":"b"}]}"#, false),
        (r#"{"tree":{"other":1}}"#, false),
    ] {
        assert_eq!(measured(&usual, arguments).0.is_ok(), fits, "{arguments}");
    }
}

#[test]
fn work_1_the_schemas_of_a_server_share_what_is_compiled_again() {
    let one = chain(8, |_, next| format!(r#"{{"allOf":[{{"$ref":"{next}"}}],"unevaluatedProperties":false}}"#));
    let schema = serde_json::from_str(&one).unwrap_or_default();
    let mut room = Room::of_a_server();
    let fitting = (0..1_000).take_while(|_| Schema::compile_within(&schema, &mut room).fault().is_none()).count();
    assert!((5..100).contains(&fitting), "{fitting}");
}

#[test]
fn work_1_what_is_counted_is_what_is_checked_whatever_a_schema_calls_itself() {
    let doubled = |inner: &str| {
        let empty: String = (0..20).map(|at| format!(r#""f{at}":{{}},"#)).collect();
        let full: String = (0..20)
            .map(|at| format!(r##""f{at}":{{"allOf":[{{"$ref":"#/f{0}"}},{{"$ref":"#/f{0}"}}]}},"##, at + 1))
            .collect();
        format!(
            r##"{{{inner}{empty}"f20":{{}},"properties":{{"p":{{NESTED{full}"f20":{{"type":"string"}},"allOf":[{{"$ref":"#/f0"}}]}}}}}}"##
        )
    };
    let draft_4 = r#""$schema":"http://json-schema.org/draft-04/schema#","#;
    for schema in [
        doubled(draft_4).replace("NESTED", r#""id":"http://x.test/y","#),
        doubled("").replace("NESTED", &format!(r#"{draft_4}"id":"http://x.test/y","#)),
        doubled("").replace("NESTED", r#""$id":"http://x.test/y","#),
        doubled(draft_4).replace("NESTED", r##""id":"#y","##),
    ] {
        let compiled = from_text(&schema);
        assert!(compiled.fault().is_some_and(|fault| fault.contains("must not have one")), "{:?}", compiled.fault());
    }
    // Elsewhere it is a word like any other.
    for schema in [
        r#"{"properties":{"id":{"type":"string"}},"required":["id"]}"#,
        r#"{"properties":{"a":{"id":"a","type":"string"}}}"#,
        r#"{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x.test/y","properties":{"id":{"type":"string"}}}"#,
    ] {
        assert_eq!(from_text(schema).fault(), None, "{schema}");
    }
}

#[test]
fn work_1_what_references_alone_lead_to_is_a_schema_too() {
    for stray in [
        r#"{"items":5}"#,
        r#"{"items":"x"}"#,
        r#"{"uniqueItems":"true"}"#,
        r#"{"uniqueItems":1}"#,
        r#"{"propertyNames":"x"}"#,
        r#"{"propertyNames":[false]}"#,
        r#"{"propertyNames":null}"#,
        r#"{"allOf":[{"uniqueItems":1}]}"#,
        r##"{"properties":{"a":{"$ref":"#/bar"}}}"##,
        "5",
        "\"x\"",
        "null",
    ] {
        for schema in [
            format!(
                r##"{{"type":"object","properties":{{"n":{{"$ref":"#/foo"}}}},"foo":{stray},"bar":{{"items":5}}}}"##
            ),
            format!(r##"{{"$ref":"#/foo","foo":{stray},"bar":{{"items":5}}}}"##),
            format!(
                r##"{{"properties":{{"n":{{"$ref":"#/default/foo"}}}},"default":{{"foo":{stray}}},"bar":{{"items":5}}}}"##
            ),
            format!(
                r##"{{"$schema":"http://json-schema.org/draft-07/schema#","properties":{{"n":{{"$ref":"#/foo"}}}},"foo":{stray},"bar":{{"items":5}}}}"##
            ),
        ] {
            assert!(from_text(&schema).fault().is_some(), "{schema}");
        }
    }
    let usual = r##"{"properties":{"n":{"$ref":"#/components/schemas/N"}},"components":{"schemas":{"N":{"items":{"type":"string"}}}}}"##;
    assert_eq!(from_text(usual).fault(), None);
    assert!(from_text(usual).check(None).is_ok());
}

#[test]
fn gate_12_a_listed_tool_without_a_schema_fits_nothing() {
    let listed = Document::parse(r#"{"name":"pay","input_schema":{"type":"object"}}"#.to_owned(), Limits::DEFAULT);
    let schema = listed.as_ref().map(|tool| read_input_schema(tool.root().get("inputSchema")));
    let compiled = schema.map(|schema| Schema::compile(&schema));
    assert!(compiled.is_ok_and(|compiled| compiled.fault().is_some_and(|fault| fault.contains("`inputSchema`"))
        && compiled.check(None).is_err()));
}

#[test]
fn gate_12_schemas_as_servers_write_them_can_be_used() {
    let tree = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://example.test/tree",
        "type": "object",
        "properties": { "value": { "type": "number" }, "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] } },
        "additionalProperties": false,
    });
    for (arguments, fits) in [
        ("{}", true),
        (r#"{"value":1,"next":{"value":2,"next":null}}"#, true),
        (r#"{"value":1,"next":{"value":"2"}}"#, false),
        (r#"{"next":{"next":{"next":{"other":1}}}}"#, false),
    ] {
        assert_eq!(measured(&tree, arguments).0.is_ok(), fits, "{arguments}");
    }
    let draft_7 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": { "a/b": { "type": "string", "pattern": "^[a-z]+$" }, "c": { "oneOf": [{ "type": "string" }] } },
        "properties": { "a": { "$ref": "#/definitions/a~1b" }, "b": { "$ref": "#/definitions/c/oneOf/0" },
                        "anyOf": { "type": "integer" }, "$ref": { "type": "string" } },
        "required": ["a"],
    });
    for (arguments, place) in [
        (r#"{"a":"x","b":"y","anyOf":1,"$ref":"r"}"#, None),
        (r#"{"a":"X"}"#, Some("/a")),
        (r#"{"a":"x","b":1}"#, Some("/b")),
        (r#"{"a":"x","anyOf":"1"}"#, Some("/anyOf")),
        (r#"{"b":"y"}"#, Some("the arguments")),
    ] {
        let found = measured(&draft_7, arguments).0.err();
        match place {
            None => assert_eq!(found, None, "{arguments}"),
            Some(place) => assert!(found.is_some_and(|found| found.starts_with(place)), "{arguments}"),
        }
    }
}

#[test]
fn work_2_numbers_that_cannot_be_held_exactly_fit_no_schema() {
    let limits = json!({ "properties": { "n": { "type": ["integer", "number"], "maximum": 10 } } });
    let anything = json!({ "type": "object" });
    for number in [
        "10.00000000000000000000001",
        "9.999999999999999999999999",
        "0.1000000000000000000001",
        "0.10000000000000001",
        "18446744073709551616",
        "18446744073709551617",
        "-9223372036854775809",
        "9007199254740993.0",
        "9007199254740993e0",
        "1e-400",
        "1.00000000000000000000000000000000000000001e0",
        "1e-999999999999999999999",
        "1e400",
    ] {
        for schema in [&limits, &anything] {
            let arguments = format!("{{\"n\":{number}}}");
            let found = measured(schema, &arguments).0;
            let words = ["represented exactly", "too large"];
            assert!(found.is_err_and(|why| words.iter().any(|word| why.contains(word))), "{arguments} {schema}");
            assert!(measured(schema, &format!("{{\"m\":[{{\"n\":{number}}}]}}")).0.is_err(), "{number}, deeper");
        }
    }
    for number in [
        "0.1",
        "1.5",
        "1e3",
        "1E+3",
        "-0.0",
        "0.0",
        "-0",
        "5.0",
        "0.30000000000000004",
        "1e-7",
        "1.50",
        "3.0e0",
        "1e300",
        "123.4560",
    ] {
        let arguments = format!("{{\"n\":{number}}}");
        assert_eq!(measured(&anything, &arguments).0, Ok(()), "{arguments}");
    }
    for number in ["18446744073709551615", "-9223372036854775808", "9007199254740993"] {
        assert_eq!(measured(&anything, &format!("{{\"n\":{number}}}")).0, Ok(()), "{number}");
    }
    // What is compared with is exact, too: neighbours beyond 53 bits are different numbers.
    let one = from_text(r#"{"properties":{"n":{"enum":[9007199254740993, 0.1, 1e3]}}}"#);
    for (number, fits) in [
        ("9007199254740993", true),
        ("9007199254740992", false),
        ("9007199254740992.0", false),
        ("0.1", true),
        ("1000", true),
        ("1000.0", true),
    ] {
        let text = format!("{{\"n\":{number}}}");
        let document = Document::parse(text, Limits { bytes: 1 << 20, depth: 64 });
        assert_eq!(one.check(document.as_ref().ok().map(Document::root)).is_ok(), fits, "{number}");
    }
    // Results were made already: the nearest number decides.
    let document = Document::parse(
        r#"{"structuredContent":{"n":0.10000000000000001}}"#.to_owned(),
        Limits { bytes: 1 << 20, depth: 64 },
    );
    assert!(document.is_ok_and(|document| from_text(r#"{"type":"object"}"#).check_result(document.root()).is_ok()));
}

/// `anyOf` over shared references: every level doubles the work of an unbounded check.
fn doubling(levels: usize, keyword: &str) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = format!("#/$defs/l{}", level + 1);
        definitions.insert(format!("l{level}"), json!({ keyword: [{ "$ref": next }, { "$ref": next }] }));
    }
    definitions.insert(format!("l{levels}"), json!({ "type": "string" }));
    json!({ "$defs": definitions, "$ref": "#/$defs/l0" })
}

#[test]
fn work_1_checks_that_double_at_every_level_end() {
    let leaf = |schema: Value| json!({ "$defs": schema.get("$defs"), "properties": { "x": { "$ref": "#/$defs/l0" } } });
    for keyword in ["anyOf", "oneOf", "allOf"] {
        for arguments in [r#"{"x":1}"#, r#"{"x":"1"}"#] {
            let (found, work) = measured(&leaf(doubling(40, keyword)), arguments);
            assert!(work.steps <= 2 * MOST_STEPS, "{keyword} {arguments}: {work:?}");
            let ended_early = found.as_ref().is_err_and(|why| why.contains("steps"));
            assert!(ended_early || work.steps < MOST_STEPS, "{keyword} {arguments}: {found:?} {work:?}");
        }
    }
    let (found, _) = measured(&leaf(doubling(40, "anyOf")), r#"{"x":1}"#);
    assert!(found.is_err_and(|why| why.contains("steps")), "it would take a million million steps");
    // By the depth of the value rather than of the schema.
    let recursive = json!({
        "$defs": { "n": { "anyOf": [
            { "properties": { "n": { "$ref": "#/$defs/n" } }, "required": ["z"] },
            { "properties": { "n": { "$ref": "#/$defs/n" } }, "required": ["z"] },
        ] } },
        "$ref": "#/$defs/n",
    });
    let nested = format!("{}1{}", "{\"z\":1,\"n\":".repeat(100), "}".repeat(100));
    let (found, work) = measured(&recursive, &nested.replace("\"z\":1", "\"y\":1"));
    assert!(found.is_err() && work.steps <= 2 * MOST_STEPS, "{work:?}");
    let (found, work) = measured(&json!({ "$defs": recursive.get("$defs"), "not": { "$ref": "#/$defs/n" } }), &nested);
    assert!(found.is_err() && work.steps <= 2 * MOST_STEPS, "{found:?} {work:?}");
}

#[test]
fn work_1_over_the_budget_is_a_deny_whatever_stands_around_it() {
    let inner = doubling(40, "anyOf");
    for around in [
        json!({ "not": { "$ref": "#/$defs/l0" } }),
        json!({ "oneOf": [{ "$ref": "#/$defs/l0" }, true] }),
        json!({ "anyOf": [{ "$ref": "#/$defs/l0" }, true] }),
        json!({ "if": { "$ref": "#/$defs/l0" }, "then": false, "else": true }),
    ] {
        let mut schema = around.clone();
        if let Some(members) = schema.as_object_mut() {
            members.insert("$defs".to_owned(), inner.get("$defs").cloned().unwrap_or_default());
        }
        assert!(measured(&schema, "{}").0.is_err(), "{around}");
    }
}

#[test]
fn work_1_values_are_counted_before_they_are_checked() {
    let plain = json!({ "type": "object", "properties": { "x": { "type": "array", "items": { "type": "integer" } } } });
    let numbers = |count: usize| format!("{{\"x\":[{}1]}}", "1,".repeat(count));
    let (found, work) = measured(&plain, &numbers(100_000));
    assert!(found.is_ok() && work.values > 100_000, "{found:?}");
    let (found, work) = measured(&plain, &numbers(MOST_VALUES + 10));
    assert!(found.is_err() && work.values <= MOST_VALUES + 1, "{work:?}");
    // A wide schema leaves room for fewer values.
    let names: Vec<String> = (0..10_000).map(|number| format!("n{number}")).collect();
    let wide = json!({ "properties": { "x": { "items": { "enum": names } } } });
    let (found, work) = measured(&wide, &numbers(10_000));
    assert!(found.is_err() && work.values <= 2_001, "{work:?}");
    // One large text is one value.
    let text = format!("{{\"x\":\"{}\"}}", "a".repeat(4 << 20));
    assert!(measured(&json!({ "properties": { "x": { "type": "string" } } }), &text).0.is_ok());
    let patterns: Vec<Value> = (0..200).map(|number| json!({ "pattern": format!("b{number}$") })).collect();
    let (found, work) = measured(&json!({ "properties": { "x": { "anyOf": patterns } } }), &text);
    assert!(found.is_err_and(|why| why.contains("steps")), "{work:?}");
}

#[test]
fn work_1_the_place_of_a_fault_is_told_where_that_is_cheap() {
    let schema = json!({ "properties": { "n": { "type": "integer", "maximum": 10 } }, "required": ["n"] });
    assert_eq!(measured(&schema, r#"{"n":11}"#).0.err().as_deref().map(|why| why.starts_with("/n: ")), Some(true));
    let (found, _) = measured(&json!({ "items": { "type": "string" } }), &format!("[{}1]", "1,".repeat(200_000)));
    assert!(found.is_err_and(|why| why.contains("do not fit")), "every value is wrong, and none is listed");
}

/// Patterns of a few letters that become tens of kilobytes each.
fn large_patterns(count: usize) -> Value {
    let one = |number: usize| (format!("x{number}"), json!({ "pattern": format!("^[a-z]{{1200}}{number}$") }));
    json!({ "type": "object", "properties": (0..count).map(one).collect::<serde_json::Map<_, _>>() })
}

#[test]
fn work_1_patterns_of_a_schema_are_bounded_together() {
    assert_eq!(Schema::compile(&large_patterns(10)).fault(), None);
    // A quarter of a megabyte would become more than one gigabyte.
    let many = Schema::compile(&large_patterns(5_000));
    assert!(many.fault().is_some_and(|why| why.contains("patterns become larger")), "{:?}", many.fault());
    assert!(many.check(None).is_err());
    let named: Value = large_patterns(5_000).pointer("/properties").cloned().unwrap_or_default();
    let patterns = named.as_object().into_iter().flat_map(serde_json::Map::values);
    let patterns: serde_json::Map<_, _> =
        patterns.filter_map(|one| Some((one.get("pattern")?.as_str()?.to_owned(), json!({})))).collect();
    let many = Schema::compile(&json!({ "patternProperties": patterns }));
    assert!(many.fault().is_some_and(|why| why.contains("patterns become larger")), "{:?}", many.fault());
    // One pattern of any number of places is one.
    let same: Vec<Value> = (0..5_000).map(|_| json!({ "pattern": "^[a-z]{1200}$" })).collect();
    assert_eq!(Schema::compile(&json!({ "anyOf": same })).fault(), None);
    let long = Schema::compile(&json!({ "pattern": "(a|b)".repeat(10_000) }));
    assert!(long.fault().is_some_and(|why| why.contains("longer than")), "{:?}", long.fault());
}

#[test]
fn work_1_schemas_of_a_server_are_bounded_together() {
    let mut room = Room::of_a_server();
    let all: Vec<Schema> = (0..60).map(|_| Schema::compile_within(&large_patterns(10), &mut room)).collect();
    let usable = all.iter().filter(|schema| schema.fault().is_none()).count();
    assert!((10..40).contains(&usable), "{usable}");
    let last = all.last().and_then(Schema::fault);
    assert!(last.is_some_and(|why| why.contains("other schemas of its server")), "{last:?}");
    // Nothing is left to find out again, and schemas without patterns do not need it.
    assert_eq!(Schema::compile_within(&json!({ "type": "object" }), &mut room).fault(), None);
    let wide = json!({ "enum": (0..49_000).collect::<Vec<_>>() });
    let usable = (0..60).filter(|_| Schema::compile_within(&wide, &mut room).fault().is_none()).count();
    assert_eq!(usable, 20);
    // What was compiled takes its room again; what had none is looked at anew.
    let mut room = Room::of_a_server();
    let again: Vec<bool> = all.iter().map(|schema| schema.fits_again(&mut room)).collect();
    let before: Vec<bool> = all.iter().map(|schema| schema.fault().is_none()).collect();
    assert_eq!(again, before);
}

#[test]
fn work_1_a_pattern_costs_its_size_times_the_text() {
    let text = |bytes: usize| format!("{{\"x\":\"{}\"}}", "a".repeat(bytes));
    let large = json!({ "pattern": "^([a-z]{1,3}-?){90}$" });
    let small = json!({ "pattern": "^[a-z]+$" });
    let x = |schema: &Value| json!({ "properties": { "x": schema } });
    assert_eq!(measured(&x(&small), &text(1 << 20)).0, Ok(()));
    for (schema, arguments) in [
        (x(&large), text(1 << 20)),
        (json!({ "additionalProperties": large }), text(1 << 20)),
        (json!({ "$defs": { "t": large }, "properties": { "x": { "$ref": "#/$defs/t" } } }), text(1 << 20)),
        (json!({ "properties": { "x": { "items": large } } }), format!("{{\"x\":[\"{}\"]}}", "a".repeat(1 << 20))),
        (json!({ "propertyNames": large }), format!("{{\"{}\":1}}", "a".repeat(1 << 20))),
        (json!({ "patternProperties": { "^([a-z]{1,3}-?){90}$": {} } }), format!("{{\"{}\":1}}", "a".repeat(1 << 20))),
        (json!({ "$schema": "http://json-schema.org/draft-07/schema#", "properties": { "x": large } }), text(1 << 20)),
    ] {
        let (found, work) = measured(&schema, &arguments);
        let why = found.err().unwrap_or_default();
        assert!(why.contains("steps") && work.steps > MOST_STEPS, "{schema}: {why} {work:?}");
        let few = arguments.replace(&"a".repeat(1 << 20), "abc");
        let (_, work) = measured(&schema, &few);
        assert!((10..5_000).contains(&work.steps), "{schema}: {work:?}");
    }
    // What it says is the same wherever it stands.
    for (arguments, fits) in [(text(3), true), ("{\"x\":\"A\"}".to_owned(), false), ("{\"x\":5}".to_owned(), true)] {
        let found = measured(&x(&small), &arguments).0;
        assert_eq!(found.is_ok(), fits, "{arguments}");
        assert!(found.err().is_none_or(|why| why.starts_with("/x: ") && !why.contains("\"A\"")), "{arguments}");
    }
}

#[test]
fn work_1_a_check_that_is_to_be_brief_says_nothing_where_it_is_not() {
    let brief = |schema: &Value, arguments: &str| briefly(|| measured(schema, arguments).0);
    let small = json!({ "properties": { "x": { "type": "integer" } } });
    assert_eq!(brief(&small, r#"{"x":1}"#), Some(Ok(())));
    assert!(brief(&small, r#"{"x":"1"}"#).is_some_and(|found| found.is_err()));
    let doubles = |leaf: &str| {
        let inner = doubling(14, "anyOf");
        json!({ "$defs": inner.get("$defs"), "properties": { "x": { "anyOf": [{ "$ref": "#/$defs/l0" }, leaf == "fits"] } } })
    };
    for leaf in ["fits", "does not"] {
        assert_eq!(brief(&doubles(leaf), r#"{"x":1}"#), None, "{leaf}");
        assert_eq!(measured(&doubles(leaf), r#"{"x":1}"#).0.is_ok(), leaf == "fits", "as before, where there is time");
    }
    let pattern = json!({ "properties": { "x": { "pattern": "^([a-z]{1,3}-?){90}$" } } });
    assert_eq!(brief(&pattern, &format!(r#"{{"x":"{}"}}"#, "a".repeat(40_000))), None);
    let names = json!({ "patternProperties": { "^([a-z]{1,3}-?){90}$": {} } });
    assert_eq!(brief(&names, &format!(r#"{{"{}":1}}"#, "a".repeat(40_000))), None);
}

#[test]
fn work_1_what_is_known_is_not_compiled_again() {
    let tool = |name: &str, letters: u32| ToolDefinition {
        name: name.to_owned(),
        description: Some(letters.to_string()),
        input_schema: Some(json!({ "properties": { "x": { "pattern": format!("^[a-z]{{{letters}}}$") } } })),
        output_schema: Some(json!({ "type": "object" })),
    };
    let at = Origin::new(Layer::Config, "test", 1, 1);
    let server = |tools: &[ToolDefinition]| {
        let input = ServerInput::new("notes", at.clone(), Declared::ByOperator);
        [ServerInput { catalog: Some(tools.to_vec()), ..input }]
    };
    let Ok(empty) = PolicySet::compile(&PolicyInput::default()) else { unreachable!("nothing is wrong with nothing") };
    let with = |policy: &PolicySet, tools: &[ToolDefinition]| policy.with_servers(1, &server(tools)).ok();
    let Some(first) = with(&empty, &[tool("a", 5), tool("b", 5)]) else { unreachable!("it has no rules") };
    let Some(second) = with(&first, &[tool("a", 5), tool("b", 6), tool("c", 5)]) else { unreachable!("nor has this") };
    let schemas = |policy: &PolicySet, name: &str| {
        let tool = policy.servers().get("notes")?.tool(name)?;
        Some((tool.schema.clone()?, tool.output.clone()?))
    };
    for (name, is_same) in [("a", true), ("b", false)] {
        let (before, after) = (schemas(&first, name), schemas(&second, name));
        let same = before
            .zip(after)
            .map(|(before, after)| (Arc::ptr_eq(&before.0, &after.0), Arc::ptr_eq(&before.1, &after.1)));
        assert_eq!(same, Some((is_same, true)), "{name}");
    }
    assert!(schemas(&second, "c").is_some());
}
