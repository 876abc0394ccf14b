//! Work without bound (WORK-1): schemas and arguments that would cost far more to check than to send. What is counted
//! is steps and bytes, never seconds: the same on every machine.

use std::fs;

use toolwarden_core::weak;
use toolwarden_hostile::server::{Heard, with_tools};
use toolwarden_hostile::{Ask, Fault, House, Said, Server, Tried, attacks, outcome};

attacks! {
    doubling_any_of: Limits, "A schema tries both sides of an `anyOf`, and both lead to the next one.";
    doubling_one_of: Limits, "The same with `oneOf`.";
    doubling_all_of: Limits, "The same with `allOf`.";
    doubling_not: Limits, "The same through `not` in `not`.";
    doubling_if: Limits, "The same through `if` and `then`.";
    doubling_of_an_older_draft: Limits, "The same in the words of an older draft.";
    patterns_over_a_large_text: Limits, "A large text is searched by many patterns, one after the other.";
    many_values: Limits, "A list of numbers takes far more memory to check than to send.";
    many_empty_objects: Limits, "A list of empty objects does the same.";
    many_values_before_a_wide_schema: Limits, "Every value of a list is compared with thousands of others.";
    text_too_long_to_be_read_as_a_line: Limits, "A long text that names Toolwarden is to be read as a command line.";
    schema_that_is_false: Schemas, "A server lists `false` as the schema of a tool, so that nothing is checked.";
    schema_that_is_true: Schemas, "A server lists `true` as the schema of a tool, so that nothing is checked.";
    schema_that_is_null: Schemas, "A server lists `null` as the schema of a tool, so that nothing is checked.";
    schema_that_is_a_list: Schemas, "A server lists a list as the schema of a tool, so that nothing is checked.";
    schema_that_is_a_text: Schemas, "A server lists a text as the schema of a tool, so that nothing is checked.";
    schema_with_a_number_nobody_can_read: Schemas, "A bound in a schema is beyond every number.";
    schema_of_an_unknown_type: Schemas, "A schema asks for a type there is not.";
    schema_with_a_broken_pattern: Schemas, "A pattern in a schema is no regular expression.";
    schema_with_a_pattern_that_looks_around: Schemas, "A pattern needs a search that can take forever.";
    schema_with_a_huge_pattern: Schemas, "A short pattern becomes a huge program.";
    schema_that_is_elsewhere: Schemas, "A schema refers to another host.";
    schema_that_is_nowhere: Schemas, "A schema refers to a place it does not have.";
    schema_that_is_itself: Schemas, "A schema refers to itself, at the same value.";
    schema_in_a_circle: Schemas, "Two schemas refer to each other, at the same value.";
    schema_of_an_unknown_dialect: Schemas, "A schema says it is written in words nobody knows.";
    schema_of_a_dialect_without_a_name: Schemas, "A schema names its dialect by nothing, so that no rule of it counts.";
    schema_that_is_not_there: Schemas, "A server lists a tool without a schema, so that nothing is checked.";
    schema_that_is_resolved_late: Schemas, "A reference depends on what was checked before.";
    schema_that_is_too_large: Schemas, "A schema is larger than any real one.";
    output_schema_that_is_false: Schemas, "The schema of results is `false`.";
    output_schema_with_a_number_nobody_can_read: Schemas, "The schema of results has a bound beyond every number.";
    output_schema_that_is_elsewhere: Schemas, "The schema of results refers to another host.";
}

/// What one check may take, in steps and values, and what the gateway may need for it in bytes.
const MOST_WORK: u64 = 1_100_000;
const MOST_MEMORY: u64 = 192 << 20;
/// Levels that cost a few hundred thousand steps where nothing counts them.
const LEVELS: usize = 17;
/// The place of the next level in a schema that doubles.
const NEXT: &str = "NEXT";

/// A line of this process's own status, in bytes.
fn memory(key: &str) -> Result<u64, Fault> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such line")?;
    let number = line.trim_matches(|character: char| !character.is_ascii_digit());
    Ok(number.parse::<u64>()? * 1024)
}

