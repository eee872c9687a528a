//! Blocks of one class that a cache keeps beyond its bin: a stack of pointers, in chunks.
//!
//! A bin that overflows spills its oldest blocks here, and an empty bin takes the newest back. So
//! bin and overflow stack are one deep stack. A block that goes through costs two copies of its
//! pointer, where its way to the slab and back costs a look-up, a bit set and a bit found. The lock
//! of the cache's owner guards the overflow stack. Any thread that holds it may return the blocks
//! to their slabs, so an idle thread pins nothing.
//!
//! The depth of an overflow stack is learned ([`LearnedDepth`]). Blocks that lie untouched for some
//! rounds of collection are returned, and the depth falls with them.

#[cfg(feature = "checks")]
use crate::back::map::page_map;
use crate::back::metadata;
use crate::ground::checked::at_mut;
#[cfg(feature = "checks")]
use crate::ground::holds::holds;
#[cfg(feature = "checks")]
use crate::ground::size_class::BIN_BYTES;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::middle::learned_depth::LearnedDepth;
use core::ptr::NonNull;

/// A block.
pub(in crate::middle) type Slot = *mut u8;

/// Bytes that the overflow stacks of one thread hold at most, and those of all threads together.
const THREAD_BYTES: usize = 1 << 20;
const ALL_BYTES: usize = 16 << 20;
/// log2 of the slots of a chunk: a page for small blocks, eight cache lines for larger ones.
const LG_SMALL: u32 = 9;
const LG_LARGE: u32 = 6;
/// The largest of the small blocks.
const SMALL: usize = 512;
/// Rounds of collection between two looks at untouched blocks. A round is some 600 KiB of requests,
/// 160 KiB of the smallest, and it may take a few megabytes of them to empty an overflow stack.
const ROUNDS: u8 = 16;

// The blocks of a chunk behind its link are counted in 16 bits.
const _: () = assert!(LG_LARGE < LG_SMALL && 1 << LG_SMALL <= u16::MAX as usize);

/// Bytes that the overflow stacks of each of `caches` threads may hold together. For blocks of
/// slabs that threads share (`of_shared`), all threads together get no more than one may hold.
pub(crate) fn share(caches: u64, of_shared: bool) -> usize {
    let caches = usize::try_from(caches).unwrap_or(usize::MAX).max(1);
    THREAD_BYTES.min(if of_shared { THREAD_BYTES } else { ALL_BYTES } / caches)
}

fn lg_chunk(class: SizeClass) -> u32 {
    if class.size() <= SMALL { LG_SMALL } else { LG_LARGE }
}

/// The overflow stacks of one cache.
pub(crate) struct Overflow {
    each: [OverflowStack; CLASSES],
    /// Bytes of all their blocks.
    pub(in crate::middle) bytes: usize,
}

/// The kept blocks of one class.
pub(in crate::middle) struct OverflowStack {
    /// The chunk that is filled and emptied. Its first slot holds the chunk below.
    top: Option<NonNull<Slot>>,
    /// Blocks in the top chunk.
    in_top: u16,
    /// Rounds of collection since the last look at the blocks, and the fewest blocks since.
    rounds: u8,
    fewest: u32,
    /// Blocks in all chunks, and how many there may be.
    pub(in crate::middle) count: u32,
    depth: LearnedDepth,
}

// SAFETY: chunks are memory of this allocator, reached under the lock of the owner only.
unsafe impl Send for OverflowStack {}

impl Overflow {
    /// Overflow stacks that hold nothing, and may not yet.
    pub(crate) const fn new() -> Overflow {
        Overflow { each: [const { OverflowStack::new() }; CLASSES], bytes: 0 }
    }

    pub(in crate::middle) fn of(&mut self, class: SizeClass) -> &mut OverflowStack {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at_mut(&mut self.each, class.index()) }
    }

    /// Notes that `n` blocks of a class came from slabs. Returns whether the overflow stack may
    /// hold any block.
    pub(crate) fn note_refill(&mut self, class: SizeClass, n: usize) -> bool {
        let depth = &mut self.of(class).depth;
        depth.note_refill(n, THREAD_BYTES.checked_div(class.size()).unwrap_or(0));
        depth.get() > 0
    }

    /// Calls `see` with each block of a class.
    pub(crate) fn for_each(&self, class: SizeClass, see: impl FnMut(Slot)) {
        if let Some(stack) = self.each.get(class.index()) {
            stack.for_each(class, see);
        }
    }

    /// Checks that the counts are those of the blocks, and that these are of their class.
    #[cfg(feature = "checks")]
    pub(in crate::middle) fn check(&self) {
        let mut bytes = 0;
        for (class, stack) in SizeClass::all().zip(&self.each) {
            stack.check(class);
            bytes += stack.count as usize * class.size();
        }
        holds(bytes == self.bytes);
    }
}

impl OverflowStack {
    const fn new() -> OverflowStack {
        let depth = LearnedDepth::new(0);
        OverflowStack { top: None, in_top: 0, rounds: 0, fewest: 0, count: 0, depth }
    }

    /// Notes that `n` blocks go into slabs because there is no room.
    pub(in crate::middle) fn note_gone(&mut self, n: usize) {
        self.depth.note_gone(n);
    }

    /// How many more blocks the overflow stack may hold.
    pub(in crate::middle) fn room(&self) -> usize {
        self.depth.get().saturating_sub(self.count as usize)
    }

