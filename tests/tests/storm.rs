//! Storms of allocations while system calls are refused: no block is handed out twice, and no block
//! loses its contents.
//!
//! `tests/c/storm.c` does the checks. The message of a failure is the command that repeats the run,
//! with the options, the refusal and the seed.

use lumalloc_tests::memory::{gives_huge_pages_for, number};
use lumalloc_tests::storm::{HARDSHIPS, OPTIONS, Refusal, Storm, refusals, run_all};
use lumalloc_tests::{Run, cc};

/// Operations of a storm, which take about a second on a quiet core.
const OPERATIONS: u32 = 10_000;

fn storm(conf: &'static str, refusal: Refusal, hardship: &'static str) -> Storm {
    Storm { conf, refusal, hardship, operations: OPERATIONS, seed: 1 }
}

fn all_pass(storms: &[Storm]) -> Vec<u64> {
    run_all(storms).unwrap_or_else(|failures| panic!("{failures}"))
}

#[test]
fn storms_under_refused_calls() {
    const BACKGROUND: &str = "background_thread:true,dirty_decay_ms:200";
    let storms = [
        storm("", Refusal::NONE, ""),
        storm("", Refusal::third("madvise:14"), ""),
        storm("", Refusal::late("any"), ""),
        storm("dirty_decay_ms:0", Refusal::third("madvise:14"), ""),
        // Few of the storm's blocks are so long that the system moves them.
        Storm {
            operations: 4 * OPERATIONS,
            ..storm("dirty_decay_ms:0", Refusal::all("mremap"), "")
        },
        storm("dirty_decay_ms:0", Refusal::third("mmap"), ""),
        storm("dirty_decay_ms:0", Refusal::all("madvise:4"), ""),
        // With a decay time of 0, because otherwise the speed of the run would decide whether pages
        // are given back. Every such call is refused, because there may be few.
        storm("dirty_decay_ms:0,muzzy_decay_ms:-1", Refusal::all("madvise:8"), ""),
        storm(BACKGROUND, Refusal::all("madvise:14"), ""),
        storm("dss:primary", Refusal::third("sbrk"), ""),
        storm("retain:false", Refusal::third("munmap"), ""),
        storm("thp:always", Refusal::third("madvise"), ""),
        storm("guarded_sample:100", Refusal::third("mprotect"), ""),
        // Free blocks that stay open, and closed ones that cannot be opened.
        storm("hardened:true", Refusal::third("mprotect"), ""),
    ];
    let refused = all_pass(&storms);
    // If a storm that should have calls refused has none, it tests nothing. Where the system does
    // not give huge pages on request, they are not requested.
    let listens = gives_huge_pages_for("storms with refused requests for huge pages");
    for (storm, refused) in storms.iter().zip(refused) {
        let kind = storm.refusal.kind;
        let is_refused = !kind.is_empty() && (listens || kind != "madvise:14");
        assert_eq!(refused > 0, is_refused, "{storm}: {refused} refused");
    }
}

#[test]
fn storms_under_a_filter_of_system_calls() {
    let of_kernel = |hardship| storm("dirty_decay_ms:0", Refusal::NONE, hardship);
    all_pass(&["seccomp:madvise:14", "seccomp:madvise:4", "seccomp:mremap"].map(of_kernel));
}

#[test]
fn storms_where_the_map_is_full() {
    all_pass(&["dirty_decay_ms:0", "dss:primary"].map(|conf| storm(conf, Refusal::NONE, "map")));
}

#[test]
fn storms_with_others_at_the_break_and_with_keys_written() {
    all_pass(&[
        storm("dss:primary", Refusal::NONE, "break"),
        storm("", Refusal::third("membarrier"), "keys"),
    ]);
}

/// The page that stays free behind a large block was filled with junk, and counted as zero.
#[test]
fn junk_is_no_overflow_in_the_hardened_tier() {
    all_pass(
        &["hardened:true,junk:free", "hardened:true,junk:true"]
            .map(|conf| Storm { operations: 3000, ..storm(conf, Refusal::NONE, "") }),
    );
}

/// Allocates blocks of 5 MB in a process that has all but `left` of the mappings it may have.
fn full_map(conf: &str, blocks: &str, left: usize) -> u64 {
    let name = format!("LUMALLOC_CONF={conf} full_map {blocks} 5000000 {left}");
    let run = Run::preloaded(cc("full_map.c", &[])).called(&name).conf(conf);
    number(&run.args([blocks, "5000000", &left.to_string()]).stdout(), "blocks")
}

#[test]
fn no_two_blocks_coincide_where_the_map_is_full() {
    let blocks: Vec<u64> = (0..8).map(|left| full_map("", "64", left)).collect();
    // With room for some mappings there are some blocks, but not all of them.
    assert!(blocks[7] > 0, "{blocks:?}");
}

#[test]
fn no_two_blocks_of_the_data_segment_coincide_where_the_map_is_full() {
    for left in 0..4 {
        assert!(full_map("dss:primary", "2", left) > 0);
    }
}

#[test]
#[ignore = "some 900 storms: tests/run --all"]
fn slow_storms_under_all_options_and_refusals() {
    let of = |conf| refusals().into_iter().map(move |refusal| storm(conf, refusal, ""));
    let storms: Vec<Storm> = OPTIONS.into_iter().flat_map(of).collect();
    let refused = all_pass(&storms);
    // Each kind must be refused under some options; otherwise its refusal is not tested at all.
    for Refusal { kind, .. } in refusals().into_iter().skip(1) {
        let of_it = storms.iter().zip(&refused).filter(|(storm, _)| storm.refusal.kind == kind);
        let sum: u64 = of_it.map(|(_, refused)| refused).sum();
        // Only keys of the namespace call membarrier, and the other test writes them.
        assert!(sum > 0 || kind == "membarrier", "{kind} was never met");
    }
}

#[test]
#[ignore = "some 300 storms: tests/run --all"]
fn slow_storms_under_all_options_and_hardships() {
    let of = |conf| HARDSHIPS.map(move |hardship| storm(conf, Refusal::NONE, hardship));
    let mut storms: Vec<Storm> = OPTIONS.into_iter().flat_map(of).collect();
    let fenced = |conf| storm(conf, Refusal::third("membarrier"), "keys");
    storms.extend(OPTIONS.map(fenced));
    let refused = all_pass(&storms);
    assert!(refused.iter().sum::<u64>() > 0, "membarrier was never refused");
}
