//! The decoder by the rules of the standard, by round trips cut anywhere, and under attack.

use bytes::{Bytes, BytesMut};
use proptest::prelude::{ProptestConfig, Strategy, any, prop};
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::{Decoder, Event, Item, SseError, encode, encode_comment};

fn decode_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Result<Vec<Item>, SseError> {
    let mut decoder = Decoder::new(limit);
    let mut items = Vec::new();
    for chunk in chunks {
        decoder.feed(Bytes::copy_from_slice(chunk));
        while let Some(item) = decoder.next()? {
            items.push(item);
        }
    }
    Ok(items)
}

fn decode(text: &str) -> Vec<Item> {
    decode_chunks([text.as_bytes()], 1000).unwrap_or_default()
}

fn event(id: Option<&str>, name: Option<&str>, data: Option<&str>, retry: Option<u64>) -> Item {
    let bytes = |text: Option<&str>| text.map(|text| Bytes::copy_from_slice(text.as_bytes()));
    Item::Event(Event { id: bytes(id), name: bytes(name), data: bytes(data), retry })
}

fn data(text: &str) -> Item {
    event(None, None, Some(text), None)
}

#[test]
fn the_examples_of_the_standard() {
    assert_eq!(decode("data: YHOO\ndata: +2\ndata: 10\n\n"), [data("YHOO\n+2\n10")]);
    assert_eq!(
        decode(": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"),
        [
            Item::Comment(Bytes::from_static(b"test stream")),
            event(Some("1"), None, Some("first event"), None),
            event(Some(""), None, Some("second event"), None),
            data(" third event"),
        ]
    );
    assert_eq!(decode("data\n\ndata\ndata\n\ndata:"), [data(""), data("\n")]);
    assert_eq!(decode("data:test\n\ndata: test\n\n"), [data("test"), data("test")]);
}

#[test]
fn line_ends_marks_and_odd_fields() {
    assert_eq!(decode("data: a\rdata: b\r\n\r\ndata: c\n\r"), [data("a\nb"), data("c")]);
    assert_eq!(decode("\u{feff}data: a\n\n\u{feff}data: b\n\n"), [data("a")]);
    assert_eq!(decode("id: a\u{0}b\ndata: x\n\n"), [data("x")]);
    assert_eq!(
        decode("retry: 10\n\nretry: 1x\n\nretry:\n\nretry: 99999999999999999999\n\n"),
        [event(None, None, None, Some(10))]
    );
    assert_eq!(decode("unknown: 1\n Data: 2\n\n\n\n"), []);
    assert_eq!(
        decode("id: 7\ndata: \n\nevent: message\nid: 8\ndata: {}\n\n"),
        [event(Some("7"), None, Some(""), None), event(Some("8"), Some("message"), Some("{}"), None),]
    );
    assert_eq!(decode("data: never finished\n"), []);
}

#[test]
fn an_endless_line_is_refused_with_bounded_memory() {
    let mut decoder = Decoder::new(10_000);
    let chunk = Bytes::from(vec![b'x'; 1000]);
    let mut fed = 0;
    let error = loop {
        decoder.feed(chunk.clone());
        fed += chunk.len();
        match decoder.next() {
            Ok(_) => assert!(fed <= 11_000, "{fed} bytes were held"),
            Err(error) => break error,
        }
    };
    assert_eq!(error, SseError::TooLarge { limit: 10_000 });
    assert_eq!(decoder.line.capacity(), 0);
    decoder.feed(chunk);
    assert!(decoder.next().is_err());
}

#[test]
fn endless_data_lines_are_refused_and_small_events_are_not() {
    let line = b"data: 123456789\n".as_slice();
    assert_eq!(decode_chunks(std::iter::repeat_n(line, 200), 1000), Err(SseError::TooLarge { limit: 1000 }));
    let lines = b"data: 123456789\n\n: alive\n".as_slice();
    assert_eq!(decode_chunks(std::iter::repeat_n(lines, 200), 1000).map(|items| items.len()), Ok(400));
    let exact = format!("data: {}\n\n", "x".repeat(1000));
    assert_eq!(decode_chunks([exact.as_bytes()], 1000).map(|items| items.len()), Ok(1));
    let over = format!("data: {}\n\n", "x".repeat(1001));
    assert!(decode_chunks([over.as_bytes()], 1000).is_err());
}

#[test]
fn data_in_one_chunk_is_not_copied() {
    let chunk = Bytes::from_static(b"data: one piece\n\n");
    let mut decoder = Decoder::new(100);
    decoder.feed(chunk.clone());
    let Ok(Some(Item::Event(event))) = decoder.next() else { unreachable!("one event") };
    let place = event.data.map(|data| data.as_ptr() as usize);
    assert_eq!(place, Some(chunk.as_ptr() as usize + 6));
}

#[test]
fn an_id_or_name_with_a_line_break_is_not_written() {
    let mut out = BytesMut::new();
    for text in ["a\nb", "a\rb"] {
        let broken = Event { name: Some(Bytes::copy_from_slice(text.as_bytes())), ..Event::default() };
        assert_eq!(encode(&broken, &mut out), Err(SseError::Unencodable));
    }
    let broken = Event { id: Some(Bytes::from_static(b"\0")), ..Event::default() };
    assert_eq!(encode(&broken, &mut out), Err(SseError::Unencodable));
    assert!(out.is_empty());
    encode_comment(b"a\ndata: b", &mut out);
    assert_eq!(&*out, b": a\n: data: b\n\n");
}

fn any_event() -> impl Strategy<Value = Item> {
    let field = || prop::option::of("[^\r\n\u{0}]{0,12}");
    let data = prop::option::of("([ -~:é]|\n|data:|\u{feff}){0,30}");
    (field(), field(), data, prop::option::of(any::<u64>()))
        .prop_filter("at least one field", |(id, name, data, retry)| {
            id.is_some() || name.is_some() || data.is_some() || retry.is_some()
        })
        .prop_map(|(id, name, data, retry)| event(id.as_deref(), name.as_deref(), data.as_deref(), retry))
}

/// The text in pieces; a piece may be empty.
fn pieces<'a>(text: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    let pairs = places.iter().zip(places.iter().skip(1));
    pairs.filter_map(|(from, to)| text.get(*from..*to)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_encoded_decodes_the_same_cut_anywhere(
        events in prop::collection::vec(any_event(), 0..6),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        ending in 0..3_usize,
    ) {
        let mut out = BytesMut::new();
        for item in &events {
            if let Item::Event(event) = item {
                prop_assert!(encode(event, &mut out).is_ok());
            }
        }
        let text = String::from_utf8_lossy(&out).replace('\n', ["\n", "\r\n", "\r"].get(ending).unwrap_or(&"\n"));
        prop_assert_eq!(decode_chunks(pieces(text.as_bytes(), &cuts), 10_000), Ok(events));
    }

    #[test]
    fn random_bytes_never_panic_and_cuts_do_not_matter(
        text in "([:dataieventry \n\r\u{feff}\u{0}0-9]|data:|id:|\n\n){0,60}",
        noise in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let text = [text.as_bytes(), &noise].concat();
        let whole = decode_chunks([&*text], 10_000);
        prop_assert_eq!(decode_chunks(pieces(&text, &cuts), 10_000), whole);
        let _ = decode_chunks(pieces(&text, &cuts), 5);
    }
}
