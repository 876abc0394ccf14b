//! A legacy client comes back for the rest of a stream that broke off.

use std::time::Duration;

use http::StatusCode;
use http_body_util::BodyExt;

use super::doors::{Speech, get_in_session, open_session, post_in_session, resume};
use super::eras::puppet::Wire;
use super::giving_up::call;
use super::parking::house;
use crate::AnswerBody;

const PATIENCE: Duration = Duration::from_secs(10);

/// All of a stream, which must end.
pub(super) async fn whole(body: AnswerBody) -> String {
    let whole = tokio::time::timeout(PATIENCE, body.collect()).await;
    assert!(matches!(whole, Ok(Ok(_))), "it does not end");
    let whole = whole.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes).unwrap_or_default();
    String::from_utf8_lossy(&whole).into_owned()
}

#[tokio::test]
async fn what_was_read_to_its_end_is_not_read_again() {
    let (house, _puppet) = house(Wire::Oldest).await;
    let session = open_session(&house).await;
    let request = call(Speech::Legacy, 7, &["Progress", "Pause"]).to_string();
    let said = whole(post_in_session(&house, &session, &request).await.into_body()).await;
    let ids: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    let [first, last] = ids.as_slice() else { unreachable!("{said}") };
    let rest = resume(&house, &session, first).await;
    assert_eq!(rest.status(), StatusCode::OK);
    let rest = whole(rest.into_body()).await;
    assert!(rest.contains("done t") && rest.contains(last) && !rest.contains("progress"), "{rest}");
    // An empty stream would be asked for again; this is final.
    assert_eq!(resume(&house, &session, last).await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(resume(&house, &session, "s1.18446744073709551615").await.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(resume(&house, &session, "s99.0").await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn news_go_to_the_newest_of_two_standing_streams() {
    let (house, puppet) = house(Wire::Oldest).await;
    let session = open_session(&house).await;
    let first = get_in_session(&house, &session).await.into_body();
    let mut second = get_in_session(&house, &session).await.into_body();
    puppet.announce();
    let news = tokio::time::timeout(PATIENCE, second.frame()).await.ok().flatten().and_then(Result::ok);
    let news = news.and_then(|frame| frame.into_data().ok()).unwrap_or_default();
    assert!(String::from_utf8_lossy(&news).contains("list_changed"), "{news:?}");
    assert_eq!(whole(first).await, "", "the older one ends, and says nothing");
}
