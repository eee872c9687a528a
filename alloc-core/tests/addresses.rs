//! The addresses of pages: addresses that are given back or kept, the data segment, huge pages.
//! Each scenario runs in a child process.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::mappings::{flags, is_advised, listens, listens_for};
use common::touched::{assert_touched, touch};
use lumalloc::raw;
use lumalloc::{PAGE, control, observe};

const MIB: usize = 1 << 20;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("addresses_back") => addresses_back(4 * MIB),
        // A sixteenth of the limit, which is larger by what the process had before.
        Some("addresses_limited") => addresses_back(32 * MIB),
        Some("addresses_in_parts") => addresses_in_parts(),
        Some("addresses_kept") => addresses_kept(),
        Some("segment") => segment(true),
        Some("no_segment") => segment(false),
        Some("huge_default") => huge_default(),
        Some("huge_always") => huge_everywhere(listens()),
        Some("huge_never") => huge_everywhere(false),
        Some("huge_records") => huge_records(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

// --- addresses ---------------------------------------------------------------------------------

/// Limits the process to `more` bytes of addresses beyond those that it has.
fn limit_addresses(more: usize) {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    let pages: usize = text.split(' ').next().expect("a word").parse().expect("a number");
    let most = (pages * PAGE + more) as u64;
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    control::limits::note_addresses();
}

#[test]
fn without_retain_addresses_go_back() {
    for conf in ["retain:false", "retain:false,dirty_decay_ms:0", "retain:false,muzzy_decay_ms:9"] {
        play_well("addresses_back", conf);
    }
}

#[test]
fn under_a_limit_most_addresses_go_back() {
    play_well("addresses_limited", "");
}

/// Each hole that addresses leave is one more mapping, and a process may have only so many.
#[test]
fn under_a_limit_holes_leave_mappings_for_others() {
    play_well("addresses_in_parts", "");
}

/// Frees every other block of so many that the holes would be a quarter of the usual limit.
fn addresses_in_parts() {
    const BLOCKS: usize = 44_000;
    const SIZE: usize = 40 << 10;
    let number = |path: &str| -> usize {
        std::fs::read_to_string(path).expect("a file").trim().parse().expect("a number")
    };
    let mappings =
        || std::fs::read_to_string("/proc/self/maps").expect("the mappings").lines().count();
    limit_addresses(2 * BLOCKS * SIZE);
    let before = mappings();
    let blocks: Vec<*mut u8> = (0..BLOCKS).map(|_| raw::malloc(SIZE)).collect();
    assert!(blocks.iter().all(|block| !block.is_null()));
    for block in blocks.iter().step_by(2) {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(*block) };
    }
    assert!(control::purge(control::ARENAS_ALL));
    let totals = observe::totals();
    assert_eq!(totals.dirty + totals.muzzy, 0, "{totals:#?}");
    let most = number("/proc/sys/vm/max_map_count") / 8;
    let more = mappings() - before;
    assert!(more <= most + 1000, "{more} more mappings");
}

#[test]
fn without_a_limit_addresses_are_kept() {
    play_well("addresses_kept", "");
}

/// Allocates blocks of a third of the addresses and more, one after the other. The system must have
/// got each block back before it can give the next, larger one. In the end less than `kept` bytes
/// of addresses are kept.
fn addresses_back(kept: usize) {
    let started = raw::malloc(100 << 10);
    limit_addresses(300 * MIB);
    for size in [100, 130, 160, 190, 220, 250] {
        allocate_and_free(size * MIB);
    }
    assert!(control::purge(control::ARENAS_ALL));
    let totals = observe::totals();
    assert!(totals.retained < kept, "{totals:#?}");
    assert_eq!(totals.dirty + totals.muzzy, 0, "{totals:#?}");
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let null = std::ptr::null_mut();
    // SAFETY: the call maps new memory anywhere.
    let others = unsafe { libc::mmap(null, 284 * MIB - kept, protection, flags, -1, 0) };
    assert!(others != libc::MAP_FAILED, "memory for somebody else");
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(started) };
}

fn allocate_and_free(size: usize) {
    let block = raw::malloc(size);
    assert!(!block.is_null(), "{size}");
    touch(block, 0, MIB);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block) };
}

fn addresses_kept() {
    allocate_and_free(160 * MIB);
    assert!(control::purge(control::ARENAS_ALL));
    let totals = observe::totals();
    assert!(totals.retained >= 160 * MIB, "{totals:#?}");
    assert_eq!(totals.dirty + totals.muzzy, 0, "{totals:#?}");
}