fn listing(heard: &Heard, schemas: &str) -> Said {
    if heard.method != "tools/list" {
        return with_tools(heard, &[]);
    }
    let tool = format!(r#"{{"name":"safe","description":"safe",{schemas}}}"#);
    Said::result(heard, &format!(r#"{{"tools":[{tool}],"resultType":"complete","ttlMs":1000,"cacheScope":"public"}}"#))
}

/// A call of a tool with these schemas, which must not run, nor cost more than its budget.
async fn call(schemas: String, arguments: &str, words: &str) -> Tried {
    let server = Server::start(move |heard| listing(heard, &schemas)).await?;
    let house = House::guarded_before(&server).await?;
    // The peak is counted from here on.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = memory("VmRSS:")?;
    let members = format!(r#""name":"safe","arguments":{arguments}"#);
    let got = house.send(&Ask::modern("/mcp/notes", "tools/call", "safe", &members)).await?;
    let (work, grown) = (weak::most_work(), memory("VmHWM:")?.saturating_sub(before));
    let is_cheap = work <= MOST_WORK && grown <= MOST_MEMORY;
    let is_refused = got.has(words) && server.calls().is_empty() && is_cheap;
    let shown: String = got.to_string().chars().take(600).collect();
    outcome(!server.calls().is_empty(), is_refused, format!("{work} steps, {grown} bytes: {shown}"))
}

/// A call that fits its schema, and takes too much to find out.
async fn costly(schema: &str, arguments: &str) -> Tried {
    call(format!(r#""inputSchema":{schema}"#), arguments, "schema_violation").await
}

/// A call of a tool whose schema says nothing anybody could check.
async fn unusable(schema: &str) -> Tried {
    call(format!(r#""inputSchema":{schema}"#), "{}", "schema_unusable").await
}

async fn unusable_output(schema: &str) -> Tried {
    call(format!(r#""inputSchema":{{"type":"object"}},"outputSchema":{schema}"#), "{}", "schema_unusable").await
}

/// Definitions each of which leads to the next one more than once; the last one is `leaf`.
fn levels(level: &str, leaf: &str, place: &str) -> String {
    let one = |number: usize| {
        let next = format!(r##"{{"$ref":"#/{place}/l{}"}}"##, number + 1);
        format!(r#""l{number}":{}"#, level.replace(NEXT, &next))
    };
    let all: Vec<String> = (0..LEVELS).map(one).collect();
    format!(r#"{{{},"l{LEVELS}":{leaf}}}"#, all.join(","))
}

/// Whatever becomes of the levels, the call fits.
async fn doubling(level: &str, leaf: &str) -> Tried {
    let definitions = levels(level, leaf, "$defs");
    costly(&format!(r##"{{"$defs":{definitions},"anyOf":[{{"$ref":"#/$defs/l0"}},true]}}"##), "{}").await
}

async fn doubling_any_of() -> Tried {
    doubling(r#"{"anyOf":[NEXT,NEXT]}"#, "false").await
}

async fn doubling_one_of() -> Tried {
    doubling(r#"{"oneOf":[NEXT,NEXT]}"#, "false").await
}

async fn doubling_all_of() -> Tried {
    doubling(r#"{"allOf":[NEXT,NEXT]}"#, "true").await
}

async fn doubling_not() -> Tried {
    doubling(r#"{"anyOf":[{"not":{"not":NEXT}},{"not":{"not":NEXT}}]}"#, "false").await
}

async fn doubling_if() -> Tried {
    doubling(r#"{"if":NEXT,"then":NEXT,"else":NEXT}"#, "true").await
}

async fn doubling_of_an_older_draft() -> Tried {
    let definitions = levels(r#"{"anyOf":[NEXT,NEXT]}"#, "false", "definitions");
    let draft = r##""$schema":"http://json-schema.org/draft-07/schema#""##;
    let schema = format!(r##"{{{draft},"definitions":{definitions},"anyOf":[{{"$ref":"#/definitions/l0"}},true]}}"##);
    costly(&schema, "{}").await
}

async fn patterns_over_a_large_text() -> Tried {
    let patterns: Vec<String> = (0..80).map(|number| format!(r#"{{"pattern":"^b{number}$"}}"#)).collect();
    let schema = format!(r#"{{"properties":{{"x":{{"anyOf":[{},true]}}}}}}"#, patterns.join(","));
    costly(&schema, &format!(r#"{{"x":"{}"}}"#, "a".repeat(512 * 1024))).await
}

async fn many_values() -> Tried {
    let schema = r#"{"properties":{"x":{"items":{"type":"integer"}}}}"#;
    costly(schema, &format!(r#"{{"x":[{}1]}}"#, "1,".repeat(600_000))).await
}

async fn many_empty_objects() -> Tried {
    let schema = r#"{"properties":{"x":{"items":{"type":"object"}}}}"#;
    costly(schema, &format!(r#"{{"x":[{}{{}}]}}"#, "{},".repeat(600_000))).await
}

async fn many_values_before_a_wide_schema() -> Tried {
    let names: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    let schema = format!(r#"{{"properties":{{"x":{{"items":{{"enum":[{}]}}}}}}}}"#, names.join(","));
    costly(&schema, &format!(r#"{{"x":[{}9999]}}"#, "9999,".repeat(3_000))).await
}

async fn text_too_long_to_be_read_as_a_line() -> Tried {
    let text = format!("the toolwarden gate {}", "and more ".repeat(10_000));
    call(r#""inputSchema":{"type":"object"}"#.to_owned(), &format!(r#"{{"x":"{text}"}}"#), "self_protection").await
}

async fn schema_that_is_false() -> Tried {
    unusable("false").await
}

async fn schema_that_is_true() -> Tried {
    unusable("true").await
}

async fn schema_that_is_null() -> Tried {
    unusable("null").await
}

async fn schema_that_is_a_list() -> Tried {
    unusable("[]").await
}

async fn schema_that_is_a_text() -> Tried {
    unusable(r#""object""#).await
}

async fn schema_with_a_number_nobody_can_read() -> Tried {
    unusable(r#"{"properties":{"n":{"maximum":1e999}}}"#).await
}

async fn schema_of_an_unknown_type() -> Tried {
    unusable(r#"{"type":"objekt"}"#).await
}

async fn schema_with_a_broken_pattern() -> Tried {
    unusable(r#"{"properties":{"n":{"pattern":"("}}}"#).await
}

async fn schema_with_a_pattern_that_looks_around() -> Tried {
    unusable(r#"{"properties":{"n":{"pattern":"^(?=(a+)+$)b"}}}"#).await
}

async fn schema_with_a_huge_pattern() -> Tried {
    unusable(r#"{"properties":{"n":{"pattern":"((a{999}){999}){99}"}}}"#).await
}

async fn schema_that_is_elsewhere() -> Tried {
    unusable(r#"{"$ref":"https://example.test/schema.json"}"#).await
}

async fn schema_that_is_nowhere() -> Tried {
    unusable(r##"{"$ref":"#/$defs/none"}"##).await
}

async fn schema_that_is_itself() -> Tried {
    unusable(r##"{"allOf":[{"$ref":"#"}]}"##).await
}

async fn schema_in_a_circle() -> Tried {
    unusable(r##"{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"$ref":"#/$defs/a"}"##).await
}

async fn schema_of_an_unknown_dialect() -> Tried {
    unusable(r#"{"$schema":"https://example.test/dialect"}"#).await
}

async fn schema_of_a_dialect_without_a_name() -> Tried {
    unusable(r#"{"$schema":"","type":"object","required":["token"]}"#).await
}

async fn schema_that_is_not_there() -> Tried {
    call(r#""input_schema":{"type":"object","required":["token"]}"#.to_owned(), "{}", "schema_unusable").await
}

async fn schema_that_is_resolved_late() -> Tried {
    unusable(r##"{"$dynamicRef":"#x"}"##).await
}

async fn schema_that_is_too_large() -> Tried {
    unusable(&format!(r#"{{"properties":{{"n":{{"enum":[{}0]}}}}}}"#, "0,".repeat(60_000))).await
}

async fn output_schema_that_is_false() -> Tried {
    unusable_output("false").await
}

async fn output_schema_with_a_number_nobody_can_read() -> Tried {
    unusable_output(r#"{"maximum":1e999}"#).await
}

async fn output_schema_that_is_elsewhere() -> Tried {
    unusable_output(r#"{"$ref":"https://example.test/schema.json"}"#).await
}
