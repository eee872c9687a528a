//! Blocks that are returned to their slabs, many at a time.
//!
//! Blocks go one after the other by plain ORs into a slab that the cache owns, and into one of an
//! arena's bin whose lock is free. For any other slab the blocks are grouped by the 64-bit word
//! that they belong to, and a group is one atomic OR. The block itself is never touched. Misuse is
//! noticed here at no cost to the fast path: a bit already set is a double free, an offset that is
//! no multiple of the size an interior pointer, another class a wrong size.

use super::misuse_report::{died_twice, find_slab, interior};
use super::shared_slabs;
use super::slab_guard::free_remotely;
use super::transfer_moves;
use crate::back::map::page_map;
use crate::ground::fatal;
use crate::ground::size_class::{BIN_BYTES, Grid, SizeClass};
use crate::ground::sync::lock;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::bin::BinSlabs;
use crate::middle::events::Event;
use crate::middle::owners::owner::{Owner, OwnerState};
use crate::middle::slabs::misuse::Misuse;
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::slab::Slab;
use crate::profile::sampler;

/// Groups held open at a time. Their atomic ORs then follow each other. A look-up behind an atomic
/// operation must wait for it; without one in between, the look-ups of many blocks overlap.
const GROUPS: usize = 32;
/// Blocks that are taken one by one before a look at whether they follow each other.
const SCATTERED: usize = GROUPS;
/// Places that a group may be found by.
const KEYS: usize = 64;

// Places of groups are bytes, and a key has a place even if each group has its own.
const _: () = assert!(GROUPS <= u8::MAX as usize + 1 && KEYS >= GROUPS && KEYS.is_power_of_two());

/// Blocks of one word of a slab that this batch cannot lock.
#[derive(Clone, Copy)]
struct Group {
    slab: &'static Slab,
    mask: u64,
    word: u32,
    count: u32,
}

/// The open groups, in the order of arrival.
struct Groups {
    each: [Option<Group>; GROUPS],
    count: usize,
    /// The place of the newest group of a key. That group may be closed by now.
    newest: [u8; KEYS],
}

/// A batch of blocks of one class that is returned to slabs.
struct Batch<'a> {
    owner: &'static Owner,
    state: &'a mut OwnerState,
    class: SizeClass,
    grid: Grid,
    /// An arena whose bin of the class this batch has locked.
    held: Option<(&'static Arena, lock::Guard<'static, BinSlabs>)>,
    remote: u64,
    /// Among the `remote` blocks, those that their guard has yet to take in.
    sent: u64,
    groups: Groups,
}

/// How blocks get into their slab.
#[derive(Clone, Copy)]
enum Way {
    /// The cache owns the slab.
    Own,
    /// The bin that guards the slab is locked by this batch.
    Bin,
    /// This batch does not hold the lock that guards the slab.
    Remote,
}

/// Gives blocks of a class back to their slabs. The caller holds the owner's lock.
pub(crate) fn give_back(
    owner: &'static Owner,
    state: &mut OwnerState,
    class: SizeClass,
    blocks: &[*mut u8],
) {
    state.untold.add(-(blocks.len() * class.size()).cast_signed());
    if class.is_shared() {
        return transfer_moves::give_back(owner, class, blocks);
    }
    let (grid, groups) = (class.grid(), Groups::new());
    let mut batch = Batch { owner, state, class, grid, held: None, remote: 0, sent: 0, groups };
    let home = owner.ledger.home_or(class.index(), owner.home.get().id());
    let mut elsewhere = 0;
    let mut left = blocks;
    while let Some(first) = left.first() {
        let slab = find_slab(class, first.expose_provenance());
        let arena = slab.arena();
        let way = batch.way(slab);
        let next = if slab.is_for_samples() { note_sample(left) } else { left };
        let same = batch.add_same(way, slab, next);
        if arena != home.arena() {
            elsewhere += same;
            owner.ledger.of(class.index(), arena).flushed.add(same as u64);
        }
        left = left.get(same..).unwrap_or_default();
        if same == 1 && left.len() > 1 {
            let some = batch.add_scattered(way, left, home.arena());
            left = left.get(some..).unwrap_or_default();
        }
    }
    batch.close_groups();
    home.flushed.add((blocks.len() - elsewhere) as u64);
    home.flushes.add(1);
    home.remote.add(batch.remote);
    home.sent.add(batch.sent);
    owner.events.add(Event::Flush, 1);
}

