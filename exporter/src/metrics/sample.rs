//! One sample: labels and a value.
use std::borrow::Cow;

/// Labels with their values.
pub(crate) type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// A value with its labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: Labels,
    pub(crate) value: Number,
    /// When its count began, in seconds of the epoch, where that is not the start of the allocator.
    pub(crate) created: Option<f64>,
}

/// What a sample has for a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    One(f64),
    Many(Histogram),
}

/// Counts by upper bound, each without those below it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    pub(crate) buckets: Vec<(f64, f64)>,
    pub(crate) sum: f64,
}

impl Sample {
    /// A value without labels.
    pub(crate) fn plain(value: f64) -> Sample {
        Sample { labels: Vec::new(), value: Number::One(value), created: None }
    }

    /// A value with one label.
    pub(crate) fn of(label: &'static str, of: impl Into<Cow<'static, str>>, value: f64) -> Sample {
        Sample { labels: vec![(label, of.into())], value: Number::One(value), created: None }
    }
}