/// The data segment is used first, while other code moves its end too.
#[test]
fn dss_takes_addresses_from_the_data_segment() {
    play_well("segment", "dss:primary");
    play_well("segment", "dss:primary,retain:false,dirty_decay_ms:0");
    play_well("no_segment", "");
    play_well("no_segment", "dss:disabled");
}

fn segment(expected: bool) {
    let end = || {
        // SAFETY: the call changes nothing.
        unsafe { libc::sbrk(0) }.addr()
    };
    let begin = end();
    let mut theirs = Vec::new();
    let sizes = [100, 3 * MIB, 700 << 10, 40 * MIB];
    let mut blocks = sizes.map(|size| {
        // SAFETY: the call moves the end up, as any code may.
        theirs.push(unsafe { libc::sbrk(5000) }.cast::<u8>());
        let block = raw::malloc_zeroed(size);
        assert_eq!((begin..end()).contains(&block.addr()), expected, "{size}");
        touch(block, 0, size);
        block
    });
    for place in &theirs {
        // SAFETY: the test took this memory by `sbrk`.
        unsafe { place.write_bytes(7, 5000) };
    }
    for (block, size) in blocks.iter_mut().zip(sizes) {
        // SAFETY: a live block, not used afterwards.
        *block = unsafe { raw::realloc(*block, 2 * size) };
        assert_touched(*block, size);
        // SAFETY: a live block, this long.
        unsafe { block.write_bytes(1, 2 * size) };
    }
    for block in blocks {
        // SAFETY: a live block, not used afterwards.
        unsafe { raw::free(block) };
    }
    assert!(control::purge(control::ARENAS_ALL));
    for place in theirs {
        for at in 0..5000 {
            // SAFETY: the test took this memory by `sbrk`.
            assert_eq!(unsafe { place.wrapping_add(at).read() }, 7, "somebody else's memory");
        }
    }
}

// --- huge pages --------------------------------------------------------------------------------

#[test]
fn long_blocks_lie_in_huge_pages() {
    listens_for("long blocks in huge pages");
    play_well("huge_default", "");
    play_well("huge_default", "retain:false");
}

fn huge_default() {
    let small = raw::malloc(100);
    let long = raw::malloc(16 * MIB);
    let zeros = raw::malloc_zeroed(17 * MIB);
    assert_eq!(is_advised(long), listens());
    assert!(!is_advised(small), "a small block");
    assert!(!is_advised(zeros), "zeros may never be touched");
    touch(long, 0, 16 * MIB);
    // SAFETY: a live block, not used afterwards.
    let longer = unsafe { raw::realloc(long, 40 * MIB) };
    assert_eq!(is_advised(longer), listens(), "moved");
    assert_touched(longer, 16 * MIB);
    touch(longer, 0, 40 * MIB);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(longer) };
    let totals = observe::totals();
    assert!(totals.dirty >= 40 * MIB, "{totals:#?}");
    let used_before = raw::malloc(30 * MIB);
    assert_eq!(is_advised(used_before), listens(), "as it was");
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(used_before) };
    assert!(control::purge(control::ARENAS_ALL));
    assert!(!flags().iter().any(|(_, _, flags)| flags.contains(" hg ")), "purged");
    // A zeroed block in memory that was advised takes small pages, and is zero.
    let long = raw::malloc(16 * MIB);
    touch(long, 0, PAGE);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(long) };
    let zeros = raw::malloc_zeroed(16 * MIB);
    // SAFETY: a live block.
    assert_eq!(unsafe { zeros.wrapping_add(PAGE).read() }, 0);
}

#[test]
fn thp_says_where_huge_pages_are() {
    listens_for("all memory in huge pages");
    play_well("huge_always", "thp:always");
    play_well("huge_never", "thp:never");
    play_well("huge_records", "metadata_thp:always");
}

fn huge_everywhere(expected: bool) {
    let (small, long) = (raw::malloc(100), raw::malloc(16 * MIB));
    assert_eq!([is_advised(small), is_advised(long)], [expected; 2]);
    touch(long, 0, 16 * MIB);
    // SAFETY: a live block, not used afterwards.
    let longer = unsafe { raw::realloc(long, 40 * MIB) };
    assert_eq!(is_advised(longer), expected, "moved");
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(longer) };
    assert!(control::purge(control::ARENAS_ALL));
    let again = raw::malloc(40 * MIB);
    assert_eq!(is_advised(again), expected, "purged and used again");
}

fn huge_records() {
    let small = raw::malloc(100);
    assert!(!is_advised(small));
    let advised = flags().iter().any(|(_, _, flags)| flags.contains(" hg "));
    assert_eq!(advised, listens(), "the records are");
}