/// Notes that the first of `blocks` is a sample that was freed by its size. Returns it alone.
#[cold]
fn note_sample(blocks: &[*mut u8]) -> &[*mut u8] {
    let first = blocks.get(..1).unwrap_or_default();
    first.iter().for_each(|block| sampler::note_freed_before(block.expose_provenance()));
    first
}

/// The slab of a block, if it is of the class at `bin_offset` and of that arena, and has no
/// samples.
#[inline(always)]
fn slab_in(block: *mut u8, bin_offset: usize, arena: u32) -> Option<&'static Slab> {
    let entry = page_map::lookup(block.expose_provenance());
    if entry.bin_offset() != bin_offset {
        return None;
    }
    Slab::of(entry).filter(|slab| slab.arena() == arena && !slab.is_for_samples())
}

impl Batch<'_> {
    /// Gives back the first of `blocks`, as many as lie in `slab`. Returns how many.
    #[inline]
    fn add_same(&mut self, way: Way, slab: &'static Slab, blocks: &[*mut u8]) -> usize {
        match way {
            Way::Remote => self.add_remote(slab, blocks),
            Way::Own => {
                self.owner.events.add(Event::Group, 1);
                let count = put_run(slab, self.grid, blocks);
                self.state.refile(slab, count);
                count
            }
            Way::Bin => {
                self.owner.events.add(Event::Group, 1);
                let count = put_run(slab, self.grid, blocks);
                self.remote += count as u64;
                if let Some((arena, slabs)) = &mut self.held {
                    shared_slabs::refile(arena, slabs, slab, count);
                }
                count
            }
        }
    }

    #[inline]
    fn add_remote(&mut self, slab: &'static Slab, blocks: &[*mut u8]) -> usize {
        let (base, size) = (slab.base(), self.class.size());
        let end = base + self.grid.bytes();
        // The current word stays in registers while blocks of it follow each other.
        let (mut word, mut mask, mut bit) = (0, 0u64, 0u64);
        // Where the block behind the last one begins, and how many blocks came before this word.
        let (mut next, mut before, mut count) = (0, 0, 0);
        for block in blocks {
            let address = block.expose_provenance();
            if address == next && address < end && mask & bit << 1 == 0 && bit << 1 != 0 {
                bit <<= 1;
            } else {
                let offset = address.wrapping_sub(base);
                if offset >= end - base {
                    break;
                }
                let Some(slot) = self.grid.slot_at(offset) else { interior(slab, address) };
                bit = 1 << (slot % 64);
                if (slot / 64) as u32 != word || mask & bit != 0 {
                    if mask != 0 {
                        self.add(base, Group { slab, mask, word, count: count - before });
                    }
                    (word, mask, before) = ((slot / 64) as u32, 0, count);
                }
            }
            mask |= bit;
            next = address.wrapping_add(size);
            count += 1;
        }
        if count == 0 {
            interior(slab, blocks.first().map_or(0, |block| block.expose_provenance()));
        }
        self.add(base, Group { slab, mask, word, count: count - before });
        count as usize
    }

    /// Gives back blocks that are scattered over slabs of one arena, one by one, as long as the way
    /// is the same. Returns how many.
    #[inline]
    fn add_scattered(&mut self, way: Way, blocks: &[*mut u8], arena: u32) -> usize {
        match way {
            Way::Remote => {
                let next = blocks.get(..SCATTERED).unwrap_or(blocks);
                self.add_scattered_remote(next, arena)
            }
            Way::Own => self.add_scattered_own(blocks, arena),
            Way::Bin => 0,
        }
    }

    /// As [`Batch::add_scattered`], for the owner's own slabs.
    fn add_scattered_own(&mut self, blocks: &[*mut u8], arena: u32) -> usize {
        let (id, bin_offset) = (self.owner.id(), self.class.bin() * BIN_BYTES);
        let mut count = 0;
        for block in blocks {
            let Some(slab) = slab_in(*block, bin_offset, arena) else { break };
            if !slab.remote.is_owned_by(id) {
                break;
            }
            // A bad block is left here; the way of a run then finds it again and reports it.
            let Ok(1) = slab.put_run(self.grid, core::slice::from_ref(block)) else { break };
            self.state.refile(slab, 1);
            count += 1;
        }
        self.owner.events.add(Event::Group, count as u64);
        count
    }

    /// As [`Batch::add_scattered`], for slabs that other caches own.
    fn add_scattered_remote(&mut self, blocks: &[*mut u8], arena: u32) -> usize {
        let (grid, id) = (self.grid, self.owner.id());
        let (bytes, bin_offset) = (grid.bytes(), self.class.bin() * BIN_BYTES);
        let mut count = 0;
        for block in blocks {
            let Some(slab) = slab_in(*block, bin_offset, arena) else { break };
            if !slab.remote.is_owned_by_other(id) {
                break;
            }
            let base = slab.base();
            let offset = block.expose_provenance().wrapping_sub(base);
            let Some(slot) = grid.slot_at(offset).filter(|_| offset < bytes) else { break };
            let (word, mask) = ((slot / 64) as u32, 1 << (slot % 64));
            self.add(base, Group { slab, mask, word, count: 1 });
            count += 1;
        }
        count
    }

    fn way(&mut self, slab: &Slab) -> Way {
        match slab.remote.guard() {
            Some(Guard::Owner(id)) if id == self.owner.id() => return Way::Own,
            Some(Guard::Bin) => {}
            _ => return Way::Remote,
        }
        if self.held.is_none() {
            self.held = arena_list::by_id(slab.arena()).and_then(|arena| {
                arena.bin(self.class).slabs.try_lock().map(|slabs| (arena, slabs))
            });
        }
        match &self.held {
            // Under the lock the guard does not change.
            Some((arena, _)) if arena.id() == slab.arena() => match slab.remote.guard() {
                Some(Guard::Bin) => Way::Bin,
                _ => Way::Remote,
            },
            _ => Way::Remote,
        }
    }

    /// Joins blocks with the open group of their word, or opens one. `base` is that of their slab.
    #[inline(always)]
    fn add(&mut self, base: usize, new: Group) {
        let key = (base / PAGE + new.word as usize) % KEYS;
        let at = self.groups.newest.get(key).map_or(0, |at| usize::from(*at));
        if let Some(Some(group)) = self.groups.each.get_mut(at)
            && core::ptr::eq(group.slab, new.slab)
            && group.word == new.word
        {
            if group.mask & new.mask != 0 {
                died_twice(group.slab, group.word, group.mask & new.mask);
            }
            group.mask |= new.mask;
            group.count += new.count;
            return;
        }
        if self.groups.count == GROUPS {
            self.close_groups();
        }
        let at = self.groups.count;
        if let (Some(newest), Some(group)) =
            (self.groups.newest.get_mut(key), self.groups.each.get_mut(at))
        {
            (*newest, *group) = (at as u8, Some(new));
            self.groups.count = at + 1;
        }
    }

    /// Gives the blocks of all open groups back.
    #[inline(never)]
    fn close_groups(&mut self) {
        let (events, n) = (&self.owner.events, self.groups.count);
        if n == 0 {
            return;
        }
        let (mut blocks, mut pushed, mut retries) = (0, 0, 0);
        for group in self.groups.each.iter_mut().take(n) {
            let Some(Group { slab, mask, word, count }) = group.take() else { continue };
            match free_remotely(slab, self.class, word as usize, mask) {
                Ok(freed) => {
                    pushed += u64::from(freed.pushed);
                    retries += u64::from(freed.retries);
                }
                Err(twice) => died_twice(slab, word, twice),
            }
            blocks += u64::from(count);
        }
        self.groups.count = 0;
        self.remote += blocks;
        self.sent += blocks;
        events.add(Event::Group, n as u64);
        events.add(Event::RemoteWord, n as u64);
        events.add(Event::Push, pushed);
        events.add(Event::Retry, retries);
    }
}

