//! Sessions that end while something is still being opened for them: nothing of it stays.

use std::sync::Arc;
use std::time::Duration;

use toolwarden_conversations::Scope;
use toolwarden_conversations::greeting::{Hello, greet};
use toolwarden_conversations::sessions::{ClientSession, Push};
use toolwarden_conversations::upstreams::Link;
use toolwarden_core::json::Part;
use toolwarden_mcp::Id;
use toolwarden_policy::housekeeping;

use super::house::{Given, House, ada};
use super::recorder::Speaks;

fn session() -> Arc<ClientSession> {
    Arc::new(ClientSession::new("s".to_owned(), Arc::new(ada()), Scope::One("notes".into()), Push::kept()))
}

#[tokio::test]
async fn a_follower_that_comes_too_late_ends_at_once() {
    let session = session();
    let follow = || {
        let held = session.clone();
        tokio::spawn(async move {
            std::future::pending::<()>().await;
            drop(held);
        })
    };
    let early = follow();
    session.followed_by(early.abort_handle());
    session.leave().await;
    let late = follow();
    session.followed_by(late.abort_handle());
    for follower in [early, late] {
        let ended = tokio::time::timeout(Duration::from_secs(10), follower).await;
        assert!(matches!(ended, Ok(Err(error)) if error.is_cancelled()));
    }
    assert_eq!(Arc::strong_count(&session), 1, "nobody holds the session");
}

async fn greeted(house: &House) -> Option<Link> {
    let upstream = house.gateway.upstream("notes")?;
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#;
    let params = Part::composed(params.to_owned()).ok();
    let hello = housekeeping("notes".into(), "initialize", params).ok()?;
    greet(&upstream, Hello { outbound: &hello, id: &Id::number(0), capabilities: "{}", principal: "ada" })
        .await
        .ok()
        .map(|(link, _)| link)
}

#[tokio::test]
async fn a_conversation_that_comes_too_late_is_ended_at_its_server() {
    let house = House::before(&Given::default(), Speaks::Legacy).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("the gateway is built") };
    let deleted = || house.recorder.all().iter().filter(|(method, _)| method == "GET or DELETE").count();
    let session = session();
    session.leave().await;
    let link = greeted(&house).await;
    assert!(matches!(link, Some(Link::Http(_))), "{link:?}");
    let before = deleted();
    if let Some((link, upstream)) = link.zip(house.gateway.upstream("notes")) {
        session.keep_link(&upstream, link);
    }
    for _ in 0..500 {
        if deleted() > before {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(deleted() > before, "the server still holds its session");
}
