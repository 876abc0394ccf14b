//! The terminal as a screen of its own: keys as they are pressed, and everything as it was before afterwards.
//!
//! The former state is put back when `FullScreen` is dropped and before a panic is reported.

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::{Signal, getpgid, getpgrp, getpid, getppid, getsid, kill_process};
use rustix::termios::{
    OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr, tcgetwinsize, tcsetattr,
};

use tokio::signal::unix::{Signal as Heard, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Another screen, no cursor, pasted text marked as such, nothing on it.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?2004l\x1b[?25h\x1b[0m\x1b[?1049l";

/// The state to go back to, while there is one.
static FORMER: Mutex<Option<Termios>> = Mutex::new(None);
static HOOK: Once = Once::new();

/// The terminal, taken over.
#[derive(Debug)]
pub struct FullScreen;

/// Whether both keys and screen are a terminal's.
pub fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// The bytes that are typed, as they come. Ends with the terminal.
pub fn typed() -> UnboundedReceiver<Vec<u8>> {
    let (sender, typed) = unbounded_channel();
    // A read cannot be given up, so that it has a thread to itself, which ends with the process.
    std::thread::spawn(move || {
        let mut bytes = [0; 1024];
        loop {
            match std::io::stdin().lock().read(&mut bytes) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => return,
                Ok(read) => {
                    if sender.send(bytes.get(..read).unwrap_or_default().to_vec()).is_err() {
                        return;
                    }
                }
            }
        }
    });
    typed
}

impl FullScreen {
    /// Takes the terminal over.
    ///
    /// # Errors
    /// It is none, or it went away.
    pub fn enter() -> std::io::Result<Self> {
        HOOK.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                report(panic);
            }));
        });
        let screen = Self;
        screen.take_over()?;
        Ok(screen)
    }

    fn take_over(&self) -> std::io::Result<()> {
        let former = tcgetattr(std::io::stdin())?;
        let mut raw = former.clone();
        raw.make_raw();
        // Reading gives whatever is there, and waits for the first byte.
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        *FORMER.lock().unwrap_or_else(PoisonError::into_inner) = Some(former);
        tcsetattr(std::io::stdin(), OptionalActions::Flush, &raw)?;
        self.write(ENTER)
    }

    /// Writes to the screen at once.
    ///
    /// # Errors
    /// The terminal went away.
    pub fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Forgets what was typed and not read yet.
    pub fn forget_typed(&self) {
        let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        let size = tcgetwinsize(std::io::stdout()).ok();
        let or = |value: Option<u16>, usual| value.map(usize::from).filter(|value| *value > 0).unwrap_or(usual);
        (or(size.map(|size| size.ws_col), 80), or(size.map(|size| size.ws_row), 24))
    }

    /// Stops this process until its shell continues it. False where no shell would: then nothing happens.
    ///
    /// # Errors
    /// The terminal could not be taken over again.
    pub fn suspend(&self) -> std::io::Result<bool> {
        if !has_shell() {
            return Ok(false);
        }
        restore();
        kill_process(getpid(), Signal::STOP)?;
        self.take_over()?;
        Ok(true)
    }
}

/// Whether the parent is of this session and in another process group, as a shell with job control is.
fn has_shell() -> bool {
    let Some(parent) = getppid() else { return false };
    let (Ok(of_parent), Ok(own), Ok(group)) = (getsid(Some(parent)), getsid(None), getpgid(Some(parent))) else {
        return false;
    };
    of_parent == own && group != getpgrp()
}

/// Puts everything back as it was; does nothing the second time.
fn restore() {
    let former = FORMER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(former) = former {
        let mut out = std::io::stdout();
        let _ = out.write_all(LEAVE).and_then(|()| out.flush());
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &former);
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        restore();
    }
}

/// What a signal means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The size changed, or the process goes on: draw again.
    Resized,
    Suspend,
    End,
}

/// The signals a screen has to do with.
#[derive(Debug)]
pub struct Signals {
    resized: Heard,
    continued: Heard,
    suspended: Heard,
    ends: [Heard; 4],
}

impl Signals {
    /// # Errors
    /// The system refuses.
    pub fn new() -> std::io::Result<Self> {
        let of = signal;
        Ok(Self {
            resized: of(SignalKind::window_change())?,
            continued: of(SignalKind::from_raw(Signal::CONT.as_raw()))?,
            suspended: of(SignalKind::from_raw(Signal::TSTP.as_raw()))?,
            ends: [
                of(SignalKind::terminate())?,
                of(SignalKind::hangup())?,
                of(SignalKind::interrupt())?,
                of(SignalKind::quit())?,
            ],
        })
    }

    pub async fn next(&mut self) -> Told {
        let [terminate, hang_up, interrupt, quit] = &mut self.ends;
        tokio::select! {
            _ = self.resized.recv() => Told::Resized,
            _ = self.continued.recv() => Told::Resized,
            _ = self.suspended.recv() => Told::Suspend,
            _ = terminate.recv() => Told::End,
            _ = hang_up.recv() => Told::End,
            _ = interrupt.recv() => Told::End,
            _ = quit.recv() => Told::End,
        }
    }
}
