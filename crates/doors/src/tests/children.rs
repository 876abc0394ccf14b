//! Legacy children that several sessions share: how they start, and when they end.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolwarden_conversations::sessions::{ClientSession, Push};
use toolwarden_conversations::upstreams::{Link, StdioLink, Upstream, Wanted};
use toolwarden_conversations::{Failure, Scope};
use toolwarden_core::json::Part;
use toolwarden_mcp::Id;
use toolwarden_policy::housekeeping;

use super::house::{Given, House, ada};
use super::patience::eventually;

type Outcome = Result<(), Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(10);

/// A legacy server, before whose first start something happens that happens at no later one.
fn child(directory: &Path, at_first: &str) -> &'static str {
    let first = directory.join("first");
    let config = format!(
        r#"
[servers.child]
command = "sh"
args = ["-c", '''
if mkdir {first} 2>/dev/null; then
  {at_first}
fi
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"c","version":"1"}}}}' ;;
    *'"tools/list"'*) result='{{"tools":[]}}' ;;
    *) continue ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done
''']
"#,
        first = first.display()
    );
    // A config of a test lives as long as the test.
    Box::leak(config.into_boxed_str())
}

async fn built(config: &'static str) -> Result<(House, Arc<Upstream>), Box<dyn Error>> {
    built_as(&Given { config, ..Given::default() }).await
}

async fn built_as(given: &Given) -> Result<(House, Arc<Upstream>), Box<dyn Error>> {
    let house = House::build(given).await.ok_or("no gateway")?;
    let upstream = house.gateway.upstream("child").ok_or("no server")?;
    Ok((house, upstream))
}

#[tokio::test]
async fn a_child_that_starts_slowly_keeps_only_those_waiting_who_want_it() -> Outcome {
    let directory = tempfile::tempdir()?;
    let go = directory.path().join("go");
    let slow = format!("while ! test -e {}; do sleep 0.02; done", go.display());
    let (_house, upstream) = built(child(directory.path(), &slow)).await?;
    let open = |who: &'static str| {
        let upstream = upstream.clone();
        tokio::spawn(async move { upstream.legacy_shared(who).await })
    };
    let first = open("ada");
    assert!(eventually(async || directory.path().join("first").exists()).await, "the first child was not started");
    let second = open("ada");
    let other = timeout(PATIENCE, open("bob")).await.map_err(|_| "bob waits for the child of ada")???;
    assert!(!first.is_finished() && !second.is_finished());
    std::fs::write(&go, "")?;
    let (first, second) = (timeout(PATIENCE, first).await???, timeout(PATIENCE, second).await???);
    assert!(Arc::ptr_eq(&first, &second), "one child for one principal");
    assert!(!Arc::ptr_eq(&first, &other), "and for no other");
    Ok(())
}

/// A modern server, shared as the text says.
fn modern_child(share: &str) -> &'static str {
    let config = format!(
        r#"
[servers.child]
command = "sh"
{share}
args = ["-c", '''
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *server/discover*) result='{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}}}}' ;;
    *) continue ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done
''']
"#
    );
    Box::leak(config.into_boxed_str())
}

#[tokio::test]
async fn self_6_share_says_who_uses_one_modern_child() -> Outcome {
    for (share, is_one) in [("", true), ("share = \"all\"", true), ("share = \"principal\"", false)] {
        let (_house, upstream) = built(modern_child(share)).await?;
        let open = async |who: &str| match timeout(PATIENCE, upstream.modern(who)).await {
            Ok(Ok(Link::Stdio(child))) => Ok(child),
            other => Err(format!("{share}: {other:?}")),
        };
        let (first, second, other) = (open("ada").await?, open("ada").await?, open("bob").await?);
        assert!(Arc::ptr_eq(&first, &second), "{share}: one child for one principal");
        assert_eq!(Arc::ptr_eq(&first, &other), is_one, "{share}");
    }
    Ok(())
}

#[tokio::test]
async fn a_child_that_did_not_start_is_started_again() -> Outcome {
    let directory = tempfile::tempdir()?;
    let (_house, upstream) = built(child(directory.path(), "exit 3")).await?;
    let failed = upstream.legacy_shared("ada").await;
    assert!(matches!(failed, Err(Failure::Unreachable(_))), "{failed:?}");
    // It rests first, so that a broken server is not started all the time.
    let mut again = upstream.legacy_shared("ada").await;
    for _ in 0..500 {
        if again.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        again = upstream.legacy_shared("ada").await;
    }
    assert!(again?.is_alive());
    Ok(())
}

