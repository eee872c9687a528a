//! The rules of Prometheus' linter and of OpenMetrics, on every family. Source: promlint of
//! client_golang; the OpenMetrics specification, section 4.

use super::families::families;
use super::kinds::{Kind, Unit};
use std::collections::HashSet;

/// Words that name units. Only bytes and seconds are base units.
const UNITS: &[&str] = &[
    "amperes",
    "bits",
    "bytes",
    "celsius",
    "grams",
    "joules",
    "kelvin",
    "meters",
    "metres",
    "moles",
    "seconds",
    "volts",
    "hours",
    "days",
    "weeks",
    "minutes",
    "degrees",
    "fahrenheit",
];
const PREFIXES: &[&str] = &[
    "", "pico", "nano", "micro", "milli", "centi", "deci", "deca", "hecto", "kilo", "kibi", "mega",
    "mibi", "mebi", "giga", "gibi", "tera", "tebi", "peta", "pebi",
];
const SHORT: &[&str] =
    &["s", "ms", "us", "ns", "sec", "b", "kb", "mb", "gb", "tb", "pb", "m", "h", "d"];
const TYPES: &[&str] = &["counter", "gauge", "histogram", "summary", "metric", "info_info"];
const LABELS: &[&str] = &["le", "quantile", "job", "instance"];

fn problems(name: &str, kind: Kind, unit: Unit, help: &str, labels: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut claim = |holds: bool, what: &str| {
        if !holds {
            found.push(what.to_owned());
        }
    };
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    claim(name.starts_with("lumalloc_") && name.chars().all(letters), "name");
    claim(!name.contains("__") && !name.ends_with('_'), "underscores");
    claim(help.len() > 10 && help.ends_with('.') && !help.contains('\n'), "help");
    claim(name.ends_with("_total") == (kind == Kind::Counter), "_total");
    claim(name.ends_with("_info") == (kind == Kind::Info), "_info");
    for suffix in ["_count", "_sum", "_bucket", "_created", "_gsum", "_gcount"] {
        claim(!name.ends_with(suffix), suffix);
    }
    let words: Vec<&str> = name.split('_').collect();
    claim(!words.iter().any(|word| TYPES.contains(word)), "a type in the name");
    claim(!words.iter().any(|word| SHORT.contains(word)), "a short unit");
    let is_unit = |word: &str| {
        let of = |unit: &&&str| PREFIXES.iter().any(|prefix| word == format!("{prefix}{unit}"));
        UNITS.iter().find(of).copied()
    };
    for word in &words {
        let base = is_unit(word).is_none() || *word == "bytes" || *word == "seconds";
        claim(base, "a unit that is no base unit");
    }
    let base = name.strip_suffix("_total").unwrap_or(name);
    let suffix = match unit {
        Unit::None => None,
        unit => Some(unit.name()),
    };
    claim(suffix.is_none_or(|unit| base.ends_with(&format!("_{unit}"))), "ends with its unit");
    claim(suffix.is_some() || !words.iter().any(|word| is_unit(word).is_some()), "says its unit");
    let is_label = |label: &&str| label.chars().all(letters) && !LABELS.contains(label);
    claim(labels.iter().all(is_label), "labels");
    claim(labels.iter().collect::<HashSet<_>>().len() == labels.len(), "labels twice");
    found
}

#[test]
fn every_family_is_clean() {
    let mut names = HashSet::new();
    for family in families() {
        let found = problems(family.name, family.kind, family.unit, &family.help, &family.labels);
        assert_eq!(found, [""; 0], "{}: {}", family.name, family.help);
        // OpenMetrics names counters without `_total` and infos without `_info`.
        let base = family.name.strip_suffix("_total").or(family.name.strip_suffix("_info"));
        assert!(names.insert(base.unwrap_or(family.name)), "{} clashes", family.name);
    }
}

#[test]
fn families_of_a_collector_are_neighbours() {
    let mut groups: Vec<_> = families().iter().map(|family| family.group).collect();
    groups.dedup();
    assert_eq!(groups, super::Group::ALL);
}

#[test]
fn the_linter_finds_what_it_looks_for() {
    let help = "Some help for people.";
    for (name, kind, unit, help, labels, problem) in [
        ("lumalloc_frees", Kind::Counter, Unit::None, help, &[][..], "_total"),
        ("lumalloc_frees_total", Kind::Gauge, Unit::None, help, &[], "_total"),
        ("lumalloc_build", Kind::Info, Unit::None, help, &[], "_info"),
        ("malloc_frees_total", Kind::Counter, Unit::None, help, &[], "name"),
        ("lumalloc_Frees_total", Kind::Counter, Unit::None, help, &[], "name"),
        ("lumalloc_a:b", Kind::Gauge, Unit::None, help, &[], "name"),
        ("lumalloc_frees_total", Kind::Counter, Unit::None, "Frees", &[], "help"),
        ("lumalloc_arena_count", Kind::Gauge, Unit::None, help, &[], "_count"),
        ("lumalloc_frees_counter", Kind::Gauge, Unit::None, help, &[], "a type in the name"),
        ("lumalloc_wait_ms", Kind::Gauge, Unit::None, help, &[], "a short unit"),
        (
            "lumalloc_wait_milliseconds",
            Kind::Gauge,
            Unit::None,
            help,
            &[],
            "a unit that is no base unit",
        ),
        ("lumalloc_kibibytes", Kind::Gauge, Unit::None, help, &[], "a unit that is no base unit"),
        ("lumalloc_active", Kind::Gauge, Unit::Bytes, help, &[], "ends with its unit"),
        ("lumalloc_active_bytes", Kind::Gauge, Unit::None, help, &[], "says its unit"),
        ("lumalloc_sizes", Kind::Gauge, Unit::None, help, &["le"], "labels"),
        ("lumalloc_sizes", Kind::Gauge, Unit::None, help, &["a", "a"], "labels twice"),
    ] {
        let found = problems(name, kind, unit, help, labels);
        assert!(found.iter().any(|found| found == problem), "{name}: {found:?}");
    }
}
