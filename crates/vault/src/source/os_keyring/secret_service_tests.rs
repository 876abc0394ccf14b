//! A real keyring on a bus of its own: kept, found again, never replaced, locked, silent, or not there.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::{Bus, OsKeyringError, ask_within};
use crate::kit::{Outcome, Process};
use crate::{Backend, KEY_FILE, KeySource, Ring, SourceError, rewrap};

/// A bus that lets everybody do everything and starts nothing by itself.
const CONFIGURATION: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=PLACE/bus</listen>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"#;

/// A bus, and perhaps a keyring on it, ended with the test.
struct Session {
    root: tempfile::TempDir,
    address: String,
    children: Vec<Child>,
}

impl Drop for Session {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first line a program says.
fn first_line(stdout: Option<ChildStdout>) -> Outcome<String> {
    let mut line = String::new();
    BufReader::new(stdout.ok_or("no output")?).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

fn missing(program: &str, package: &str) -> impl FnOnce(std::io::Error) -> String {
    let said = format!("{program} cannot be started; install the Debian package {package}");
    move |error| format!("{said}: {error}")
}

impl Session {
    fn bus() -> Outcome<Self> {
        let root = tempfile::tempdir()?;
        let configuration = root.path().join("bus.conf");
        fs::write(&configuration, CONFIGURATION.replace("PLACE", &root.path().to_string_lossy()))?;
        let mut bus = Command::new("dbus-daemon")
            .arg("--config-file")
            .arg(&configuration)
            .args(["--nofork", "--print-address"])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(missing("dbus-daemon", "dbus"))?;
        let stdout = bus.stdout.take();
        let mut session = Self { root, address: String::new(), children: vec![bus] };
        session.address = first_line(stdout)?;
        Ok(session)
    }

    /// Starts GNOME Keyring; a password unlocks the login keyring, and makes it where there is none.
    fn start_keyring(&mut self, password: Option<&str>) -> Outcome {
        let place = self.root.path();
        let mut command = Command::new("gnome-keyring-daemon");
        command.args(["--foreground", "--components=secrets"]).args(password.map(|_| "--unlock"));
        command.env_clear().env("DBUS_SESSION_BUS_ADDRESS", &self.address).env("HOME", place);
        command.env("XDG_RUNTIME_DIR", place).env("XDG_DATA_HOME", place.join("data"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keyring = command.spawn().map_err(missing("gnome-keyring-daemon", "gnome-keyring"))?;
        if let (Some(mut stdin), Some(password)) = (keyring.stdin.take(), password) {
            stdin.write_all(password.as_bytes())?;
        }
        let stdout = keyring.stdout.take();
        self.children.push(keyring);
        // It says where its socket is once it is ready.
        first_line(stdout)?;
        Ok(())
    }

    fn with_keyring() -> Outcome<Self> {
        let mut session = Self::bus()?;
        session.start_keyring(Some("a password"))?;
        Ok(session)
    }

    /// Ends the keyring, so that another one can take its place.
    fn stop_keyring(&mut self) -> Outcome {
        let mut keyring = self.children.pop().ok_or("no keyring")?;
        keyring.kill()?;
        keyring.wait()?;
        Ok(())
    }

    fn process(&self) -> Outcome<Process> {
        Ok(Process::new()?.with_variable("DBUS_SESSION_BUS_ADDRESS", &self.address))
    }
}

fn keyring_error(answer: Result<crate::Master, SourceError>) -> Outcome<OsKeyringError> {
    match answer {
        Err(SourceError::Keyring(error)) => Ok(error),
        other => Err(format!("{other:?}").into()),
    }
}

#[test]
fn vault_4_the_keyring_keeps_a_key_and_gives_it_to_every_process() -> Outcome {
    let mut session = Session::with_keyring()?;
    let (first, second) = (session.process()?, session.process()?);
    let made = KeySource::Keyring.obtain(&first, &[])?;
    assert_eq!(made.backend(), Backend::GnomeLibsecret);
    assert!(made.is_protected());
    assert_eq!(KeySource::Keyring.obtain(&second, &[])?.mark(), made.mark());
    let (_, stored) = Ring::first(&made)?;
    // After another login the key is still there, and opens what it sealed.
    session.stop_keyring()?;
    session.start_keyring(Some("a password"))?;
    for source in [KeySource::Keyring, KeySource::Auto] {
        let again = source.obtain(&second, std::slice::from_ref(&stored))?;
        assert_eq!(Ring::open(&again, std::slice::from_ref(&stored))?.current(), 1);
    }
    Ok(())
}

#[test]
fn vault_4_auto_takes_the_keyring_on_a_fresh_machine_and_makes_no_file() -> Outcome {
    let session = Session::with_keyring()?;
    let process = session.process()?;
    assert_eq!(KeySource::Auto.obtain(&process, &[])?.backend(), Backend::GnomeLibsecret);
    assert!(!process.place("config").exists());
    // A key file of former versions counts more: what they signed hangs on it.
    let older = session.process()?;
    KeySource::File(KEY_FILE.into()).obtain(&older, &[])?;
    assert_eq!(KeySource::Auto.obtain(&older, &[])?.backend(), Backend::File);
    Ok(())
}

#[test]
fn vault_4_a_locked_keyring_says_so_and_loses_nothing() -> Outcome {
    let mut session = Session::with_keyring()?;
    let process = session.process()?;
    let made = KeySource::Keyring.obtain(&process, &[])?;
    session.stop_keyring()?;
    session.start_keyring(None)?;
    for source in [KeySource::Keyring, KeySource::Auto] {
        let error = keyring_error(source.obtain(&process, &[]))?;
        assert_eq!(error, OsKeyringError::Locked);
        assert!(error.to_string().contains("unlock it"), "{error}");
    }
    assert!(!process.place("config").exists(), "no file is made in its place");
    session.stop_keyring()?;
    session.start_keyring(Some("a password"))?;
    assert_eq!(KeySource::Keyring.obtain(&process, &[])?.mark(), made.mark());
    Ok(())
}

#[test]
fn vault_4_a_key_that_is_gone_from_the_keyring_is_not_replaced() -> Outcome {
    let session = Session::with_keyring()?;
    let process = session.process()?;
    let elsewhere = Session::with_keyring()?;
    let (_, stored) = Ring::first(&KeySource::Keyring.obtain(&elsewhere.process()?, &[])?)?;
    for source in [KeySource::Keyring, KeySource::Auto] {
        let error = source.obtain(&process, std::slice::from_ref(&stored)).err().ok_or("a key was made")?;
        assert!(matches!(error, SourceError::Missing { .. }), "{error}");
        assert!(error.to_string().contains(&stored.sealed_by()?.short()), "{error}");
    }
    Ok(())
}

#[test]
fn two_keys_in_a_keyring_are_told_apart_by_what_they_sealed() -> Outcome {
    let session = Session::with_keyring()?;
    let process = session.process()?;
    let oldest = KeySource::Keyring.obtain(&process, &[])?;
    // What two processes at once could do: a second item beside the first.
    let second = crate::ring::fresh_root()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Bus::connect(&session.address).await?.keep(&second).await })?;
    assert_eq!(KeySource::Keyring.obtain(&process, &[])?.mark(), oldest.mark());
    let (_, stored) = Ring::first(&oldest)?;
    let later = crate::Master::new(second, Backend::GnomeLibsecret)?;
    let stored = rewrap(&oldest, &later, &[stored])?;
    assert_eq!(KeySource::Keyring.obtain(&process, &stored)?.mark(), later.mark());
    Ok(())
}

#[test]
fn processes_that_start_at_once_end_with_the_same_key() -> Outcome {
    let session = Session::with_keyring()?;
    let process = session.process()?;
    let marks: Vec<String> = std::thread::scope(|scope| {
        let one = || KeySource::Keyring.obtain(&process, &[]).map(|master| master.mark().to_owned()).ok();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect()
    });
    assert_eq!(marks.len(), 4);
    assert!(marks.iter().all(|mark| Some(mark) == marks.first()), "{marks:?}");
    Ok(())
}

#[test]
fn it_can_be_asked_from_inside_a_runtime() -> Outcome {
    let session = Session::with_keyring()?;
    let process = session.process()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let master = runtime.block_on(async { KeySource::Keyring.obtain(&process, &[]) })?;
    assert_eq!(master.backend(), Backend::GnomeLibsecret);
    Ok(())
}

#[test]
fn vault_4_without_a_bus_auto_takes_the_file_and_keyring_says_why_not() -> Outcome {
    let empty = Session::bus()?;
    let place = tempfile::tempdir()?;
    let nowhere = format!("unix:path={}/none", place.path().display());
    let cases = [
        (Process::new()?, "no session bus"),
        (Process::new()?.with_variable("DBUS_SESSION_BUS_ADDRESS", &nowhere), "no session bus"),
        (Process::new()?.with_variable("DBUS_SESSION_BUS_ADDRESS", "tcp:host=localhost,port=1"), "this machine"),
        (Process::new()?.with_variable("XDG_RUNTIME_DIR", &place.path().to_string_lossy()), "no session bus"),
        (empty.process()?, "no keyring runs"),
    ];
    for (process, said) in cases {
        let error = keyring_error(KeySource::Keyring.obtain(&process, &[]))?;
        assert!(error.to_string().contains(said) && error.to_string().contains("`file:PATH`"), "{error}");
        assert!(!process.place("config").exists());
        assert_eq!(KeySource::Auto.obtain(&process, &[])?.backend(), Backend::File);
        assert!(process.place("config").join(KEY_FILE).is_file());
    }
    Ok(())
}

#[test]
fn the_bus_is_found_where_systemd_puts_it() -> Outcome {
    let session = Session::with_keyring()?;
    let process = Process::new()?.with_variable("XDG_RUNTIME_DIR", &session.root.path().to_string_lossy());
    assert_eq!(KeySource::Keyring.obtain(&process, &[])?.backend(), Backend::GnomeLibsecret);
    Ok(())
}

#[test]
fn vault_4_a_keyring_that_does_not_answer_counts_as_none() -> Outcome {
    let place = tempfile::tempdir()?;
    let socket = place.path().join("bus");
    let _silent = UnixListener::bind(&socket)?;
    let address = format!("unix:path={}", socket.display());
    let limit = Duration::from_millis(200);
    assert!(matches!(ask_within(&address, None, limit).err(), Some(OsKeyringError::NoAnswer { .. })));
    let process = Process::new()?.with_variable("DBUS_SESSION_BUS_ADDRESS", &address);
    assert_eq!(KeySource::Auto.obtain(&process, &[])?.backend(), Backend::File);
    Ok(())
}

#[test]
fn something_else_under_our_name_is_not_taken_for_a_key() -> Outcome {
    let session = Session::with_keyring()?;
    let process = session.process()?;
    store_by_hand(&session.address)?;
    assert_eq!(keyring_error(KeySource::Keyring.obtain(&process, &[]))?, OsKeyringError::Malformed);
    assert_eq!(keyring_error(KeySource::Auto.obtain(&process, &[]))?, OsKeyringError::Malformed);
    assert!(!Path::new(&process.place("config")).exists());
    Ok(())
}

/// An item with our attributes that holds a zero key.
fn store_by_hand(address: &str) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let zero = zeroize::Zeroizing::new([0; 32]);
    runtime.block_on(async { Bus::connect(address).await?.keep(&zero).await })?;
    Ok(())
}
