//! The part of the heap that is in physical memory. The system is asked page by page, which takes
//! some milliseconds for each gigabyte of addresses. Therefore asking takes at most a thousandth of
//! the time, and the last answer is used meanwhile.
use super::family::Family;
use super::sample::Sample;
use std::time::{Duration, Instant};

/// How many times longer than asking took its answer is used.
const PATIENCE: u32 = 1000;

/// The last answer of the system.
#[derive(Default)]
pub(crate) struct Residence {
    held: Vec<(&'static Family, Vec<Sample>)>,
    asked: Option<Instant>,
    cost: Duration,
}

impl Residence {
    /// Whether the system is to be asked again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let age = self.age(now);
        age.is_none_or(|age| age >= self.cost.saturating_mul(PATIENCE))
    }

    /// Returns how long ago the system was asked.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        self.asked.map(|asked| now.saturating_duration_since(asked))
    }

    /// Keeps an answer of the system, and how long asking took.
    pub(crate) fn keep(
        &mut self,
        held: Vec<(&'static Family, Vec<Sample>)>,
        now: Instant,
        cost: Duration,
    ) {
        *self = Residence { held, asked: Some(now), cost };
    }

    /// Returns the last answer of the system.
    pub(crate) fn held(&self) -> Vec<(&'static Family, Vec<Sample>)> {
        self.held.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_takes_a_thousandth_of_the_time() {
        let mut residence = Residence::default();
        let begin = Instant::now();
        assert!(residence.is_due(begin) && residence.age(begin).is_none());
        residence.keep(Vec::new(), begin, Duration::from_millis(3));
        let after = |millis| begin + Duration::from_millis(millis);
        assert!(!residence.is_due(after(2999)));
        assert!(residence.is_due(after(3000)));
        assert_eq!(residence.age(after(10)), Some(Duration::from_millis(10)));
    }
}
