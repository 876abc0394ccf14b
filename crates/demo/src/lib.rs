//! The demo server behind `serve --demo`: notes in memory, in both eras, one message a line.
//!
//! Takes lines and gives lines; knows nothing of the gateway in front of it.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};

use serde_json::{Value, json};

/// Answers until there is nothing more to read.
///
/// # Errors
/// It cannot be read or written.
pub fn serve(input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut notes = BTreeMap::from([("welcome".to_owned(), "This note is kept by the demo server.".to_owned())]);
    for line in input.lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        if let Some(answer) = answer(&mut notes, &message) {
            writeln!(output, "{answer}")?;
            output.flush()?;
        }
    }
    Ok(())
}

fn answer(notes: &mut BTreeMap<String, String>, message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let method = message.get("method")?.as_str()?;
    let params = message.get("params").unwrap_or(&Value::Null);
    let outcome = match method {
        "initialize" => Ok(opened(params)),
        "server/discover" => Ok(discovered()),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(listed()),
        "tools/call" => call(notes, params),
        _ => Err((-32601, format!("Method not found: {method}"))),
    };
    let is_modern = params.pointer("/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
    Some(match outcome {
        Ok(mut result) => {
            if !is_modern && let Some(result) = result.as_object_mut() {
                // Older revisions know none of these.
                ["resultType", "ttlMs", "cacheScope"].iter().for_each(|member| drop(result.remove(*member)));
            }
            json!({ "jsonrpc": "2.0", "id": id, "result": result })
        }
        Err((code, text)) => json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } }),
    })
}

fn about() -> Value {
    json!({ "name": "toolwarden-demo-notes", "version": env!("CARGO_PKG_VERSION") })
}

fn opened(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let version = if known.contains(&asked) { asked } else { "2025-11-25" };
    json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": about(),
            "instructions": "Keeps short notes by name." })
}

fn discovered() -> Value {
    json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "instructions": "Keeps short notes by name.", "ttlMs": 60000, "cacheScope": "public",
            "_meta": { "io.modelcontextprotocol/serverInfo": about() } })
}

fn listed() -> Value {
    let named = |more: Value| {
        let mut properties = json!({ "name": { "type": "string", "description": "The note's name" } });
        if let (Some(all), Some(more)) = (properties.as_object_mut(), more.as_object()) {
            all.extend(more.clone());
        }
        let required: Vec<&String> = properties.as_object().map(|all| all.keys().collect()).unwrap_or_default();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    };
    let tool = |name: &str, text: &str, schema: Value, hints: Value| json!({ "name": name, "description": text, "inputSchema": schema, "annotations": hints });
    json!({ "resultType": "complete", "ttlMs": 60000, "cacheScope": "public", "tools": [
        tool("list_notes", "List the names of all notes", json!({ "type": "object", "additionalProperties": false }), json!({ "readOnlyHint": true })),
        tool("read_note", "Read a note", named(json!({})), json!({ "readOnlyHint": true })),
        tool("write_note", "Write a note, over an older one of the same name",
             named(json!({ "text": { "type": "string" } })), json!({ "destructiveHint": true, "idempotentHint": true })),
        tool("delete_note", "Delete a note", named(json!({})), json!({ "destructiveHint": true })),
    ] })
}

fn call(notes: &mut BTreeMap<String, String>, params: &Value) -> Result<Value, (i32, String)> {
    let text = |key: &str| params.pointer(&format!("/arguments/{key}")).and_then(Value::as_str).unwrap_or_default();
    let (name, tool) = (text("name"), params.get("name").and_then(Value::as_str).unwrap_or_default());
    let missing = || Err(format!("no note is called {name}"));
    let said = match tool {
        "list_notes" => Ok(notes.keys().cloned().collect::<Vec<_>>().join("\n")),
        "read_note" => notes.get(name).cloned().map_or_else(missing, Ok),
        "write_note" => {
            notes.insert(name.to_owned(), text("text").to_owned());
            Ok(format!("wrote {name}"))
        }
        "delete_note" => notes.remove(name).map_or_else(missing, |_| Ok(format!("deleted {name}"))),
        _ => return Err((-32602, format!("Unknown tool: {tool}"))),
    };
    let (is_error, said) = match said {
        Ok(said) => (false, said),
        Err(said) => (true, said),
    };
    Ok(json!({ "resultType": "complete", "content": [{ "type": "text", "text": said }], "isError": is_error }))
}

#[cfg(test)]
#[test]
fn each_era_gets_its_own_members() {
    let mut notes = BTreeMap::new();
    let mut members = |params: Value| {
        let asked = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        let said = answer(&mut notes, &asked).unwrap_or_default();
        ["resultType", "ttlMs", "cacheScope", "tools"]
            .map(|member| said.pointer(&format!("/result/{member}")).is_some())
    };
    assert_eq!(members(json!({})), [false, false, false, true]);
    let modern = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(members(modern), [true; 4]);
}
