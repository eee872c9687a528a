//! The thread that reads the allocator: one job after the other, so that what takes a lock of the
//! allocator never holds up the connections. It starts with the first job.
use crate::answer::Answer;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use tokio::sync::oneshot;

/// Jobs that may wait.
const WAITING: usize = 32;

type Job = Box<dyn FnOnce() -> Answer + Send>;

/// The way to the thread.
#[derive(Default)]
pub(crate) struct Worker(OnceLock<SyncSender<(Job, oneshot::Sender<Answer>)>>);

/// Why a job was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Busy {
    /// Too many wait.
    Full,
    /// The thread is gone, or never came to be.
    Gone,
}

impl Worker {
    /// Hands a job over; the answer comes when it is done.
    pub(crate) fn run(
        &self,
        job: impl FnOnce() -> Answer + Send + 'static,
    ) -> Result<oneshot::Receiver<Answer>, Busy> {
        let (give, take) = oneshot::channel();
        let sender = self.0.get_or_init(start);
        match sender.try_send((Box::new(job), give)) {
            Ok(()) => Ok(take),
            Err(TrySendError::Full(_)) => Err(Busy::Full),
            Err(TrySendError::Disconnected(_)) => Err(Busy::Gone),
        }
    }
}

fn start() -> SyncSender<(Job, oneshot::Sender<Answer>)> {
    let (sender, jobs) = sync_channel::<(Job, oneshot::Sender<Answer>)>(WAITING);
    let run = move || {
        for (job, answer) in jobs {
            // Whoever asked may be gone.
            let _ = answer.send(job());
        }
    };
    // Without a thread the receiver is dropped, and jobs are refused.
    let _ = thread::Builder::new().name("lumalloc-read".into()).spawn(run);
    sender
}
