//! The text format of Prometheus, 0.0.4, by the encoder of the `prometheus` crate.
use super::kinds::Kind;
use super::sample::{Histogram, Labels, Number, Sample};
use super::settle::Served;
use prometheus::TextEncoder;
use prometheus::proto;

/// The media type of the body.
pub(crate) const TEXT_0_0_4: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Writes all families as text.
pub(crate) fn encode(all: &[Served]) -> Result<String, prometheus::Error> {
    let mut text = String::with_capacity(64 << 10);
    let families: Vec<proto::MetricFamily> = all.iter().map(family).collect();
    TextEncoder::new().encode_utf8(&families, &mut text)?;
    Ok(with_infinity(text))
}

/// Writes infinite values as the format does. The encoder writes them as Rust does.
fn with_infinity(text: String) -> String {
    if !text.contains(" inf\n") {
        return text;
    }
    let mut whole = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        match line.strip_suffix(" inf\n").filter(|_| !line.starts_with('#')) {
            Some(begin) => whole.extend([begin, " +Inf\n"]),
            None => whole.push_str(line),
        }
    }
    whole
}

/// Converts a family to the type of the `prometheus` crate.
pub(crate) fn family(served: &Served) -> proto::MetricFamily {
    let kind = served.family.kind;
    let mut family = proto::MetricFamily::default();
    family.set_name(served.family.name.into());
    family.set_help(served.family.help.clone());
    family.set_field_type(match kind {
        Kind::Counter => proto::MetricType::COUNTER,
        Kind::Histogram => proto::MetricType::HISTOGRAM,
        Kind::Gauge | Kind::Info => proto::MetricType::GAUGE,
    });
    family.set_metric(served.samples.iter().map(|sample| metric(kind, sample)).collect());
    family
}

fn metric(kind: Kind, sample: &Sample) -> proto::Metric {
    let mut metric = proto::Metric::from_label(labels(&sample.labels));
    match &sample.value {
        Number::Many(many) => metric.set_histogram(histogram(many)),
        Number::One(value) if kind == Kind::Counter => {
            let mut counter = proto::Counter::default();
            counter.set_value(*value);
            metric.set_counter(counter);
        }
        Number::One(value) => {
            let mut gauge = proto::Gauge::default();
            gauge.set_value(*value);
            metric.set_gauge(gauge);
        }
    }
    metric
}

fn labels(labels: &Labels) -> Vec<proto::LabelPair> {
    let pair = |(name, value): &(&'static str, std::borrow::Cow<'static, str>)| {
        let mut pair = proto::LabelPair::default();
        pair.set_name((*name).into());
        pair.set_value(value.to_string());
        pair
    };
    labels.iter().map(pair).collect()
}

fn histogram(many: &Histogram) -> proto::Histogram {
    let mut all = 0.0;
    let buckets = many.buckets.iter().filter_map(|(bound, count)| {
        all += count;
        let mut bucket = proto::Bucket::default();
        bucket.set_upper_bound(*bound);
        bucket.set_cumulative_count(all as u64);
        // The encoder adds the last one, `+Inf`.
        bound.is_finite().then_some(bucket)
    });
    let mut histogram = proto::Histogram::default();
    histogram.set_bucket(buckets.collect());
    histogram.set_sample_count(all as u64);
    histogram.set_sample_sum(many.sum);
    histogram
}
