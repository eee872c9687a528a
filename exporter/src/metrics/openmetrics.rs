//! The text format of OpenMetrics 1.0. Source: the OpenMetrics specification, sections 3 and 4.
//!
//! Unlike the older format it has `# UNIT`, counters whose family is named without `_total`, infos,
//! the time when a count began, and an end. The time (`_created`) is left out where it is the start
//! of the allocator, which `lumalloc_start_time_seconds` says once.
use super::kinds::{Kind, Unit};
use super::sample::{Histogram, Labels, Number, Sample};
use super::settle::Served;
use std::borrow::Cow;
use std::fmt::Write;

/// The media type of the body.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Writes all families as text.
pub(crate) fn encode(all: &[Served]) -> String {
    let mut text = String::with_capacity(64 << 10);
    for served in all {
        // Writing to a String does not fail.
        let _ = write_family(&mut text, served);
    }
    text.push_str("# EOF\n");
    text
}

fn write_family(to: &mut String, served: &Served) -> std::fmt::Result {
    let family = served.family;
    let suffix = match family.kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    };
    let name = family.name.strip_suffix(suffix).unwrap_or(family.name);
    writeln!(to, "# TYPE {name} {}", family.kind.name())?;
    if family.unit != Unit::None {
        writeln!(to, "# UNIT {name} {}", family.unit.name())?;
    }
    writeln!(to, "# HELP {name} {}", escaped(&family.help))?;
    for sample in &served.samples {
        write_sample(to, name, suffix, sample)?;
    }
    Ok(())
}

fn write_sample(to: &mut String, name: &str, suffix: &str, sample: &Sample) -> std::fmt::Result {
    match &sample.value {
        Number::One(value) => {
            write_line(to, name, suffix, &sample.labels, None, *value)?;
        }
        Number::Many(Histogram { buckets, sum }) => {
            let mut all = 0.0;
            for (bound, count) in buckets {
                all += count;
                let le = Cow::Owned(number(*bound));
                write_line(to, name, "_bucket", &sample.labels, Some(("le", le)), all)?;
            }
            write_line(to, name, "_count", &sample.labels, None, all)?;
            write_line(to, name, "_sum", &sample.labels, None, *sum)?;
        }
    }
    match sample.created.filter(|_| suffix == "_total") {
        Some(created) => write_line(to, name, "_created", &sample.labels, None, created),
        None => Ok(()),
    }
}

fn write_line(
    to: &mut String,
    name: &str,
    suffix: &str,
    labels: &Labels,
    more: Option<(&'static str, Cow<'_, str>)>,
    value: f64,
) -> std::fmt::Result {
    write!(to, "{name}{suffix}")?;
    let mut before = "{";
    let labels = labels.iter().map(|(name, value)| (*name, value.as_ref()));
    let more = more.iter().map(|(name, value)| (*name, value.as_ref()));
    for (label, value) in labels.chain(more) {
        write!(to, "{before}{label}=\"{}\"", escaped(value))?;
        before = ",";
    }
    let end = if before == "{" { "" } else { "}" };
    writeln!(to, "{end} {}", number(value))
}

/// Writes a number with a fraction, which the format requires for bounds of buckets.
fn number(value: f64) -> String {
    if value.is_infinite() {
        if value > 0.0 { "+Inf".into() } else { "-Inf".into() }
    } else {
        format!("{value:?}")
    }
}

/// Escapes a text for quotes and for help.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\n', '"']) {
        return text.into();
    }
    text.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"").into()
}
