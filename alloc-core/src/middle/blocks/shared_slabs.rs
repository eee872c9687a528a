//! The slabs of an arena's bins, which threads share: taking blocks from them, and filing them
//! where they belong after blocks came back. Under the bin's lock.

use super::slab_guard::{absorb, is_cheap_to_absorb, stack_of_remote};
use crate::back::page_allocator::Memory;
use crate::ground::fatal;
use crate::ground::size_class::SizeClass;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::bin::BinSlabs;
use crate::middle::events::{Event, EventCounts, UNCACHED};
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_links::ListName;
use crate::middle::slabs::transfer_cache::TransferCache;

/// Bytes of slabs of one class that a bin keeps while all their blocks are free.
const SPARE_BYTES: usize = 256 << 10;

/// Takes up to `want` blocks from slabs of this bin, and from new slabs if needed and if `memory`
/// allows. Returns how many: 0 without memory.
pub(crate) fn fill(
    arena: &'static Arena,
    slabs: &mut BinSlabs,
    class: SizeClass,
    want: usize,
    memory: Memory,
    events: &EventCounts,
    mut give: impl FnMut(*mut u8),
) -> usize {
    if is_cheap_to_absorb(class) {
        // First, because a block that is freed remotely while it waits is found by that.
        drain(arena, slabs, class, events);
    }
    let waiting = slabs.transfer.take(want, &mut give);
    if waiting == want {
        return waiting;
    }
    let mut taken = waiting;
    loop {
        while let Some(slab) = slabs.partial.first() {
            slabs.partial.use_spare(slab);
            // Threads share the slab, but not its cache lines, as far as they can.
            if class.blocks_of_lines() > 1 {
                taken += slab.take_lines(want - taken, &mut give);
            }
            taken += slab.take_lowest(want - taken, &mut give);
            if slab.is_full() {
                slabs.partial.remove(slab);
            }
            if taken == want {
                break;
            }
        }
        if taken > 0 {
            slabs.transfer.note_refill(taken - waiting);
            return taken;
        }
        drain(arena, slabs, class, events);
        if slabs.partial.first().is_none() {
            let mut pages = arena.pages.lock();
            // Slabs of shared classes get filled; of others each thread takes a few lines.
            let memory = memory.filled_if(class.is_shared());
            let slab = pages.new_slab(class, Guard::Bin, memory);
            let Some(slab) = slab else { return 0 };
            events.add(Event::Fresh, 1);
            slabs.file(slab);
        }
    }
}

/// Takes one block for a sample, from slabs that have no other blocks. Returns null without memory,
/// and for an arena whose pages come from hooks.
pub(crate) fn take_sample(
    arena: &'static Arena,
    slabs: &mut BinSlabs,
    class: SizeClass,
) -> *mut u8 {
    drain(arena, slabs, class, &UNCACHED);
    if slabs.samples.first().is_none() {
        let slab = arena.pages.lock().new_slab(class, Guard::Bin, Memory::Low);
        let Some(slab) = slab else { return core::ptr::null_mut() };
        slabs.file(slab);
    }
    let Some(slab) = slabs.samples.first() else { return core::ptr::null_mut() };
    slabs.samples.use_spare(slab);
    let mut block = core::ptr::null_mut();
    slab.take_lowest(1, |one| block = one);
    if slab.is_full() {
        slabs.samples.remove(slab);
    }
    block
}

/// Takes in what was freed remotely into slabs of this bin. The caller holds its lock.
pub(crate) fn drain(
    arena: &'static Arena,
    slabs: &mut BinSlabs,
    class: SizeClass,
    events: &EventCounts,
) {
    let pending = &arena.bin(class).pending;
    if pending.is_empty() {
        return;
    }
    let take = |remote| {
        // SAFETY: what lies on a pending stack is the field of a slab's record.
        let slab = unsafe { Slab::of_remote(remote) };
        let freed = absorb(slab);
        if let Some(block) = waiting_but_free(&slabs.transfer, slab) {
            fatal::double_free(block, slab.place());
        }
        events.add(Event::Drained, 1);
        arena.bin(class).absorbed.add(freed as u64);
        refile(arena, slabs, slab, freed);
    };
    // SAFETY: records and stacks live for ever; `take` absorbs.
    unsafe { pending.drain(Guard::Bin, take, stack_of_remote) };
}

/// Returns a block of a slab that is free there although it waits for the next request. It was
/// returned once while the bin's lock was free, and once remotely.
pub(super) fn waiting_but_free(queue: &TransferCache, slab: &Slab) -> Option<usize> {
    let class = slab.class();
    let is_free = |offset: &usize| class.slot_at(*offset).is_some_and(|slot| slab.is_free(slot));
    let offset = queue.offsets_within(slab.base(), class.grid().bytes()).find(is_free)?;
    Some(slab.base() + offset)
}

/// Files a slab of this bin where it belongs after `freed` blocks came back. A slab whose blocks
/// are all free is released, except for a few spare ones.
pub(crate) fn refile(
    arena: &'static Arena,
    slabs: &mut BinSlabs,
    slab: &'static Slab,
    freed: usize,
) {
    slabs.file(slab);
    if slab.list() == ListName::None {
        return;
    }
    if slab.used() == 0 && !slabs.list_of(slab).keep_spare(slab, SPARE_BYTES) {
        release(arena, slabs, slab);
    } else {
        slabs.list_of(slab).settle(slab, freed);
    }
}

/// Gives a slab without a block in use back to the arena. `false`: it is still on a pending stack.
pub(in crate::middle) fn release(
    arena: &'static Arena,
    slabs: &mut BinSlabs,
    slab: &'static Slab,
) -> bool {
    if !slab.remote.release() {
        return false;
    }
    if slab.list() != ListName::None {
        slabs.list_of(slab).remove(slab);
    }
    arena.take_back(slab);
    true
}
