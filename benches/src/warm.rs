//! Makes sure before a run that the memory for it is available.
//!
//! On a virtual machine whose host takes free memory back, the first touch of memory has to wait
//! until the host gives it again, which takes ten times as long as a fault. That would distort a
//! run after one that took less memory, above all for allocators that ask for huge pages.

use std::path::Path;
use std::process::Command;

/// The smallest and largest amount of memory that is touched before a run.
const LEAST_MIB: f64 = 32.0;
const MOST_MIB: f64 = 4096.0;

/// The largest peak RSS of a case so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Peak {
    kib: f64,
}

impl Peak {
    /// Notes the peak of one more run.
    pub(crate) fn note(&mut self, kib: f64) {
        self.kib = self.kib.max(kib);
    }

    /// Touches [`Peak::mib`] of memory and gives it back.
    pub(crate) fn supply(self, launch: &Path) {
        // Without this the figures are noisier, but not wrong.
        let _ = Command::new(launch).args(["warm", &self.mib().to_string()]).status();
    }

    /// The peak and a quarter more, within bounds.
    pub(crate) fn mib(self) -> f64 {
        (self.kib / 1024.0 * 1.25).clamp(LEAST_MIB, MOST_MIB).round()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_peak_counts_and_a_quarter_more() {
        let mut peak = Peak::default();
        assert!((peak.mib() - 32.0).abs() < f64::EPSILON);
        peak.note(80.0 * 1024.0);
        peak.note(40.0 * 1024.0);
        assert!((peak.mib() - 100.0).abs() < f64::EPSILON);
        peak.note(1e9);
        assert!((peak.mib() - 4096.0).abs() < f64::EPSILON);
    }
}
