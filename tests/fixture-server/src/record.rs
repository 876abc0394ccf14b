//! A file that proves what reached this server: one line per call, on disk before the call is answered.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Appends `METHOD NAME` lines; without a file it does nothing.
#[derive(Debug)]
pub struct Record(Option<File>);

impl Record {
    /// Opens the file for appending, so that several servers may share it.
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = path.map(|path| OpenOptions::new().create(true).append(true).open(path)).transpose()?;
        Ok(Self(file))
    }

    /// Writes the line in one system call: nothing is buffered, and lines of several servers never mix.
    pub fn note(&self, method: &str, name: &str) -> io::Result<()> {
        let Some(mut file) = self.0.as_ref() else { return Ok(()) };
        let name = name.replace(['\n', '\r'], " ");
        file.write_all(format!("{method} {name}\n").as_bytes())
    }
}
