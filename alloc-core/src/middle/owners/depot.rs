//! Blocks of one class that a cache keeps beyond its bin: a stack of pointers, in chunks.
//!
//! A bin that overflows spills its oldest blocks here, and an empty bin takes the newest back: bin
//! and depot are one deep stack, and a block that goes through costs two copies of its pointer
//! where the way home and back costs a look-up, a bit set and a bit found. Guarded by the lock of
//! the cache's owner, so whoever holds that may send the blocks home: an idle thread pins nothing.
//!
//! How deep it may get is learned. What comes from slabs after as much went home need not have
//! gone: the depot may hold as much more. What lies untouched for some rounds of collection goes
//! home, and the depth with it.

use crate::back::metadata;
use crate::ground::checked::at_mut;
use crate::ground::size_class::{CLASSES, SizeClass};
use core::ptr::NonNull;

/// A block.
pub(in crate::middle) type Slot = *mut u8;

/// What the depots of one thread hold at most, and all of them together, in bytes.
const THREAD_BYTES: usize = 1 << 20;
const ALL_BYTES: usize = 16 << 20;
/// log2 of the slots of a chunk: a page of pointers to small blocks, eight lines to larger ones.
const LG_SMALL: u32 = 9;
const LG_LARGE: u32 = 6;
/// The largest of the small blocks.
const SMALL: usize = 512;
/// Rounds of collection between two looks at what lies untouched: a round is some 600 KiB of
/// requests, 160 KiB of the smallest, and a depot may take a few megabytes of them to get empty.
const ROUNDS: u8 = 16;

/// Bytes that the depots of each of `caches` threads may hold together. When a block of a slab that
/// threads share is to come, all depots together get no more than one may hold.
pub(crate) fn share(caches: u64, of_shared: bool) -> usize {
    let caches = usize::try_from(caches).unwrap_or(usize::MAX).max(1);
    THREAD_BYTES.min(if of_shared { THREAD_BYTES } else { ALL_BYTES } / caches)
}

fn lg_chunk(class: SizeClass) -> u32 {
    if class.size() <= SMALL { LG_SMALL } else { LG_LARGE }
}

/// The depots of one cache.
pub(crate) struct Depots {
    each: [Depot; CLASSES],
    /// What all their blocks weigh.
    pub(in crate::middle) bytes: usize,
}

/// The parked blocks of one class.
pub(in crate::middle) struct Depot {
    /// The chunk that is filled and emptied; its first slot holds the one below.
    top: Option<NonNull<Slot>>,
    /// Blocks in the top chunk.
    in_top: u16,
    /// Rounds of collection since the blocks were last looked at, and the fewest since.
    rounds: u8,
    fewest: u32,
    /// Blocks in all chunks, and how many there may be.
    pub(in crate::middle) count: u32,
    depth: u32,
    /// Blocks that went home and have not been asked for since.
    pub(in crate::middle) gone: u32,
}

// SAFETY: chunks are memory of ours, reached under the lock of the owner only.
unsafe impl Send for Depot {}

impl Depots {
    /// They hold nothing, and may not.
    pub(crate) const fn new() -> Depots {
        Depots { each: [const { Depot::new() }; CLASSES], bytes: 0 }
    }

    pub(in crate::middle) fn of(&mut self, class: SizeClass) -> &mut Depot {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at_mut(&mut self.each, class.index()) }
    }

    /// Notes that `n` blocks of a class came from slabs: as many as went home before need not
    /// have. Whether the depot may hold any.
    pub(crate) fn note_refill(&mut self, class: SizeClass, n: usize) -> bool {
        let depot = self.of(class);
        let back = depot.gone.min(n as u32);
        if back > 0 {
            depot.gone -= back;
            let most = THREAD_BYTES.checked_div(class.size()).unwrap_or(0) as u32;
            depot.depth = (depot.depth + back).min(most);
        }
        depot.depth > 0
    }
}

impl Depot {
    const fn new() -> Depot {
        Depot { top: None, in_top: 0, rounds: 0, fewest: 0, count: 0, depth: 0, gone: 0 }
    }

    /// How many more blocks there may be.
    pub(in crate::middle) fn room(&self) -> usize {
        self.depth.saturating_sub(self.count) as usize
    }

    /// Takes the first of `blocks`, as many as there is room for within `bytes`; answers how many.
    pub(in crate::middle) fn park(
        &mut self,
        class: SizeClass,
        blocks: &[Slot],
        bytes: usize,
    ) -> usize {
        let n = blocks.len().min(self.room());
        let n = if n * class.size() <= bytes { n } else { 0 };
        let slots = (1 << lg_chunk(class)) - 1;
        let mut left = blocks.get(..n).unwrap_or_default();
        while !left.is_empty() {
            if usize::from(self.in_top) == slots || self.top.is_none() {
                let Some(()) = self.add_chunk(class) else { break };
            }
            let Some(top) = self.top else { break };
            let above = usize::from(self.in_top);
            let some = left.len().min(slots - above);
            // SAFETY: behind the link and the blocks the chunk has room for `some`.
            let place = unsafe { top.as_ptr().add(1 + above) };
            // SAFETY: as above; the blocks come from a bin's array.
            unsafe { place.copy_from_nonoverlapping(left.as_ptr(), some) };
            self.in_top += some as u16;
            self.count += some as u32;
            left = left.get(some..).unwrap_or_default();
        }
        n - left.len()
    }

