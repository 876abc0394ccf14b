//! The hostile client over pipes: lines to the stdio door, and what comes back.

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split};
use toolwarden_doors::stdio;
use toolwarden_gateway::{Credential, Scope};

use crate::{Fault, House};

/// One client at a stdio door.
#[derive(Debug)]
pub struct Pipe {
    write: WriteHalf<DuplexStream>,
    read: Lines<BufReader<ReadHalf<DuplexStream>>>,
}

impl Pipe {
    /// Opens the stdio door of one server.
    #[must_use]
    pub fn open(house: &House, server: &str) -> Self {
        let (near, far) = duplex(1024 * 1024);
        let (gateway, scope) = (house.gateway.clone(), Scope::One(server.into()));
        tokio::spawn(async move {
            let (input, output) = split(far);
            let client = stdio::Client { scope, credential: &Credential::Local, mode: None };
            stdio::serve(&gateway, client, (input, output), std::future::pending(), stdio::nothing_to_catch_up).await
        });
        let (read, write) = split(near);
        Self { write, read: BufReader::new(read).lines() }
    }

    /// Writes one line.
    ///
    /// # Errors
    /// The door is closed.
    pub async fn say(&mut self, line: &str) -> Result<(), Fault> {
        self.write.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(())
    }

    /// The next line; empty once the door is closed.
    ///
    /// # Errors
    /// The pipe broke, or nothing comes.
    pub async fn hears(&mut self) -> Result<String, Fault> {
        let next = tokio::time::timeout(std::time::Duration::from_secs(30), self.read.next_line()).await;
        Ok(next.map_err(|_| "nothing comes")??.unwrap_or_default())
    }
}
