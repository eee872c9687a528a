//! Blocks that threads pass on to each other: a short queue before the slabs of an arena's bin.
//!
//! A buffer of a few pages that one thread fills and another frees is returned in a batch of few
//! blocks, and is soon requested again. By way of its slab that costs a bit set and a bit found,
//! and slabs moved from list to list. As a slab has two or four blocks only, every other time a
//! slab is made or ended too. Through this queue it costs a pointer written and read, and no record
//! is written that other threads read.
//!
//! A thread on another processor takes the oldest block first. The newest is still in the cache of
//! the processor that read and freed it, from where another one that fills it again must fetch line
//! after line. By the time that a block has waited for its turn, it has left that cache for one
//! that the processors share. A thread on the processor that freed last takes the newest blocks:
//! they are in that processor's cache, and the older ones need not come back to it.
//!
//! The length that the queue may reach is learned, as for [`crate::middle::owners::overflow`]:
//! blocks that come from slabs after as many were returned there could have stayed. The queue
//! serves classes of slabs of a few blocks, which caches do not own. A block that waits here is out
//! of its slab, but counts as returned. The bin's lock guards the queue. A decay pass returns all
//! of its blocks to their slabs, so none stays unused for longer. Where unused memory is to be
//! given back at once, no block waits.

use crate::back::metadata;
use crate::ground::units::LG_PAGE;
use core::ptr::NonNull;

/// A block.
pub(in crate::middle) type Slot = *mut u8;

/// The most blocks of a class, and how many there may be before anything is learned.
const MOST: usize = 128;
const FIRST: usize = 8;

/// The queue of one class of one arena.
pub(crate) struct TransferCache {
    /// Made when the first block comes.
    ring: Option<NonNull<Ring>>,
    /// The place of the oldest block, and how many blocks there are.
    oldest: usize,
    count: usize,
    /// How many blocks there may be.
    depth: usize,
    /// Blocks that went into slabs because there was no room, and have not been requested since.
    gone: usize,
    /// The processor that the newest block was freed on, as far as known.
    cpu: Option<u32>,
}

struct Ring {
    blocks: [Slot; MOST],
    /// A key of each block, a quarter as long: tells quickly, as a rule, whether a block waits
    /// here.
    keys: [u16; MOST],
}

// SAFETY: the ring is memory of this allocator, reached under the lock of the bin only.
unsafe impl Send for TransferCache {}

fn key(block: Slot) -> u16 {
    (block as usize >> LG_PAGE) as u16
}

impl TransferCache {
    /// An empty queue.
    pub(in crate::middle) const fn new() -> TransferCache {
        TransferCache { ring: None, oldest: 0, count: 0, depth: FIRST, gone: 0, cpu: None }
    }

    fn ring(&self) -> Option<&Ring> {
        // SAFETY: made by `put`, and never unmapped.
        self.ring.map(|ring| unsafe { ring.as_ref() })
    }

    /// The blocks, the oldest first.
    fn blocks(&self) -> impl Iterator<Item = Slot> {
        let places = self.oldest..self.oldest + self.count;
        places.filter_map(|at| self.ring()?.blocks.get(at % MOST).copied())
    }

    /// How many blocks wait here.
    pub(in crate::middle) fn count(&self) -> usize {
        self.count
    }

    /// Notes which processor the newest block was freed on, as far as is known.
    pub(in crate::middle) fn set_cpu(&mut self, cpu: Option<u32>) {
        self.cpu = cpu;
    }

    /// How many blocks lie in the `bytes` bytes from `base` on.
    pub(crate) fn count_within(&self, base: usize, bytes: usize) -> usize {
        self.blocks().filter(|block| (*block as usize).wrapping_sub(base) < bytes).count()
    }

    /// Whether a block waits here.
    #[inline]
    pub(in crate::middle) fn holds(&self, block: Slot) -> bool {
        let Some(ring) = self.ring().filter(|_| self.count > 0) else { return false };
        let key = key(block);
        // All keys, old ones too, and without a branch, so the processor compares eight at a time.
        let seen = ring.keys.iter().fold(false, |seen, other| seen | (*other == key));
        seen && self.blocks().any(|other| other == block)
    }

    /// Puts a block at the end. `false`: there is no room.
    #[inline]
    pub(in crate::middle) fn put(&mut self, block: Slot) -> bool {
        if self.count >= self.depth {
            return false;
        }
        if self.ring.is_none() {
            // SAFETY: zeroes are a valid ring.
            let ring = unsafe { metadata::allocate_zeroed::<Ring>() };
            self.ring = ring.map(NonNull::from);
        }
        let at = (self.oldest + self.count) % MOST;
        // SAFETY: made above, and never unmapped; only the holder of the bin's lock reaches it.
        let Some(ring) = self.ring.map(|mut ring| unsafe { ring.as_mut() }) else { return false };
        if let (Some(slot), Some(place)) = (ring.blocks.get_mut(at), ring.keys.get_mut(at)) {
            (*slot, *place) = (block, key(block));
            self.count += 1;
        }
        true
    }

    /// Takes up to `want` blocks for a thread that runs on the processor that `cpu` returns: the
    /// newest first if that processor freed the newest, else the oldest first. Returns how many.
    #[inline]
    pub(in crate::middle) fn take(
        &mut self,
        want: usize,
        cpu: impl FnOnce() -> Option<u32>,
        give: impl FnMut(Slot),
    ) -> usize {
        if self.count > 0 && self.cpu.is_some() && self.cpu == cpu() {
            self.take_newest(want, give)
        } else {
            self.take_oldest(want, give)
        }
    }

