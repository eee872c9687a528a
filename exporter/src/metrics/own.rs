//! What the exporter knows itself: how its collectors fared, what they cost, and what clients
//! asked.
use super::family::Family;
use super::reading::{Outcome, Reading};
use super::sample::{Number, Sample};
use super::system;
use crate::counts;
use std::time::Duration;

/// Everything that the exporter knows itself.
pub(crate) struct Known<'a> {
    pub(crate) reading: &'a Reading,
    pub(crate) counts: &'a counts::Snapshot,
    pub(crate) scrapes: u64,
    pub(crate) cpu: Duration,
    pub(crate) overflow: usize,
    pub(crate) residence: Option<Duration>,
}

impl Known<'_> {
    /// Returns the samples of a family whose numbers the exporter knows itself.
    pub(crate) fn samples(&self, family: &Family) -> Vec<Sample> {
        match family.name {
            "lumalloc_process_resident_bytes" => maybe(system::resident()),
            "lumalloc_residence_age_seconds" => maybe(self.residence.map(|age| age.as_secs_f64())),
            "lumalloc_collector_success" => {
                self.by_collector(|outcome| flag(outcome.error.is_none()))
            }
            "lumalloc_collector_duration_seconds" => {
                self.by_collector(|outcome| outcome.took.as_secs_f64())
            }
            "lumalloc_snapshot_duration_seconds" => one(self.reading.snapshot.as_secs_f64()),
            "lumalloc_snapshot_consistent" => one(flag(self.reading.consistent)),
            "lumalloc_exporter_scrapes_total" => one(self.scrapes as f64),
            "lumalloc_exporter_cpu_seconds_total" => one(self.cpu.as_secs_f64()),
            "lumalloc_arenas_in_overflow" => one(self.overflow as f64),
            "lumalloc_exporter_requests_total" => self.requests(),
            "lumalloc_exporter_connections_total" => one(self.counts.connections as f64),
            "lumalloc_exporter_connections_ended_total" => {
                let ended = self.counts.ended.iter();
                ended.map(|(reason, count)| Sample::of("reason", *reason, *count as f64)).collect()
            }
            "lumalloc_exporter_received_bytes_total" => one(self.counts.received as f64),
            "lumalloc_exporter_sent_bytes_total" => one(self.counts.sent as f64),
            _ => Vec::new(),
        }
    }

    fn by_collector(&self, value: fn(&Outcome) -> f64) -> Vec<Sample> {
        let outcomes = self.reading.outcomes.iter();
        outcomes.map(|one| Sample::of("collector", one.group.name(), value(one))).collect()
    }

    fn requests(&self) -> Vec<Sample> {
        let requests = self.counts.requests.iter().map(|requests| Sample {
            labels: vec![
                ("path", requests.path.into()),
                ("method", requests.method.into()),
                ("status", requests.status.into()),
            ],
            value: Number::One(requests.count as f64),
            created: None,
        });
        requests.collect()
    }
}

fn one(value: f64) -> Vec<Sample> {
    vec![Sample::plain(value)]
}

fn maybe(value: Option<f64>) -> Vec<Sample> {
    value.map(one).unwrap_or_default()
}

fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}
