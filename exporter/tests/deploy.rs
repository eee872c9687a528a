//! The files of `deploy/`. What they name exists, and Prometheus' own tool accepts them.
use lumalloc_exporter::metrics::{Kind, families};
use lumalloc_exporter::wish::Wish;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns every word that begins as our metrics do.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = text.split(|c| !is_word(c));
    words.filter(|word| word.starts_with("lumalloc_") || word.starts_with("lumalloc:")).collect()
}

fn exists(name: &str, recorded: &BTreeSet<&str>) -> bool {
    let served = families().iter().any(|family| {
        name == family.name
            || family.kind == Kind::Histogram
                && name
                    .strip_prefix(family.name)
                    .is_some_and(|rest| ["_bucket", "_sum", "_count"].contains(&rest))
    });
    served || recorded.contains(name)
}

#[test]
fn rules_and_dashboard_name_families_that_exist() {
    let rules = read("deploy/prometheus/rules.yml");
    let recorded: BTreeSet<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect();
    assert!(recorded.len() > 3);
    let files = ["prometheus/rules.yml", "prometheus/rules_test.yml"];
    let files = files.iter().chain(&["grafana/dashboards/lumalloc.json"]);
    for file in files {
        let text = read(&format!("deploy/{file}"));
        let named = metrics_in(&text);
        assert!(named.len() > 10, "{file} names hardly anything");
        for name in named {
            assert!(exists(name, &recorded), "{file} names {name}, which is not served");
        }
    }
}

#[test]
fn every_alert_is_tested_silent_and_firing() {
    let (rules, tests) =
        (read("deploy/prometheus/rules.yml"), read("deploy/prometheus/rules_test.yml"));
    let alerts: Vec<&str> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 9);
    for alert in alerts {
        let of_alert: Vec<&str> = tests
            .split("- alertname: ")
            .filter_map(|piece| piece.strip_prefix(alert))
            .filter(|rest| rest.starts_with('\n'))
            .collect();
        let silent = of_alert.iter().filter(|test| test.contains("exp_alerts: []")).count();
        assert!(silent > 0, "{alert} is never seen silent");
        assert!(of_alert.len() > silent, "{alert} is never seen firing");
    }
}

#[test]
fn promtool_accepts_configuration_rules_and_their_tests() {
    for arguments in [
        ["check", "config", "deploy/prometheus/prometheus.yml"],
        ["check", "rules", "deploy/prometheus/rules.yml"],
        ["test", "rules", "deploy/prometheus/rules_test.yml"],
    ] {
        let output = Command::new("promtool").args(arguments).current_dir(root()).output();
        let output = output.expect("promtool, of Debian's package prometheus");
        let said =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "promtool {arguments:?}: {said}");
    }
}

/// Prometheus reaches a service in another container, and by its name.
#[test]
fn your_own_service_can_be_scraped_as_the_text_says() {
    let text = read("deploy/README.md");
    let said =
        text.split("lumalloc run --exporter ").nth(1).and_then(|rest| rest.split(' ').next());
    let wish = Wish::read(said.expect("an example").as_ref(), "README.md").expect("it can be read");
    let metrics = wish.metrics.expect("an address for the metrics");
    assert!(metrics.ip().is_unspecified(), "other containers reach {metrics}");
    assert_eq!(wish.hosts, ["NAME"]);
    assert!(text.contains(&format!("`NAME:{}`", metrics.port())), "the target");
}

#[test]
fn the_image_is_built_from_every_member_of_the_workspace() {
    let (docker, cargo) = (read("deploy/Dockerfile"), read("Cargo.toml"));
    let members = cargo.split_once("members = [").unwrap().1.split_once(']').unwrap().0;
    let members: Vec<&str> = members.split(',').map(|m| m.trim().trim_matches('"')).collect();
    assert!(members.contains(&"alloc-core"));
    for member in members {
        let line = format!("COPY {member} {member}");
        assert!(docker.lines().any(|l| l == line), "deploy/Dockerfile lacks `{line}`");
    }
    for line in docker.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from"))
    {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        words.pop();
        for path in words {
            assert!(
                root().join(path).exists(),
                "deploy/Dockerfile copies {path}, which is not there"
            );
        }
    }
}

#[test]
fn compose_mounts_files_that_exist() {
    let compose = read("deploy/compose.yml");
    let mounts = compose.lines().filter_map(|line| line.trim().strip_prefix("- ./"));
    let mut count = 0;
    for mount in mounts {
        let path = mount.split(':').next().unwrap();
        assert!(root().join("deploy").join(path).exists(), "compose.yml mounts {path}");
        count += 1;
    }
    assert!(count >= 4, "nothing is mounted");
}
