//! Large heaps in huge pages: what `smaps` reports of them, how many faults they take, and that
//! holes in them are given back to the system. Each scenario runs in a child process.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario, tell};
use common::mappings::{listens, listens_for};
use common::not_tried::not_tried;
use common::touched::{assert_touched, touch};
use lumalloc::{PAGE, control, observe, raw};
use std::sync::Barrier;

const MIB: usize = 1 << 20;
const BLOCK: usize = 256 << 10;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("large_heap") => large_heap(true),
        Some("small_pages") => large_heap(false),
        Some("slabs") => slabs(),
        Some("classes") => classes(true),
        Some("classes_in_small_pages") => classes(false),
        Some("sparse") => sparse(),
        Some("small_heap") => small_heap(),
        Some("zeros") => zeros(),
        Some("holes") => holes(),
        Some("room") => room(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// A counter of `/proc/vmstat`.
fn vmstat(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").expect("vmstat");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
}

/// The number of faults for which the system had no huge page.
fn fallbacks() -> u64 {
    vmstat("thp_fault_fallback ")
}

/// Whether the system had a huge page for each fault since there were so many fallbacks. If not,
/// the parent hears of it.
fn has_given(before: u64) -> bool {
    let has = fallbacks() == before;
    if !has {
        tell("this system had too few of them");
    }
    has
}

/// Plays a scenario in huge pages. Says if the system gives none, or had too few.
#[track_caller]
fn play_in_huge_pages(name: &str, what: &str) {
    listens_for(what);
    for why in play_well(name, "") {
        not_tried(what, &why);
    }
}

/// Sums over all mappings in `smaps`, in bytes.
#[derive(Debug)]
struct Memory {
    /// Bytes in mappings for which huge pages were requested.
    advised: usize,
    /// Bytes in huge pages.
    huge: usize,
    resident: usize,
}

fn memory() -> Memory {
    let text = std::fs::read_to_string("/proc/self/smaps").expect("smaps");
    let mut sum = Memory { advised: 0, huge: 0, resident: 0 };
    let mut size = 0;
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (name, number) = (words.next(), words.next().and_then(|word| word.parse().ok()));
        let bytes = number.unwrap_or(0usize) << 10;
        match name {
            Some("Size:") => size = bytes,
            Some("Rss:") => sum.resident += bytes,
            Some("AnonHugePages:") => sum.huge += bytes,
            Some("VmFlags:") if format!("{line} ").contains(" hg ") => sum.advised += size,
            _ => {}
        }
    }
    sum
}

fn faults() -> i64 {
    // SAFETY: an all-zero `rusage` is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is writable.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) }, 0);
    usage.ru_minflt
}

fn free(block: *mut u8) {
    // SAFETY: the callers' blocks are live, and not used afterwards.
    unsafe { raw::free(block) };
}

// --- growing -----------------------------------------------------------------------------------

#[test]
fn a_large_heap_grows_by_huge_pages_and_gives_them_back() {
    play_in_huge_pages("large_heap", "a large heap in huge pages");
    play_well("small_pages", "thp:never");
    play_well("small_pages", "retain:false");
}

/// Fills 64 MiB with blocks that are too short for their own huge pages.
fn large_heap(huge: bool) {
    let (before, fallbacks) = (faults(), fallbacks());
    let blocks: Vec<_> = (0..64 * MIB / BLOCK)
        .map(|_| {
            let block = raw::malloc(BLOCK);
            touch(block, 0, BLOCK);
            block
        })
        .collect();
    let (faults, memory) = (faults() - before, memory());
    let totals = observe::totals();
    assert!(totals.dirty <= 3 * MIB && totals.active <= totals.resident, "{totals:#?}");
    if huge && listens() {
        assert!(memory.advised >= 54 * MIB, "{memory:?}");
        if has_given(fallbacks) {
            assert!(memory.huge >= 52 * MIB, "{memory:?}");
            assert!(faults < 4000, "{faults} faults");
        }
    } else {
        assert!(memory.advised == 0, "{memory:?}");
    }
    for block in blocks {
        assert_touched(block, BLOCK);
        free(block);
    }
    assert!(control::purge(control::ARENAS_ALL));
    let after = self::memory();
    assert!(after.advised == 0 && after.resident + 60 * MIB < memory.resident, "{after:?}");
    assert_eq!(observe::totals().dirty, 0);
}

