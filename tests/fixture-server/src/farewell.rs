//! A stream that says when the client has left, so that listening streams end at once.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::broadcast;

use crate::changes::Change;

/// What the only client sends, with somebody to tell about its end.
#[derive(Debug)]
pub struct Farewell<R> {
    input: R,
    news: broadcast::Sender<Change>,
}

impl<R> Farewell<R> {
    pub fn new(input: R, news: broadcast::Sender<Change>) -> Self {
        Self { input, news }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Farewell<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.input).poll_read(context, buffer);
        if read.is_ready() && buffer.filled().len() == before {
            // Nobody listening is fine.
            let _ = self.news.send(Change::Closing);
        }
        read
    }
}
