//! The stdio door told to end while a call is on its way: it ends, and the record says how the call did.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use crate::house::House;
use crate::server::eventually;

/// A server that lists a tool and never answers its calls.
const SILENT: &str = r#"
[gateway]
grace = "300ms"
[auto_run]
mode = "run_everything"
[servers.silent]
command = "sh"
args = ["-c", '''
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"wait","inputSchema":{"type":"object"}}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
''']
"#;
const LINES: [&str; 2] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","arguments":{}}}"#,
];

fn door(house: &House) -> Child {
    let door = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(["stdio", "--server", "silent"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    assert!(door.is_ok(), "{door:?}");
    let Ok(door) = door else { unreachable!("asserted") };
    door
}

fn record(house: &House) -> String {
    let node = house.path("home/.local/share/toolwarden/journal/stdio-1");
    let files = std::fs::read_dir(node).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
}

#[test]
fn a_pipe_that_is_told_to_end_says_how_its_calls_ended() {
    for by_signal in [true, false] {
        let house = House::new();
        house.write("home/.config/toolwarden/toolwarden.toml", SILENT);
        let mut door = door(&house);
        let mut input = door.stdin.take();
        for line in LINES {
            assert!(input.as_mut().is_some_and(|input| writeln!(input, "{line}").is_ok()));
        }
        assert!(eventually(|| record(&house).contains("\"kind\":\"intent\"")), "{}", record(&house));
        if by_signal {
            let told = Command::new("kill").args(["-TERM", &door.id().to_string()]).status();
            assert!(told.is_ok_and(|status| status.success()));
        } else {
            input = None;
        }
        let ended = door.wait();
        assert!(ended.as_ref().is_ok_and(std::process::ExitStatus::success), "{ended:?}");
        drop(input);
        let record = record(&house);
        assert!(record.contains("\"status\":\"cancelled\""), "by signal: {by_signal}\n{record}");
    }
}
