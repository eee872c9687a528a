//! Blocks of classes of which caches own no slabs. They wait at their bin for the next request, or
//! go into their slabs. See [`crate::middle::slabs::transfer_cache`].

use super::misuse_report::{died_twice, find_slab, interior, invalid};
use super::shared_slabs::refile;
use super::slab_guard::free_remotely;
use crate::back::map::page_map;
use crate::ground::fatal;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::lock;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::bin::BinSlabs;
use crate::middle::events::Event;
use crate::middle::owners::owner::Owner;
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::transfer_cache::Slot;
use crate::profile::sampler;

/// Returns whether a block of a class waits at its bin for the next request, or `None` if another
/// thread, or this one, has the bin's lock.
pub(crate) fn waits(class: SizeClass, block: Slot) -> Option<bool> {
    if !class.is_shared() {
        return Some(false);
    }
    let slab = Slab::of(page_map::lookup(block.expose_provenance()));
    let Some(arena) = slab.and_then(|slab| arena_list::by_id(slab.arena())) else {
        return Some(false);
    };
    Some(arena.bin(class).slabs.try_lock()?.transfer.holds(block))
}

/// Takes a block that is returned to a bin, slot `slot` of `slab`, and keeps it for the next
/// request. If there is no room, the older half of the waiting blocks goes into slabs first. Under
/// the bin's lock.
fn pass_on(arena: &'static Arena, slabs: &mut BinSlabs, block: Slot, (slab, slot): (&Slab, usize)) {
    if is_back(slabs, block, (slab, slot)) {
        died_waiting(block);
    }
    if arena.purges_at_once() {
        return put_into_slab(arena, slabs, block);
    }
    if !slabs.transfer.put(block) {
        let n = slabs.transfer.count().div_ceil(2);
        slabs.transfer.note_gone(n);
        return_to_slabs(arena, slabs, n);
        if !slabs.transfer.put(block) {
            put_into_slab(arena, slabs, block);
        }
    }
}

/// Returns whether a block, slot `slot` of `slab`, was returned before. Under the bin's lock.
fn is_back(slabs: &BinSlabs, block: Slot, (slab, slot): (&Slab, usize)) -> bool {
    let is_sent = || slab.remote.seen(slot / 64) >> (slot % 64) & 1 != 0;
    slabs.transfer.holds(block) || slab.is_free(slot) || is_sent()
}

/// Puts all waiting blocks into their slabs. Under the bin's lock.
pub(in crate::middle) fn empty(arena: &'static Arena, slabs: &mut BinSlabs) {
    return_to_slabs(arena, slabs, slabs.transfer.count());
    slabs.transfer.age();
}

#[inline(never)]
fn return_to_slabs(arena: &'static Arena, slabs: &mut BinSlabs, n: usize) {
    for _ in 0..n {
        let mut oldest = None;
        slabs.transfer.take(1, |block| oldest = Some(block));
        if let Some(block) = oldest {
            put_into_slab(arena, slabs, block);
        }
    }
}

fn put_into_slab(arena: &'static Arena, slabs: &mut BinSlabs, block: Slot) {
    let address = block.expose_provenance();
    // Both were checked when the block came. A change since then is a fault of others.
    let Some(slab) = Slab::of(page_map::lookup(address)) else { invalid(address, None) };
    let Some(slot) = slab.class().slot_at(address.wrapping_sub(slab.base())) else {
        interior(slab, address)
    };
    if slab.put(slot / 64, 1 << (slot % 64), 1).is_err() {
        died_waiting(block);
    }
    refile(arena, slabs, slab, 1);
}

