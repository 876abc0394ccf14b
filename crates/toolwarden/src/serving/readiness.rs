//! What a service manager is told: ready, reloading, stopping, still alive. Without one nothing is said.
//!
//! The protocol of `sd_notify(3)`: lines in one datagram to the socket that `NOTIFY_SOCKET` names.

use std::io;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::environment;

/// Where the service manager listens.
#[derive(Debug, Clone)]
pub struct Readiness {
    place: Option<String>,
}

impl Readiness {
    pub fn from_environment() -> Self {
        Self { place: environment::text("NOTIFY_SOCKET").filter(|place| place.starts_with(['/', '@'])) }
    }

    /// Tells nobody.
    pub fn nobody() -> Self {
        Self { place: None }
    }

    pub fn ready(&self) {
        self.tell("READY=1");
    }

    /// The moment is said, too: whoever asked for it tells this answer from an older one by that.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let microseconds = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec / 1_000);
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={microseconds}"));
    }

    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// Says that this process is alive, as often as the service manager wants to hear it, for as long as it runs.
    pub async fn keep_alive(self) {
        let own = environment::text("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let within = environment::text("WATCHDOG_USEC").and_then(|text| text.parse().ok()).filter(|usec| *usec > 0);
        let Some(within) = within.filter(|_| own && self.place.is_some()).map(Duration::from_micros) else { return };
        let mut clock = tokio::time::interval(within / 2);
        loop {
            clock.tick().await;
            self.tell("WATCHDOG=1");
        }
    }

    fn tell(&self, words: &str) {
        let Some(place) = &self.place else { return };
        if let Err(error) = send(place, words) {
            tracing::warn!("the service manager could not be told: {error}");
        }
    }
}

fn send(place: &str, words: &str) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    // A service manager that does not listen keeps nobody waiting.
    socket.set_nonblocking(true)?;
    socket.send_to_addr(words.as_bytes(), &address(place)?).map(drop)
}

/// `@` begins a name that no file has, which only Linux knows.
#[cfg(target_os = "linux")]
fn address(place: &str) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;
    match place.strip_prefix('@') {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(place),
    }
}

#[cfg(not(target_os = "linux"))]
fn address(place: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_pathname(place)
}
