//! What a connection waits for, and since when, so that slow clients are cut off.
//!
//! ```text
//!   Arriving ── the whole request is here ──► Ours ── the answer is made ──► Leaving
//!      ▲                                                                       │
//!      └────────── a first byte ────────── Idle ◄───────── all is sent ────────┘
//! ```
use crate::counts::Ended;
use crate::settings::Limits;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A client that takes so many bytes of an answer in a second is not slow, however long it is.
const PER_SECOND: usize = 1 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A request is arriving.
    Arriving,
    /// The request is being answered.
    Ours,
    /// The answer is being sent.
    Leaving,
    /// The client has asked for nothing.
    Idle,
}

struct State {
    phase: Phase,
    since: Instant,
    /// Whether bytes of the next request came before this request was answered.
    early: bool,
    /// Why the connection was asked to end, if it was.
    closed: Option<Ended>,
}

/// The phase of one connection. Its task writes it, and the search for a place reads it.
pub(super) struct Watch {
    born: Instant,
    state: Mutex<State>,
    bell: Notify,
}

/// Why a connection is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The client was too slow.
    Slow,
    /// The client asked for nothing for long, or the connection lasted too long.
    Idle,
}

impl Watch {
    pub(super) fn new() -> Watch {
        let born = Instant::now();
        let state = State { phase: Phase::Arriving, since: born, early: false, closed: None };
        Watch { born, state: Mutex::new(state), bell: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        state.since = Instant::now();
    }

    /// Notes that bytes came.
    pub(super) fn received(&self) {
        let phase = self.state().phase;
        match phase {
            Phase::Idle => self.change(Phase::Arriving),
            Phase::Ours | Phase::Leaving => self.state().early = true,
            Phase::Arriving => {}
        }
    }

    /// Notes that a whole request has arrived. Whether some bytes of the next one came with it is
    /// not known here. If they did, the connection seems idle until more come.
    pub(super) fn arrived(&self) {
        self.change(Phase::Ours);
        self.state().early = false;
    }

    /// Notes that the answer is made.
    pub(super) fn answered(&self) {
        self.change(Phase::Leaving);
    }

    /// Notes that bytes of an answer were handed to the system. The client has as much more time as
    /// they may take.
    pub(super) fn sent(&self, bytes: usize) {
        let mut state = self.state();
        if state.phase == Phase::Leaving {
            let more = Duration::from_secs_f64(bytes as f64 / PER_SECOND as f64);
            state.since = (state.since + more).min(Instant::now());
        }
    }

    /// Notes that all written bytes were handed to the system.
    pub(super) fn flushed(&self) {
        let (phase, early) = {
            let state = self.state();
            (state.phase, state.early)
        };
        match (phase, early) {
            (Phase::Leaving, true) => self.change(Phase::Arriving),
            (Phase::Leaving, false) => self.change(Phase::Idle),
            _ => {}
        }
    }

    /// Returns since when the connection waits for its client, or `None` if it does not.
    pub(super) fn waits(&self) -> Option<Instant> {
        let state = self.state();
        (state.phase != Phase::Ours && state.closed.is_none()).then_some(state.since)
    }

    /// Returns when the wait is over, and the reason then, or `None` if it waits for no client.
    pub(super) fn deadline(&self, limits: &Limits) -> Option<(Instant, Late)> {
        let state = self.state();
        match state.phase {
            Phase::Ours => None,
            Phase::Idle => {
                let end = (state.since + limits.idle).min(self.born + limits.lifetime);
                Some((end, Late::Idle))
            }
            Phase::Arriving | Phase::Leaving => Some((state.since + limits.patience, Late::Slow)),
        }
    }

    /// Asks the task of the connection to end it, for this reason.
    pub(super) fn close(&self, reason: Ended) {
        self.state().closed = Some(reason);
        self.bell.notify_one();
    }

    /// Returns why the connection was asked to end, if it was.
    pub(super) fn why_closed(&self) -> Option<Ended> {
        self.state().closed
    }

    /// Returns when the connection is to be ended, and why.
    pub(super) async fn closed(&self) -> Option<Ended> {
        self.bell.notified().await;
        self.why_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_a_long_answer_fast_enough_has_more_time() {
        let watch = Watch::new();
        let now = Instant::now();
        let begun = now.checked_sub(Duration::from_secs(9)).expect("the machine runs for longer");
        watch.arrived();
        watch.sent(PER_SECOND);
        watch.answered();
        watch.state().since = begun;
        watch.sent(4 * PER_SECOND);
        assert_eq!(watch.waits(), Some(begun + Duration::from_secs(4)));
        watch.sent(1000 * PER_SECOND);
        let since = watch.waits().expect("it waits for its client");
        assert!((now..=Instant::now()).contains(&since), "but none in advance");
    }

    #[test]
    fn each_wait_has_its_limit() {
        let second = Duration::from_secs(1);
        let limits = Limits {
            patience: second,
            idle: 10 * second,
            lifetime: 3600 * second,
            ..Limits::default()
        };
        let watch = Watch::new();
        let left = || {
            let since = watch.state().since;
            watch.deadline(&limits).map(|(end, late)| (end - since, late))
        };
        assert_eq!(left(), Some((second, Late::Slow)), "who says nothing is slow");
        let begun = watch.waits();
        watch.received();
        assert_eq!(watch.waits(), begun, "a drop gains no time");
        watch.flushed();
        assert_eq!(watch.waits(), begun);
        watch.arrived();
        assert_eq!((watch.waits(), left()), (None, None));
        watch.flushed();
        watch.answered();
        assert_eq!(left(), Some((second, Late::Slow)));
        watch.flushed();
        assert_eq!(left(), Some((10 * second, Late::Idle)));
        watch.received();
        assert_eq!(left(), Some((second, Late::Slow)));
        watch.arrived();
        watch.received();
        watch.answered();
        watch.flushed();
        assert_eq!(left(), Some((second, Late::Slow)), "the next request has begun");
        let short = Limits { lifetime: Duration::ZERO, ..limits };
        watch.arrived();
        watch.answered();
        watch.flushed();
        assert_eq!(watch.deadline(&short), Some((watch.born, Late::Idle)));
    }
}