#[test]
fn slabs_of_a_class_that_a_thread_fills_lie_in_huge_pages_too() {
    play_in_huge_pages("slabs", "slabs in huge pages");
}

fn slabs() {
    let blocks: Vec<_> = (0..64 * MIB / 128).map(|_| raw::malloc(128)).collect();
    let memory = memory();
    assert_eq!(memory.advised >= 48 * MIB, listens(), "{memory:?}");
    blocks.into_iter().for_each(free);
}

#[test]
fn a_heap_of_many_classes_grows_by_huge_pages_from_eight_mib_on() {
    play_in_huge_pages("classes", "a heap of many classes in huge pages");
    play_well("classes_in_small_pages", "thp:never");
    play_well("classes_in_small_pages", "retain:false");
}

/// Fills 24 MiB with blocks of all sizes up to a page, equally many of each.
fn classes(huge: bool) {
    let (before, fallbacks) = (faults(), fallbacks());
    let mut blocks = Vec::new();
    for n in 0..24 * MIB / 2048 {
        let size = n * 97 % 4096 + 1;
        blocks.push((raw::malloc(size), size));
        touch(blocks[n].0, 0, size);
    }
    let (faults, memory) = (faults() - before, memory());
    if !huge || !listens() {
        assert!(memory.advised == 0, "{memory:?}");
    } else if has_given(fallbacks) {
        assert!(faults < 2800, "{faults} faults, {memory:?}");
        assert!(memory.resident < 36 * MIB, "{memory:?}");
    }
    for (block, size) in blocks {
        assert_touched(block, size);
        free(block);
    }
}

/// Slabs of threads that hardly touch them are not backed by huge pages, except for a small part.
#[test]
fn slabs_that_are_hardly_touched_take_small_pages() {
    play_in_huge_pages("sparse", "slabs that are hardly touched, in small pages");
}

fn sparse() {
    const THREADS: usize = 64;
    let large: Vec<_> = (0..16 * MIB / BLOCK).map(|_| raw::malloc(BLOCK)).collect();
    large.iter().for_each(|block| touch(*block, 0, BLOCK));
    let before = memory();
    let (ready, end) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut blocks = Vec::new();
                for size in (1..=24).map(|n| 16 * n) {
                    // So often that the thread gets a slab of its own for the next few blocks.
                    for _ in 0..40 {
                        free(raw::malloc(size));
                        control::flush_thread_cache();
                    }
                    blocks.extend((0..20).map(|_| raw::malloc(size)));
                }
                blocks.iter().for_each(|block| touch(*block, 0, 1));
                ready.wait();
                end.wait();
                blocks.into_iter().for_each(free);
            });
        }
        ready.wait();
        let (after, totals) = (memory(), observe::totals());
        end.wait();
        // Most of the slabs' memory was never touched.
        assert!(totals.active > 44 * MIB, "{totals:#?}");
        assert!(after.huge <= before.huge + 8 * MIB, "{before:?} {after:?}");
        assert!(after.resident <= before.resident + 32 * MIB, "{before:?} {after:?}");
    });
    large.into_iter().for_each(free);
}

/// Below 8 MiB the unused rest of a chunk would be too much, except where a single class grows.
#[test]
fn a_small_heap_takes_small_pages_but_for_a_class_that_is_filled() {
    play_in_huge_pages("small_heap", "a class that is filled, in huge pages");
}

fn small_heap() {
    let blocks: Vec<_> = (0..7 * MIB / BLOCK).map(|_| raw::malloc(BLOCK)).collect();
    blocks.iter().for_each(|block| touch(*block, 0, BLOCK));
    let memory = self::memory();
    assert!(memory.advised == 0 && memory.huge == 0, "{memory:?}");
    blocks.into_iter().for_each(free);
    assert!(control::purge(control::ARENAS_ALL));
    let blocks: Vec<_> = (0..7 * MIB / 128).map(|_| raw::malloc(128)).collect();
    let memory = self::memory();
    assert_eq!(memory.advised >= 2 * MIB, listens(), "{memory:?}");
    blocks.into_iter().for_each(free);
}

