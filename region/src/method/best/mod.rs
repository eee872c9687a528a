//! The best-fit method: the smallest free block that is large enough. Free neighbours are joined.
//!
//! A block of up to 528 bytes, its header included, is kept as it is when it is freed, for the next
//! request of its size, if there are fewer than 15 of this size. Kept blocks are joined with their
//! neighbours when no block is large enough, before the region grows, and before it is compacted.
//! So they cost no memory but for what they divide.
//!
//! A call takes constant time if it takes or keeps a block. Otherwise it takes time logarithmic in
//! the number of free blocks, and sometimes joins all kept blocks, which are at most 480. A block
//! has 8 bytes of its own besides what is requested.

mod block;
mod free_blocks;
mod kept;
mod recovery;
mod state;

use super::{Method, Resize, Stat, carry_over, clear, sealed};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::Segment;
use crate::words::{GRANULE, Words, common_multiple};
use block::{Block, HEADER, SMALLEST, size_for};
use state::mark_end;

pub(crate) use state::State;

/// Best fit with joining. Source: vmalloc(3), `Vmbest`.
#[derive(Debug)]
pub enum Best {}

impl sealed::Sealed for Best {}

impl Method for Best {
    type State = State;

    const MODE: u32 = mode::BEST;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        call.state().begin(call.words());
    }

    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment) {
        let (words, first, end) = (call.words(), segment.first(), segment.end());
        mark_end(words, end, false);
        if end >= first + SMALLEST {
            call.state().add_memory(words, first, end, false);
        } else {
            // No block fits. The end stands where the first block would.
            mark_end(words, first, false);
        }
    }

    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, old_end: usize) {
        let words = call.words();
        let (first, end) = (segment.first(), segment.end());
        let old_end = if old_end < first + SMALLEST { first } else { old_end };
        if end < old_end + SMALLEST {
            return;
        }
        let after_free = Block::read(words, old_end).is_some_and(Block::is_after_free);
        mark_end(words, end, false);
        call.state().add_memory(words, old_end, end, after_free);
    }

    #[inline]
    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, size: usize) -> Option<usize> {
        obtain(call, size)
    }

    fn align<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        size: usize,
        align: usize,
    ) -> Option<usize> {
        align_behind(call, size, align, 0)
    }

    #[inline]
    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, at: usize) -> Result<usize, Misuse> {
        let (words, segments) = (call.words(), &call.head().segments);
        if at.is_multiple_of(GRANULE)
            && segments.is_in_body(words, at)
            && let Some(block) = Block::read(words, at)
            && block.is_used()
            && call.state().keep(words, at, block)
        {
            return Ok(block.size() - HEADER);
        }
        free_unkept(call, at)
    }

    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        at: usize,
        size: usize,
        how: Resize,
    ) -> Result<usize, Misuse> {
        let block = busy_block(call, at)?;
        let (old, requested) = (block.size(), block.requested());
        let wanted = size_for(size).ok_or(Misuse::NoRoom)?;
        if wanted <= old || lengthen(call, at, old, wanted) {
            let (words, state) = (call.words(), call.state());
            state.cut_back(words, at, wanted);
            state.note_request(words, at, size);
            if how.zero && size > requested {
                clear(at + requested, size - requested);
            }
            return Ok(at);
        }
        if !how.may_move() {
            return Err(Misuse::NoRoom);
        }
        let new = Self::alloc(call, size).ok_or(Misuse::NoRoom)?;
        // The discipline may have freed or resized the block when there was no memory, and the new
        // one may have taken its place.
        let found = if new == at { Err(Misuse::FreedBefore) } else { busy_block(call, at) };
        if found.is_err() {
            Self::free(call, new)?;
        }
        let block = found?;
        // What the program did not ask for may be in use too, unless it wants zeros there.
        let kept = if how.zero { block.requested() } else { block.size() - HEADER };
        carry_over(at, kept, new, size, how);
        Self::free(call, at)?;
        Ok(new)
    }

    fn size<D: Discipline>(call: &Call<'_, Self, D>, at: usize) -> Option<usize> {
        Some(busy_block(call, at).ok()?.size() - HEADER)
    }

    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize> {
        let segment = call.segment_of(address)?;
        let before = blocks(call.words(), segment).take_while(|&(at, _)| at <= address);
        let (at, block) = before.last()?;
        let offset = address - at;
        (block.is_used() && offset < block.size() - HEADER).then_some(offset)
    }

    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>) {
        call.state().join_kept(call.words());
        for segment in call.segments() {
            compact_segment(call, segment);
        }
    }

    const RECOVERS: bool = true;

    fn recover<D: Discipline>(call: &mut Call<'_, Self, D>) {
        recovery::recover(call);
    }

    fn blocks<D: Discipline>(call: &Call<'_, Self, D>, see: &mut dyn FnMut(usize, usize)) -> bool {
        for segment in call.segments() {
            busy_blocks(call.words(), segment).for_each(|(at, usable)| see(at, usable));
        }
        true
    }

    fn check<D: Discipline>(call: &mut Call<'_, Self, D>) -> Option<usize> {
        let is_broken = |segment: &&Segment| {
            let last = blocks(call.words(), segment).last();
            let end = last.map_or(segment.first(), |(at, block)| at + block.size());
            Block::read(call.words(), end).is_none_or(|block| block.size() != 0)
        };
        Some(call.segments().filter(is_broken).count())
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        for segment in call.segments() {
            for (_, block) in blocks(call.words(), segment) {
                let usable = block.size() - HEADER;
                if block.is_used() { stat.add_busy(usable) } else { stat.add_free(usable) }
            }
        }
    }
}

