//! The measurements of one round, and medians over rounds.

use crate::load::event::Summary;
use crate::service::process::Resident;
use crate::service::stats::Stats;

/// The allocator that the service ran on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// lumalloc.
    Lumalloc,
    /// The allocator of the C library.
    System,
}

impl Side {
    /// Returns the name in the column and in the environment variable.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lumalloc => "lumalloc",
            Self::System => "system",
        }
    }
}

/// The numbers of one round.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// Traffic and latency, as the load generator counted.
    pub(crate) load: Summary,
    /// Seconds of processor time that the service used during the load.
    pub(crate) processor_seconds: Option<f64>,
    /// The service's report when the load ended.
    pub(crate) stats: Stats,
    /// The service's memory after the idle time.
    pub(crate) idle: Option<Resident>,
}

impl Sample {
    /// Returns the requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.load.requests as f64 / self.load.seconds
    }

    /// Returns the microseconds of the service's processor time for one request.
    pub(crate) fn processor_per_request(&self) -> Option<f64> {
        Some(self.processor_seconds? * 1e6 / self.load.requests.max(1) as f64)
    }

    /// Returns the highest resident size, in bytes, up to the end of the round.
    pub(crate) fn peak(&self) -> Option<u64> {
        self.idle.map(|resident| resident.peak).max(self.stats.process.rss_peak)
    }
}

/// Returns the middle of the numbers, or the mean of the two in the middle.
pub(crate) fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match numbers.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(numbers[middle]),
        _ => Some((numbers[middle - 1] + numbers[middle]) / 2.0),
    }
}

/// Samples for tests.
#[cfg(test)]
pub(crate) mod examples {
    use super::*;
    use crate::service::stats::{MemoryStats, ProcessStats, ServiceStats};

    /// Returns a round with this many requests in two seconds and this much memory.
    pub(crate) fn sample(requests: u64, mebibytes: u64, memory: MemoryStats) -> Sample {
        let (now, peak) = (mebibytes << 20, (mebibytes + 10) << 20);
        Sample {
            load: Summary {
                requests,
                seconds: 2.0,
                hit_ratio: 0.9,
                p50: 850,
                p99: 3_210,
                p999: 12_300,
                max: 45_600,
            },
            processor_seconds: Some(1.0),
            stats: Stats {
                allocator: "lumalloc".into(),
                service: ServiceStats { entries: 1, bytes: 2, requests },
                process: ProcessStats { rss: Some(now), rss_peak: Some(peak) },
                memory,
            },
            idle: Some(Resident { now, peak }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::stats::MemoryStats;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn derived_numbers() {
        let sample = examples::sample(20_000, 50, MemoryStats::default());
        assert_eq!(sample.rate(), 10_000.0);
        assert_eq!(sample.processor_per_request(), Some(50.0));
        assert_eq!(sample.peak(), Some(60 << 20));
    }
}
