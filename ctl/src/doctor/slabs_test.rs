//! Memory that is free in slabs, and what is no such memory.

use super::*;
use crate::doctor::examine;
use crate::doctor::tests::{bin, healthy, one};
use crate::numbers::LargeStats;
use crate::snapshot::Large;
use std::vec;

const KEEP: &str = "Blocks that live long keep them: see which of these sizes do.";

fn sparse(snapshot: &mut Snapshot) {
    snapshot.merged.bins =
        vec![bin(64, 102_400, 1600), bin(128, 1_000_000, 2000), bin(256, 51_200, 2000)];
}

#[test]
fn sparse_slabs() {
    let (what, help) = one("fragmentation", sparse);
    assert_eq!(
        what,
        "Up to 206.2 MiB of memory are free in slabs that few blocks hold: 256 bytes: 51200 blocks \
         in 2000 slabs (10 % full); 64 bytes: 102400 blocks in 1600 slabs (6 % full)."
    );
    let purge = " Whole free pages inside slabs go back by arena.4096.purge, about 24.8 MiB.";
    assert_eq!(help, format!("{KEEP}{purge}"));
}

/// Holes are free, but have no memory. Classes tell no bytes, because whose they are is not known.
#[test]
fn holes_are_no_fragmentation() {
    let mut snapshot = healthy();
    snapshot.merged.bins = vec![bin(64, 102_400, 1600), bin(256, 51_200, 2000)];
    snapshot.totals.holes = 90 * MIB;
    let found = examine(&snapshot);
    assert!(found[0].what.starts_with("Up to 116.2 MiB of memory are free in slabs"));
    assert_eq!(found[0].what.matches("iB").count(), 1, "{}", found[0].what);
    snapshot.totals.holes = 200 * MIB;
    assert_eq!(examine(&snapshot), []);
}

/// So it is with blocks that were requested, not written, and freed.
#[test]
fn what_was_never_touched_is_no_fragmentation() {
    let mut snapshot = healthy();
    sparse(&mut snapshot);
    // 40 MiB may be of dirty pages.
    snapshot.rss.untouched = -(120 * MIB as isize);
    assert!(examine(&snapshot)[0].what.starts_with("Up to 129.2 MiB of memory"));
    snapshot.rss.untouched = -(300 * MIB as isize);
    assert_eq!(examine(&snapshot), []);
    // Of a large block, too, pages may be untouched.
    let stats = LargeStats { curlextents: 1, ..LargeStats::default() };
    snapshot.merged.lextents = vec![Large { size: 300 * MIB, stats }];
    assert!(examine(&snapshot)[0].what.starts_with("Up to 206.2 MiB of memory"));
}

/// A purge that made holes of the free pages gives nothing more.
#[test]
fn a_purge_is_named_where_it_gives_something() {
    let (_, help) = one("fragmentation", |snapshot| {
        sparse(snapshot);
        snapshot.totals.holes = 25 * MIB;
    });
    assert_eq!(help, KEEP);
    let (_, help) = one("fragmentation", |snapshot| {
        sparse(snapshot);
        snapshot.settings.locked = 1 << 30;
    });
    assert_eq!(help, KEEP);
    // No page of small blocks is free where one in five is in use.
    let (_, help) = one("fragmentation", |snapshot| {
        snapshot.merged.bins = vec![bin(64, 512_000, 2500)];
    });
    assert_eq!(help, KEEP);
}