/// Returns a new block of `size` bytes that has a multiple of `align` and of 16 `lead` bytes behind
/// its start. `lead` is a multiple of 16.
pub(super) fn align_behind<D: Discipline>(
    call: &mut Call<'_, Best, D>,
    size: usize,
    align: usize,
    lead: usize,
) -> Option<usize> {
    let align = common_multiple(align)?;
    let needed = size_for(size)?;
    let at = obtain(call, needed.checked_add(align)?.checked_add(SMALLEST)?)?;
    let (words, state) = (call.words(), call.state());
    let at = state.cut_front(words, at, align, lead);
    state.cut_back(words, at, needed);
    Some(state.note_request(words, at, size))
}

/// Iterates over the blocks of a segment, until its end or a header that was overwritten.
fn blocks(words: Words, segment: &Segment) -> impl Iterator<Item = (usize, Block)> + use<> {
    let (mut at, end) = (segment.first(), segment.end());
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let Some(block) = Block::read(words, at) else {
            crate::damage::report(words.address(0), at - HEADER);
            return None;
        };
        let here = at;
        at += block.size();
        (block.size() != 0).then_some((here, block))
    })
}

/// Returns the bytes that the program may use of the busy block at an address.
pub(super) fn usable<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> Result<usize, Misuse> {
    busy_block(call, at).map(|block| block.size() - HEADER)
}

/// Iterates over the blocks of a segment that the program has: their addresses, and the bytes that
/// it may use of them.
pub(super) fn busy_blocks(
    words: Words,
    segment: &Segment,
) -> impl Iterator<Item = (usize, usize)> + use<> {
    let used = blocks(words, segment).filter(|(_, block)| block.is_used());
    used.map(|(at, block)| (at, block.size() - HEADER))
}

/// Returns the block that begins at an address, if the program has it.
#[inline]
fn busy_block<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> Result<Block, Misuse> {
    if !at.is_multiple_of(GRANULE) || !call.head().segments.has_blocks_at(call.words(), at) {
        return Err(Misuse::NotABlock);
    }
    match Block::read(call.words(), at) {
        Some(block) if block.is_used() && block.size() >= SMALLEST => Ok(block),
        Some(block) if block.size() >= SMALLEST => Err(Misuse::FreedBefore),
        _ => Err(Misuse::NotABlock),
    }
}

