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

/// Why a moment is worth a snapshot, and what of it was judged.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Worth {
    pub(super) reason: String,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Hard,
    Soft,
    Peak,
}

/// The numbers of the moments that were judged before.
#[derive(Default)]
pub(super) struct Judge {
    before: Option<Seen>,
    limits_at: Option<Instant>,
    /// When a limit was first seen to be reached of which there is no snapshot yet: `hard`, `soft`.
    first_seen: [Option<Instant>; 2],
}

impl Judge {
    /// Returns the reason to take a snapshot now. Later moments are compared with the first one.
    /// The moment stays worth one until [`kept`](Self::kept) is called.
    pub(super) fn judge(&mut self, seen: Seen, now: Instant) -> Option<Worth> {
        let before = *self.before.get_or_insert(seen);
        let may = self.limits_at.is_none_or(|last| now.duration_since(last) >= PAUSE);
        let limits = [
            (What::Hard, "limit.hard", seen.hard.saturating_sub(before.hard)),
            (What::Soft, "limit.soft", seen.soft.saturating_sub(before.soft)),
        ];
        let mut worth = None;
        for ((what, name, times), first) in limits.into_iter().zip(&mut self.first_seen) {
            if times == 0 {
                continue;
            }
            let since = now.duration_since(*first.get_or_insert(now)).as_secs();
            if may && worth.is_none() {
                let ago =
                    if since == 0 { String::new() } else { format!(", first {since} s before") };
                let reason = format!("{name} was reached {}{ago}", often(times));
                worth = Some(Worth { reason, what });
            }
        }
        let peak = before.active;
        if worth.is_none() && seen.active >= peak + (peak / 100 * PART).max(LEAST) {
            let active = seen.active;
            let reason = format!("{active} bytes are in use, after {peak} at the last peak");
            worth = Some(Worth { reason, what: What::Peak });
        }
        worth
    }

    /// Notes that a snapshot of the moment was taken.
    pub(super) fn kept(&mut self, worth: &Worth, seen: Seen, now: Instant) {
        let before = self.before.get_or_insert(seen);
        match worth.what {
            What::Hard => (before.hard, self.first_seen[0]) = (seen.hard, None),
            What::Soft => (before.soft, self.first_seen[1]) = (seen.soft, None),
            What::Peak => before.active = seen.active,
        }
        if worth.what != What::Peak {
            self.limits_at = Some(now);
        }
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

    /// The reason for a snapshot, which is taken.
    fn reason(judge: &mut Judge, seen: Seen, now: Instant) -> Option<String> {
        let worth = judge.judge(seen, now)?;
        judge.kept(&worth, seen, now);
        Some(worth.reason)
    }

    #[test]
    fn peaks_are_a_tenth_apart_and_sixteen_megabytes() {
        let mut judge = Judge::default();
        let now = Instant::now();
        let mut at = |active| reason(&mut judge, Seen { active, ..Seen::default() }, now);
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
            reason(&mut judge, Seen { soft, hard, active: 0 }, now)
        };
        assert_eq!(at(0, 3, 1), None);
        assert_eq!(at(1, 4, 1).as_deref(), Some("limit.soft was reached once"));
        assert_eq!(at(2, 9, 1), None);
        assert_eq!(
            at(61, 9, 1).as_deref(),
            Some("limit.soft was reached 5 times, first 59 s before")
        );
        assert_eq!(at(130, 10, 8).as_deref(), Some("limit.hard was reached 7 times"));
        let expected = "limit.soft was reached once, first 61 s before";
        assert_eq!(at(191, 10, 8).as_deref(), Some(expected));
        assert_eq!(at(300, 10, 8), None);
    }

    #[test]
    fn a_moment_is_worth_a_snapshot_until_one_is_taken() {
        let mut judge = Judge::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(2);
        let seen = |hard, active| Seen { hard, active, ..Seen::default() };
        assert_eq!(judge.judge(seen(0, 0), now), None);
        let hit = seen(1, 100 * MIB);
        assert!(judge.judge(hit, now).is_some());
        let again = judge.judge(hit, later).expect("none was taken");
        assert_eq!(again.reason, "limit.hard was reached once, first 2 s before");
        judge.kept(&again, hit, later);
        let peak = judge.judge(hit, later).expect("it is also a peak");
        let expected = "104857600 bytes are in use, after 0 at the last peak";
        assert_eq!(peak.reason, expected);
        assert_eq!(judge.judge(hit, later), Some(peak));
    }
}
