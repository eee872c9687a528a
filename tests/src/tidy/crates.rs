//! The allowed dependencies between the crates of the workspace: cli → exporter → ctl → namespace →
//! profile → the core, capi → namespace, capi and cli → region → the core, cli and exporter →
//! report.

use std::fs;
use std::path::Path;

/// A directory, its package, and the packages of the workspace that it may depend on.
const EDGES: [(&str, &str, &[&str]); 10] = [
    ("alloc-core", "lumalloc", &[]),
    ("profile", "lumalloc-profile", &["lumalloc"]),
    ("namespace", "lumalloc-namespace", &["lumalloc", "lumalloc-profile"]),
    ("ctl", "lumalloc-ctl", &["lumalloc", "lumalloc-namespace"]),
    (
        "exporter",
        "lumalloc-exporter",
        &["lumalloc", "lumalloc-profile", "lumalloc-report", "lumalloc-namespace", "lumalloc-ctl"],
    ),
    ("exporter-so", "lumalloc-exporter-so", &["lumalloc-exporter"]),
    (
        "capi",
        "lumalloc-capi",
        &["lumalloc", "lumalloc-profile", "lumalloc-namespace", "lumalloc-region"],
    ),
    ("report", "lumalloc-report", &[]),
    ("region", "lumalloc-region", &["lumalloc"]),
    (
        "cli",
        "lumalloc-cli",
        &[
            "lumalloc",
            "lumalloc-namespace",
            "lumalloc-ctl",
            "lumalloc-exporter",
            "lumalloc-report",
            "lumalloc-region",
        ],
    ),
];

/// Checks every manifest of the table that exists.
pub fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    for (dir, package, allowed) in EDGES {
        let path = root.join(dir).join("Cargo.toml");
        if let Ok(manifest) = fs::read_to_string(&path) {
            findings.extend(forbidden(dir, package, allowed, &manifest));
        }
    }
    findings
}

fn forbidden(dir: &str, package: &str, allowed: &[&str], manifest: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut is_dependencies = false;
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            is_dependencies = line.contains("dependencies") && !line.contains("dev-dependencies");
        }
        for other in names(line).filter(|_| is_dependencies) {
            if other.starts_with("lumalloc") && other != package && !allowed.contains(&other) {
                findings.push(format!("{dir}/Cargo.toml:{}: {package} uses {other}", index + 1));
            }
        }
    }
    findings
}

/// The words in a line of a manifest.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let line = line.split('#').next().unwrap_or("");
    line.split(|character: char| !character.is_alphanumeric() && !"-_".contains(character))
}

#[cfg(test)]
mod tests {
    use super::forbidden;

    const BAD: &str = "[package]\nname = \"lumalloc-capi\"\n[dependencies]\n\
                       lumalloc.workspace = true\nlumalloc-exporter = { path = \"x\" }\n";

    #[test]
    fn forbidden_edges_are_found() {
        let found = forbidden("capi", "lumalloc-capi", &["lumalloc"], BAD);
        assert_eq!(found, ["capi/Cargo.toml:5: lumalloc-capi uses lumalloc-exporter"]);
        let renamed = "[dependencies]\ne = { package = \"lumalloc-exporter\" }\n";
        assert_eq!(forbidden("capi", "lumalloc-capi", &[], renamed).len(), 1);
        let table = "[target.'cfg(unix)'.build-dependencies.lumalloc-cli]\n";
        assert_eq!(forbidden("capi", "lumalloc-capi", &[], table).len(), 1);
    }

    #[test]
    fn allowed_and_development_edges_are_fine() {
        let good = "[dependencies]\nlumalloc = { path = \"x\" } # not lumalloc-cli\n\
                    [dev-dependencies]\nlumalloc-tests.workspace = true\n";
        assert!(forbidden("ctl", "lumalloc-namespace", &["lumalloc"], good).is_empty());
    }
}
