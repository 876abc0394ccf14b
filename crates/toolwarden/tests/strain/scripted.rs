//! A server as a child that is a few lines of shell, so that it can do what no real server does.

/// Answers numbers as the others do; `silent`, `endless`, `dies` and `large` are what their
/// names say, `leaves` closes its output and stays.
pub const SCRIPT: &str = r#"
hello='"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}'
tools=
for name in silent endless dies leaves large; do tools=$tools,'{"name":"'$name'","inputSchema":{"type":"object"}}'; done
tools='{"name":"test_echo","inputSchema":{"type":"object"}}'$tools
large=$(head -c 500000 /dev/zero | tr '\0' x)
result() { printf '{"jsonrpc":"2.0","id":%s,"result":{%s}}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  number=${line#*\"number\":\"}; number=${number%%\"*}
  case $line in
    *'"method":"initialize"'*) result "$hello" ;;
    *'"method":"tools/list"'*) result "\"tools\":[$tools]" ;;
    *'"name":"silent"'*) ;;
    *'"name":"endless"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"text":"' "$id"; exec tr '\0' x < /dev/zero ;;
    *'"name":"dies"'*) exit 1 ;;
    *'"name":"leaves"'*) exec > /dev/null ;;
    *'"name":"large"'*)
      printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1}}\n' "$id"
      result "\"content\":[{\"type\":\"text\",\"text\":\"$large\"}]" ;;
    *'"method":"tools/call"'*) result "\"content\":[{\"type\":\"text\",\"text\":\"{\\\"number\\\":\\\"$number\\\"}\"}]" ;;
  esac
done
"#;
