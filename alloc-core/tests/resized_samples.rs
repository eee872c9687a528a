//! A block that keeps its place and class has the size of the last `realloc` in the heap profile,
//! and is the allocation that it was. Under `mprof:true` each `realloc` is an allocation.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::Lumalloc;
use lumalloc::control;
use lumalloc::observe;
use lumalloc::raw;
use std::alloc::Layout;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: Lumalloc = Lumalloc;

#[test]
fn a_block_that_keeps_its_place_and_class_is_one_allocation() {
    for conf in [
        "prof:true,lg_prof_sample:0",
        "prof:true,lg_prof_sample:0,junk:true",
        // A block of some hundred bytes is always a sample.
        "prof:true,lg_prof_sample:1,prof_seed:1",
    ] {
        play_well("resized", conf);
    }
}

#[test]
fn each_realloc_is_an_allocation_of_mprof() {
    play_well("requests", "mprof:true");
}

#[test]
#[ignore = "the scenarios of the tests above"]
fn child() {
    match scenario().expect("a scenario").as_str() {
        "resized" => resized(true),
        "requests" => resized(false),
        other => panic!("{other}"),
    }
}

/// What was allocated and freed of a requested size.
fn counts(requested: usize) -> (u64, u64) {
    let mut sum = (0, 0);
    observe::profile(|entry| {
        if entry.requested == requested {
            sum = (sum.0 + entry.allocated, sum.1 + entry.freed);
        }
    });
    sum
}

/// The exact count of allocations of the class of blocks that have so many bytes.
fn of_class(bytes: usize) -> u64 {
    let mut least = (usize::MAX, 0);
    observe::class_counts(|class| {
        if class.size >= bytes && class.size < least.0 {
            least = (class.size, class.allocations);
        }
    });
    least.1
}

/// The requested bytes of the sample at an address, and the thread that allocated it.
fn live_at(block: *mut u8) -> Vec<(usize, u64)> {
    let mut found = [None; 2];
    let mut count = 0;
    observe::live_samples(|sample| {
        if sample.address == block as usize {
            found[count] = Some((sample.requested, sample.thread));
            count += 1;
        }
    });
    found.into_iter().flatten().collect()
}

/// `is_one`: a block that stays is one allocation.
fn resized(is_one: bool) {
    // Sizes that nothing else requests.
    for (from, to) in [(30_011, 30_013), (3001, 3003), (131_073, 150_001)] {
        stays(raw::malloc(from), from, to, is_one, |block| {
            // SAFETY: a live block.
            unsafe { raw::realloc(block, to) }
        });
        stays(raw::malloc(from + 4), from + 4, to + 4, is_one, |block| {
            // SAFETY: a live block.
            unsafe { raw::realloc_roomy(block, to + 4) }
        });
    }
    // Rust's large blocks have the pages that they need; the class has more.
    in_its_pages(33, 0, is_one);
    in_its_pages(129, 0, is_one);
    // Between neighbours it is moved.
    in_its_pages(129, 7, is_one);
    let old = raw::malloc(5001);
    // SAFETY: a live block.
    let new = black_box(unsafe { raw::realloc(old, 9001) });
    assert!((counts(5001), counts(9001)) == ((1, 1), (1, 0)) && live_at(new).len() == 1);
    // Room for the next class is no request.
    // SAFETY: a live block.
    let roomy = black_box(unsafe { raw::realloc_roomy(new, 10_241) });
    assert_eq!(live_at(roomy).first().map(|found| found.0), Some(10_241));
    // SAFETY: freed once.
    unsafe { raw::free(roomy) };
}

/// The layout of a block that needs so many pages.
fn pages(count: usize) -> Layout {
    black_box(Layout::from_size_align(4096 * count - 5, 1).expect("a layout"))
}

/// Checks a block that gets two pages more, beside as many blocks as long.
fn in_its_pages(count: usize, neighbours: usize, is_one: bool) {
    let (layout, to) = (pages(count), pages(count + 2).size());
    // SAFETY: the layout has a size.
    let allocate = || black_box(unsafe { std::alloc::alloc(layout) });
    let mut blocks: Vec<_> = (0..=neighbours).map(|_| allocate()).collect();
    let next = |block: &*mut u8| blocks.contains(&block.wrapping_add(4096 * count));
    let before = blocks.iter().position(next);
    assert_eq!(before.is_some(), neighbours > 0);
    let block = blocks.swap_remove(before.unwrap_or(0));
    let stayed = stays(block, layout.size(), to, is_one, |block| {
        // SAFETY: a block of this layout.
        unsafe { std::alloc::realloc(block, layout, to) }
    });
    assert_eq!(stayed, neighbours == 0);
    for block in blocks {
        // SAFETY: freed once.
        unsafe { raw::free(block) };
    }
}

/// Checks what becomes of a sample that another call makes one of `to` bytes. Returns whether it
/// has kept its place.
fn stays(
    block: *mut u8,
    from: usize,
    to: usize,
    is_one: bool,
    resize: impl FnOnce(*mut u8) -> *mut u8,
) -> bool {
    control::profile::settle();
    let before = live_at(block);
    assert_eq!((before.len(), before[0].0), (1, from));
    let (counts_before, of_class_before) = ([counts(from), counts(to)], of_class(from));
    let new = black_box(resize(block));
    let is_one = is_one && new == block;
    let [mut gone, mut come] = counts_before;
    gone = if is_one { (gone.0 - 1, gone.1) } else { (gone.0, gone.1 + 1) };
    come.0 += 1;
    assert_eq!([counts(from), counts(to)], [gone, come], "{from} {to}");
    assert_eq!(live_at(new), [(to, before[0].1)]);
    // The counts of classes know requests neither of blocks that stay nor of mprof.
    assert_eq!(of_class(to) - of_class_before, u64::from(new != block), "{from} {to}");
    // SAFETY: freed once.
    unsafe { raw::free(new) };
    control::profile::settle();
    assert_eq!(counts(to), (come.0, come.1 + 1), "{to}");
    new == block
}