/// Gives back blocks of a class of which caches own no slabs, one by one. The caller holds the
/// owner's lock.
pub(in crate::middle) fn give_back(owner: &'static Owner, class: SizeClass, blocks: &[Slot]) {
    let home = owner.ledger.home_or(class.index(), owner.home.get().id());
    let grid = class.grid();
    let mut held: Option<(&'static Arena, lock::Guard<'static, BinSlabs>)> = None;
    let (mut elsewhere, mut sent) = (0, 0);
    for block in blocks {
        let address = block.expose_provenance();
        let slab = find_slab(class, address);
        let Some(slot) = grid.slot_at(address - slab.base()) else { interior(slab, address) };
        let id = slab.arena();
        if id != home.arena() {
            elsewhere += 1;
            owner.ledger.of(class.index(), id).flushed.add(1);
        }
        if held.as_ref().is_none_or(|(arena, _)| arena.id() != id) {
            drop(held.take());
            let arena = arena_list::by_id(id);
            held = arena.and_then(|arena| Some((arena, arena.bin(class).slabs.try_lock()?)));
        }
        if slab.is_for_samples() {
            sampler::note_freed_before(address);
        }
        match &mut held {
            // Under the lock the guard does not change.
            Some((arena, slabs)) if slab.is_for_samples() => put_into_slab(arena, slabs, *block),
            Some((arena, slabs)) if slab.remote.guard() == Some(Guard::Bin) => {
                pass_on(arena, slabs, *block, (slab, slot));
            }
            _ => {
                sent += 1;
                send(owner, slab, class, slot);
            }
        }
    }
    home.flushed.add(blocks.len() as u64 - elsewhere);
    home.flushes.add(1);
    home.remote.add(blocks.len() as u64);
    home.sent.add(sent);
    owner.events.add(Event::Flush, 1);
}

/// Frees a block remotely, to a slab whose guard is busy.
#[inline(never)]
fn send(owner: &Owner, slab: &'static Slab, class: SizeClass, slot: usize) {
    match free_remotely(slab, class, slot / 64, 1 << (slot % 64)) {
        Ok(freed) => {
            owner.events.add(Event::Group, 1);
            owner.events.add(Event::RemoteWord, 1);
            owner.events.add(Event::Push, u64::from(freed.pushed));
            owner.events.add(Event::Retry, u64::from(freed.retries));
        }
        Err(twice) => died_twice(slab, (slot / 64) as u32, twice),
    }
}

/// Ends the process for a block that is returned while it already waits.
#[cold]
#[inline(never)]
fn died_waiting(block: Slot) -> ! {
    let address = block.expose_provenance();
    match Slab::of(page_map::lookup(address)) {
        Some(slab) => fatal::double_free(address, slab.place()),
        None => invalid(address, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::Memory;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::middle::blocks::shared_slabs::{fill, waiting_but_free};
    use crate::middle::blocks::slab_guard::is_cheap_to_absorb;
    use crate::middle::events::UNCACHED;

    /// While the lock of the bin is held, what is given back is freed remotely.
    #[test]
    fn a_block_that_waits_and_is_freed_remotely_is_found_from_both_sides() {
        let cache = new_cache();
        let arena = cache.owner.home.get();
        let class = SizeClass::of(20_000);
        // So a request looks at what was freed remotely before it takes a block that waits.
        assert!(SizeClass::all().filter(|class| class.is_shared()).all(is_cheap_to_absorb));
        let bin = arena.bin(class);
        let mut slabs = bin.slabs.lock();
        let mut blocks = Vec::new();
        while blocks.len() < 2 {
            let give = |block| blocks.push(block);
            assert!(fill(arena, &mut slabs, class, 1, Memory::Any, &UNCACHED, give) > 0);
        }
        let place_of = |block: Slot| {
            let slab = find_slab(class, block.expose_provenance());
            (slab, class.slot_at(block as usize - slab.base()).unwrap())
        };
        let [first, second] = [blocks[0], blocks[1]].map(|block| (block, place_of(block)));

        // First to the queue, and then remotely.
        assert!(!is_back(&slabs, first.0, first.1));
        assert!(slabs.transfer.put(first.0));
        assert!(is_back(&slabs, first.0, first.1));
        give_back(&cache.owner, class, &blocks[..1]);
        let (slab, slot) = first.1;
        assert_eq!(waiting_but_free(&slabs.transfer, slab), None, "its slab has not taken it in");
        assert_eq!(slab.absorb(), Ok(1));
        assert_eq!(waiting_but_free(&slabs.transfer, slab), Some(first.0 as usize));

        // First remotely, and then to the queue.
        assert!(!is_back(&slabs, second.0, second.1));
        give_back(&cache.owner, class, &blocks[1..]);
        assert!(is_back(&slabs, second.0, second.1));

        // All that was freed twice is taken out of the queue or of its slab again.
        let mut waiting = Vec::new();
        slabs.transfer.take(usize::MAX, |block| waiting.push(block));
        assert!(slab.is_free(slot) && waiting.contains(&first.0));
        waiting.retain(|block| *block != first.0);
        waiting.iter().for_each(|block| put_into_slab(arena, &mut slabs, *block));
        refile(arena, &mut slabs, slab, 1);
        drop(slabs);
        end(cache);
    }
}
