//! When to give pages back: the smoothstep curve, a pure function of time.
//!
//! Time is cut into epochs, [`STEPS`] in one decay time. Each records how many pages became unused
//! in it. The share of them that may still be kept falls from all to none along
//! h(x) = 6x⁵ − 15x⁴ + 10x³, where x runs from 1 (just now) to 0 (a whole decay time ago). Pages
//! reused within the decay time are never purged. Source: jemalloc(3), `opt.dirty_decay_ms`.

/// Epochs in one decay time.
pub(crate) const STEPS: usize = 200;

/// A sleeping thread is woken when one in this many of the unused pages can be purged.
const WAKE_UPS: usize = 32;
/// The least number of pages for a wake-up. If there are fewer, all of them must be due.
const FEW: usize = 64;

const UNIT: u64 = 1 << 24;

/// `SHARE[i]` is the share, in 1/2^24, of pages kept that became unused `STEPS - 1 - i` epochs ago.
static SHARE: [u32; STEPS] = {
    let mut share = [0; STEPS];
    let mut index = 0;
    while index < STEPS {
        share[index] = smoothstep((index + 1) as u64) as u32;
        index += 1;
    }
    share
};

/// h(step / STEPS) in 1/2^24.
const fn smoothstep(step: u64) -> u64 {
    let (x, n) = (step as u128, STEPS as u128);
    let numerator = 6 * x * x * x * x * x + 10 * x * x * x * n * n - 15 * x * x * x * x * n;
    (numerator * UNIT as u128 / (n * n * n * n * n)) as u64
}

/// The ages of the unused pages of one kind in one arena.
pub(crate) struct Decay {
    /// The decay time in milliseconds. -1 never purges, 0 purges at once.
    millis: isize,
    /// The time at which the current epoch began, in milliseconds times [`STEPS`]: so an epoch is
    /// `millis` long, and decay times that are no multiple of [`STEPS`] are exact.
    epoch_start: u64,
    /// The pages that were left unpurged at the end of the last epoch.
    unpurged: usize,
    /// Pages that became unused, by epoch, the newest last.
    backlog: [u32; STEPS],
}

impl Decay {
    /// Creates a decay without history.
    pub(crate) const fn new(millis: isize) -> Decay {
        Decay { millis, epoch_start: 0, unpurged: 0, backlog: [0; STEPS] }
    }

    /// The decay time in milliseconds.
    #[inline]
    pub(crate) fn millis(&self) -> isize {
        self.millis
    }

    /// Whether there is work at `now`, if `pages` pages are unused.
    #[inline]
    pub(crate) fn is_due(&self, now: u64, pages: usize) -> bool {
        if pages == 0 || self.millis < 0 {
            return false;
        }
        self.millis == 0 || self.since_epoch(now) >= self.epoch_length()
    }

    /// The time since the current epoch began, in milliseconds times [`STEPS`].
    fn since_epoch(&self, now: u64) -> u64 {
        now.saturating_mul(STEPS as u64).saturating_sub(self.epoch_start)
    }

    /// In milliseconds times [`STEPS`].
    fn epoch_length(&self) -> u64 {
        self.millis.max(1) as u64
    }

    /// Moves decay to `now` (milliseconds, any origin) with `pages` unused pages, and returns how
    /// many may stay.
    pub(crate) fn advance(&mut self, now: u64, pages: usize) -> usize {
        if self.millis < 0 {
            return usize::MAX;
        }
        if self.millis == 0 {
            return 0;
        }
        let length = self.epoch_length();
        let elapsed = self.since_epoch(now).checked_div(length).unwrap_or(0);
        if elapsed == 0 {
            return usize::MAX;
        }
        self.epoch_start += elapsed * length;
        self.shift(elapsed);
        let fresh = pages.saturating_sub(self.unpurged);
        if let Some(newest) = self.backlog.last_mut() {
            *newest = u32::try_from(fresh).unwrap_or(u32::MAX);
        }
        let limit = self.limit();
        self.unpurged = limit.min(pages);
        limit
    }