/// Zeroed blocks may be hardly touched.
#[test]
fn zeros_take_small_pages_in_a_large_heap() {
    play_well("zeros", "");
}

fn zeros() {
    let before: Vec<_> = (0..16 * MIB / BLOCK).map(|_| raw::malloc_zeroed(BLOCK)).collect();
    let blocks: Vec<_> = (0..32).map(|_| raw::malloc_zeroed(MIB)).collect();
    blocks.iter().for_each(|block| touch(*block, 0, PAGE));
    let memory = memory();
    assert!(memory.advised == 0 && memory.resident < 16 * MIB, "{memory:?}");
    before.into_iter().chain(blocks).for_each(free);
}

// --- holes -------------------------------------------------------------------------------------

/// Three quarters of a heap in huge pages, freed here and there, are given back by a purge. The
/// blocks in use stay as they are, and the system is not asked to fill the holes again.
#[test]
fn holes_in_huge_pages_go_back() {
    play_in_huge_pages("holes", "holes in huge pages");
    play_well("holes", "muzzy_decay_ms:1000");
}

fn holes() {
    let blocks: Vec<_> = (0..64 * MIB / BLOCK).map(|_| raw::malloc(BLOCK)).collect();
    blocks.iter().for_each(|block| touch(*block, 0, BLOCK));
    let before = memory();
    let (gone, kept): (Vec<_>, Vec<_>) = blocks.iter().enumerate().partition(|(n, _)| n % 4 != 0);
    gone.into_iter().for_each(|(_, block)| free(*block));
    assert!(control::purge(control::ARENAS_ALL));
    let after = memory();
    assert!(after.resident + 44 * MIB < before.resident, "{before:?} {after:?}");
    assert!(after.advised <= before.advised / 8, "{before:?} {after:?}");
    kept.iter().for_each(|(_, block)| assert_touched(**block, BLOCK));
    // The holes are used again, and read zero where zeroed blocks are requested.
    let zeros: Vec<_> = (0..32 * MIB / BLOCK).map(|_| raw::malloc_zeroed(BLOCK)).collect();
    for block in zeros {
        for at in (0..BLOCK).step_by(PAGE) {
            // SAFETY: inside a live block.
            assert_eq!(unsafe { block.wrapping_add(at).read() }, 0);
        }
        free(block);
    }
    kept.into_iter().for_each(|(_, block)| free(*block));
}

/// A C block is as long as its class. The huge page in which the request ends is not taken for a
/// few kilobytes of it, but a block that grows gets that page.
#[test]
fn the_end_of_a_request_takes_no_huge_page_for_a_few_bytes() {
    if listens_for("the end of a request in small pages") {
        play_well("room", "");
    }
}

fn room() {
    const HUGE: usize = 2 * MIB;
    let before = memory();
    let mut block = raw::malloc(4 * HUGE + 20 * PAGE);
    touch(block, 0, 4 * HUGE + 20 * PAGE);
    let asked = memory();
    assert_eq!(asked.advised - before.advised, 4 * HUGE, "{asked:?}");
    assert!(asked.resident < before.resident + 4 * HUGE + MIB, "{before:?} {asked:?}");
    for more in [5 * HUGE, 6 * HUGE] {
        // SAFETY: a live block, not used afterwards.
        block = unsafe { raw::realloc(block, more) };
        let grown = memory();
        assert_eq!(grown.advised - before.advised, more, "{grown:?}");
    }
    assert_touched(block, 4 * HUGE + 20 * PAGE);
    free(block);
    assert!(control::purge(control::ARENAS_ALL));
    // A block whose class ends before that huge page does.
    let before = memory();
    let block = raw::malloc(2 * HUGE + PAGE);
    touch(block, 0, 2 * HUGE + PAGE);
    let asked = memory();
    assert!(asked.resident < before.resident + 2 * HUGE + MIB, "{before:?} {asked:?}");
    assert!(asked.advised >= before.advised + 2 * HUGE, "{before:?} {asked:?}");
    free(block);
}