    /// Takes the newest blocks, at most `most`, of those that lie together: where they lie, the
    /// newest last, until the depot is used again; and how many.
    pub(in crate::middle) fn lift(
        &mut self,
        class: SizeClass,
        most: usize,
    ) -> Option<(NonNull<Slot>, usize)> {
        if most == 0 || self.count == 0 {
            return None;
        }
        if self.in_top == 0 {
            self.drop_chunk(class);
        }
        let some = usize::from(self.in_top).min(most);
        self.in_top -= some as u16;
        self.count -= some as u32;
        self.fewest = self.fewest.min(self.count);
        // SAFETY: the blocks lie behind the link, inside the chunk.
        let blocks = unsafe { self.top?.add(1 + usize::from(self.in_top)) };
        Some((blocks, some))
    }

    /// How many blocks were not needed; the depth goes with them.
    pub(in crate::middle) fn age(&mut self) -> usize {
        self.rounds += 1;
        if self.rounds < ROUNDS {
            return 0;
        }
        let idle = self.fewest.div_ceil(2);
        self.rounds = 0;
        self.gone /= 2;
        self.depth = self.depth.saturating_sub(idle);
        self.fewest = self.count - idle;
        idle as usize
    }

    /// Lets go of the last chunk, which is empty, and forgets what was learned.
    pub(in crate::middle) fn close(&mut self, class: SizeClass) {
        debug_assert_eq!(self.count, 0);
        if self.top.is_some() {
            self.drop_chunk(class);
        }
        *self = Depot::new();
    }

    fn add_chunk(&mut self, class: SizeClass) -> Option<()> {
        let chunk = metadata::allocate_array(lg_chunk(class))?;
        let below = self.top.map_or(core::ptr::null_mut(), |top| top.as_ptr().cast());
        // SAFETY: the first slot of a fresh chunk.
        unsafe { chunk.write(below) };
        self.top = Some(chunk);
        self.in_top = 0;
        Some(())
    }

    /// Lets go of the top chunk, which is empty; the one below is full.
    fn drop_chunk(&mut self, class: SizeClass) {
        let Some(top) = self.top else { return };
        // SAFETY: the link of a chunk of ours.
        let below = unsafe { top.read() };
        self.top = NonNull::new(below.cast());
        self.in_top = if self.top.is_some() { (1 << lg_chunk(class)) - 1 } else { 0 };
        // SAFETY: the chunk came from `allocate_array` of this length; nobody uses it any more.
        unsafe { metadata::free_array(top, lg_chunk(class)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(range: core::ops::Range<usize>) -> Vec<Slot> {
        range.map(|n| core::ptr::without_provenance_mut(n * 16)).collect()
    }

    /// All that `depot` gives when asked for `step` blocks at a time, the newest first.
    fn lifted(depot: &mut Depot, class: SizeClass, step: usize) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some((blocks, some)) = depot.lift(class, step) {
            assert!(some <= step);
            // SAFETY: `some` blocks lie there.
            let blocks = unsafe { core::slice::from_raw_parts(blocks.as_ptr(), some) };
            all.extend(blocks.iter().rev().map(|block| *block as usize / 16));
        }
        all
    }

    #[test]
    fn a_stack_across_chunks() {
        for (size, step) in [(16, 1), (16, 100), (1024, 7), (32768, 63)] {
            let class = SizeClass::of(size);
            let mut depot = Depot { depth: 2000, ..Depot::new() };
            assert_eq!(depot.park(class, &blocks(1..1400), usize::MAX), 1399);
            assert_eq!(depot.park(class, &blocks(1400..2500), usize::MAX), 601, "the depth");
            assert!(depot.park(class, &blocks(0..1), usize::MAX) == 0);
            let expected: Vec<usize> = (1..2001).rev().collect();
            assert_eq!(lifted(&mut depot, class, step), expected);
            depot.close(class);
            assert!(depot.top.is_none());
        }
    }

    #[test]
    fn bytes_bound_it() {
        let class = SizeClass::of(64);
        let mut depot = Depot { depth: 2000, ..Depot::new() };
        assert_eq!(depot.park(class, &blocks(0..10), 639), 0);
        assert_eq!(depot.park(class, &blocks(0..10), 640), 10);
        assert_eq!([1, 16, 64].map(|caches| share(caches, false)), [1 << 20, 1 << 20, 256 << 10]);
        assert_eq!([1, 16, 64].map(|caches| share(caches, true)), [1 << 20, 64 << 10, 16 << 10]);
    }

    #[test]
    fn it_learns_what_came_back() {
        let class = SizeClass::of(64);
        let mut depots = Depots::new();
        assert!(!depots.note_refill(class, 100), "nothing went home");
        depots.of(class).gone = 70;
        assert!(depots.note_refill(class, 50));
        assert!(depots.note_refill(class, 50));
        assert_eq!((depots.of(class).depth, depots.of(class).gone), (70, 0));
        depots.of(class).gone = 1_000_000;
        assert!(depots.note_refill(class, 1_000_000));
        assert_eq!(depots.of(class).depth as usize, THREAD_BYTES / 64, "what a thread may park");
    }

    #[test]
    fn what_lies_untouched_ages_and_the_depth_with_it() {
        let class = SizeClass::of(64);
        let mut depot = Depot { depth: 100, ..Depot::new() };
        assert_eq!(depot.park(class, &blocks(0..100), usize::MAX), 100);
        depot.fewest = 100;
        assert!(depot.lift(class, 40).is_some());
        let aged: Vec<usize> = (0..ROUNDS).map(|_| depot.age()).collect();
        assert_eq!(aged.iter().sum::<usize>(), 30);
        assert_eq!(aged.last(), Some(&30));
        assert_eq!((depot.depth, depot.fewest), (70, 30));
    }
}
