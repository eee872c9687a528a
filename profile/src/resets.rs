//! Samples that another thread forgets while a profile is written (`prof.reset`).
//!
//! The allocator counts when it begins to forget them, and when it has: while it does, the count is
//! odd. A rate and samples belong together only if the count is the same before and after both.

use crate::process::keep_errno;
use crate::sink::Sink;
use core::ffi::c_long;
use lumalloc::{observe, system_calls};

/// How often a writer looks whether the samples are forgotten. In the child of a fork that may
/// never be so.
const MOST_LOOKS: usize = 100;
/// Nanoseconds between two looks.
const BETWEEN: c_long = 1_000_000;

/// Calls `write` with the count, and returns what it does. If samples were forgotten meanwhile, and
/// the sink can begin again, it is called once more.
pub(crate) fn write(
    sink: &mut dyn Sink,
    mut write: impl FnMut(&mut dyn Sink, u64) -> bool,
) -> bool {
    let before = settled(count, wait);
    let is_whole = write(sink, before);
    if is_whole && count() != before && sink.begin_again() {
        return write(sink, settled(count, wait));
    }
    is_whole
}

/// The present count.
pub(crate) fn count() -> u64 {
    observe::profile_counts().resets
}

/// Returns the count once it is even, or after enough looks.
fn settled(mut count: impl FnMut() -> u64, mut wait: impl FnMut()) -> u64 {
    let mut now = count();
    for _ in 0..MOST_LOOKS {
        if now.is_multiple_of(2) {
            break;
        }
        wait();
        now = count();
    }
    now
}

fn wait() {
    keep_errno(|| system_calls::nanosleep(BETWEEN));
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;
    use lumalloc::control;
    use std::vec::Vec;

    /// Can begin again.
    struct Page(Vec<u8>);

    impl Sink for Page {
        fn put(&mut self, bytes: &[u8]) -> bool {
            self.0.put(bytes)
        }

        fn begin_again(&mut self) -> bool {
            self.0.clear();
            true
        }
    }

    /// Writes, and forgets the samples the first `times`. Returns how often it wrote.
    fn writes(sink: &mut dyn Sink, times: usize) -> usize {
        let mut calls = 0;
        let is_whole = write(sink, |sink, _| {
            calls += 1;
            let is_put = sink.put(b"x");
            if calls <= times {
                control::profile::reset(observe::lg_profile_sample());
            }
            is_put
        });
        assert!(is_whole);
        calls
    }

    #[test]
    fn a_file_is_written_again_if_samples_were_forgotten_meanwhile() {
        for times in [1, 2] {
            let mut page = Page(Vec::new());
            assert_eq!((writes(&mut page, times), page.0), (2, b"x".to_vec()));
        }
        let mut pipe = Vec::new();
        assert_eq!((writes(&mut pipe, 1), pipe), (1, b"x".to_vec()));
    }

    #[test]
    fn a_writer_waits_until_samples_are_forgotten() {
        let waits = Cell::new(0);
        let waited = |ends: u64| {
            waits.set(0);
            let count = || if waits.get() < ends { 7 } else { 8 };
            (settled(count, || waits.set(waits.get() + 1)), waits.get())
        };
        assert_eq!(waited(0), (8, 0));
        assert_eq!(waited(3), (8, 3));
        assert_eq!(waited(u64::MAX), (7, MOST_LOOKS as u64), "it never ends");
    }
}
