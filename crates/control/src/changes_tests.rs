//! The feed: nobody waits for nobody, and a follower's fault reaches whoever made the change.

use super::Changes;

#[tokio::test]
async fn without_a_follower_a_change_is_done_at_once() {
    assert_eq!(Changes::default().announce().await, None);
}

#[tokio::test]
async fn an_answer_waits_for_the_follower() {
    let changes = Changes::default();
    let mut follower = changes.follow();
    let task = tokio::spawn(async move {
        let first = follower.next().await;
        follower.took(first.unwrap_or_default(), None);
        let second = follower.next().await;
        follower.took(second.unwrap_or_default(), Some("broken".to_owned()));
        (first, second)
    });
    assert_eq!(changes.announce().await, None);
    assert_eq!(changes.announce().await.as_deref(), Some("broken"));
    assert_eq!(task.await.ok(), Some((Some(1), Some(2))));
}