    /// Takes the first of `blocks`, as many as there is room for, or none if these exceed `bytes`.
    /// Returns how many.
    pub(in crate::middle) fn push(
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
            // SAFETY: `place` has room for `some` slots; the blocks come from a bin's array.
            unsafe { place.copy_from_nonoverlapping(left.as_ptr(), some) };
            self.in_top += some as u16;
            self.count += some as u32;
            left = left.get(some..).unwrap_or_default();
        }
        n - left.len()
    }

    /// Takes up to `most` of the newest blocks, out of the top chunk alone. Returns where they lie,
    /// the newest last, until the overflow stack is used again; and how many they are.
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

    /// One step of collection. Returns how many blocks were not needed; the depth falls with them.
    pub(in crate::middle) fn age(&mut self) -> usize {
        self.rounds += 1;
        if self.rounds < ROUNDS {
            return 0;
        }
        let idle = self.fewest.div_ceil(2);
        self.rounds = 0;
        self.depth.fall(idle as usize);
        self.fewest = self.count - idle;
        idle as usize
    }

    /// Frees the last chunk, which is empty, and forgets what was learned.
    pub(in crate::middle) fn close(&mut self, class: SizeClass) {
        debug_assert_eq!(self.count, 0);
        if self.top.is_some() {
            self.drop_chunk(class);
        }
        *self = OverflowStack::new();
    }

    fn for_each(&self, class: SizeClass, mut see: impl FnMut(Slot)) {
        let slots = (1 << lg_chunk(class)) - 1;
        let (mut chunk, mut in_chunk) = (self.top, usize::from(self.in_top));
        while let Some(blocks) = chunk {
            for n in 1..=in_chunk {
                // SAFETY: the blocks follow the link of a chunk of this stack.
                let slot = unsafe { blocks.add(n) };
                // SAFETY: as above.
                see(unsafe { slot.read() });
            }
            in_chunk = slots;
            // SAFETY: the link of a chunk of this stack.
            chunk = NonNull::new(unsafe { blocks.read() }.cast());
        }
    }

    #[cfg(feature = "checks")]
    fn check(&self, class: SizeClass) {
        let mut count = 0;
        self.for_each(class, |block| {
            holds(page_map::lookup(block as usize).bin_offset() == class.bin() * BIN_BYTES);
            count += 1;
        });
        holds(count == self.count as usize && self.fewest <= self.count);
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

    /// Frees the top chunk, which is empty. The one below is full.
    fn drop_chunk(&mut self, class: SizeClass) {
        let Some(top) = self.top else { return };
        // SAFETY: the link of a chunk of this overflow stack.
        let below = unsafe { top.read() };
        self.top = NonNull::new(below.cast());
        self.in_top = if self.top.is_some() { (1 << lg_chunk(class)) - 1 } else { 0 };
        // SAFETY: the chunk came from `allocate_array` of this length, and is in use no more.
        unsafe { metadata::free_array(top, lg_chunk(class)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(range: core::ops::Range<usize>) -> Vec<Slot> {
        range.map(|n| core::ptr::without_provenance_mut(n * 16)).collect()
    }

    /// All blocks that `stack` returns when asked for `step` at a time, the newest first.
    fn lifted(stack: &mut OverflowStack, class: SizeClass, step: usize) -> Vec<usize> {
        let mut all = Vec::new();
        while let Some((blocks, some)) = stack.lift(class, step) {
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
            let mut stack =
                OverflowStack { depth: LearnedDepth::new(2000), ..OverflowStack::new() };
            assert_eq!(stack.push(class, &blocks(1..1400), usize::MAX), 1399);
            assert_eq!(stack.push(class, &blocks(1400..2500), usize::MAX), 601, "the depth");
            assert!(stack.push(class, &blocks(0..1), usize::MAX) == 0);
            let mut seen = Vec::new();
            stack.for_each(class, |block| seen.push(block as usize / 16));
            seen.sort_unstable();
            assert!(seen.into_iter().eq(1..2001));
            let expected: Vec<usize> = (1..2001).rev().collect();
            assert_eq!(lifted(&mut stack, class, step), expected);
            stack.close(class);
            assert!(stack.top.is_none());
        }
    }

    #[test]
    fn bytes_bound_it() {
        let class = SizeClass::of(64);
        let mut stack = OverflowStack { depth: LearnedDepth::new(2000), ..OverflowStack::new() };
        assert_eq!(stack.push(class, &blocks(0..10), 639), 0);
        assert_eq!(stack.push(class, &blocks(0..10), 640), 10);
        assert_eq!([1, 16, 64].map(|caches| share(caches, false)), [1 << 20, 1 << 20, 256 << 10]);
        assert_eq!([1, 16, 64].map(|caches| share(caches, true)), [1 << 20, 64 << 10, 16 << 10]);
    }

    #[test]
    fn it_holds_what_came_back_within_what_a_thread_may_keep() {
        let class = SizeClass::of(64);
        let mut overflow = Overflow::new();
        overflow.note_refill(class, 100);
        assert_eq!(overflow.of(class).room(), 0, "nothing went into slabs");
        overflow.of(class).note_gone(1_000_000);
        overflow.note_refill(class, 50);
        assert_eq!(overflow.of(class).room(), 50);
        overflow.note_refill(class, 1_000_000);
        assert_eq!(overflow.of(class).room(), THREAD_BYTES / 64);
    }

    #[test]
    fn what_lies_untouched_ages_and_the_depth_with_it() {
        let class = SizeClass::of(64);
        let mut stack = OverflowStack { depth: LearnedDepth::new(100), ..OverflowStack::new() };
        assert_eq!(stack.push(class, &blocks(0..100), usize::MAX), 100);
        stack.fewest = 100;
        assert!(stack.lift(class, 40).is_some());
        let aged: Vec<usize> = (0..ROUNDS).map(|_| stack.age()).collect();
        assert_eq!(aged.iter().sum::<usize>(), 30);
        assert_eq!(aged.last(), Some(&30));
        assert_eq!((stack.depth.get(), stack.fewest), (70, 30));
    }
}
