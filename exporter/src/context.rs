//! What every answer may look at.
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

/// One exporter: the allocator it shows, and its settings.
pub(crate) struct Context {
    /// The allocator.
    pub(crate) namespace: &'static dyn Namespace,
    /// What lasts from scrape to scrape.
    pub(crate) metrics: Metrics,
    /// What was set; replaced as a whole.
    pub(crate) settings: ArcSwap<Settings>,
    /// What the exporter counts of itself.
    pub(crate) counts: Counts,
    /// Answers that clients have not taken yet.
    pub(crate) unsent: Unsent,
    /// What is done one at a time: the routes that are `alone`.
    pub(crate) flight: SingleFlight,
    /// The exporter's own memory.
    pub(crate) memory: Arc<OwnMemory>,
    /// Snapshots that are kept.
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
