//! A thread that calls a function after some time, or when the countdown is dropped.
use crate::memory::OwnMemory;
use crate::quiet_thread::{self, Quiet};
use crate::worker::STOPS_WITHIN;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// A countdown that runs, or has run out. Dropping it has the function called at once, if it was
/// not called yet, and waits for that.
pub(crate) struct Countdown {
    now: SyncSender<()>,
    thread: Quiet,
}

impl Countdown {
    /// Starts the thread, which allocates from the exporter's memory.
    pub(crate) fn start(
        name: &str,
        memory: Arc<OwnMemory>,
        time: Duration,
        call: impl FnOnce() + Send + 'static,
    ) -> io::Result<Countdown> {
        let (now, told) = sync_channel(1);
        let wait = move || {
            memory.enter();
            let _ = told.recv_timeout(time);
            call();
        };
        Ok(Countdown { now, thread: quiet_thread::spawn(name, wait)? })
    }
}

impl Drop for Countdown {
    fn drop(&mut self) {
        // The thread may have ended.
        let _ = self.now.try_send(());
        self.thread.join(STOPS_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::context;
    use std::sync::mpsc::channel;

    #[test]
    fn a_function_is_called_in_time_or_at_the_drop() {
        let (called, calls) = channel();
        let start = |time| {
            let called = called.clone();
            let call = move || called.send(()).expect("the test waits");
            let memory = Arc::clone(&context().memory);
            Countdown::start("lumalloc-test", memory, time, call).expect("a thread")
        };
        let short = start(Duration::from_millis(1));
        assert_eq!(calls.recv(), Ok(()));
        drop(short);
        assert!(calls.try_recv().is_err(), "it is called once");
        drop(start(Duration::from_secs(3600)));
        assert_eq!(calls.recv(), Ok(()));
    }
}
