//! The resident memory of a process over time, and how large it may be.

use crate::memory::rss_kib;

/// What a process without allocated blocks may occupy: its code, stacks, libraries, the exporter's
/// answers, and the allocator's records and caches.
const BASE_KIB: u64 = 32 << 10;

/// Samples of the resident memory under load, always taken in the same state.
pub struct Resident {
    process: u32,
    samples: Vec<u64>,
}

impl Resident {
    /// Samples of the process with this number.
    pub fn new(process: u32) -> Resident {
        Resident { process, samples: Vec::new() }
    }

    /// Adds a sample of the resident memory now.
    pub fn note(&mut self) {
        self.samples.push(rss_kib(self.process));
    }

    /// It is an error if the median of the last quarter exceeds that of the second quarter by more
    /// than a quarter of it and `BASE_KIB`.
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

/// Checks a process whose load has stopped and that has purged. It is an error if it occupies more
/// than twice its allocated bytes and `BASE_KIB`.
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
        // Growth at the beginning does not count, and neither does one high sample.
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
