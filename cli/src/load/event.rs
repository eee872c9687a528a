//! The messages of the load generator to the demonstration. Each is a line of JSON.

use serde::{Deserialize, Serialize};

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Event {
    /// The progress, with the rate over the last tick once there was one.
    Progress {
        /// The present phase.
        phase: Phase,
        /// Requests per second.
        rate: Option<f64>,
    },
    /// The end, with everything that was measured.
    Result(Summary),
}

/// The phases, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Every key is written once.
    Fill,
    /// The mix of requests is sent, but not counted yet.
    Warm,
    /// The mix of requests is sent and counted.
    Measure,
}

/// Traffic and latency of the measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The number of requests answered.
    pub(crate) requests: u64,
    /// The measured time in seconds.
    pub(crate) seconds: f64,
    /// GETs that found a value, as a part of all GETs.
    pub(crate) hit_ratio: f64,
    /// Microseconds within which half of the requests were answered.
    pub(crate) p50: u64,
    /// Microseconds within which 99 of 100 requests were answered.
    pub(crate) p99: u64,
    /// Microseconds within which 999 of 1000 requests were answered.
    pub(crate) p999: u64,
    /// Microseconds within which all requests were answered.
    pub(crate) max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_stable() {
        let progress = Event::Progress { phase: Phase::Fill, rate: Some(1.5) };
        let line = r#"{"progress":{"phase":"fill","rate":1.5}}"#;
        assert_eq!(serde_json::to_string(&progress).unwrap(), line);
        assert_eq!(serde_json::from_str::<Event>(line).unwrap(), progress);
    }
}
