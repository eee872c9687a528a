//! The resident memory of a process over time, and how large it may be.

use crate::memory::rss_kib;

/// What a process with nothing allocated may have: its code, stacks, libraries, the exporter's
/// answers, and what the allocator keeps in its records and caches.
const BASE_KIB: u64 = 32 << 10;

/// Samples of the resident memory under load, taken again and again in the same state.
pub struct Resident {
    process: u32,
    samples: Vec<u64>,
}

impl Resident {
    /// Of the process with that number.
    pub fn new(process: u32) -> Resident {
        Resident { process, samples: Vec::new() }
    }

    /// Notes what the process has now.
    pub fn note(&mut self) {
        self.samples.push(rss_kib(self.process));
    }

    /// Errors: more in the last quarter of the time than in the second, by a quarter and some.
    pub fn check_growth(&self) -> Result<(), String> {
        let quarter = self.samples.len() / 4;
        if quarter == 0 {
            return Ok(());
        }
        let median = |from: usize| {
            let mut part = self.samples[from..from + quarter].to_vec();
            part.sort_unstable();
            part[quarter / 2]
        };
        let (early, late) = (median(quarter), median(3 * quarter));
        if late <= early + early / 4 + BASE_KIB {
            return Ok(());
        }
        Err(format!("RSS grew from {early} KiB in the second quarter to {late} KiB in the last"))
    }
}

/// Errors: a process whose load has stopped, and that has purged, has more than twice what it has
/// allocated and a base.
pub fn check_end(rss_kib: u64, allocated_kib: u64) -> Result<(), String> {
    let most = 2 * allocated_kib + BASE_KIB;
    if rss_kib <= most {
        return Ok(());
    }
    Err(format!("RSS is {rss_kib} KiB after a purge, with {allocated_kib} KiB allocated"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024;

    fn over_time(samples: impl Iterator<Item = u64>) -> Result<(), String> {
        Resident { process: 0, samples: samples.collect() }.check_growth()
    }

    #[test]
    fn growth_between_the_middle_and_the_end_is_found() {
        assert_eq!(over_time((0..3).map(|i| i * 1000 * MIB)), Ok(()), "too short to tell");
        // Growth at the beginning is no growth, and neither is one high sample.
        assert_eq!(over_time((0..100).map(|i| (i * 20).min(400) * MIB)), Ok(()));
        assert_eq!(over_time((0..100).map(|i| if i == 90 { 900 } else { 100 } * MIB)), Ok(()));
        let text = over_time((0..100).map(|i| (100 + 3 * i) * MIB)).expect_err("it grows");
        let expected = "RSS grew from 216064 KiB in the second quarter to 369664 KiB in the last";
        assert_eq!(text, expected);
    }

    #[test]
    fn what_stays_after_a_purge_is_bounded_by_what_is_allocated() {
        assert_eq!(check_end(32 * MIB, 0), Ok(()));
        assert_eq!(check_end(132 * MIB, 50 * MIB), Ok(()));
        let text = "RSS is 135169 KiB after a purge, with 51200 KiB allocated";
        assert_eq!(check_end(132 * MIB + 1, 50 * MIB), Err(text.to_owned()));
    }
}
