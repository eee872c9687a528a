//! From samples to estimates of what was allocated.
//!
//! An allocation of `s` bytes is sampled with the chance `p(s) = 1 - e^(-s / R)`, where `R` is the
//! mean number of bytes between two samples. So a sample stands for `1 / p(s)` allocations.
//!
//! A reader of heap_v2 computes this from the sums of a whole stack, by their mean size. For a
//! stack of several sizes that is wrong. Therefore the written sums are the ones that the reader's
//! computation turns into the right estimates, as in jemalloc since version 5.3.

/// Estimated allocations, of any sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The number of allocations.
    pub count: f64,
    /// Their bytes.
    pub bytes: f64,
}

/// Sums for a reader that corrects them by their mean size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The number of samples.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Returns the chance that an allocation of `size` bytes is sampled.
#[must_use]
pub fn chance(size: f64, lg_sample: u32) -> f64 {
    let mean = (1u64 << lg_sample.min(63)) as f64;
    -libm::expm1(-size / mean)
}

impl Estimate {
    /// Adds `samples` samples of `size` bytes. At a rate of one in one byte each allocation is a
    /// sample, and so is each of no bytes that is one.
    pub fn add(&mut self, samples: u64, size: usize, lg_sample: u32) {
        let is_each = lg_sample == 0 || size == 0;
        let chance = if is_each { 1.0 } else { chance(size as f64, lg_sample) };
        self.count += samples as f64 / chance;
        self.bytes += samples as f64 * size as f64 / chance;
    }

    /// Returns the sums that a reader of heap_v2 turns into this estimate.
    #[must_use]
    pub fn sums(&self, lg_sample: u32) -> Sums {
        if self.count <= 0.0 {
            return Sums::default();
        }
        let chance = if lg_sample == 0 { 1.0 } else { chance(self.bytes / self.count, lg_sample) };
        // A stack with a sample has a sum of at least one.
        let count = libm::round(self.count * chance).max(1.0);
        Sums { count: count as u64, bytes: libm::round(self.bytes * chance) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What jeprof does with the sums.
    fn read(sums: Sums, lg_sample: u32) -> Estimate {
        let size = sums.bytes as f64 / sums.count as f64;
        let scale = 1.0 / (1.0 - (-size / (1u64 << lg_sample) as f64).exp());
        Estimate { count: sums.count as f64 * scale, bytes: sums.bytes as f64 * scale }
    }

    #[test]
    fn a_reader_finds_the_estimate_of_mixed_sizes() {
        let mut estimate = Estimate::default();
        for (samples, size) in [(1000, 100), (500, 1 << 20), (200, 10_000)] {
            estimate.add(samples, size, 19);
        }
        let expected: f64 = [(1000.0, 100.0), (500.0, 1_048_576.0), (200.0, 10_000.0)]
            .iter()
            .map(|(samples, size): &(f64, f64)| samples / (1.0 - (-size / 524_288.0).exp()))
            .sum();
        assert!((estimate.count / expected - 1.0).abs() < 1e-9);
        let read = read(estimate.sums(19), 19);
        assert!((read.count / estimate.count - 1.0).abs() < 0.01, "{read:?}, {estimate:?}");
        assert!((read.bytes / estimate.bytes - 1.0).abs() < 0.01, "{read:?}, {estimate:?}");
    }

    #[test]
    fn one_size_gives_the_samples_themselves() {
        for (lg, size) in [(19, 100), (19, 1 << 30), (10, 64), (0, 8), (0, 1)] {
            let mut estimate = Estimate::default();
            estimate.add(123, size, lg);
            assert_eq!(estimate.sums(lg), Sums { count: 123, bytes: 123 * size as u64 });
        }
        assert_eq!(Estimate::default().sums(19), Sums::default());
        let mut empty = Estimate::default();
        empty.add(7, 0, 19);
        assert_eq!(empty, Estimate { count: 7.0, bytes: 0.0 });
    }
}
