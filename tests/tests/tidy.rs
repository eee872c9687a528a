//! The sources obey the rules of `lumalloc_tests::tidy`: tiers, crates, lengths, docs, orderings.
//! The plants of `tests/gates` fit the sources.

use lumalloc_tests::{Run, root, tidy};

#[test]
fn the_tree_is_tidy() {
    let findings = tidy::check(&root());
    assert!(findings.is_empty(), "{} findings\n{}", findings.len(), findings.join("\n"));
}

/// Checks that the walk finds real files. If it found none, the other test would always pass.
#[test]
fn the_walk_sees_the_workspace() {
    let files = tidy::files_below(&root());
    for path in ["Cargo.toml", "tests/run", "tests/src/lib.rs", "alloc-core/src/lib.rs"] {
        assert!(files.iter().any(|file| file == path), "{path} is not seen");
    }
    assert!(files.iter().all(|file| !file.starts_with("target")));
}

/// Without this test, a plant that no longer fits would be noticed only when `tests/gates` runs.
#[test]
fn each_plant_of_the_gates_fits_the_tree_and_each_step_has_one() {
    let output = Run::plain(root().join("tests/gates")).args(["--check"]).output();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