    /// Notes that the `pages` pages that are unused were so at `then` (as for [`Decay::advance`]),
    /// and have not been used since. Notes nothing within the epoch of the last advance.
    pub(in crate::back) fn note_unused_at(&mut self, then: u64, pages: usize) {
        if self.millis > 0 && self.since_epoch(then) >= self.epoch_length() {
            let _may_stay = self.advance(then, pages);
            // None of them is purged now.
            self.unpurged = pages;
        }
    }

    /// Notes that `pages` pages became unused that nobody has used for a decay time. They are not
    /// counted as unused from now on, so they may go at once.
    pub(in crate::back) fn note_old(&mut self, pages: usize) {
        self.unpurged += pages;
    }

    fn shift(&mut self, epochs: u64) {
        let epochs = usize::try_from(epochs).unwrap_or(STEPS).min(STEPS);
        for index in 0..STEPS {
            let moved = self.backlog.get(index + epochs).copied().unwrap_or(0);
            if let Some(slot) = self.backlog.get_mut(index) {
                *slot = moved;
            }
        }
    }

    /// The time at which enough of `pages` unused pages can be purged to be worth a wake-up: a part
    /// of them, or all of few. Returns `None` if never. Uses what [`Decay::advance`] recorded.
    pub(crate) fn next_due(&self, pages: usize) -> Option<u64> {
        if pages == 0 || self.millis < 0 {
            return None;
        }
        let keep = pages.saturating_sub((pages / WAKE_UPS).max(FEW));
        let (mut low, mut high) = (1, STEPS);
        while low < high {
            let middle = low.midpoint(high);
            if self.limit_after(middle) <= keep {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        let due = self.epoch_start + low as u64 * self.epoch_length();
        Some(due.div_ceil(STEPS as u64))
    }

    fn limit(&self) -> usize {
        self.limit_after(0)
    }

    /// How many pages may be kept when this many more epochs have passed.
    fn limit_after(&self, epochs: usize) -> usize {
        let aged = self.backlog.iter().skip(epochs).zip(&SHARE);
        let kept: u64 = aged.map(|(n, share)| u64::from(*n) * u64::from(*share)).sum();
        (kept / UNIT) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_starts_and_ends_flat() {
        assert_eq!(smoothstep(0), 0);
        assert_eq!(smoothstep(STEPS as u64), UNIT);
        assert_eq!(smoothstep(STEPS as u64 / 2), UNIT / 2);
        assert!(SHARE.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(u64::from(SHARE[0]) < UNIT / 10_000);
        assert!(u64::from(SHARE[STEPS - 2]) > UNIT - UNIT / 10_000);
    }

    #[test]
    fn a_pass_is_due_after_an_epoch_and_at_once_without_decay() {
        for millis in [-1, 0, 1, 1234] {
            assert_eq!(Decay::new(millis).millis(), millis);
        }
        let mut decay = Decay::new(10_000);
        decay.advance(1000, 5);
        let due = [999, 1000, 1049, 1050, 2000].map(|now| decay.is_due(now, 5));
        assert_eq!(due, [false, false, false, true, true]);
        assert!(!decay.is_due(2000, 0));
        assert!(Decay::new(0).is_due(0, 1) && !Decay::new(-1).is_due(2000, 1));
        assert_eq!((Decay::new(0).next_due(1), Decay::new(-1).next_due(1)), (Some(1), None));
    }

    #[test]
    fn old_pages_may_go_at_once() {
        let mut decay = Decay::new(10_000);
        decay.advance(1000, 0);
        assert_eq!(decay.advance(1050, 100), 100);
        // 40 of these are old.
        decay.note_old(40);
        assert_eq!(decay.next_due(190), Some(1100), "not only when the others fade");
        assert_eq!(decay.advance(1100, 190), 149, "the first 100 fade a little");
        assert_eq!(decay.advance(1150, 149), 149);
        assert_eq!(decay.advance(20_000, 149), 0);
    }

    #[test]
    fn pages_freed_at_once_fade_along_the_curve() {
        let mut decay = Decay::new(10_000);
        assert_eq!(decay.advance(1_000_000, 1000), 1000);
        let mut pages = 1000;
        let mut kept = Vec::new();
        for second in 1..=10 {
            pages = pages.min(decay.advance(1_000_000 + second * 1000, pages));
            kept.push(pages);
        }
        // h(0.9) … h(0.0) of 1000, computed by hand: 991, 942, 836, 682, 500, 317, 163, 57, 8, 0
        // (cut, not rounded).
        assert_eq!(kept, [991, 942, 836, 682, 500, 317, 163, 57, 8, 0]);
    }

    #[test]
    fn decay_times_that_are_no_multiple_of_the_steps_are_exact() {
        for millis in [1, 3, 100, 199, 201, 399, 9999] {
            let mut decay = Decay::new(millis as isize);
            assert_eq!(decay.advance(1_000_000, 1000), 1000);
            let mut pages = 1000;
            if millis >= 100 {
                pages = decay.advance(1_000_000 + millis / 2, 1000);
                assert!((495..=510).contains(&pages), "{millis}: {pages}");
            }
            assert!(decay.next_due(pages).is_some_and(|due| due <= 1_000_000 + millis), "{millis}");
            assert_eq!(decay.advance(1_000_000 + millis, pages), 0, "{millis}");
        }
    }

    #[test]
    fn reuse_within_the_window_is_not_purged_and_a_long_silence_forgets() {
        let mut decay = Decay::new(1000);
        decay.advance(5000, 100);
        // Reuse takes the pages down to 40. What comes back is new, and the old 40 are allowed.
        decay.advance(5100, 40);
        assert!(decay.advance(5110, 100) >= 100);
        // Nothing was recorded for many decay times, so all pages are old.
        assert_eq!(decay.advance(50_000, 100), 0);
        assert_eq!(decay.advance(52_000, 100), 100, "refused by the system: seen as new");
        assert_eq!(decay.advance(54_000, 100), 0);
    }

    #[test]
    fn pages_age_from_when_they_became_unused() {
        let mut decay = Decay::new(1000);
        decay.advance(5000, 0);
        decay.note_unused_at(5020, 100);
        assert_eq!(decay.advance(6025, 100), 0, "a decay time ago");
        decay.note_unused_at(7000, 100);
        assert_eq!(decay.advance(7500, 100), 50, "half of it");
        decay.note_unused_at(7504, 1000);
        assert_eq!(decay.advance(8500, 1000), 950, "within the epoch: new");
        for millis in [-1, 0] {
            Decay::new(millis).note_unused_at(5000, 100);
        }
    }

    #[test]
    fn a_sleeper_is_woken_when_a_part_is_due_and_at_the_end() {
        let mut decay = Decay::new(10_000);
        decay.advance(1_000_000, 6400);
        let (mut pages, mut now, mut wake_ups) = (6400, 1_000_000, 0);
        while let Some(next) = decay.next_due(pages) {
            assert!(next > now && next <= 1_010_000, "{next}");
            // One epoch before, fewer pages than that part were due.
            let almost = decay.limit_after(((next - now) / 50 - 1) as usize);
            assert!(pages - almost < (pages / WAKE_UPS).max(FEW));
            let kept = decay.advance(next, pages);
            assert!(pages - kept >= (pages / WAKE_UPS).max(FEW.min(pages)), "{pages} {kept}");
            (pages, now, wake_ups) = (kept, next, wake_ups + 1);
        }
        assert_eq!(pages, 0);
        assert!((20..60).contains(&wake_ups), "{wake_ups}");
        // Few pages cause one wake-up, when the last of them is due.
        decay.advance(2_000_000, 10);
        let next = decay.next_due(10).unwrap();
        assert!(next > 2_005_000);
        assert_eq!(decay.advance(next, 10), 0);
    }

    #[test]
    fn nothing_to_wait_for() {
        assert_eq!(Decay::new(10_000).next_due(0), None);
        assert_eq!(Decay::new(-1).next_due(1000), None);
    }

    #[test]
    fn never_and_at_once() {
        assert_eq!(Decay::new(-1).advance(1 << 40, 10), usize::MAX);
        assert!(!Decay::new(-1).is_due(1 << 40, 10));
        assert_eq!(Decay::new(0).advance(0, 10), 0);
        assert!(Decay::new(0).is_due(0, 1));
        assert!(!Decay::new(0).is_due(0, 0));
    }
}
