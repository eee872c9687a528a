//! Blocks that threads pass on to each other: a short queue before the slabs of an arena's bin.
//!
//! A buffer of a few pages that one thread fills and another frees is returned in a batch of few
//! blocks, and is soon requested again. By way of its slab that costs a bit set and a bit found,
//! and slabs moved from list to list. As a slab has two or four blocks only, every other time a
//! slab is made or ended too. Through this queue it costs a pointer written and read, and no record
//! is written that other threads read.
//!
//! The oldest block is taken first. The newest is still in the cache of the processor that read and
//! freed it, from where another one that fills it again must fetch line after line. By the time
//! that a block has waited for its turn, it has left that cache for one that the processors share.
//!
//! The length that the queue may reach is learned ([`LearnedDepth`]). The queue serves classes of
//! slabs of a few blocks, which caches do not own. A block that waits here is out of its slab, but
//! counts as returned. The bin's lock guards the queue. A decay pass returns all of its blocks to
//! their slabs, so none stays unused for longer. Where unused memory is to be given back at once,
//! no block waits.

use crate::back::metadata;
#[cfg(feature = "checks")]
use crate::ground::holds::holds;
use crate::ground::units::LG_PAGE;
use crate::middle::learned_depth::LearnedDepth;
use core::ptr::NonNull;

/// A block.
pub(in crate::middle) type Slot = *mut u8;

/// The most blocks of a class, and how many there may be before anything is learned.
const MOST: usize = 128;
const FIRST: usize = 8;

const _: () = assert!(FIRST <= MOST);

/// The queue of one class of one arena.
pub(crate) struct TransferCache {
    /// Made when the first block comes.
    ring: Option<NonNull<Ring>>,
    /// The place of the oldest block, and how many blocks there are.
    oldest: usize,
    count: usize,
    /// How many blocks there may be.
    depth: LearnedDepth,
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
        TransferCache { ring: None, oldest: 0, count: 0, depth: LearnedDepth::new(FIRST) }
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

    /// The offsets of the blocks that lie in the `bytes` bytes from `base` on.
    pub(crate) fn offsets_within(&self, base: usize, bytes: usize) -> impl Iterator<Item = usize> {
        let offsets = self.blocks().map(move |block| (block as usize).wrapping_sub(base));
        offsets.filter(move |offset| *offset < bytes)
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
        if self.count >= self.depth.get() {
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

    /// Takes up to `want` blocks, the oldest first. Returns how many.
    #[inline]
    pub(in crate::middle) fn take(&mut self, want: usize, give: impl FnMut(Slot)) -> usize {
        let n = want.min(self.count);
        self.blocks().take(n).for_each(give);
        self.oldest = (self.oldest + n) % MOST;
        self.count -= n;
        n
    }

    /// Checks that the keys are those of the blocks, and that no block waits twice. Calls `see`
    /// with each block.
    #[cfg(feature = "checks")]
    pub(in crate::middle) fn check(&self, see: impl Fn(Slot)) {
        holds(self.count <= MOST);
        let keys = self.ring().map(|ring| &ring.keys);
        for (n, block) in self.blocks().enumerate() {
            let key_there = keys.and_then(|keys| keys.get((self.oldest + n) % MOST).copied());
            holds(key_there == Some(key(block)));
            holds(self.blocks().filter(|other| *other == block).count() == 1);
            see(block);
        }
        holds(self.blocks().count() == self.count);
    }

    /// Notes that `n` blocks came from slabs.
    #[inline]
    pub(in crate::middle) fn note_refill(&mut self, n: usize) {
        self.depth.note_refill(n, MOST);
    }

    /// Notes that `n` blocks go into slabs because there is no room.
    pub(in crate::middle) fn note_gone(&mut self, n: usize) {
        self.depth.note_gone(n);
    }

    /// Forgets half of the learned length.
    pub(in crate::middle) fn age(&mut self) {
        self.depth = LearnedDepth::new((self.depth.get() / 2).max(FIRST));
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
        let n = queue.take(want, |block| all.push(block as usize >> LG_PAGE));
        assert_eq!(n, all.len());
        all
    }

    #[test]
    fn first_in_first_out_round_and_round() {
        let mut queue = TransferCache::new();
        assert_eq!((taken(&mut queue, 4), queue.holds(block(0))), (vec![], false));
        for n in 1..1000 {
            assert!(queue.put(block(2 * n)) && queue.put(block(2 * n + 1)));
            assert!(queue.holds(block(2 * n)) && !queue.holds(block(2 * n + 2)), "{n}");
            assert_eq!(queue.offsets_within((2 * n) << LG_PAGE, 2 << LG_PAGE).count(), 2);
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
        assert_eq!(queue.depth.get(), FIRST + 3);
        assert!(queue.put(block(FIRST)));
        for _ in 0..9 {
            queue.note_gone(MOST);
            queue.note_refill(MOST);
        }
        assert_eq!(queue.depth.get(), MOST);
        (FIRST + 1..MOST).for_each(|n| assert!(queue.put(block(n))));
        assert!(!queue.put(block(MOST)), "full");
        assert_eq!(taken(&mut queue, usize::MAX), (0..MOST).collect::<Vec<_>>());
        queue.note_gone(7);
        (0..9).for_each(|_| queue.age());
        queue.note_refill(7);
        assert_eq!(queue.depth.get(), FIRST, "what went before is forgotten too");
    }

    #[test]
    fn another_block_with_the_same_key_is_another() {
        let mut queue = TransferCache::new();
        assert!(queue.put(block(7)));
        assert_eq!(key(block(7)), key(block(7 + (1 << 16))));
        assert!(queue.holds(block(7)) && !queue.holds(block(7 + (1 << 16))));
    }
}
