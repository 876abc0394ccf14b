//! Threads that serve connections, each on its own: a connection stays with the thread it was given to.
//!
//! A call walks the whole corridor on one thread, and so do its server's connections; nothing is handed
//! from thread to thread, which would cost more than most calls do.

use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

const TICK: Duration = Duration::from_secs(4);
const GIVE_UP: Duration = Duration::from_millis(200);

/// The threads. They end when this is dropped, and what they were doing with them.
#[derive(Debug)]
pub struct Workers {
    workers: Vec<Worker>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Worker {
    handle: Handle,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Workers {
    /// Starts so many threads.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(count: usize) -> io::Result<Self> {
        let workers = (0..count.max(1)).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Self { workers, next: AtomicUsize::new(0) })
    }

    /// Gives work to the thread whose turn it is.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(worker) = self.workers.get(turn % self.workers.len().max(1)) {
            worker.handle.spawn(work);
        }
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            runtime.block_on(async {
                tokio::spawn(tick());
                // Ends when the sender is dropped; nobody sends.
                let _ = stopped.await;
            });
            // What still runs is given up here; a lookup of a name that hangs is not waited for.
            runtime.shutdown_timeout(GIVE_UP);
        })?;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }
}

/// Keeps one timer due soon. A timer that is set to end before all others interrupts the thread's
/// sleep, with a system call, even when the thread itself sets it; calls set two or three each, all of
/// them later than this one.
async fn tick() {
    let mut clock = tokio::time::interval(TICK);
    loop {
        clock.tick().await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A worker only polls tasks, whose panics the runtime catches.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
