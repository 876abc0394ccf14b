//! Streams replay what a reader missed, in order, and stay bounded.

use std::sync::Arc;

use bytes::Bytes;

use super::{MOST_EVENTS, StreamLog};

fn data(number: usize) -> Bytes {
    Bytes::from(number.to_string())
}

#[tokio::test]
async fn a_second_reader_goes_on_after_the_event_it_names() {
    let log = Arc::new(StreamLog::new(3));
    for number in 0..5 {
        log.put(data(number));
    }
    let mut reader = log.attach(Some(0));
    assert_eq!(reader.next().await, Some(("s3.0".to_owned(), data(0))));
    drop(reader);
    let after = StreamLog::parse_id("s3.2").map(|(_, event)| event + 1);
    let mut again = log.attach(after);
    assert_eq!(again.next().await, Some(("s3.3".to_owned(), data(3))));
    log.close();
    assert_eq!(again.next().await.map(|(id, _)| id), Some("s3.4".to_owned()));
    assert_eq!(again.next().await, None);
}

#[tokio::test]
async fn without_a_reader_the_oldest_give_way_and_with_one_writers_wait() {
    let log = Arc::new(StreamLog::new(1));
    for number in 0..MOST_EVENTS + 10 {
        log.append(data(number)).await;
    }
    let mut reader = log.attach(Some(0));
    assert_eq!(reader.next().await.map(|(id, _)| id), Some("s1.10".to_owned()));
    let writer = tokio::spawn({
        let log = log.clone();
        async move {
            for number in 0..2 * MOST_EVENTS {
                log.append(data(number)).await;
            }
            log.close();
        }
    });
    let mut seen = 0;
    while reader.next().await.is_some() {
        seen += 1;
    }
    assert!(writer.await.is_ok());
    assert_eq!(seen, MOST_EVENTS - 1 + 2 * MOST_EVENTS);
}

#[tokio::test]
async fn the_newest_reader_is_served_and_no_other() {
    let log = Arc::new(StreamLog::new(0));
    let mut first = log.attach(None);
    log.put(data(0));
    assert_eq!(first.next().await.map(|(_, data)| data), Some(data(0)));
    let waiting = tokio::spawn(async move { (first.next().await, first) });
    tokio::task::yield_now().await;
    let mut second = log.attach(None);
    log.put(data(1));
    assert_eq!(second.next().await.map(|(_, data)| data), Some(data(1)));
    let first = tokio::time::timeout(std::time::Duration::from_secs(10), waiting).await;
    assert!(matches!(&first, Ok(Ok((None, _)))), "{first:?}");
    drop(first);
    assert!(log.has_reader(), "the first one went, not the second");
    drop(second);
    assert!(!log.has_reader());
}

#[test]
fn ids_that_are_none_of_ours_are_told_apart() {
    for id in ["", "s", "s1", "s1.", "sx.1", "1.1", "s1.1.1", "s-1.2"] {
        assert_eq!(StreamLog::parse_id(id), None, "{id}");
    }
}