#[tokio::test]
async fn children_that_fail_together_count_as_one_failure() -> Outcome {
    let config = "[servers.child]\ncommand = \"sh\"\nargs = [\"-c\", \"sleep 0.3\"]\n";
    let (_house, upstream) = built(config).await?;
    let principals: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    let opening = principals.iter().map(|who| upstream.legacy_shared(who));
    let opened = futures_util::future::join_all(opening).await;
    assert!(opened.iter().all(|opened| matches!(opened, Err(Failure::Unreachable(_)))), "{opened:?}");
    // Each for itself would have doubled the rest, up to half a minute.
    let rests = upstream.legacy_shared("ada").await;
    assert!(!matches!(rests, Err(Failure::Resting { seconds: 2.., .. })), "{rests:?}");
    Ok(())
}

/// A request the child does not answer.
async fn unanswered(child: &Arc<StdioLink>) -> Result<impl Sized + use<>, Box<dyn Error>> {
    let params = Part::composed(r#"{"uri":"note://a"}"#.to_owned())?;
    let asked = housekeeping("child".into(), "resources/list", Some(params))?;
    Ok(child.request(&asked, &Id::number(1), &[]).await?)
}

#[tokio::test]
async fn a_child_ends_when_nobody_uses_it_or_listens() -> Outcome {
    let directory = tempfile::tempdir()?;
    let (_house, upstream) = built(child(directory.path(), ":")).await?;
    let child = upstream.legacy_shared("ada").await?;
    let caller = Arc::new(ada());
    let still_there = |idle: Duration| {
        upstream.end_idle_children(idle);
        child.is_alive()
    };
    assert!(still_there(PATIENCE), "it was used a moment ago");

    let session = ClientSession::new("s".to_owned(), caller.clone(), Scope::One("child".into()), Push::kept());
    let session = Arc::new(session);
    child.heard_by(&session);
    assert!(still_there(Duration::ZERO), "a session hears it");
    drop(session);

    let news = child.ears.open(caller, Wanted { tools: true, ..Wanted::default() }, Id::number(7));
    assert!(still_there(Duration::ZERO), "a modern client listens to it");
    drop(news);

    let reply = unanswered(&child).await?;
    assert!(still_there(Duration::ZERO), "somebody waits for its answer");
    drop(reply);

    assert!(!still_there(Duration::ZERO), "nobody wants anything of it");
    let next = upstream.legacy_shared("ada").await?;
    assert!(next.is_alive() && !Arc::ptr_eq(&child, &next), "the next request starts another, without a rest");
    Ok(())
}

#[tokio::test]
async fn idle_children_are_ended_by_the_way() -> Outcome {
    let directory = tempfile::tempdir()?;
    let config = child(directory.path(), ":");
    let given = Given { config, session_idle: Some(Duration::from_millis(1)), ..Given::default() };
    let (house, upstream) = built_as(&given).await?;
    let child = upstream.legacy_shared("ada").await?;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let keeping = tokio::spawn(house.gateway.clone().keep_house());
    assert!(eventually(async || !child.is_alive()).await, "it is left running");
    keeping.abort();
    Ok(())
}

/// The requests a child has on its list, as nothing but its own account of itself tells.
fn listed(child: &StdioLink) -> usize {
    format!("{child:?}").matches("InFlight {").count()
}

#[tokio::test]
async fn a_request_that_was_dropped_before_it_was_sent_is_on_no_list() -> Outcome {
    // It greets, and then reads nothing any more.
    let config = r#"
[servers.child]
command = "sh"
args = ["-c", '''
read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"c","version":"1"}}}'
sleep 60
''']
"#;
    let (_house, upstream) = built(config).await?;
    let child = upstream.legacy_shared("ada").await?;
    let params = Part::composed(format!(r#"{{"cursor":"{}"}}"#, "x".repeat(100 * 1024)))?;
    let asked = housekeeping("child".into(), "resources/list", Some(params))?;
    let mut sent = 0;
    // Until its pipe and the queue before it are full.
    while let Ok(reply) = timeout(Duration::from_millis(300), child.request(&asked, &Id::number(1), &[])).await {
        drop(reply?);
        sent += 1;
        assert!(sent < 5_000);
    }
    assert_eq!(listed(&child), sent, "what was sent may be answered; the last one was not sent");
    Ok(())
}
