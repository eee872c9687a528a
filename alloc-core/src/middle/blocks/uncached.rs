//! Blocks past all caches: one by one, through an arena's bins.

use super::shared_slabs;
use super::slab_guard::free_one_remotely;
use crate::back::page_allocator::Memory;
use crate::ground::fatal;
use crate::ground::size_class::SizeClass;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::bin::BinSlabs;
use crate::middle::arenas::choose_arena::others;
use crate::middle::arenas::home_arena::HomeArena;
use crate::middle::events::UNCACHED;
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;

/// One new block past all caches. Null: no memory.
pub(crate) fn allocate(arena: &'static Arena, class: SizeClass) -> *mut u8 {
    let mut slabs = arena.bin(class).slabs.lock();
    take(arena, &mut slabs, class, Memory::Any).unwrap_or(core::ptr::null_mut())
}

/// An arena with at least so many unused pages has much unused memory.
const MUCH: usize = (4 << 20) / PAGE;

/// As [`allocate`], for a thread whose home is `arena`. Before new memory is taken there, blocks of
/// arenas that have much unused memory are. Less is not worth a look at all arenas for each block.
/// Also returns whether another thread held the bin.
pub(crate) fn allocate_at(
    home: &HomeArena,
    arena: &'static Arena,
    class: SizeClass,
) -> (*mut u8, bool) {
    let (mut slabs, was_taken) = arena.bin(class).slabs.lock_and_tell();
    let unused = |other: &'static Arena| {
        let mut slabs = other.bin(class).slabs.try_lock()?;
        take(other, &mut slabs, class, Memory::Resident)
    };
    let has_much = |other: &&'static Arena| {
        other.pages.try_lock().is_some_and(|pages| pages.allocator.counts().dirty >= MUCH)
    };
    let block = take(arena, &mut slabs, class, Memory::Resident)
        .or_else(|| others(home, arena).filter(has_much).find_map(unused))
        .or_else(|| take(arena, &mut slabs, class, Memory::Any));
    (block.unwrap_or(core::ptr::null_mut()), was_taken)
}

fn take(
    arena: &'static Arena,
    slabs: &mut BinSlabs,
    class: SizeClass,
    memory: Memory,
) -> Option<*mut u8> {
    let mut block = None;
    let taken =
        shared_slabs::fill(arena, slabs, class, 1, memory, &UNCACHED, |one| block = Some(one));
    arena.bin(class).filled.add(taken as u64);
    slabs.untold.add((taken * class.size()).cast_signed());
    block
}

/// One new block for a sample: see [`crate::ground::low`]. Null: there is no memory for samples.
pub(crate) fn allocate_sample(arena: &'static Arena, class: SizeClass) -> *mut u8 {
    let bin = arena.bin(class);
    let mut slabs = bin.slabs.lock();
    let block = shared_slabs::take_sample(arena, &mut slabs, class);
    if !block.is_null() {
        bin.filled.add(1);
        slabs.untold.add(class.size().cast_signed());
    }
    block
}

/// Takes one block back past all caches. Takes the bin's lock even if a cache owns the slab, so
/// that a fork never finds a free half done.
pub(crate) fn free(arena: &'static Arena, slab: &'static Slab, slot: usize, block: usize) {
    let class = slab.class();
    let bin = arena.bin(class);
    let mut slabs = bin.slabs.lock();
    bin.flushed.add(1);
    slabs.untold.add(-class.size().cast_signed());
    let (word, mask) = (slot / 64, 1 << (slot % 64));
    let waits = slabs.transfer.holds(core::ptr::with_exposed_provenance_mut(block));
    let twice = if waits {
        true
    } else if slab.remote.guard() == Some(Guard::Bin) {
        let twice = slab.put(word, mask, 1).is_err();
        shared_slabs::refile(arena, &mut slabs, slab, 1);
        twice
    } else {
        bin.sent.add(1);
        !free_one_remotely(slab, class, word, mask)
    };
    if twice {
        fatal::double_free(block, slab.place());
    }
}
