//! The rules for lumalloc's own sources, as functions that a test runs over the tree.
//!
//! * [`source`]: a file with comments, strings and test code blanked out;
//! * [`shape`]: lengths of lines, functions and files; module docs; partners of orderings;
//! * [`tiers`]: a lower tier of the core never imports a higher one, nor anything of `std`;
//! * [`order`]: within a folder of the core, imports go up the list of its modules;
//! * [`circles`]: within a folder of any crate, modules import each other in no circle;
//! * [`owner`]: the methods of a structure of the core stand in the file that declares it;
//! * [`crates`]: which crate may depend on which;
//! * [`dead`]: every file is reached from a crate root or named by another file.
//!
//! Each rule returns its findings as lines `path:line: what is wrong`. Its tests have a bad sample
//! that shows that the rule can fail.

pub mod circles;
pub mod crates;
pub mod dead;
pub mod order;
pub mod owner;
pub mod shape;
pub mod source;
pub mod tiers;

use std::fs;
use std::path::{Path, PathBuf};

pub use source::Source;

/// Applies every rule to the workspace at `root`.
pub fn check(root: &Path) -> Vec<String> {
    let files = files_below(root);
    let sources = sources(root, &files);
    let reach = dead::reach(root, &files, &sources);
    let mut findings = reach.unreached.clone();
    let declared = order::declared(&sources);
    let mut circles = circles::Circles::default();
    for source in &sources {
        let is_test = is_test_path(&source.path) || reach.test_only.contains(&source.path);
        findings.extend(shape::check(source, is_test));
        findings.extend(tiers::check(source, is_test));
        findings.extend(order::check(source, is_test, &declared));
        findings.extend(owner::check(source, is_test));
        circles.add(source, reach.test_only.contains(&source.path));
    }
    findings.extend(circles.findings());
    findings.extend(shape::check_other_texts(root, &files));
    findings.extend(dead::unattended(root, &files));
    findings.extend(crates::check(root));
    findings
}

/// Files below `root`, relative and sorted, without build output and hidden directories.
pub fn files_below(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![PathBuf::new()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(root.join(&dir)).expect("a directory of the workspace") {
            let entry = entry.expect("an entry of the workspace");
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type().expect("the kind of an entry");
            if name.starts_with('.') || name == "target" || name.starts_with("target-") {
                continue;
            }
            let path = dir.join(&name);
            if kind.is_dir() {
                open.push(path);
            } else if kind.is_file() {
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

fn sources(root: &Path, files: &[String]) -> Vec<Source> {
    let rust = files.iter().filter(|path| path.ends_with(".rs"));
    rust.map(|path| Source::new(path, &read(root, path))).collect()
}

/// The text of one file of the workspace.
pub fn read(root: &Path, path: &str) -> String {
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Whether everything in this file is test or measurement code.
pub fn is_test_path(path: &str) -> bool {
    path.starts_with("tests/") || path.starts_with("benches/") || path.contains("/tests/")
}