/// Frees a block that was not kept at once, or returns why it cannot.
#[cold]
#[inline(never)]
fn free_unkept<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> Result<usize, Misuse> {
    let block = busy_block(call, at)?;
    let (words, state) = (call.words(), call.state());
    if !state.keep(words, at, block) {
        state.put_back(words, at, block);
    }
    Ok(block.size() - HEADER)
}

/// Returns a block for a request of so many bytes.
#[inline]
fn obtain<D: Discipline>(call: &mut Call<'_, Best, D>, request: usize) -> Option<usize> {
    let size = size_for(request)?;
    match call.state().kept.take(call.words(), size, request) {
        Some(at) => Some(at),
        None => cut(call, size, request),
    }
}

/// Returns a block of at least `size` bytes, in memory of the discipline if there is no other.
#[cold]
#[inline(never)]
fn cut<D: Discipline>(call: &mut Call<'_, Best, D>, size: usize, request: usize) -> Option<usize> {
    call.state().kept.abandon(call.words(), size);
    let at = call.with_memory(size, |call| call.state().take(call.words(), size))?;
    Some(call.state().note_request(call.words(), at, request))
}

/// Makes a busy block longer where it lies, from free memory behind it. Returns whether it is at
/// least `wanted` bytes long now.
fn lengthen<D: Discipline>(
    call: &mut Call<'_, Best, D>,
    at: usize,
    size: usize,
    wanted: usize,
) -> bool {
    let (words, state) = (call.words(), call.state());
    if state.take_behind(words, at, size, wanted) {
        return true;
    }
    if Block::read(words, at + size).is_some_and(Block::is_kept) {
        state.join_kept(words);
        if state.take_behind(words, at, size, wanted) {
            return true;
        }
    }
    let Some(segment) = call.segment_of(at) else { return false };
    let behind = Block::read(words, at + size).filter(|block| block.is_free());
    let there = size + behind.map_or(0, Block::size);
    at + there == segment.end()
        && call.extend(segment, wanted.saturating_sub(there))
        && state.take_behind(words, at, size, wanted)
}

/// Gives the discipline what is free at the end of a segment, or the whole segment.
fn compact_segment<D: Discipline>(call: &mut Call<'_, Best, D>, segment: &Segment) {
    let (words, state) = (call.words(), call.state());
    let end = segment.end();
    let at = state.take_end(words, end);
    if at == end || at == segment.first() && call.give_back(segment) {
        return;
    }
    // What stays of the free memory is nothing, or enough for a block.
    let rest = call.end_if_shorter(segment, at).map_or(0, |end| end - at);
    let least = if rest > 0 && rest < SMALLEST { at + SMALLEST } else { at };
    let after_free = Block::read(words, at).is_some_and(Block::is_after_free);
    call.shorten(segment, least);
    let end = segment.end();
    mark_end(words, end, after_free);
    if end > at {
        state.add_memory(words, at, end, after_free);
    }
}

#[cfg(test)]
mod tests {
    use super::block::{LARGEST, free_before};
    use super::*;
    use crate::discipline::Resized;
    use crate::heap::Heap;
    use crate::method::call::Form;
    use crate::system::System;
    use core::ptr::NonNull;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    /// Checks that all words of a region's blocks agree with each other. Returns the blocks.
    pub(super) fn check<D: Discipline>(call: &Call<'_, Best, D>) -> BTreeMap<usize, Block> {
        let (words, state) = (call.words(), call.state());
        let mut all = BTreeMap::new();
        for segment in call.segments() {
            let (mut at, mut after_free) = (segment.first(), false);
            for (here, block) in blocks(words, segment) {
                assert_eq!((here, block.is_after_free()), (at, after_free));
                assert!(block.size() >= SMALLEST);
                at += block.size();
                if block.is_free() {
                    let (_, before) = free_before(words, here).filter(|_| after_free).unzip();
                    let is_joined = before.is_none_or(|size| size + block.size() > LARGEST);
                    assert!(is_joined && !block.is_kept(), "two free blocks side by side");
                    assert_eq!(free_before(words, at), Some((here, block.size())));
                }
                after_free = block.is_free();
                all.insert(here, block);
            }
            assert_eq!(Block::read(words, at), Some(Block::busy(0).after(after_free)));
            assert!(at == segment.end() || at == segment.first());
        }
        let those = |is: fn(Block) -> bool| {
            let those = all.iter().filter(move |(_, block)| is(**block));
            those.map(|(&at, _)| at).collect::<Vec<usize>>()
        };
        let sorted = |mut list: Vec<usize>| {
            list.sort_unstable();
            list
        };
        assert_eq!(sorted(state.kept.checked(words)), those(Block::is_kept));
        assert_eq!(sorted(state.free.checked(words)), those(Block::is_free));
        all
    }