    /// Takes up to `want` blocks, the oldest first. Returns how many.
    pub(in crate::middle) fn take_oldest(&mut self, want: usize, give: impl FnMut(Slot)) -> usize {
        let n = want.min(self.count);
        self.blocks().take(n).for_each(give);
        self.oldest = (self.oldest + n) % MOST;
        self.count -= n;
        n
    }

    fn take_newest(&mut self, want: usize, mut give: impl FnMut(Slot)) -> usize {
        let n = want.min(self.count);
        for _ in 0..n {
            self.count -= 1;
            let at = (self.oldest + self.count) % MOST;
            if let Some(block) = self.ring().and_then(|ring| ring.blocks.get(at)) {
                give(*block);
            }
        }
        n
    }

    /// Notes that `n` blocks came from slabs. The queue may get longer by as many of them as went
    /// there before for want of room.
    #[inline]
    pub(in crate::middle) fn note_refill(&mut self, n: usize) {
        let back = self.gone.min(n);
        self.gone -= back;
        self.depth = (self.depth + back).min(MOST);
    }

    /// Notes that `n` blocks go into slabs because there is no room.
    pub(in crate::middle) fn note_gone(&mut self, n: usize) {
        self.gone = (self.gone + n).min(MOST);
    }

    /// Forgets half of the learned length.
    pub(in crate::middle) fn age(&mut self) {
        self.depth = (self.depth / 2).max(FIRST);
        self.gone = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(n: usize) -> Slot {
        core::ptr::without_provenance_mut(n << LG_PAGE)
    }

    fn taken(queue: &mut TransferCache, want: usize) -> Vec<usize> {
        let mut all = Vec::new();
        let n = queue.take(want, || None, |block| all.push(block as usize >> LG_PAGE));
        assert_eq!(n, all.len());
        all
    }

    #[test]
    fn who_asks_where_the_newest_was_freed_gets_it_and_others_the_oldest() {
        let mut queue = TransferCache::new();
        // The oldest does not lie in the first place of the ring.
        assert!(queue.put(block(0)) && taken(&mut queue, 1) == [0]);
        (1..=8).for_each(|n| assert!(queue.put(block(n))));
        let taken_on = |queue: &mut TransferCache, want, cpu| {
            let mut all = Vec::new();
            queue.take(want, || cpu, |block| all.push(block as usize >> LG_PAGE));
            all
        };
        assert_eq!(taken_on(&mut queue, 1, None), [1], "nobody knows");
        queue.cpu = Some(3);
        assert_eq!(taken_on(&mut queue, 2, Some(3)), [8, 7]);
        assert_eq!(taken_on(&mut queue, 2, Some(4)), [2, 3]);
        assert!(!queue.holds(block(7)) && queue.holds(block(6)));
        assert_eq!(taken_on(&mut queue, 9, Some(3)), [6, 5, 4]);
        assert_eq!(taken_on(&mut queue, 1, Some(3)), [0; 0]);
    }

    #[test]
    fn first_in_first_out_round_and_round() {
        let mut queue = TransferCache::new();
        assert_eq!((taken(&mut queue, 4), queue.holds(block(0))), (vec![], false));
        for n in 1..1000 {
            assert!(queue.put(block(2 * n)) && queue.put(block(2 * n + 1)));
            assert!(queue.holds(block(2 * n)) && !queue.holds(block(2 * n + 2)), "{n}");
            assert_eq!(queue.count_within((2 * n) << LG_PAGE, 2 << LG_PAGE), 2);
            assert_eq!(taken(&mut queue, 2), [2 * n, 2 * n + 1]);
            assert!(!queue.holds(block(2 * n)), "{n}");
        }
    }

    #[test]
    fn it_gets_as_long_as_what_went_came_back() {
        let mut queue = TransferCache::new();
        (0..FIRST).for_each(|n| assert!(queue.put(block(n))));
        assert!(!queue.put(block(FIRST)));
        queue.note_refill(5);
        assert!(!queue.put(block(FIRST)), "nothing had gone");
        queue.note_gone(3);
        queue.note_refill(2);
        queue.note_refill(2);
        assert_eq!((queue.depth, queue.gone), (FIRST + 3, 0));
        assert!(queue.put(block(FIRST)));
        for _ in 0..9 {
            queue.note_gone(MOST);
            queue.note_refill(MOST);
        }
        assert_eq!(queue.depth, MOST);
        (FIRST + 1..MOST).for_each(|n| assert!(queue.put(block(n))));
        assert!(!queue.put(block(MOST)), "full");
        assert_eq!(taken(&mut queue, usize::MAX), (0..MOST).collect::<Vec<_>>());
        queue.note_gone(7);
        (0..9).for_each(|_| queue.age());
        assert_eq!((queue.depth, queue.gone), (FIRST, 0));
    }

    #[test]
    fn another_block_with_the_same_key_is_another() {
        let mut queue = TransferCache::new();
        assert!(queue.put(block(7)));
        assert_eq!(key(block(7)), key(block(7 + (1 << 16))));
        assert!(queue.holds(block(7)) && !queue.holds(block(7 + (1 << 16))));
    }
}
