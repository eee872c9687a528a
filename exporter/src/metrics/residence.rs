//! What of the heap is in physical memory: the system is asked page by page, some milliseconds for
//! each gigabyte of addresses. So it is asked no more often than that costs a thousandth of the
//! time, and the last answer stands meanwhile.
use super::family::Family;
use super::sample::Sample;
use std::time::{Duration, Instant};

/// So many times as long as asking took, the answer stands.
const PATIENCE: u32 = 1000;

/// The last answer.
#[derive(Default)]
pub(crate) struct Residence {
    held: Vec<(&'static Family, Vec<Sample>)>,
    asked: Option<Instant>,
    cost: Duration,
}

impl Residence {
    /// Whether the system is to be asked.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        let age = self.age(now);
        age.is_none_or(|age| age >= self.cost.saturating_mul(PATIENCE))
    }

    /// How long ago it was.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        self.asked.map(|asked| now.saturating_duration_since(asked))
    }

    /// Keeps an answer, and how long it took.
    pub(crate) fn keep(
        &mut self,
        held: Vec<(&'static Family, Vec<Sample>)>,
        now: Instant,
        cost: Duration,
    ) {
        *self = Residence { held, asked: Some(now), cost };
    }

    /// The last answer.
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
