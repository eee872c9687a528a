//! The families for a registry of the program.
use super::families::families;
use super::group::Groups;
use super::settle::Metrics;
use super::text;
use crate::namespace::{Linked, Namespace};
use prometheus::core::Desc;
use prometheus::proto::MetricFamily;
use std::collections::HashMap;

/// All metrics of the allocator of this executable, for a [`prometheus::Registry`]. It has no
/// server and no thread. Each gathering takes one snapshot.
///
/// ```
/// use lumalloc_exporter::Collector;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = prometheus::Registry::new();
/// registry.register(Box::new(Collector::new()))?;
/// let text = prometheus::TextEncoder::new().encode_to_string(&registry.gather())?;
/// assert!(text.contains("\nlumalloc_allocated_bytes "));
/// # Ok(())
/// # }
/// ```
pub struct Collector {
    namespace: &'static dyn Namespace,
    metrics: Metrics,
    wanted: Groups,
    descs: Vec<Desc>,
}

impl Default for Collector {
    fn default() -> Collector {
        Collector::new()
    }
}

impl Collector {
    /// Returns the families that are always read.
    #[must_use]
    pub fn new() -> Collector {
        Collector {
            namespace: &Linked,
            metrics: Metrics::default(),
            wanted: Groups::default(),
            descs: descs(Groups::default()),
        }
    }

    /// Adds the collectors with these names, which are separated by commas, as in `?collect[]=`.
    ///
    /// # Errors
    /// Returns a message for a name that no collector has, with a list of the names.
    ///
    /// ```
    /// use lumalloc_exporter::Collector;
    /// assert!(Collector::new().with_detail("bins,arenas").is_ok());
    /// let error = Collector::new().with_detail("heaps").err().unwrap();
    /// assert!(error.starts_with("no collector \"heaps\"; collect[] adds arenas, bins, "));
    /// ```
    pub fn with_detail(self, names: &str) -> Result<Collector, String> {
        let wanted = self.wanted.with(names)?;
        Ok(Collector { wanted, descs: descs(wanted), ..self })
    }
}

fn descs(wanted: Groups) -> Vec<Desc> {
    let families = families().iter().filter(|family| wanted.has(family.group));
    let desc = |family: &super::Family| {
        let labels = family.labels.iter().map(|label| (*label).into()).collect();
        // The names and labels of the table are valid, which a test checks.
        Desc::new(family.name.into(), family.help.clone(), labels, HashMap::new()).ok()
    };
    families.filter_map(desc).collect()
}

impl prometheus::core::Collector for Collector {
    fn desc(&self) -> Vec<&Desc> {
        self.descs.iter().collect()
    }

    /// Returns nothing if nothing could be read.
    fn collect(&self) -> Vec<MetricFamily> {
        let served = self.metrics.gather(self.namespace, self.wanted, None).unwrap_or_default();
        served.iter().map(text::family).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_description() {
        assert_eq!(descs(Groups::all()).len(), families().len());
    }
}
