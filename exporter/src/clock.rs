//! Time limits: by the timers of the exporter's own runtime, or by a thread on any other runtime.
use crate::quiet_thread::{self, Quiet};
use crate::worker::STOPS_WITHIN;
use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// The source of time limits.
#[derive(Clone)]
pub(crate) enum Clock {
    /// The Tokio runtime that the caller runs in.
    Runtime,
    /// A separate thread, which works with any runtime.
    Thread(Arc<Bell>),
}

impl Clock {
    /// Returns the output of a future, or `None` if it is not ready in time.
    pub(crate) async fn within<T>(
        &self,
        until: Instant,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        match self {
            Clock::Runtime => tokio::time::timeout_at(until.into(), work).await.ok(),
            Clock::Thread(bell) => {
                let rings = bell.at(until);
                let (mut work, mut rings) = (pin!(work), pin!(rings));
                std::future::poll_fn(|cx| {
                    if let std::task::Poll::Ready(done) = work.as_mut().poll(cx) {
                        return std::task::Poll::Ready(Some(done));
                    }
                    rings.as_mut().poll(cx).map(|_| None)
                })
                .await
            }
        }
    }
}

/// When a task is to be woken, and a number that tells apart two tasks of one moment.
type When = (Instant, u64);

#[derive(Default)]
struct Due {
    all: BTreeMap<When, oneshot::Sender<()>>,
    next: u64,
    ends: bool,
}

/// A thread that wakes tasks in time. It sleeps while no task waits.
#[derive(Default)]
pub(crate) struct Bell {
    due: Mutex<Due>,
    changed: Condvar,
}

/// The running thread of a [`Bell`]. Dropping it ends the thread.
pub(crate) struct Ringer {
    pub(crate) bell: Arc<Bell>,
    thread: Quiet,
}

impl Drop for Ringer {
    fn drop(&mut self) {
        self.bell.lock().ends = true;
        self.bell.changed.notify_one();
        self.thread.join(STOPS_WITHIN);
    }
}

impl Bell {
    /// Starts the thread of a bell.
    pub(crate) fn start() -> io::Result<Ringer> {
        let bell = Arc::new(Bell::default());
        let mine = Arc::clone(&bell);
        let thread = quiet_thread::spawn("lumalloc-time", move || mine.run())?;
        Ok(Ringer { bell, thread })
    }

    fn lock(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut due = self.lock();
        while !due.ends {
            let now = Instant::now();
            let late = due.all.split_off(&(now, u64::MAX));
            for (_, waker) in std::mem::replace(&mut due.all, late) {
                // The waiting task may be gone.
                let _ = waker.send(());
            }
            let first = due.all.keys().next().map(|first| first.0);
            due = match first {
                Some(first) => {
                    let left = first.saturating_duration_since(Instant::now());
                    let woken = self.changed.wait_timeout(due, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(due).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Returns at a moment.
    async fn at(&self, until: Instant) {
        let (ring, rung) = oneshot::channel();
        let when = {
            let mut due = self.lock();
            due.next += 1;
            let when = (until, due.next);
            due.all.insert(when, ring);
            if due.all.keys().next() == Some(&when) {
                self.changed.notify_one();
            }
            when
        };
        let _entry = Entry { bell: self, when };
        let _ = rung.await;
    }
}

/// A task in the table. Dropping it removes the task.
struct Entry<'a> {
    bell: &'a Bell,
    when: When,
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.bell.lock().all.remove(&self.when);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use std::time::Duration;

    fn wait<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
    }

    #[test]
    fn what_is_late_is_given_up_and_forgotten() {
        let ringer = Bell::start().unwrap();
        let clock = Clock::Thread(Arc::clone(&ringer.bell));
        let soon = || Instant::now() + Duration::from_millis(5);
        assert_eq!(wait(clock.within(soon(), pending::<()>())), None);
        assert_eq!(wait(clock.within(Instant::now(), pending::<()>())), None);
        let late = Instant::now() + Duration::from_secs(3600);
        assert_eq!(wait(clock.within(late, ready(7))), Some(7));
        assert!(ringer.bell.lock().all.is_empty());
    }

    /// A task may be due sooner than the moment until which the thread sleeps.
    #[test]
    fn the_next_one_comes_first() {
        let ringer = Bell::start().unwrap();
        let late = Instant::now() + Duration::from_secs(3600);
        wait(async {
            let mut slow = pin!(ringer.bell.at(late));
            let polled = std::future::poll_fn(|cx| ready_or_not(slow.as_mut().poll(cx))).await;
            assert!(!polled);
            ringer.bell.at(Instant::now() + Duration::from_millis(5)).await;
        });
    }

    fn ready_or_not(poll: std::task::Poll<()>) -> std::task::Poll<bool> {
        std::task::Poll::Ready(poll.is_ready())
    }
}
