//! Lines come out as they went in, however the pipe cuts them.

use bytes::Bytes;
use proptest::prelude::{ProptestConfig, any, prop};
use proptest::{prop_assert_eq, proptest};
use tokio::io::AsyncWriteExt;

use super::{LineError, LineReader, LineWriter};

fn run<T>(future: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    Some(runtime.block_on(future))
}

async fn all_lines(bytes: &[u8], limit: usize) -> Result<Vec<Bytes>, LineError> {
    let mut reader = LineReader::new(bytes, limit);
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().await? {
        lines.push(line);
    }
    Ok(lines)
}

#[tokio::test]
async fn lines_without_ends_and_empty_lines() {
    let lines = all_lines(b"{}\r\n\n\r\n[1]\nlast", 10).await.unwrap_or_default();
    assert_eq!(lines, [&b"{}"[..], b"[1]", b"last"]);
    assert!(all_lines(b"", 10).await.is_ok_and(|lines| lines.is_empty()));
}

#[tokio::test]
async fn a_line_over_the_bound_is_refused_wherever_it_ends() {
    for text in ["12345678901", "12345678901\n", "1\n12345678901\n"] {
        assert!(matches!(all_lines(text.as_bytes(), 10).await, Err(LineError::TooLong { limit: 10 })), "{text}");
    }
    assert_eq!(all_lines(b"1234567890\n", 10).await.unwrap_or_default().len(), 1);
}

#[tokio::test]
async fn an_endless_line_is_held_only_up_to_the_bound() {
    let mut reader = LineReader::new(tokio::io::repeat(b'x'), 1_000_000);
    assert!(reader.next_line().await.is_err());
    assert!(reader.buffer.capacity() < 100_000);
}

#[tokio::test]
async fn indented_json_stays_one_line() {
    let mut out = Vec::new();
    let messages =
        [Bytes::from_static(b"{\n  \"a\": 1\r\n}"), Bytes::from_static(b"{}"), Bytes::from(vec![b'1'; 70_000])];
    assert!(LineWriter::new(&mut out).write_lines(messages).await.is_ok());
    assert!(out.starts_with(b"{   \"a\": 1  }\n{}\n111"));
    assert_eq!(out.len(), 14 + 3 + 70_001);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read(
        messages in prop::collection::vec("[ -~é]{1,40}", 0..30),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..10),
    ) {
        let lines = run(async {
            let mut out = Vec::new();
            let bytes = messages.iter().map(|message| Bytes::copy_from_slice(message.as_bytes()));
            let _ = LineWriter::new(&mut out).write_lines(bytes).await;
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(out.len() + 1)).collect();
            places.extend([0, out.len()]);
            places.sort_unstable();
            let (mut near, far) = tokio::io::duplex(100_000);
            let mut reader = LineReader::new(far, 100);
            let mut lines = Vec::new();
            for (from, to) in places.iter().zip(places.iter().skip(1)) {
                let _ = near.write_all(out.get(*from..*to).unwrap_or_default()).await;
                let _ = reader.reader.read_buf_once(&mut reader.buffer).await;
                while let Ok(Some(line)) = reader.buffered_line() {
                    lines.push(line);
                }
            }
            drop(near);
            while let Ok(Some(line)) = reader.next_line().await {
                lines.push(line);
            }
            lines
        });
        let lines: Vec<Bytes> = lines.unwrap_or_default();
        prop_assert_eq!(lines, messages);
    }
}

/// Reads what is there, without waiting when nothing is.
trait ReadBufOnce {
    async fn read_buf_once(&mut self, buffer: &mut bytes::BytesMut) -> std::io::Result<usize>;
}

impl<R: tokio::io::AsyncRead + Unpin> ReadBufOnce for R {
    async fn read_buf_once(&mut self, buffer: &mut bytes::BytesMut) -> std::io::Result<usize> {
        use tokio::io::AsyncReadExt;
        buffer.reserve(1000);
        tokio::time::timeout(std::time::Duration::ZERO, self.read_buf(buffer)).await.unwrap_or(Ok(0))
    }
}
