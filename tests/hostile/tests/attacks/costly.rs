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
    doubling_dependent_schemas: Limits, "The same where members depend on each other.";
    one_of_many_for_every_item: Limits, "Every item of a list is put before hundreds of alternatives.";
    contained_in_none_of_many: Limits, "Every item of a list may be what the list must contain.";
    one_definition_again_and_again: Limits, "One definition is referred to hundreds of times, for the same large text.";
    pattern_that_is_large: Limits, "One pattern of a few letters, compiled to thousands of steps, searches a large text.";
    pattern_that_is_large_for_every_item: Limits, "Such a pattern searches thousands of small texts.";
    pattern_that_is_large_behind_a_reference: Limits, "Such a pattern stands behind a reference.";
    pattern_that_is_large_for_names: Limits, "Such a pattern searches the name of a member.";
    pattern_that_is_large_for_members: Limits, "Such a pattern says which members are meant.";
    patterns_in_great_number: Schemas, "Hundreds of patterns of a few letters each become a hundred megabytes.";
    patterns_of_names_in_great_number: Schemas, "The same with patterns that say which members are meant.";
    patterns_of_a_whole_list: Schemas, "No tool of a list has too many patterns, and all of them together do.";
    pattern_of_great_length: Schemas, "A pattern is too long to be read.";
    many_values: Limits, "A list of numbers takes far more memory to check than to send.";
    many_empty_objects: Limits, "A list of empty objects does the same.";
    many_values_before_a_wide_schema: Limits, "Every value of a list is compared with thousands of others.";
    text_too_long_to_be_read_as_a_line: Limits, "A long text that names Toolwarden is to be read as a command line.";
    line_of_many_braces: Holds, "Braces in a command line multiply, in a text that changes Toolwarden.";
    line_of_many_commands: Holds, "Thousands of commands stand in one such text.";
    line_of_many_pipes: Holds, "Thousands of pipes stand in one such text.";
    line_of_many_words: Holds, "A command has thousands of words.";
    line_of_many_patterns: Holds, "A command has hundreds of patterns for files.";
    line_of_many_substitutions: Holds, "Substitutions in a line are nested as deep as possible.";
    line_of_many_shells: Holds, "Shells run shells that run shells.";
    line_of_many_wrappers: Holds, "Programs that start programs stand before each other.";
    line_of_many_here_documents: Holds, "A line has dozens of here-documents.";
    line_of_many_encodings: Holds, "A text is encoded again and again.";
    many_lines: Holds, "A list holds hundreds of such texts.";
    many_paths: Holds, "Thousands of paths are named, to be looked up one after the other.";
    many_patterns_of_paths: Holds, "Hundreds of paths are patterns for files, to be compared with what is there.";
    arguments_of_great_depth: Limits, "Arguments are nested deeper than anybody reads.";
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
    schema_that_doubles_before_it_is_checked: Schemas, "What a schema leaves over is compiled again at every level, twice as much each time.";
    schema_that_is_deeper_than_a_stack: Schemas, "References that leave something over are thousands deep.";
    schema_with_an_address_within: Schemas, "A part of a schema in an older draft has an address, so that its references lead elsewhere.";
    schema_behind_a_reference_alone: Schemas, "A reference leads to a part that no keyword holds, and whose rule nobody can read.";
    output_schema_that_is_false: Schemas, "The schema of results is `false`.";
    output_schema_with_a_number_nobody_can_read: Schemas, "The schema of results has a bound beyond every number.";
    output_schema_that_is_elsewhere: Schemas, "The schema of results refers to another host.";
}

/// What one call may take in all: steps of checks, values of JSON, pieces of lines, names that are looked up, parts of patterns.
/// Every kind of work ends below 600,000; a single step over that may be as large as a text and a pattern together.
const MOST_WORK: u64 = 2_000_000;
/// What an attack takes at least that is here for what it costs.
const LEAST_WORK: u64 = 500;
/// What the gateway and the kit's own server may need for it, in bytes. Most is needed for half a million values, which are
/// indexed and then put before the schema: a hundred bytes each, in vectors that double. Everything else stays below 30 MiB.
const MOST_MEMORY: u64 = 96 << 20;
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

