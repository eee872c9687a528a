//! The hardened tier: freed blocks are wiped and wait, blocks come in random order, and a correct
//! program notices none of it, except that it may write no byte more than it requested.
//! `hardened_deaths.rs` tests how misuse ends the process.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use common::hardened_class;
use lumalloc::control::arenas;
use lumalloc::raw::{self, Flags};
use lumalloc::{Lumalloc, control, observe};
use std::alloc::{GlobalAlloc, Layout};
use std::collections::HashSet;

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("sizes") => sizes(),
        Some("wiped") => wiped(),
        Some("order") => order(),
        Some("parked") => parked(),
        Some("waits") => waits(),
        Some("large_waits") => large_waits(),
        Some("large_without_room") => large_without_room(),
        Some("hooked") => hooked(),
        Some("resized") => resized(),
        Some("in_place") => in_place(),
        Some("layouts") => layouts(),
        Some("fork") => fork(),
        Some("handed_out") => handed_out(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

fn pointer(address: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address)
}

fn free(address: usize) {
    // SAFETY: a live block, not used afterwards, or the mistake that is tested.
    unsafe { raw::free(pointer(address)) };
}

fn malloc(size: usize) -> usize {
    let ptr = raw::malloc(size);
    assert!(!ptr.is_null());
    ptr.expose_provenance()
}

fn write(address: usize, byte: u8) {
    // SAFETY: mapped memory of the allocator.
    unsafe { pointer(address).write(byte) };
}

/// The usable size of a block is the requested one, and all functions agree on it.
fn sizes() {
    for size in (0..3000).chain([8000, 14328, 14329, 32759, 32760, 32761, 32768, 32769, 100_000]) {
        for align in [1, 16, 64, 4096] {
            let ptr = raw::malloc_aligned(size, align);
            assert!((ptr as usize).is_multiple_of(align));
            // SAFETY: a live block.
            let usable = unsafe { raw::usable_size(ptr) };
            assert!(usable >= size);
            assert_eq!(usable, raw::good_size(size, align), "{size} at {align}");
            assert_eq!(usable, size.max(1), "at {align}");
            if let Some(class) = hardened_class(size, align) {
                // What the class holds without its canary: nothing of the block is read.
                assert_eq!(raw::block_size(ptr), Some(class - 8), "{size} at {align}");
            } else {
                let bytes = raw::block_size(ptr).expect("a block");
                assert!(bytes.is_multiple_of(4096) && bytes >= size, "{size} at {align}: {bytes}");
            }
            // SAFETY: a live block, this long.
            unsafe { ptr.write_bytes(0xff, usable) };
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::free_sized_aligned(ptr, size, align) };
        }
    }
}

#[test]
fn usable_sizes_are_the_requested_ones() {
    play_well("sizes", "hardened:true");
    play_well("sizes", "hardened:true,tcache:false");
}

/// Freed small blocks read zero.
fn wiped() {
    for size in [1, 16, 24, 100, 500, 1016, 1017, 4000, 32_760] {
        let block = malloc(size);
        // SAFETY: a live block.
        let usable = unsafe { raw::usable_size(pointer(block)) };
        (0..usable).for_each(|at| write(block + at, 0x77));
        free(block);
        // SAFETY: the slab stays mapped, because the block waits in this thread's cache.
        let left = unsafe { std::slice::from_raw_parts(pointer(block), usable) };
        assert!(left.iter().all(|byte| *byte == 0), "{size}: {left:?}");
    }
}

#[test]
fn what_is_freed_is_zeroed() {
    play_well("wiped", "hardened:true");
}

/// Blocks that were allocated one after the other do not lie one after the other.
fn order() {
    let blocks: Vec<usize> = (0..2000).map(|_| malloc(64)).collect();
    let rising = blocks.windows(2).filter(|two| two[1] == two[0] + 80).count();
    assert!(rising < 400, "{rising} of 2000 follow their predecessor");
    let different: HashSet<_> = blocks.iter().collect();
    assert_eq!(different.len(), blocks.len());
}

/// Blocks that a thread kept beyond its bins do not lie in order either, once a megabyte
/// circulates. The quarantine mixes blocks within some 32 frees, and refills mix more.
fn parked() {
    for round in 0..20 {
        let mut blocks: Vec<usize> = (0..13_000).map(|_| malloc(64)).collect();
        let near = blocks.windows(2).filter(|two| two[0].abs_diff(two[1]) < 64 * 80).count();
        assert!(near < 8700, "{near} of 13000 near their predecessor in round {round}");
        blocks.sort_unstable();
        blocks.into_iter().for_each(free);
    }
    assert!(observe::totals().cached > 512 << 10, "nothing was parked");
}

#[test]
fn the_order_of_blocks_is_random() {
    play_well("order", "hardened:true");
    play_well("parked", "hardened:true");
}

