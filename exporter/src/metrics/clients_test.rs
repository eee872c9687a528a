//! What other programs say of both formats: `promtool check metrics`, and the parsers of Python's
//! prometheus_client. The step `slow-exporter` of tests/run runs them.

use super::families::families;
use super::kinds::Kind;
use super::sample::{Number, Sample};
use super::settle::{Metrics, Served};
use super::{Groups, openmetrics, text};
use crate::namespace::Linked;
use lumalloc::control::arenas;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns a plain output, and a detailed one with every family.
fn outputs() -> Vec<(&'static str, Vec<Served>)> {
    let metrics = Metrics::default();
    let tenant = arenas::create().unwrap();
    assert!(arenas::set_name(tenant, b"a \"name\" \\ of\nlines \xff"));
    let mut all = metrics.gather(&Linked, Groups::all(), None).unwrap();
    for family in families() {
        if !all.iter().any(|one| std::ptr::eq(one.family, family)) {
            let labels = family.labels.iter().map(|label| (*label, "x".into())).collect();
            let value = Number::One(if family.kind == Kind::Info { 1.0 } else { 2.5 });
            all.push(Served { family, samples: vec![Sample { labels, value, created: None }] });
        }
    }
    vec![("plain", metrics.gather(&Linked, Groups::default(), None).unwrap()), ("all", all)]
}

fn scratch(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("lumalloc-{}-{name}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

/// Runs a program to its end, and returns what it printed.
fn run(program: &str, arguments: &[&Path], input: Option<&Path>) -> String {
    let stdin = input.map_or(Stdio::null(), |path| File::open(path).unwrap().into());
    let done = Command::new(program).args(arguments).stdin(stdin).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&done.stdout) + &text(&done.stderr);
    assert!(done.status.success(), "{program}: {}\n{said}", done.status);
    said
}

#[test]
#[ignore = "needs promtool"]
fn promtool_finds_nothing() {
    let place = scratch("promtool");
    for (name, served) in outputs() {
        let file = place.join(name);
        fs::write(&file, text::encode(&served).unwrap()).unwrap();
        let arguments = [Path::new("check"), Path::new("metrics")];
        assert_eq!(run("promtool", &arguments, Some(&file)), "", "{name}");
    }
    fs::remove_dir_all(place).unwrap();
}

#[test]
#[ignore = "needs python3-prometheus-client"]
fn the_formats_say_the_same_to_other_parsers() {
    let place = scratch("parsers");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/parse_metrics.py");
    for (name, served) in outputs() {
        let (old, new) = (place.join("text"), place.join("openmetrics"));
        fs::write(&old, text::encode(&served).unwrap()).unwrap();
        fs::write(&new, openmetrics::encode(&served)).unwrap();
        let said = run("/usr/bin/python3", &[&script, &old, &new], None);
        let found: Vec<usize> =
            said.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        assert_eq!(found.first(), Some(&served.len()), "{name}: {said}");
        assert!(found[1] > served.len(), "{name}: {said}");
    }
    fs::remove_dir_all(place).unwrap();
}
