//! The feed: nobody waits for nobody, and a follower's fault reaches whoever made the change.

use jiff::Timestamp;
use toolwarden_store::state::Author;

use super::Changes;

fn somebody() -> Author {
    Author { user: "ana".to_owned(), door: "cli".to_owned(), time: Timestamp::UNIX_EPOCH }
}

#[tokio::test]
async fn without_a_follower_a_change_is_done_at_once() {
    assert_eq!(Changes::default().announce(somebody()).await, None);
}

#[tokio::test]
async fn an_answer_waits_for_the_follower() {
    let changes = Changes::default();
    let mut follower = changes.follow();
    let task = tokio::spawn(async move {
        let first = follower.next().await;
        follower.took(&first.unwrap_or_default(), None);
        let second = follower.next().await;
        let second = second.unwrap_or_default();
        follower.took(&second, Some("broken".to_owned()));
        second.by
    });
    assert_eq!(changes.announce(somebody()).await, None);
    assert_eq!(changes.announce(somebody()).await.as_deref(), Some("broken"));
    assert_eq!(task.await.ok(), Some(Some(somebody())));
}
