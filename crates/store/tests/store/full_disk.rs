//! A disk that is really full: a small file system in memory.

use std::io;
use std::path::Path;
use std::process::Command;

use toolwarden_store::JournalError;
use toolwarden_store::journal::verify;

use crate::kit::{Outcome, Place, intent, outcome, refusal};

/// Unmounts when dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(path: &'a Path) -> io::Result<Self> {
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k,mode=700", "none"]).arg(path).output()?;
        let said = String::from_utf8_lossy(&mount.stderr);
        mount.status.success().then_some(Self(path)).ok_or_else(|| io::Error::other(format!("mount: {said}")))
    }
}

/// Only root may mount. Everybody else becomes root in a namespace of their own and runs the test there.
fn run_as_root_of_a_namespace(test: &str) -> Outcome {
    let ran = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe()?)
        .args(["--exact", test])
        .output()?;
    let said = [ran.stdout, ran.stderr].concat();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[tokio::test]
async fn gate_15_a_full_disk_refuses_and_a_freed_one_goes_on() -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return run_as_root_of_a_namespace("full_disk::gate_15_a_full_disk_refuses_and_a_freed_one_goes_on");
    }
    let place = Place::new()?;
    let root = place.journal_root();
    std::fs::create_dir(&root)?;
    let _disk = SmallDisk::mount(&root)?;
    let ballast = root.join("ballast");
    std::fs::write(&ballast, vec![0; 100_000])?;
    let (journal, _) = place.open()?;
    let mut taken = 0;
    let error = loop {
        let call = journal.next_call();
        match journal.record(&intent(call)).await {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
        journal.note(&outcome(call))?;
    };
    assert!(matches!(&error, JournalError::Write(_)), "{error}");
    assert!(taken > 100, "{taken}");
    for _ in 0..20 {
        assert!(journal.record(&refusal(journal.next_call())).await.is_err());
    }
    assert_eq!(verify(&root, place.keyring.as_ref(), &[])?.nodes.into_iter().find_map(|node| node.problem), None);
    std::fs::remove_file(&ballast)?;
    journal.record(&refusal(journal.next_call())).await?;
    journal.close().await?;
    assert_eq!(place.problem(&[])?, None);
    let text = place.text("serve-1")?;
    assert_eq!(text.matches("\"kind\":\"intent\"").count(), taken);
    assert_eq!(text.matches("\"kind\":\"outcome\"").count(), taken);
    Ok(())
}
