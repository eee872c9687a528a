//! The sources obey the rules of `lumalloc_tests::tidy`: tiers, crates, lengths, docs, orderings.

use lumalloc_tests::{root, tidy};

#[test]
fn the_tree_is_tidy() {
    let findings = tidy::check(&root());
    assert!(findings.is_empty(), "{} findings\n{}", findings.len(), findings.join("\n"));
}

/// The check looks at real files: without this an empty walk would pass for ever.
#[test]
fn the_walk_sees_the_workspace() {
    let files = tidy::files_below(&root());
    for path in ["Cargo.toml", "tests/run", "tests/src/lib.rs", "alloc-core/src/lib.rs"] {
        assert!(files.iter().any(|file| file == path), "{path} is not seen");
    }
    assert!(files.iter().all(|file| !file.starts_with("target")));
}
