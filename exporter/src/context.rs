//! What every answer may look at.
use crate::namespace::Namespace;
use crate::settings::Settings;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// One exporter: the allocator it shows, and its settings.
pub(crate) struct Context {
    /// The allocator.
    pub(crate) namespace: &'static dyn Namespace,
    /// What was set; replaced as a whole.
    pub(crate) settings: ArcSwap<Settings>,
}

impl Context {
    pub(crate) fn new(namespace: &'static dyn Namespace, settings: Settings) -> Arc<Context> {
        Arc::new(Context { namespace, settings: ArcSwap::from_pointee(settings) })
    }
}