fn listing(heard: &Heard, tools: &str) -> Said {
    if heard.method != "tools/list" {
        return with_tools(heard, &[]);
    }
    Said::result(heard, &format!(r#"{{"tools":[{tools}],"resultType":"complete","ttlMs":1000,"cacheScope":"public"}}"#))
}

fn tool(name: &str, schemas: &str) -> String {
    format!(r#"{{"name":"{name}","description":"safe",{schemas}}}"#)
}

/// A call of a tool with these schemas, which must not run, nor cost more than its budget.
async fn call(schemas: String, arguments: &str, words: &str) -> Tried {
    listed(tool("safe", &schemas), arguments, words, 0).await
}

/// The same of the tool `safe` of a list, with what is done to learn the list.
async fn listed(tools: String, arguments: &str, words: &str, least: u64) -> Tried {
    let server = Server::start(move |heard| listing(heard, &tools)).await?;
    let house = House::guarded_before(&server).await?;
    // The peak is counted from here on.
    fs::write("/proc/self/clear_refs", "5")?;
    let (before, done) = (memory("VmRSS:")?, weak::work_done());
    let members = format!(r#""name":"safe","arguments":{arguments}"#);
    let got = house.send(&Ask::modern("/mcp/notes", "tools/call", "safe", &members)).await?;
    let (work, grown) = (weak::work_done() - done, memory("VmHWM:")?.saturating_sub(before));
    if work < least && server.calls().is_empty() {
        return Err(format!("{work} steps are no work").into());
    }
    let is_cheap = work <= MOST_WORK && grown <= MOST_MEMORY;
    let is_refused = got.has(words) && server.calls().is_empty() && is_cheap;
    let shown: String = got.to_string().chars().take(600).collect();
    outcome(!server.calls().is_empty(), is_refused, format!("{work} steps, {grown} bytes: {shown}"))
}

/// A call that fits its schema, and takes too much to find out.
async fn costly(schema: &str, arguments: &str) -> Tried {
    let tools = tool("safe", &format!(r#""inputSchema":{schema}"#));
    listed(tools, arguments, "schema_violation", LEAST_WORK).await
}

/// A call whose texts change Toolwarden, and take long to read.
async fn held(arguments: &str) -> Tried {
    let tools = tool("safe", r#""inputSchema":{"type":"object"}"#);
    listed(tools, arguments, "self_protection", LEAST_WORK).await
}

/// A line that ends with a change of Toolwarden, as an argument.
async fn line(text: &str) -> Tried {
    let text = format!("{text}; toolwarden allow 'notes:*'");
    held(&format!(r#"{{"x":{}}}"#, serde_json::Value::String(text))).await
}

/// A call of a tool whose schema says nothing anybody could check.
async fn unusable(schema: &str) -> Tried {
    call(format!(r#""inputSchema":{schema}"#), "{}", "schema_unusable").await
}

/// The same where it takes something to find out.
async fn too_large(schema: &str) -> Tried {
    listed(tool("safe", &format!(r#""inputSchema":{schema}"#)), "{}", "schema_unusable", LEAST_WORK).await
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

async fn doubling_dependent_schemas() -> Tried {
    let definitions = levels(r#"{"dependentSchemas":{"x":NEXT,"y":NEXT}}"#, "true", "$defs");
    costly(&format!(r##"{{"$defs":{definitions},"$ref":"#/$defs/l0"}}"##), r#"{"x":1,"y":1}"#).await
}

async fn one_of_many_for_every_item() -> Tried {
    let never: Vec<String> = (0..200).map(|number| format!(r#"{{"const":{number}}}"#)).collect();
    let schema = format!(r#"{{"properties":{{"x":{{"items":{{"oneOf":[{},true]}}}}}}}}"#, never.join(","));
    costly(&schema, &format!(r#"{{"x":[{}500]}}"#, "500,".repeat(3_000))).await
}

async fn contained_in_none_of_many() -> Tried {
    let never: Vec<String> = (0..200).map(|number| format!(r#"{{"const":{number}}}"#)).collect();
    let contains = format!(r#"{{"contains":{{"anyOf":[{}]}}}}"#, never.join(","));
    let schema = format!(r#"{{"properties":{{"x":{{"anyOf":[{contains},true]}}}}}}"#);
    costly(&schema, &format!(r#"{{"x":[{}500]}}"#, "500,".repeat(3_000))).await
}

async fn one_definition_again_and_again() -> Tried {
    let all = vec![r##"{"$ref":"#/$defs/t"}"##; 300].join(",");
    let schema = format!(r#"{{"$defs":{{"t":{{"pattern":"[a-z]$"}}}},"properties":{{"x":{{"allOf":[{all}]}}}}}}"#);
    costly(&schema, &text_of(64 * 1024)).await
}

/// It is found in the first letters, and has thousands of steps.
const LARGE_PATTERN: &str = r#"{"pattern":"^([a-z]{1,3}-?){0,200}"}"#;

fn text_of(bytes: usize) -> String {
    format!(r#"{{"x":"{}"}}"#, "a".repeat(bytes))
}

async fn pattern_that_is_large() -> Tried {
    costly(&format!(r#"{{"properties":{{"x":{LARGE_PATTERN}}}}}"#), &text_of(512 * 1024)).await
}

async fn pattern_that_is_large_for_every_item() -> Tried {
    let schema = format!(r#"{{"properties":{{"x":{{"items":{LARGE_PATTERN}}}}}}}"#);
    costly(&schema, &format!(r#"{{"x":[{}"abc"]}}"#, r#""abc","#.repeat(20_000))).await
}

async fn pattern_that_is_large_behind_a_reference() -> Tried {
    let schema = format!(r##"{{"$defs":{{"t":{LARGE_PATTERN}}},"properties":{{"x":{{"$ref":"#/$defs/t"}}}}}}"##);
    costly(&schema, &text_of(512 * 1024)).await
}

async fn pattern_that_is_large_for_names() -> Tried {
    costly(&format!(r#"{{"propertyNames":{LARGE_PATTERN}}}"#), &format!(r#"{{"{}":1}}"#, "a".repeat(512 * 1024))).await
}

async fn pattern_that_is_large_for_members() -> Tried {
    let schema = r#"{"patternProperties":{"^([a-z]{1,3}-?){0,200}":true}}"#;
    costly(schema, &format!(r#"{{"{}":1}}"#, "a".repeat(512 * 1024))).await
}

/// So many patterns, none of them like another.
fn patterns(count: usize, of: impl Fn(usize, String) -> String) -> String {
    let all: Vec<String> = (0..count).map(|number| of(number, format!("^[a-z]{{1200}}{number}$"))).collect();
    all.join(",")
}

async fn patterns_in_great_number() -> Tried {
    let members = patterns(600, |number, pattern| format!(r#""x{number}":{{"pattern":"{pattern}"}}"#));
    too_large(&format!(r#"{{"properties":{{{members}}}}}"#)).await
}

async fn patterns_of_names_in_great_number() -> Tried {
    let members = patterns(600, |_, pattern| format!(r#""{pattern}":true"#));
    too_large(&format!(r#"{{"patternProperties":{{{members}}}}}"#)).await
}

async fn patterns_of_a_whole_list() -> Tried {
    let members = patterns(10, |number, pattern| format!(r#""x{number}":{{"pattern":"{pattern}"}}"#));
    let schemas = format!(r#""inputSchema":{{"properties":{{{members}}}}}"#);
    let mut tools: Vec<String> = (0..80).map(|number| tool(&format!("tool{number}"), &schemas)).collect();
    tools.push(tool("safe", &schemas));
    listed(tools.join(","), "{}", "schema_unusable", LEAST_WORK).await
}

async fn pattern_of_great_length() -> Tried {
    unusable(&format!(r#"{{"properties":{{"x":{{"pattern":"{}"}}}}}}"#, "(a|b)".repeat(5_000))).await
}

async fn line_of_many_braces() -> Tried {
    line(&format!("rm /{}", "{a,b}".repeat(40))).await
}

async fn line_of_many_commands() -> Tried {
    line(&"a;".repeat(4_000)).await
}

async fn line_of_many_pipes() -> Tried {
    line(&format!("{}a", "a|".repeat(4_000))).await
}

async fn line_of_many_words() -> Tried {
    line(&format!("rm {}", "a ".repeat(8_000))).await
}

async fn line_of_many_patterns() -> Tried {
    line(&format!("cat {}", "/*/*/*/*/[a-z]*/{a,b}*.key ".repeat(500))).await
}

async fn line_of_many_substitutions() -> Tried {
    line(&format!("echo {}a{}", "$(echo ".repeat(60), ")".repeat(60))).await
}

async fn line_of_many_shells() -> Tried {
    line(&"sh -c 'sh -c \"sh -c a\"';".repeat(500)).await
}

async fn line_of_many_wrappers() -> Tried {
    line(&format!("{}{}", "env nice nohup timeout 5 ".repeat(40), "a; env b".repeat(300))).await
}

async fn line_of_many_here_documents() -> Tried {
    let documents: String = (0..31).map(|number| format!("cat <<E{number}\na b c\nE{number}\n")).collect();
    held(&format!(r#"{{"x":{}}}"#, serde_json::Value::String(format!("{documents}toolwarden allow 'notes:*'")))).await
}

async fn line_of_many_encodings() -> Tried {
    line(&format!("cat /{}", "%2525252561".repeat(3_000))).await
}

async fn many_lines() -> Tried {
    let texts: String = (0..400).map(|number| format!(r#""cat a{number} b | toolwardens c","#)).collect();
    held(&format!(r#"{{"x":[{texts}"toolwarden allow 'notes:*'"]}}"#)).await
}

async fn many_paths() -> Tried {
    let texts: String = (0..10_000).map(|number| format!(r#""/usr/share/none/{number}/a/b","#)).collect();
    held(&format!(r#"{{"x":[{texts}"toolwarden allow 'notes:*'"]}}"#)).await
}

async fn many_patterns_of_paths() -> Tried {
    let texts: String = (0..500).map(|number| format!(r#""/*/*/*/{number}*","#)).collect();
    held(&format!(r#"{{"x":[{texts}"toolwarden allow 'notes:*'"]}}"#)).await
}

async fn arguments_of_great_depth() -> Tried {
    let nested = format!("{}1{}", r#"{"x":"#.repeat(900), "}".repeat(900));
    call(r#""inputSchema":{"type":"object"}"#.to_owned(), &nested, "").await
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

async fn schema_that_doubles_before_it_is_checked() -> Tried {
    let definitions = levels(r#"{"anyOf":[NEXT,NEXT],"unevaluatedProperties":false}"#, "{}", "$defs");
    unusable(&format!(r##"{{"$defs":{definitions},"properties":{{"x":{{"$ref":"#/$defs/l0"}}}}}}"##)).await
}

async fn schema_that_is_deeper_than_a_stack() -> Tried {
    let one = |at: usize| format!(r##""l{at}":{{"$ref":"#/$defs/l{}","unevaluatedProperties":false}}"##, at + 1);
    let definitions: Vec<String> = (0..3_000).map(one).collect();
    let schema = format!(
        r##"{{"$defs":{{{},"l3000":{{}}}},"properties":{{"x":{{"$ref":"#/$defs/l0"}}}}}}"##,
        definitions.join(",")
    );
    unusable(&schema).await
}

async fn schema_with_an_address_within() -> Tried {
    let inside = levels(r#"{"allOf":[NEXT,NEXT]}"#, r#"{"type":"string"}"#, "definitions");
    let schema = format!(
        r##"{{"$schema":"http://json-schema.org/draft-04/schema#","definitions":{{"l0":{{}}}},"properties":{{"x":
        {{"id":"http://x.test/y","definitions":{inside},"allOf":[{{"$ref":"#/definitions/l0"}}]}}}}}}"##
    );
    unusable(&schema).await
}

async fn schema_behind_a_reference_alone() -> Tried {
    unusable(r##"{"properties":{"x":{"$ref":"#/foo"}},"foo":{"propertyNames":"x"}}"##).await
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
