//! Real children: shells that echo, die, resist, multiply and flood.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use toolwarden_core::Secret;

use super::{Child, ChildError, ChildLimits, ChildSpec, Exit, ExitCause};
use crate::compose::Wire;

fn spec(command: &str, arguments: &[&str]) -> ChildSpec {
    ChildSpec {
        server: "testing".into(),
        command: command.to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        environment: Vec::new(),
        inherited: vec![("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())],
        directory: None,
        limits: ChildLimits { grace: Duration::from_secs(10), ..ChildLimits::DEFAULT },
    }
}

fn shell(script: &str) -> (Child, Receiver<Bytes>) {
    let Ok(child) = Child::spawn(&spec("/bin/sh", &["-c", script])) else { unreachable!("a shell") };
    child
}

fn wire(text: &str) -> Wire {
    Wire::new(Bytes::copy_from_slice(text.as_bytes()))
}

async fn line(lines: &mut Receiver<Bytes>) -> Option<String> {
    let line = timeout(Duration::from_secs(20), lines.recv()).await.ok().flatten()?;
    Some(String::from_utf8_lossy(&line).into_owned())
}

async fn cause(child: &Child) -> Option<ExitCause> {
    let mut exit = child.exit();
    let waited = timeout(Duration::from_secs(20), exit.wait_for(Option::is_some)).await;
    waited.ok()?.ok().and_then(|exit| *exit).map(|exit| exit.cause)
}

/// Waits until a process is gone: it may be a moment before its new parent takes its status.
async fn is_gone(pid: &str) -> bool {
    for _ in 0..200 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if status.is_empty() || status.contains(") Z") {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn lines_go_there_and_back_and_the_child_ends_when_its_input_does() {
    let (child, mut lines) = shell("cat");
    for text in ["{\"id\":1}", "{\"id\":\n2}"] {
        assert!(child.send(wire(text)).await.is_ok());
        assert_eq!(line(&mut lines).await, Some(text.replace('\n', " ")));
    }
    assert_eq!(child.end().await, Exit { cause: ExitCause::Status(0) });
    assert_eq!(line(&mut lines).await, None);
    assert!(matches!(child.send(wire("{}")).await, Err(ChildError::Ended { .. })));
    assert_eq!(child.end().await, Exit { cause: ExitCause::Status(0) });
}

#[tokio::test]
async fn a_child_that_dies_at_once_leaves_its_lines_and_its_status() {
    let (child, mut lines) = shell("echo last; exit 7");
    assert_eq!(line(&mut lines).await.as_deref(), Some("last"));
    assert_eq!(line(&mut lines).await, None);
    assert_eq!(cause(&child).await, Some(ExitCause::Status(7)));
    let mut refused = false;
    for _ in 0..100 {
        refused = refused || child.send(wire("{}")).await.is_err();
        tokio::task::yield_now().await;
    }
    assert!(refused);
    let (child, _lines) = shell("kill -9 $$");
    assert_eq!(cause(&child).await, Some(ExitCause::Signal(9)));
}

#[tokio::test]
async fn messages_accepted_before_the_end_are_written() {
    let (child, mut lines) = shell("sleep 0.1; cat");
    for number in 0..700 {
        assert!(child.send(wire(&number.to_string())).await.is_ok());
    }
    let ((), exit) = tokio::join!(
        async {
            for number in 0..700 {
                assert_eq!(line(&mut lines).await, Some(number.to_string()));
            }
        },
        child.end()
    );
    assert_eq!(exit.cause, ExitCause::Status(0));
}

#[tokio::test]
async fn a_child_that_ignores_requests_to_end_is_killed() {
    let waiting = "echo ready; while :; do sleep 1; done";
    for (script, signal) in [(waiting.to_owned(), 15), (format!("trap '' TERM; {waiting}"), 9)] {
        let limits = ChildLimits { grace: Duration::from_millis(300), ..ChildLimits::DEFAULT };
        let spec = ChildSpec { limits, ..spec("/bin/sh", &["-c", &script]) };
        let Ok((child, mut lines)) = Child::spawn(&spec) else { unreachable!("a shell") };
        assert_eq!(line(&mut lines).await.as_deref(), Some("ready"));
        let exit = timeout(Duration::from_secs(10), child.end()).await;
        assert_eq!(exit, Ok(Exit { cause: ExitCause::Signal(signal) }));
    }
}

#[tokio::test]
async fn grandchildren_end_with_the_child_however_it_ends() {
    // The grandchild ignores hang-ups and requests to end.
    let resisting = "trap '' TERM HUP; sleep 1000 & echo $!;";
    let (child, mut lines) = shell(&format!("{resisting} cat"));
    let Some(pid) = line(&mut lines).await else { unreachable!("a number") };
    assert_eq!(child.end().await.cause, ExitCause::Status(0));
    assert!(is_gone(&pid).await, "after its input was closed");

    let (child, mut lines) = shell(&format!("{resisting} wait"));
    let Some(pid) = line(&mut lines).await else { unreachable!("a number") };
    drop(child);
    assert!(is_gone(&pid).await, "after the owner was dropped");
    assert_eq!(line(&mut lines).await, None);

    let (child, mut lines) = shell(&format!("{resisting} exit 3"));
    let Some(pid) = line(&mut lines).await else { unreachable!("a number") };
    assert_eq!(cause(&child).await, Some(ExitCause::Status(3)));
    assert!(is_gone(&pid).await, "after the child ended by itself");
}

#[tokio::test]
async fn a_line_without_end_ends_the_child_and_is_not_held() {
    let limits = ChildLimits { max_line_bytes: 1_000_000, ..ChildLimits::DEFAULT };
    let spec = ChildSpec { limits, ..spec("/bin/sh", &["-c", "echo {}; head -c 100000000 /dev/zero; sleep 100"]) };
    let Ok((child, mut lines)) = Child::spawn(&spec) else { unreachable!("a shell") };
    assert_eq!(line(&mut lines).await.as_deref(), Some("{}"));
    assert_eq!(line(&mut lines).await, None);
    let cause = cause(&child).await;
    assert_eq!(cause, Some(ExitCause::LineTooLong { limit: 1_000_000 }));
    let said = cause.map(|cause| cause.to_string()).unwrap_or_default();
    assert_eq!(said, "it wrote a line longer than 1000000 bytes and was ended");
}

#[tokio::test]
async fn a_reader_that_does_not_read_makes_the_child_wait() {
    let limits = ChildLimits { queue: 4, ..ChildLimits::DEFAULT };
    let spec = ChildSpec { limits, ..spec("/bin/sh", &["-c", "seq 1 100000"]) };
    let Ok((_child, mut lines)) = Child::spawn(&spec) else { unreachable!("a shell") };
    for _ in 0..1_000 {
        if lines.len() == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(lines.len(), 4);
    for number in 1..=100_000 {
        assert_eq!(line(&mut lines).await, Some(number.to_string()));
    }
}

#[tokio::test]
async fn lines_of_a_dead_child_wait_for_a_slow_reader() {
    let limits = ChildLimits { queue: 1, ..ChildLimits::DEFAULT };
    let spec = ChildSpec { limits, ..spec("/bin/sh", &["-c", "seq 1 2000"]) };
    let Ok((child, mut lines)) = Child::spawn(&spec) else { unreachable!("a shell") };
    assert_eq!(cause(&child).await, Some(ExitCause::Status(0)));
    tokio::time::sleep(Duration::from_millis(1200)).await;
    for number in 1..=2000 {
        assert_eq!(line(&mut lines).await, Some(number.to_string()));
    }
    assert_eq!(line(&mut lines).await, None);
}

#[tokio::test]
async fn a_process_that_left_the_group_does_not_hold_the_end_back() {
    // `setsid` starts a new session, out of the group's reach, with the pipes still open.
    let (child, mut lines) = shell("setsid sleep 5 & echo {}");
    assert_eq!(line(&mut lines).await.as_deref(), Some("{}"));
    assert_eq!(timeout(Duration::from_secs(4), cause(&child)).await, Ok(Some(ExitCause::Status(0))));
    assert_eq!(timeout(Duration::from_secs(3), line(&mut lines)).await, Ok(None));
}

#[tokio::test]
async fn errors_name_the_command_and_what_to_do() {
    let said = |spec: &ChildSpec| Child::spawn(spec).err().map(|error| error.to_string()).unwrap_or_default();
    let missing = said(&spec("no-such-command-here", &[]));
    assert!(missing.contains("`no-such-command-here` was not found; install it"), "{missing}");
    let plain = said(&spec("/etc/passwd", &[]));
    assert!(plain.contains("`/etc/passwd` may not be executed; make it"), "{plain}");
    let elsewhere = said(&ChildSpec { directory: Some("/no/such/place".into()), ..spec("/bin/sh", &[]) });
    assert!(elsewhere.contains("`/no/such/place` does not exist"), "{elsewhere}");
}

#[tokio::test]
async fn the_environment_is_what_was_given_and_nothing_else() {
    let environment = vec![("TOKEN".to_owned(), Secret::new("hush".to_owned()))];
    let spec = ChildSpec {
        environment,
        directory: Some(Path::new("/").to_path_buf()),
        ..spec("/bin/sh", &["-c", "env; pwd"])
    };
    assert!(!format!("{spec:?}").contains("hush"));
    let Ok((_child, mut lines)) = Child::spawn(&spec) else { unreachable!("a shell") };
    let mut seen = Vec::new();
    while let Some(line) = line(&mut lines).await {
        // A shell sets these by itself.
        if !["PWD=", "OLDPWD=", "SHLVL=", "_="].iter().any(|own| line.starts_with(own)) {
            seen.push(line);
        }
    }
    seen.sort();
    assert_eq!(seen, ["/", "PATH=/usr/local/bin:/usr/bin:/bin", "TOKEN=hush"]);
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Log {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0.push_str(&format!("{}={value:?} ", field.name()));
            }
        }
        let mut text = Text(format!("{} ", event.metadata().target()));
        event.record(&mut text);
        if let Ok(mut lines) = self.0.lock() {
            lines.push(text.0);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn error_output_is_logged_with_the_servers_name() {
    let log = Log::default();
    // The runtime of a test has one thread, so this covers the tasks too.
    let _guard = tracing::subscriber::set_default(log.clone());
    let flood = "head -c 5000 /dev/zero | tr '\\0' x >&2; echo >&2; seq 1 1000 >&2";
    let (child, _lines) = shell(&format!("printf 'started\\nred \\033[31m\\n' >&2; {flood}"));
    assert!(cause(&child).await.is_some());
    let lines = log.0.lock().map(|lines| lines.clone()).unwrap_or_default();
    let ours: Vec<&String> = lines.iter().filter(|line| line.starts_with("toolwarden::server ")).collect();
    let shown = |text: &str| ours.iter().any(|line| line.contains(text));
    assert!(ours.iter().all(|line| line.contains("server=\"testing\"")), "{ours:?}");
    assert!(shown("message=started ") && shown("red \\u{1b}[31m"), "{ours:?}");
    assert!(shown(&"x".repeat(2000)) && !shown(&"x".repeat(2100)));
    assert_eq!(ours.len(), 200);
}
