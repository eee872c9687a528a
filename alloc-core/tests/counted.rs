//! A thread that reads its cells (`thread.allocatedp`), while modes that see all operations are
//! turned on and off.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use core::ffi::c_void;
use lumalloc::control::profile::{self, AllocatedHook, FreedHook};
use lumalloc::control::{self, Fill, thread as own};
use lumalloc::raw;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("switched") => switched(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

static TOLD: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

extern "C" fn told_allocated(_block: *const c_void, _size: usize) {
    TOLD[0].fetch_add(1, Relaxed);
}

extern "C" fn told_freed(_block: *const c_void) {
    TOLD[1].fetch_add(1, Relaxed);
}

/// The cells of this thread, and what they are to hold.
struct Counts {
    cells: [*const u64; 2],
    expected: [u64; 2],
}

impl Counts {
    fn begin() -> Counts {
        let cells = [own::allocatedp(), own::deallocatedp()];
        let cells = cells.map(|cell| cell.expect("a thread").as_ptr().cast_const());
        let mut counts = Counts { cells, expected: [0; 2] };
        counts.expected = counts.seen();
        counts
    }

    fn seen(&self) -> [u64; 2] {
        // SAFETY: the cells belong to this thread.
        self.cells.map(|cell| unsafe { cell.read() })
    }

    #[track_caller]
    fn check(&mut self, allocated: usize, freed: usize) {
        self.expected[0] += allocated as u64;
        self.expected[1] += freed as u64;
        assert_eq!(self.seen(), self.expected);
        assert_eq!([own::allocated(), own::deallocated()], self.expected);
    }
}

fn usable(block: *mut u8) -> usize {
    // SAFETY: a live block.
    unsafe { raw::usable_size(block) }
}

/// Allocates, resizes in place, moves and frees blocks. Returns how often blocks were allocated and
/// freed, as hooks are told.
fn work(counts: &mut Counts, junk: bool) -> usize {
    let sizes = [1, 16, 100, 4000, 20_000, 100_000];
    for size in sizes.into_iter().flat_map(|size| [size; 3]) {
        let mut block = raw::malloc(size);
        // SAFETY: a live block.
        assert!(!junk || unsafe { block.read() } == 0xa5);
        counts.check(usable(block), 0);
        for size in [size, size * 3, size] {
            let (old, before) = (block, usable(block));
            // SAFETY: a live block, which the new one replaces.
            block = unsafe { raw::realloc(old, size) };
            let after = usable(block);
            let is_new = block != old || after != before;
            let (allocated, freed) = if is_new { (after, before) } else { (0, 0) };
            counts.check(allocated, freed);
        }
        let freed = usable(block);
        // SAFETY: a live block, freed once.
        unsafe { raw::free(block) };
        counts.check(0, freed);
    }
    4 * 3 * sizes.len()
}

fn switched() {
    let mut counts = Counts::begin();
    for turn in 0..12 {
        let (hooks, junk) = (turn % 2 == 1, turn % 3 == 2);
        let (allocated, freed): (Option<AllocatedHook>, Option<FreedHook>) =
            if hooks { (Some(told_allocated), Some(told_freed)) } else { (None, None) };
        assert!(profile::set_hooks(allocated, freed));
        assert!(control::set_fill(Fill { junk_allocated: junk, ..Fill::default() }));
        let before = TOLD.each_ref().map(|told| told.load(Relaxed));
        let done = work(&mut counts, junk);
        let told = [0, 1].map(|which| TOLD[which].load(Relaxed) - before[which]);
        assert_eq!(told, if hooks { [done; 2] } else { [0; 2] }, "turn {turn}");
    }
}

#[test]
fn cells_move_and_modes_see_all_operations_while_these_are_switched() {
    for conf in ["", "tcache_gc_incr_bytes:1024", "prof:true,lg_prof_sample:12"] {
        play_well("switched", conf);
    }
}
