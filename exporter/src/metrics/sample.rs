//! One sample: labels and a value.
use std::borrow::Cow;

/// Labels with their values.
pub(crate) type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: Labels,
    pub(crate) value: Number,
    /// When the count began, in seconds since 1970, where that is not the start of the allocator.
    pub(crate) created: Option<f64>,
}

/// The value of a sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    One(f64),
    Many(Histogram),
}

/// Counts by upper bound. Each count is without those of lower bounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) buckets: Vec<(f64, f64)>,
    pub(crate) sum: f64,
}

impl Sample {
    /// Returns a value without labels.
    pub(crate) fn plain(value: f64) -> Sample {
        Sample { labels: Vec::new(), value: Number::One(value), created: None }
    }

    /// Returns a value with one label.
    pub(crate) fn of(label: &'static str, of: impl Into<Cow<'static, str>>, value: f64) -> Sample {
        Sample { labels: vec![(label, of.into())], value: Number::One(value), created: None }
    }
}
