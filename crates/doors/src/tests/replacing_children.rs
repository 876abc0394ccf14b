//! Servers behind pipes that come, go and change while the gateway runs: processes that are not needed are gone.

use std::path::{Path, PathBuf};

use toolwarden_conversations::Scope;

use super::doors::{SPEECHES, Speech, request, walk};
use super::house::{Given, House, ada};
use super::patience::eventually;
use super::recorder::{Recorder, Speaks};

/// A legacy server that says in a file of its own who it is, and does not end by itself.
fn child(name: &str, directory: &Path, word: &str) -> String {
    let script = r#"
echo $$ >> PIDS
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"act","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}}]}' ;;
    *'"hang"'*) echo WORD >> CALLS; continue ;;
    *'"tools/call"'*) echo WORD >> CALLS; result='{"content":[{"type":"text","text":"WORD"}]}' ;;
    *) if [ -n "$id" ]; then printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id"; fi; continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;
    let place = |kind: &str| directory.join(format!("{name}.{kind}")).display().to_string();
    let script = script.replace("PIDS", &place("pids")).replace("CALLS", &place("calls")).replace("WORD", word);
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [\"-c\", '''{script}''']\ndefinitions = \"follow\"\n")
}

struct Stage {
    house: House,
    directory: tempfile::TempDir,
}

impl Stage {
    /// Before two children, `one` and `two`.
    async fn new() -> Self {
        let Ok(directory) = tempfile::tempdir() else { unreachable!("there is room for a directory") };
        let recorder = Recorder::absent("http://127.0.0.1:9/mcp".to_owned(), Speaks::Both);
        let text = Self::text(directory.path(), &[("one", "first"), ("two", "first")]);
        let Some(house) = House::configured(&Given::OPEN, &text, recorder).await else {
            unreachable!("the house is built")
        };
        Self { house, directory }
    }

    fn text(directory: &Path, servers: &[(&str, &str)]) -> String {
        let servers = servers.iter().map(|(name, word)| child(name, directory, word)).collect::<String>();
        format!("{}{servers}", Given::OPEN.config)
    }

    fn turn_to(&self, servers: &[(&str, &str)]) {
        self.house.take_over(&Given::OPEN, &Self::text(self.directory.path(), servers));
    }

    async fn call(&self, server: &str, tool: &str, speech: Speech) -> String {
        let text = request(speech, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{{}}"));
        walk(&self.house, ada(), Scope::One(server.into()), speech, &text).await
    }

    fn lines(&self, server: &str, kind: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.directory.path().join(format!("{server}.{kind}")));
        text.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn pids(&self, server: &str) -> Vec<String> {
        self.lines(server, "pids")
    }
}

fn lives(pid: &str) -> bool {
    // One that has ended and was not waited for yet has no command line any more.
    let told = std::fs::read(PathBuf::from("/proc").join(pid).join("cmdline"));
    told.is_ok_and(|told| !told.is_empty())
}

async fn all_end(pids: &[String]) -> bool {
    eventually(async || !pids.iter().any(|pid| lives(pid))).await
}

#[tokio::test]
async fn allow_12_the_children_of_a_removed_server_are_gone_and_others_live_on() {
    let stage = Stage::new().await;
    for speech in SPEECHES {
        for server in ["one", "two"] {
            assert!(stage.call(server, "act", speech).await.contains("first"), "{server} {speech:?}");
        }
    }
    let (one, two) = (stage.pids("one"), stage.pids("two"));
    let living: Vec<_> = two.iter().filter(|pid| lives(pid)).cloned().collect();
    assert!(one.iter().any(|pid| lives(pid)) && !living.is_empty());
    stage.turn_to(&[("two", "first")]);
    assert!(all_end(&one).await, "{one:?}");
    assert!(stage.call("one", "act", Speech::Modern).await.contains("no server is called"));
    for speech in SPEECHES {
        assert!(stage.call("two", "act", speech).await.contains("first"));
    }
    assert!(living.iter().all(|pid| lives(pid)) && stage.pids("two") == two, "not one was started anew");
    assert_eq!(stage.pids("one"), one, "nobody starts it");
}

#[tokio::test]
async fn allow_12_a_child_that_is_started_otherwise_is_started_anew() {
    let stage = Stage::new().await;
    assert!(stage.call("one", "act", Speech::Legacy).await.contains("first"));
    let former = stage.pids("one");
    stage.turn_to(&[("one", "second"), ("two", "first")]);
    assert!(all_end(&former).await);
    for speech in SPEECHES {
        assert!(stage.call("one", "act", speech).await.contains("second"), "{speech:?}");
    }
    assert_eq!(stage.lines("one", "calls"), ["first", "second", "second"]);
}

#[tokio::test]
async fn gate_19_a_call_at_a_child_that_goes_is_not_made_at_the_next() {
    for speech in SPEECHES {
        let stage = std::sync::Arc::new(Stage::new().await);
        assert!(stage.call("one", "act", speech).await.contains("first"));
        let calling = {
            let stage = stage.clone();
            tokio::spawn(async move { stage.call("one", "hang", speech).await })
        };
        assert!(eventually(async || stage.lines("one", "calls").len() == 2).await);
        let former = stage.pids("one");
        stage.turn_to(&[("one", "second"), ("two", "first")]);
        let said = calling.await.unwrap_or_default();
        assert!(said.contains("whether the call had an effect is not known"), "{speech:?}: {said}");
        assert!(all_end(&former).await);
        assert!(stage.call("one", "act", speech).await.contains("second"));
        assert_eq!(stage.lines("one", "calls"), ["first", "first", "second"], "{speech:?}");
    }
}

#[tokio::test]
async fn a_server_is_ended_and_started_anew_where_somebody_says_so() {
    let stage = Stage::new().await;
    for server in ["one", "two"] {
        assert!(stage.call(server, "act", Speech::Modern).await.contains("first"));
    }
    let (one, two) = (stage.pids("one"), stage.pids("two"));
    assert!(stage.house.gateway.restart_server("one") && !stage.house.gateway.restart_server("nobody"));
    assert!(all_end(&one).await);
    for server in ["one", "two"] {
        assert!(stage.call(server, "act", Speech::Modern).await.contains("first"));
    }
    assert!(stage.pids("one").len() > one.len() && stage.pids("two") == two);
    let noted = stage.house.records().await;
    assert!(noted.iter().any(|record| record.get("method").is_some_and(|method| method == "server_restarted")));
}
