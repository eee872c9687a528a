//! Whether a moment is worth a snapshot.
use std::time::{Duration, Instant};

/// The shortest time between two snapshots of limits.
const PAUSE: Duration = Duration::from_secs(60);
/// The least rise from one peak to the next in hundredths; [`LEAST`] is the least rise in bytes.
const PART: usize = 10;
const LEAST: usize = 16 << 20;

/// The numbers of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// How often the limits were reached: `soft` and `hard`.
    pub(super) soft: u64,
    pub(super) hard: u64,
    /// Bytes in use, approximately.
    pub(super) active: usize,
}

/// The numbers of the moments that were judged before.
#[derive(Default)]
pub(super) struct Judge {
    before: Option<Seen>,
    limits_at: Option<Instant>,
}

impl Judge {
    /// Returns the reason to take a snapshot now. Later moments are compared with the first one.
    pub(super) fn judge(&mut self, seen: Seen, now: Instant) -> Option<String> {
        let Some(before) = &mut self.before else {
            self.before = Some(seen);
            return None;
        };
        let may = self.limits_at.is_none_or(|last| now.duration_since(last) >= PAUSE);
        let limit = [
            ("limit.hard", &mut before.hard, seen.hard),
            ("limit.soft", &mut before.soft, seen.soft),
        ];
        for (name, before, count) in limit {
            if may && count > *before {
                let times = count - *before;
                *before = count;
                self.limits_at = Some(now);
                return Some(format!("{name} was reached {}", often(times)));
            }
        }
        let peak = before.active;
        if seen.active >= peak + (peak / 100 * PART).max(LEAST) {
            before.active = seen.active;
            let active = seen.active;
            return Some(format!("{active} bytes are in use, after {peak} at the last peak"));
        }
        None
    }

    /// Makes the next moment a peak.
    #[cfg(test)]
    pub(super) fn forget_peak(&mut self) {
        if let Some(before) = &mut self.before {
            before.active = 0;
        }
    }
}

fn often(times: u64) -> String {
    if times == 1 { "once".into() } else { format!("{times} times") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn peaks_are_a_tenth_apart_and_sixteen_megabytes() {
        let mut judge = Judge::default();
        let now = Instant::now();
        let mut at = |active| judge.judge(Seen { active, ..Seen::default() }, now);
        assert_eq!(at(4 * MIB), None, "the first is compared with");
        assert_eq!(at(20 * MIB - 1), None);
        let expected = "20971520 bytes are in use, after 4194304 at the last peak";
        assert_eq!(at(20 * MIB).as_deref(), Some(expected));
        assert_eq!(at(2 * MIB), None);
        assert!(at(1000 * MIB).is_some());
        assert_eq!(at(1099 * MIB), None);
        assert!(at(1101 * MIB).is_some());
    }

    #[test]
    fn limits_are_worth_one_in_a_minute() {
        let mut judge = Judge::default();
        let now = Instant::now();
        let mut at = |seconds, soft, hard| {
            let now = now + Duration::from_secs(seconds);
            judge.judge(Seen { soft, hard, active: 0 }, now)
        };
        assert_eq!(at(0, 3, 1), None);
        assert_eq!(at(1, 4, 1).as_deref(), Some("limit.soft was reached once"));
        assert_eq!(at(2, 9, 1), None);
        assert_eq!(at(61, 9, 1).as_deref(), Some("limit.soft was reached 5 times"));
        assert_eq!(at(130, 10, 8).as_deref(), Some("limit.hard was reached 7 times"));
        assert_eq!(at(191, 10, 8).as_deref(), Some("limit.soft was reached once"));
        assert_eq!(at(300, 10, 8), None);
    }
}