/// The next request does not get a freed block, and all blocks are returned in the end.
fn waits() {
    let first = malloc(100);
    let before = observe::totals().allocated;
    let mut reused = 0;
    for _ in 0..1000 {
        let block = malloc(100);
        free(block);
        let next = malloc(100);
        reused += usize::from(next == block);
        free(next);
    }
    assert!(reused < 200, "{reused} of 1000 came back at once");
    let totals = observe::totals();
    assert_eq!(totals.allocated, before, "what waits is not the program's");
    assert!(totals.cached >= 112);
    control::flush_thread_cache();
    assert_eq!(observe::totals().cached, 0);
    free(first);
    let thread = || (0..100).map(|_| malloc(100)).for_each(free);
    std::thread::spawn(thread).join().expect("a thread");
    assert_eq!(observe::totals().cached, 112, "the thread's exit sent its blocks home");
}

#[test]
fn a_freed_block_waits_in_quarantine() {
    play_well("waits", "hardened:true");
}

/// How many pages of a block have memory.
fn resident(block: usize, size: usize) -> usize {
    let mut pages = vec![0_u8; size.div_ceil(4096)];
    // SAFETY: asks about addresses, of which the system knows whether they are mapped.
    let asked = unsafe { libc::mincore(pointer(block).cast(), size, pages.as_mut_ptr()) };
    assert_eq!(asked, 0, "{}", std::io::Error::last_os_error());
    pages.into_iter().filter(|page| page & 1 != 0).count()
}

/// The address of a large block is not used again before sixteen others were freed, its memory
/// goes at once, and what gets the address in the end reads zero.
fn large_waits() {
    for size in [40_000, 200_000, 400_000] {
        let mut last: Vec<usize> = Vec::new();
        let mut reused = 0;
        // More of them would be too many for a short time.
        for _ in 0..18 {
            let block = malloc(size);
            let overlaps = |freed: &usize| freed.abs_diff(block) < size;
            assert!(!last.iter().rev().take(16).any(overlaps), "{size}");
            reused += usize::from(last.iter().any(overlaps));
            // SAFETY: a fresh block, this long.
            let fresh = unsafe { std::slice::from_raw_parts_mut(pointer(block), size) };
            assert!(fresh.iter().all(|byte| *byte == 0), "{size}");
            fresh.fill(0xa5);
            free(block);
            assert_eq!(resident(block, size), 0, "{size}");
            last.push(block);
        }
        assert!(reused > 0, "no address of {size} bytes came back");
        assert!(observe::totals().retained >= 16 * size, "{size}");
    }
}

/// Where there are no more addresses, those that wait are used.
fn large_without_room() {
    const SIZE: usize = 32 << 20;
    let block = malloc(SIZE);
    free(block);
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: lowers a limit of this process.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) }, 0);
    assert_eq!(malloc(SIZE), block);
}

#[test]
fn a_freed_large_block_waits_without_memory() {
    play_well("large_waits", "hardened:true,narenas:1");
    play_well("large_without_room", "hardened:true,narenas:1");
}

/// Runs of large blocks that were freed, and so closed, are open for hooks that the arena then
/// gets, and for blocks that come from them.
fn hooked() {
    let sizes = || (1..100).map(|n| n * 40_000);
    sizes().map(malloc).collect::<Vec<_>>().into_iter().for_each(free);
    let default = arenas::extent_hooks(0).expect("the first arena");
    // SAFETY: the default hooks do what the manual says.
    assert!(unsafe { arenas::set_extent_hooks(0, default) }.is_some());
    for size in sizes() {
        let block = malloc(size);
        (0..size).step_by(4096).for_each(|at| write(block + at, 1));
        // SAFETY: a live block.
        let grown = unsafe { raw::realloc(pointer(block), size + 100_000) };
        // SAFETY: a live block, this long.
        unsafe { grown.write_bytes(2, size + 100_000) };
        if size % 3 == 0 {
            free(grown.expose_provenance());
        }
    }
}

#[test]
fn an_arena_that_gets_hooks_has_no_closed_memory() {
    play_well("hooked", "hardened:true,narenas:1");
}

/// A block stays where its class serves the new size too, and keeps what both sizes hold.
fn resized() {
    let sizes =
        [0, 1, 8, 9, 24, 25, 100, 104, 105, 1016, 1017, 5000, 14_000, 32_760, 32_761, 40_000];
    for from in sizes {
        for to in sizes {
            let block = raw::malloc(from);
            (0..from).for_each(|at| write(block.expose_provenance() + at, at as u8 | 1));
            let class = |size| hardened_class(size, 1);
            let stays = from > 0 && class(from) == class(to);
            // SAFETY: a live block.
            let new = unsafe { raw::realloc(block, to) };
            assert!(from.max(to) > 32_760 || stays == (new == block), "{from} to {to}");
            // SAFETY: the block that the call returned.
            let usable = unsafe { raw::usable_size(new) };
            assert_eq!(usable, to.max(1), "{from} to {to}");
            // SAFETY: a live block, this long.
            let kept = unsafe { std::slice::from_raw_parts(new, from.min(to)) };
            assert!(
                kept.iter().enumerate().all(|(at, byte)| *byte == at as u8 | 1),
                "{from} to {to}"
            );
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::free_sized(new, to) };
        }
    }
}

