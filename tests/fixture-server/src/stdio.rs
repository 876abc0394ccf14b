//! One client over standard input and output.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use crate::farewell::Farewell;
use crate::handler::Shared;
use crate::lines::{Lines, converse};

pub async fn serve(shared: Arc<Shared>) -> anyhow::Result<()> {
    let news = shared.news.clone();
    let Lines { input, mut output, end } = converse(shared, |pipe| Farewell::new(pipe, news));
    tokio::spawn(read(input));
    let mut stdout = tokio::io::stdout();
    while let Some(mut line) = output.recv().await {
        line.push(b'\n');
        if stdout.write_all(&line).await.is_err() || stdout.flush().await.is_err() {
            break;
        }
    }
    drop(output);
    end.await?
}

async fn read(input: mpsc::Sender<Vec<u8>>) {
    let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        if input.send(line).await.is_err() {
            return;
        }
    }
}
