//! The state that every answer may read.
use crate::counts::Counts;
use crate::memory::OwnMemory;
use crate::metrics::Metrics;
use crate::namespace::Namespace;
use crate::ring::Ring;
use crate::settings::Settings;
use crate::single_flight::SingleFlight;
use crate::unsent::Unsent;
use arc_swap::ArcSwap;
use std::sync::Arc;

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
    /// The exporter's own memory.
    pub(crate) memory: Arc<OwnMemory>,
    /// The snapshots that are kept.
    pub(crate) ring: Arc<Ring>,
}

impl Context {
    pub(crate) fn new(namespace: &'static dyn Namespace, settings: Settings) -> Arc<Context> {
        Arc::new(Context {
            namespace,
            metrics: Metrics::default(),
            settings: ArcSwap::from_pointee(settings),
            counts: Counts::default(),
            unsent: Unsent::default(),
            flight: SingleFlight::default(),
            memory: Arc::new(OwnMemory::of(namespace)),
            ring: Arc::default(),
        })
    }
}
