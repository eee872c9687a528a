//! Memory for the next run, at hand before it begins.
//!
//! On a virtual machine whose host takes free memory back, who first touches memory pays for the
//! host's giving it again, ten times the price of a fault. That would be whoever comes after one
//! that took less, and most of all those that ask for huge pages.

use std::path::Path;
use std::process::Command;

/// What is touched before a run, at least and at most.
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

    /// Touches as much as the peak and a quarter more, and gives it back.
    pub(crate) fn supply(self, launch: &Path) {
        // Without it the figures are noisier, not wrong.
        let _ = Command::new(launch).args(["warm", &self.mib().to_string()]).status();
    }

    /// How much that is.
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