    /// Checks where a new block came from: from the best of those that there were, if any.
    fn check_fit(before: &BTreeMap<usize, Block>, at: usize, request: usize) {
        let size = size_for(request).unwrap();
        let fits = |block: &&Block| !block.is_used() && block.size() >= size;
        let best = before.values().filter(fits).map(|block| block.size()).min();
        if let Some(best) = best {
            let (_, from) = before.range(..=at).next_back().unwrap();
            assert_eq!((from.is_used(), from.size()), (false, best));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Alloc(usize),
        Align(usize, usize),
        Free(usize),
        Resize(usize, usize),
        Compact,
        Clear,
    }

    fn step() -> impl Strategy<Value = Step> {
        let size = || prop_oneof![6 => 0..200usize, 2 => 200..600usize, 1 => 600..3000usize];
        prop_oneof![
            12 => size().prop_map(Step::Alloc),
            1 => (size(), 1..300usize).prop_map(|(size, align)| Step::Align(size, align)),
            12 => any::<usize>().prop_map(Step::Free),
            2 => (any::<usize>(), size()).prop_map(|(index, size)| Step::Resize(index, size)),
            1 => Just(Step::Compact),
            1 => Just(Step::Clear),
        ]
    }

    fn run<D: Discipline>(mut discipline: D, steps: &[Step]) {
        let data = Call::<Best, D>::open(&mut discipline, Form::default()).unwrap();
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<Best, D>::new(data, &mut discipline) };
        let mut live: Vec<usize> = Vec::new();
        for step in steps {
            let before = check(&call);
            match *step {
                Step::Alloc(size) => {
                    let at = Best::alloc(&mut call, size).unwrap();
                    check_fit(&before, at, size);
                    live.push(at);
                }
                Step::Align(size, align) => {
                    live.push(Best::align(&mut call, size, align).unwrap());
                }
                Step::Free(index) if !live.is_empty() => {
                    let at = live.swap_remove(index % live.len());
                    assert_eq!(Best::free(&mut call, at), Ok(before[&at].size() - HEADER));
                    assert!(Best::free(&mut call, at).is_err());
                }
                Step::Resize(index, size) if !live.is_empty() => {
                    let slot = index % live.len();
                    live[slot] = Best::resize(&mut call, live[slot], size, Resize::MOVE).unwrap();
                }
                Step::Compact => Best::compact(&mut call),
                Step::Clear => {
                    call.clear();
                    live.clear();
                }
                Step::Free(_) | Step::Resize(..) => {}
            }
            let used = |(at, block): (usize, Block)| block.is_used().then_some(at);
            let mut expected = live.clone();
            expected.sort_unstable();
            assert_eq!(check(&call).into_iter().filter_map(used).collect::<Vec<_>>(), expected);
        }
        call.close();
    }

