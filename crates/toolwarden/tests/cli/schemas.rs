//! Tools whose schema cannot be used, and lists that cannot be read: both are said wherever somebody would look.

use serde_json::json;

use crate::house::House;
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// A server that lists one good tool and others with these schemas.
fn script(schemas: &[&str]) -> String {
    let bad: Vec<String> = schemas
        .iter()
        .enumerate()
        .map(|(number, schema)| format!(r#",{{"name":"bad{number}","inputSchema":{schema}}}"#))
        .collect();
    let tools = format!(r#"{{"tools":[{{"name":"good","inputSchema":{{"type":"object"}}}}{}]}}"#, bad.join(""));
    format!(
        r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -z "$id" ] && continue
  case "$line" in
    *'"initialize"'*) result='{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"x","version":"1"}}}}' ;;
    *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"no"}}}}\n' "$id"; continue ;;
    *'"tools/list"'*) result='{tools}' ;;
    *) result='{{"content":[{{"type":"text","text":"ran"}}]}}' ;;
  esac
  printf '%s' '{{"jsonrpc":"2.0","id":'"$id"',"result":'; printf '%s' "$result"; printf '}}\n'
done
"#
    )
}

fn house(schemas: &[&str]) -> House {
    let house = House::new();
    house.write("space/server.sh", &script(schemas));
    let place = house.path("space/server.sh").display().to_string();
    let server = format!("[servers.odd]\ncommand = \"/bin/sh\"\nargs = [\"{place}\"]\n");
    house.write(CONFIG, &format!("[auto_run]\nmode = \"run_everything\"\n{server}"));
    house
}

#[test]
fn work_1_a_schema_that_cannot_be_used_denies_its_tool_and_is_said_by_lint_and_doctor() {
    let schemas: Vec<&str> = [r#"{"type":"object","properties":{"n":{"maximum":1e999}}}"#, "false"]
        .into_iter()
        .chain(std::iter::repeat_n(r#"{"type":"nothing"}"#, 20))
        .collect();
    let house = house(&schemas);
    let server = Server::start_with(&house, &[]);
    assert_eq!(server.call_at("/mcp/odd", "good", &json!({})), "ran", "{}", house.read("server.log"));
    for tool in ["bad0", "bad1", "bad7"] {
        let said = server.call_at("/mcp/odd", tool, &json!({}));
        assert!(said.contains("schema_unusable"), "{said}");
    }
    server.stop();
    let listed = house.run(&["tools", "list"]).out;
    assert!(listed.contains("odd:bad0 cannot be called: input schema"), "{listed}");
    for command in [&["lint"][..], &["doctor", "--listen", "127.0.0.1:0"]] {
        let said = house.run(command).out;
        assert!(said.contains("schema_unusable") && said.contains("22 tool(s) of `odd`"), "{command:?}: {said}");
        assert!(said.contains("`odd:bad0` (input schema:") && said.contains(" and 10 more"), "{command:?}: {said}");
        assert!(!said.contains("odd:good"), "{command:?}: {said}");
    }
    let json = house.run(&["lint", "--json"]).out;
    assert!(json.contains("\"code\": \"schema_unusable\"") || json.contains("\"code\":\"schema_unusable\""), "{json}");
}

#[test]
fn work_1_a_list_that_cannot_be_read_is_an_error_with_its_reason_everywhere() {
    let deep = format!(r#"{{"type":"object","properties":{}1{}}}"#, r#"{"a":"#.repeat(2000), "}".repeat(2000));
    for (schema, why) in [
        (r#"{"type":"object","type":"object"}"#, "duplicate key"),
        (r#"{"type":"object","description":"\ud800"}"#, "invalid escape"),
        (deep.as_str(), "deep"),
    ] {
        let house = house(&[schema]);
        let server = Server::start_with(&house, &[]);
        // At once, and with the reason: nobody waits until a limit of time.
        let said = server.call_at("/mcp/odd", "good", &json!({}));
        assert!(said.contains("its answer cannot be used") && said.contains(why), "{why}: {said}");
        for command in [&["servers", "list"][..], &["tools", "list"], &["doctor"]] {
            let ran = house.run(command);
            let words = format!("{}{}", ran.out, ran.err);
            assert!(words.contains("odd") && words.contains(why), "{command:?} {why}: {words}");
        }
        server.stop();
    }
}
