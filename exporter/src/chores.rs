//! The chores of the reading thread. It gives unused memory of an idle process back, and keeps a
//! snapshot of each limit and peak that was reached.
//!
//! It gives nothing back if a background thread runs, or if the decay time is 0 or negative.
use crate::memory::OwnMemory;
use crate::namespace::{Namespace, Target};
use crate::ring::Ring;
use crate::worker::Chores;
use lumalloc_ctl::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Decay passes in one decay time.
const PASSES: u32 = 10;
/// The shortest time between two decay passes.
const SHORTEST: Duration = Duration::from_secs(1);

/// The chores of the reading thread, with the keys that they read and trigger.
pub(crate) struct Decay {
    memory: Arc<OwnMemory>,
    ring: Arc<Ring>,
    namespace: &'static dyn Namespace,
    background: Option<Target>,
    decay_ms: Option<Target>,
    decay: Option<Target>,
    due: Option<Instant>,
}

impl Decay {
    pub(crate) fn new(
        namespace: &'static dyn Namespace,
        memory: Arc<OwnMemory>,
        ring: Arc<Ring>,
    ) -> Decay {
        let find = |name| namespace.find(name).ok();
        Decay {
            memory,
            ring,
            namespace,
            background: find("background_thread"),
            decay_ms: find("arenas.dirty_decay_ms"),
            decay: find("arena.4096.decay"),
            due: None,
        }
    }

    fn read(&self, target: Option<&Target>) -> Option<Value<'static>> {
        self.namespace.read(target?).ok()
    }

    /// Returns the time between two decay passes, or `None` if no pass is to be made.
    fn period(&self) -> Option<Duration> {
        if self.read(self.background.as_ref()) == Some(Value::Bool(true)) {
            return None;
        }
        let Some(Value::Ssize(millis)) = self.read(self.decay_ms.as_ref()) else { return None };
        let millis = u64::try_from(millis).ok().filter(|millis| *millis != 0)?;
        Some((Duration::from_millis(millis) / PASSES).max(SHORTEST))
    }
}

impl Chores for Decay {
    fn begin(&mut self) {
        self.memory.enter();
    }

    fn next(&mut self, now: Instant) -> Option<Instant> {
        self.ring.look_within(&self.memory, self.namespace, now);
        self.memory.trim();
        if self.due.is_some_and(|due| now >= due) {
            if let Some(decay) = &self.decay {
                let _ = self.namespace.act(decay);
            }
            self.due = None;
        }
        // The settings may have changed since the last call.
        let period = self.period();
        self.due = period.map(|period| self.due.map_or(now + period, |due| due.min(now + period)));
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;

    fn set(name: &str, value: Value<'_>) {
        let namespace: &dyn Namespace = &Linked;
        namespace.write(&namespace.find(name).unwrap(), value).unwrap();
    }

    /// The settings are those of the whole process, so one test checks all of them.
    #[test]
    fn passes_come_about_ten_times_per_decay_time() {
        let mut decay = Decay::new(
            &Linked,
            Arc::new(OwnMemory::of(&Linked, &crate::routes::names())),
            Arc::default(),
        );
        for (millis, period) in [(20_000, Some(2)), (60_000, Some(6)), (500, Some(1))] {
            set("arenas.dirty_decay_ms", Value::Ssize(millis));
            assert_eq!(decay.period(), period.map(Duration::from_secs), "{millis}");
        }
        for never in [0, -1] {
            set("arenas.dirty_decay_ms", Value::Ssize(never));
            assert_eq!(decay.next(Instant::now()), None, "{never}");
        }
        set("arenas.dirty_decay_ms", Value::Ssize(20_000));
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!(decay.next(begun), Some(begun + 2 * second));
        assert_eq!(decay.next(begun + second), Some(begun + 2 * second), "a job puts nothing off");
        assert_eq!(decay.next(begun + 2 * second), Some(begun + 4 * second));
        set("arenas.dirty_decay_ms", Value::Ssize(10_000));
        assert_eq!(decay.next(begun + 2 * second), Some(begun + 3 * second));
        set("background_thread", Value::Bool(true));
        assert_eq!(decay.next(begun + 3 * second), None);
        set("background_thread", Value::Bool(false));
        assert!(decay.next(begun + 3 * second).is_some());
    }
}
