//! The state that every answer may read.
use crate::countdown::Countdown;
use crate::counts::Counts;
use crate::memory::OwnMemory;
use crate::metrics::Metrics;
use crate::namespace::Namespace;
use crate::ring::Ring;
use crate::route_names::RouteNames;
use crate::settings::Settings;
use crate::single_flight::SingleFlight;
use crate::unsent::Unsent;
use arc_swap::ArcSwap;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// The most requests that wait for their second reading at once.
const MOST_WAITS: usize = 4;

/// One exporter: the allocator that it shows, and its settings.
pub(crate) struct Context {
    /// The allocator that the exporter shows.
    pub(crate) namespace: &'static dyn Namespace,
    /// State of the metrics that lasts from scrape to scrape.
    pub(crate) metrics: Metrics,
    /// The settings, which are replaced as a whole.
    pub(crate) settings: ArcSwap<Settings>,
    /// The counts that the exporter keeps of itself.
    pub(crate) counts: Counts,
    /// Answers that clients have not taken yet.
    pub(crate) unsent: Unsent,
    /// Guards the routes that are `alone`, which serve one request at a time.
    pub(crate) flight: SingleFlight,
    /// One for each request that may wait for its second reading.
    pub(crate) waits: Semaphore,
    /// The exporter's own memory.
    pub(crate) memory: Arc<OwnMemory>,
    /// The snapshots that are kept.
    pub(crate) ring: Arc<Ring>,
    /// Ends the recording that was begun here for some time, at the latest with the exporter: its
    /// thread would keep a process whose first thread has exited from ending.
    pub(crate) recording: Mutex<Option<Countdown>>,
}

impl Context {
    pub(crate) fn new(
        namespace: &'static dyn Namespace,
        settings: Settings,
        routes: RouteNames,
    ) -> Arc<Context> {
        let waits = most_waits(settings.limits.connections);
        Arc::new(Context {
            namespace,
            metrics: Metrics::default(),
            settings: ArcSwap::from_pointee(settings),
            unsent: Unsent::default(),
            flight: SingleFlight::default(),
            waits: Semaphore::new(waits),
            memory: Arc::new(OwnMemory::of(namespace, &routes)),
            counts: Counts::new(routes),
            ring: Arc::default(),
            recording: Mutex::default(),
        })
    }
}

/// Returns how many requests may wait at once, so that others have connections.
fn most_waits(connections: usize) -> usize {
    (connections / 2).clamp(1, MOST_WAITS)
}

#[cfg(test)]
mod tests {
    use super::most_waits;

    #[test]
    fn who_waits_leaves_connections_to_others() {
        assert_eq!([0, 1, 2, 5, 8, 64].map(most_waits), [1, 1, 1, 2, 4, 4]);
    }
}
