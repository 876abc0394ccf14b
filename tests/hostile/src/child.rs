//! The hostile server over pipes: a child with a plan, and the record of what it was told.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::Fault;

/// A child that is yet to be started by a gateway.
#[derive(Debug)]
pub struct Child {
    directory: TempDir,
    plan: &'static str,
    program: &'static str,
}

impl Child {
    /// A child with a plan; `program` is the kit's own.
    ///
    /// # Errors
    /// There is no room for its record.
    pub fn new(program: &'static str, plan: &'static str) -> Result<Self, Fault> {
        Ok(Self { directory: tempfile::tempdir()?, plan, program })
    }

    fn record(&self) -> PathBuf {
        self.directory.path().join("record")
    }

    /// Its table in a config.
    #[must_use]
    pub fn table(&self, name: &str) -> String {
        let (program, plan, record) = (self.program, self.plan, self.record());
        format!("[servers.{name}]\ncommand = \"{program}\"\nargs = [\"{plan}\", \"{}\"]\n", record.display())
    }

    /// Every line it was told, and what it noted itself.
    #[must_use]
    pub fn told(&self) -> String {
        std::fs::read_to_string(self.record()).unwrap_or_default()
    }

    /// Waits until it was told this.
    pub async fn hears(&self, text: &str) -> bool {
        crate::house::eventually(|| self.told().contains(text)).await
    }
}