    #[test]
    fn a_region_of_several_segments_is_made_whole() {
        let mut heap = Heap;
        let data = Call::<Best, Heap>::open(&mut heap, Form::default()).unwrap();
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<Best, Heap>::new(data, &mut heap) };
        let blocks: Vec<usize> =
            (1..2000).map(|size| Best::alloc(&mut call, size).unwrap()).collect();
        for block in blocks.iter().step_by(3) {
            assert!(Best::free(&mut call, *block).is_ok());
        }
        let used = |call: &Call<'_, Best, Heap>| {
            let used = |(at, block): (usize, Block)| block.is_used().then_some(at);
            check(call).into_iter().filter_map(used).collect::<Vec<_>>()
        };
        let (blocks, before) = (used(&call), call.stat());
        assert!(before.segments > 3);
        call.recover();
        assert!(used(&call) == blocks);
        let after = call.stat();
        assert_eq!((after.segments, after.extent), (before.segments, before.extent));
        assert!(blocks.iter().all(|block| Best::free(&mut call, *block).is_ok()));
        call.close();
    }

    /// A segment of addresses, few of which get memory.
    struct Wide(NonNull<u8>);

    const WIDTH: usize = 3 << 40;

    impl Wide {
        fn new() -> Wide {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let anywhere = core::ptr::null_mut();
            // SAFETY: the mapping is new.
            let start = unsafe { libc::mmap(anywhere, WIDTH, protection, flags, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            Wide(NonNull::new(start.cast()).unwrap())
        }
    }

    // SAFETY: the addresses belong to the region alone.
    unsafe impl Discipline for Wide {
        fn growth(&self, extent: usize) -> usize {
            if extent == 0 { 3 << 38 } else { 0 }
        }

        fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
            Some(self.0).filter(|_| size == 3 << 38)
        }

        unsafe fn resize(&mut self, _segment: NonNull<u8>, _: usize, new_size: usize) -> Resized {
            if new_size <= WIDTH { Resized::InPlace } else { Resized::Refused }
        }

        unsafe fn release(&mut self, segment: NonNull<u8>, _size: usize) -> bool {
            // SAFETY: the mapping is this discipline's, and not used after.
            unsafe { libc::munmap(segment.as_ptr().cast(), WIDTH) == 0 }
        }
    }

    #[test]
    fn free_memory_longer_than_a_block_can_be_is_several_blocks() {
        let mut wide = Wide::new();
        let data = Call::<Best, Wide>::open(&mut wide, Form::default()).unwrap();
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<Best, Wide>::new(data, &mut wide) };
        let largest = LARGEST - SMALLEST - HEADER;
        assert_eq!(check(&call).len(), 2);
        assert_eq!(Best::alloc(&mut call, largest + 1), None);
        // The first one is there, and the region grows for the second.
        let blocks = [(); 2].map(|()| Best::alloc(&mut call, largest).unwrap());
        assert_eq!(check(&call).values().filter(|block| block.is_used()).count(), 2);
        call.recover();
        let free = |call: &Call<'_, Best, Wide>| {
            let all = check(call);
            let free = all.values().filter(|block| block.is_free()).map(|block| block.size());
            free.sum::<usize>()
        };
        let before = free(&call);
        for (count, block) in (1..).zip(blocks) {
            assert!(Best::free(&mut call, block).is_ok());
            assert_eq!(free(&call), before + count * (LARGEST - SMALLEST));
        }
        call.recover();
        assert_eq!(free(&call), before + 2 * (LARGEST - SMALLEST));
        // A block and the free one behind it are longer together than a block can be.
        let [first, block] = [(); 2].map(|()| Best::alloc(&mut call, largest).unwrap());
        for size in [300 << 30, 400 << 30] {
            assert_eq!(Best::resize(&mut call, block, size, Resize::STAY), Ok(block));
            let size = size_for(size).unwrap();
            assert_eq!(check(&call).get(&block).map(|block| block.size()), Some(size));
        }
        assert!([first, block].iter().all(|at| Best::free(&mut call, *at).is_ok()));
        Best::compact(&mut call);
        check(&call);
        assert_eq!(call.stat().extent, lumalloc::PAGE);
        call.close();
    }

    proptest! {
        #[test]
        fn all_words_agree_in_segments_that_do_not_grow(
            steps in proptest::collection::vec(step(), 1..300)
        ) {
            run(Heap, &steps);
        }

        #[test]
        fn all_words_agree_in_segments_that_grow(
            steps in proptest::collection::vec(step(), 1..300)
        ) {
            run(System, &steps);
        }
    }
}