#[test]
fn a_resized_block_keeps_what_it_holds() {
    play_well("resized", "hardened:true");
    play_well("resized", "hardened:true,junk:true");
    play_well("resized", "hardened:true,tcache:false");
}

/// `xallocx` and `rallocx` resize a block within its class, and zero what it gains.
fn in_place() {
    let zeroed = Flags::NONE.zeroed();
    let block = raw::allocate(50, zeroed);
    // SAFETY: a live block.
    let resize = |size, extra, flags| unsafe { raw::resize_in_place(block, size, extra, flags) };
    // The class has 64 bytes, 8 of them for the canary.
    assert_eq!(resize(52, 0, zeroed), 52, "longer");
    assert_eq!(resize(30, 10, zeroed), 52, "that is of another class");
    assert_eq!(resize(49, 1, zeroed), 50, "shorter");
    assert_eq!(resize(51, 1000, zeroed), 56, "as long as possible");
    assert_eq!(resize(57, 0, zeroed), 56, "too long");
    // SAFETY: a live block, this long.
    let is_zero = |size| unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|b| *b == 0);
    assert!(is_zero(56));
    assert_eq!(resize(50, 0, Flags::NONE), 50);
    // SAFETY: a live block, which stays because its class does.
    assert_eq!(unsafe { raw::reallocate(block, 55, zeroed) }, block);
    // SAFETY: a live block.
    assert!(is_zero(55) && unsafe { raw::usable_size(block) } == 55);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::deallocate_sized(block, 55, Flags::NONE) };
}

#[test]
fn a_block_is_resized_within_its_class() {
    play_well("in_place", "hardened:true");
    play_well("in_place", "hardened:true,junk:true");
    play_well("in_place", "hardened:true,tcache:false");
}

/// Rust's `realloc` resizes a block by its real room, not by the class of its layout.
fn layouts() {
    let layout = |size, align| Layout::from_size_align(size, align).expect("a layout");
    for align in [1, 8, 64] {
        for from in 1..300 {
            for to in [1, from + 1, from + 8, from * 2, 40_000] {
                // SAFETY: the layout is not empty.
                let ptr = unsafe { Lumalloc.alloc_zeroed(layout(from, align)) };
                // SAFETY: a live block of this layout.
                let new = unsafe { Lumalloc.realloc(ptr, layout(from, align), to) };
                assert!((new as usize).is_multiple_of(align));
                // SAFETY: a live block, this long.
                unsafe { new.write_bytes(0xee, to) };
                // SAFETY: a live block of this layout, not used afterwards.
                unsafe { Lumalloc.dealloc(new, layout(to, align)) };
            }
        }
    }
}

#[test]
fn layouts_have_their_room() {
    play_well("layouts", "hardened:true");
    play_well("layouts", "hardened:true,zero:true");
}

/// The child frees the parent's blocks, and loses the waiting blocks of other threads.
fn fork() {
    let blocks: Vec<usize> = (0..100).map(|_| malloc(100)).collect();
    let (send, wait) = std::sync::mpsc::channel::<()>();
    let (ready, is_ready) = std::sync::mpsc::channel::<()>();
    let other = std::thread::spawn(move || {
        (0..50).map(|_| malloc(100)).for_each(free);
        ready.send(()).expect("the parent");
        let _ = wait.recv();
    });
    is_ready.recv().expect("the thread");
    // SAFETY: the child uses this thread's memory only.
    let child = unsafe { libc::fork() };
    if child == 0 {
        blocks.iter().for_each(|block| free(*block));
        let lost = observe::totals().fork_abandoned;
        (0..1000).map(|_| malloc(100)).for_each(free);
        // SAFETY: the call ends the child at once.
        unsafe { libc::_exit(i32::from(lost < 16)) };
    }
    let mut status = -1;
    // SAFETY: the child is this process's, and `status` is writable.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0);
    drop(send);
    other.join().expect("the thread");
    blocks.into_iter().for_each(free);
}

#[test]
fn a_forked_child_goes_on() {
    play_well("fork", "hardened:true");
}

/// A thread that hands a block out fills the slack up to the end of the block before it writes the
/// canary. It may be interrupted there for any time, while the block behind is freed.
fn handed_out() {
    let mut blocks: Vec<usize> = (0..14).map(|_| malloc(80)).collect();
    blocks.sort_unstable();
    let two = blocks.windows(2).find(|two| two[1] - two[0] == 96).expect("neighbours");
    // SAFETY: the slack of a block.
    let filling = unsafe { pointer(two[0] + 80).read_volatile() };
    (88..96).for_each(|at| write(two[0] + at, filling));
    free(two[1]);
}

#[test]
fn a_block_that_is_being_handed_out_is_not_taken_for_overwritten() {
    play_well("handed_out", "hardened:true");
}