impl Groups {
    const fn new() -> Groups {
        Groups { each: [None; GROUPS], count: 0, newest: [0; KEYS] }
    }
}

/// Puts the first of `blocks`, as many as lie in `slab`, into it. Returns how many. The lock of the
/// slab's guard is held.
#[inline]
fn put_run(slab: &Slab, grid: Grid, blocks: &[*mut u8]) -> usize {
    match slab.put_run(grid, blocks) {
        Ok(count) if count > 0 => count,
        Ok(_) => interior(slab, blocks.first().map_or(0, |block| block.expose_provenance())),
        Err(Misuse::Interior(address)) => interior(slab, address),
        Err(Misuse::Twice(address)) => fatal::double_free(address, slab.place()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::real_cache::RealCache;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::middle::blocks::{owned_drain, owned_slabs};

    fn take(cache: &'static RealCache, class: SizeClass, n: usize) -> Vec<*mut u8> {
        let mut blocks = Vec::new();
        let mut state = cache.owner.state.lock();
        while blocks.len() < n {
            let (want, before) = (n - blocks.len(), blocks.len());
            let give = |block| blocks.push(block);
            owned_slabs::fill(&cache.owner, &mut state, class, want, give);
            assert!(blocks.len() > before, "no memory");
        }
        blocks
    }

    fn give(cache: &'static RealCache, class: SizeClass, blocks: &[*mut u8]) {
        give_back(&cache.owner, &mut cache.owner.state.lock(), class, blocks);
    }

    /// How many blocks are in use in the slabs of some blocks. A slab may be gone by then.
    fn used(blocks: &[*mut u8]) -> usize {
        let mut slabs: Vec<_> =
            blocks.iter().filter_map(|block| Slab::of(page_map::lookup(*block as usize))).collect();
        slabs.sort_unstable_by_key(|slab| slab.base());
        slabs.dedup_by(|one, other| core::ptr::eq(*one, *other));
        slabs.iter().map(|slab| slab.used()).sum()
    }

    #[test]
    fn own_blocks_are_free_at_once_in_any_order() {
        let cache = new_cache();
        for size in [8, 64, 320, 4096] {
            let class = SizeClass::of(size);
            let mut blocks = take(cache, class, 60);
            assert_eq!(used(&blocks), 60, "{size}");
            blocks.reverse();
            let (some, others) = blocks.split_at(17);
            give(cache, class, some);
            assert_eq!(used(&blocks), 43, "{size}");
            let scattered: Vec<_> = (0..43).map(|n| others[n * 10 % 43]).collect();
            give(cache, class, &scattered);
            assert_eq!(used(&blocks), 0, "{size}");
        }
        end(cache);
    }

    #[test]
    fn blocks_of_another_owner_wait_for_it() {
        let (owner, other) = (new_cache(), new_cache());
        let class = SizeClass::of(64);
        let blocks = take(owner, class, 40);
        // Held, because a cache that needs a new slab would take them in.
        let mut state = owner.owner.state.lock();
        let mut others = other.owner.state.try_lock().expect("a free lock");
        give_back(&other.owner, &mut others, class, &blocks);
        drop(others);
        assert_eq!(used(&blocks), 40);
        owned_drain::drain(&owner.owner, &mut state, class);
        drop(state);
        assert_eq!(used(&blocks), 0);
        end(other);
        end(owner);
    }
}
