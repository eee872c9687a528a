//! The best-fit method: the smallest free block that is large enough, and free neighbours are
//! joined at once.
//!
//! A call takes time logarithmic in the number of free blocks, and constant time if a block of up
//! to 1 KiB fits exactly. A block has 8 bytes of its own besides what is requested.

mod block;
mod free_blocks;

use super::{Method, Resize, Stat, carry_over, clear, sealed};
use crate::call::Call;
use crate::discipline::Discipline;
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::Segment;
use crate::words::{GRANULE, Words, common_multiple};
use block::{Block, HEADER, SMALLEST, free_before, size_for, write_end};
use free_blocks::FreeBlocks;

/// Best fit with joining. Source: vmalloc(3), `Vmbest`.
#[derive(Debug)]
pub enum Best {}

/// What the method keeps.
#[repr(C)]
pub struct State {
    free: FreeBlocks,
}

impl sealed::Sealed for Best {}

impl Method for Best {
    type State = State;

    const MODE: u32 = mode::BEST;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        call.state().free.begin(call.words());
    }

    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment) {
        let (first, end) = (segment.first(), segment.end());
        mark_end(call, end, false);
        if end >= first + SMALLEST {
            let block = Block { size: end - first, busy: true, after_free: false };
            block.write(call.words(), first);
            put_back(call, first, block);
        } else {
            // No block fits. The end stands where the first block would.
            mark_end(call, first, false);
        }
    }

    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, old_end: usize) {
        let words = call.words();
        let (first, end) = (segment.first(), segment.end());
        let old_end = if old_end < first + SMALLEST { first } else { old_end };
        if end < old_end + SMALLEST {
            return;
        }
        let after_free = Block::read(words, old_end).is_some_and(|block| block.after_free);
        mark_end(call, end, false);
        let block = Block { size: end - old_end, busy: true, after_free };
        block.write(words, old_end);
        put_back(call, old_end, block);
    }

    #[inline]
    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, size: usize) -> Option<usize> {
        let size = size_for(size)?;
        let at = call.with_memory(size, |call| take(call, size))?;
        call.head().count_new(usable_at(call, at));
        Some(at)
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
        let block = busy_block(call, at)?;
        let usable = block.size - HEADER;
        call.head().count_gone(usable);
        put_back(call, at, block);
        Ok(usable)
    }

    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        at: usize,
        size: usize,
        how: Resize,
    ) -> Result<usize, Misuse> {
        let old = busy_block(call, at)?.size;
        let wanted = size_for(size).ok_or(Misuse::NoRoom)?;
        if wanted <= old || lengthen(call, at, old, wanted) {
            cut_back(call, at, wanted);
            let usable = usable_at(call, at);
            call.head().count_resized(old - HEADER, usable);
            if how.zero && usable > old - HEADER {
                clear(at + old - HEADER, usable - (old - HEADER));
            }
            return Ok(at);
        }
        if !how.may_move() {
            return Err(Misuse::NoRoom);
        }
        let new = Self::alloc(call, size).ok_or(Misuse::NoRoom)?;
        carry_over(at, old - HEADER, new, usable_at(call, new), how);
        Self::free(call, at)?;
        Ok(new)
    }

    fn size<D: Discipline>(call: &Call<'_, Self, D>, at: usize) -> Option<usize> {
        Some(busy_block(call, at).ok()?.size - HEADER)
    }

    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize> {
        let segment = call.segment_of(address)?;
        let (at, block) =
            blocks(call.words(), segment).take_while(|&(at, _)| at <= address).last()?;
        let offset = address - at;
        (block.busy && offset < block.size - HEADER).then_some(offset)
    }

    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>) {
        for segment in call.segments() {
            compact_segment(call, segment);
        }
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
            let end = last.map_or(segment.first(), |(at, block)| at + block.size);
            Block::read(call.words(), end).is_none_or(|block| block.size != 0)
        };
        Some(call.segments().filter(is_broken).count())
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        for segment in call.segments() {
            for (_, block) in blocks(call.words(), segment) {
                let usable = block.size - HEADER;
                if block.busy { stat.add_busy(usable) } else { stat.add_free(usable) }
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
    let size = size_for(size)?;
    let longer = size_for(size.checked_add(align)?.checked_add(SMALLEST)?)?;
    let at = call.with_memory(longer, |call| take(call, longer))?;
    let at = cut_front(call, at, align, lead);
    cut_back(call, at, size);
    call.head().count_new(usable_at(call, at));
    Some(at)
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
        at += block.size;
        (block.size != 0).then_some((here, block))
    })
}

/// Returns the bytes that the program may use of the busy block at an address.
pub(super) fn usable<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> Result<usize, Misuse> {
    busy_block(call, at).map(|block| block.size - HEADER)
}

/// Iterates over the blocks of a segment that are in use: their addresses, and the bytes that the
/// program may use of them.
pub(super) fn busy_blocks(
    words: Words,
    segment: &Segment,
) -> impl Iterator<Item = (usize, usize)> + use<> {
    let busy = blocks(words, segment).filter(|(_, block)| block.busy);
    busy.map(|(at, block)| (at, block.size - HEADER))
}

/// Returns the bytes that the program may use of the block at `at`.
#[inline]
fn usable_at<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> usize {
    Block::read(call.words(), at).map_or(0, |block| block.size - HEADER)
}

/// Returns the busy block that begins at an address.
#[inline]
fn busy_block<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> Result<Block, Misuse> {
    let segment = call.segment_of(at).ok_or(Misuse::NotABlock)?;
    if !at.is_multiple_of(GRANULE) || at < segment.first() || at >= segment.end() {
        return Err(Misuse::NotABlock);
    }
    match Block::read(call.words(), at) {
        Some(block) if block.busy && block.size >= SMALLEST => Ok(block),
        Some(block) if block.size >= SMALLEST => Err(Misuse::FreedBefore),
        _ => Err(Misuse::NotABlock),
    }
}

/// Takes the best free block of at least `size` bytes, and cuts it. Returns its address.
#[inline]
fn take<D: Discipline>(call: &mut Call<'_, Best, D>, size: usize) -> Option<usize> {
    let (words, free) = (call.words(), &call.state().free);
    let at = free.find(words, size);
    if at == 0 {
        return None;
    }
    let found = Block::read(words, at).filter(|block| !block.busy && block.size >= size);
    let Some(block) = found.filter(|block| free.remove(words, at, block.size)) else {
        return abandon(call, at);
    };
    let rest = block.size - size;
    if rest >= SMALLEST {
        add_free(call, at + size, rest, false);
        Block { size, busy: true, after_free: block.after_free }.write(words, at);
    } else {
        Block { busy: true, ..block }.write(words, at);
        set_after_free(call, at + block.size, false);
    }
    Some(at)
}

/// Gives up all free blocks after the words of one were overwritten: what they lead to is unknown.
#[cold]
fn abandon<D: Discipline>(call: &Call<'_, Best, D>, at: usize) -> Option<usize> {
    crate::damage::report(call.words().address(0), at);
    call.state().free.begin(call.words());
    None
}

/// Writes the words of a free block, and adds it to the free blocks.
#[inline]
fn add_free<D: Discipline>(call: &Call<'_, Best, D>, at: usize, size: usize, after_free: bool) {
    let words = call.words();
    Block { size, busy: false, after_free }.write(words, at);
    write_end(words, at, size);
    call.state().free.insert(words, at, size);
}

/// Frees a block, and joins it with its free neighbours. The block after says from now on that the
/// block before it is free.
#[inline]
fn put_back<D: Discipline>(call: &Call<'_, Best, D>, at: usize, block: Block) {
    let (words, free) = (call.words(), &call.state().free);
    let (mut start, mut end) = (at, at + block.size);
    let mut after_free = block.after_free;
    if let Some(next) = Block::read(words, end).filter(|next| !next.busy)
        && free.remove(words, end, next.size)
    {
        end += next.size;
    }
    if block.after_free
        && let Some((before, size)) = free_before(words, at)
        && let Some(other) = Block::read(words, before)
        && !other.busy
        && other.size == size
        && free.remove(words, before, size)
    {
        start = before;
        after_free = other.after_free;
        Block { size: end - start, ..other }.write(words, start);
        Block::erase(words, at);
    }
    add_free(call, start, end - start, after_free);
    set_after_free(call, end, true);
}

/// Notes in the header at `at` whether the block before it is free.
#[inline]
fn set_after_free<D: Discipline>(call: &Call<'_, Best, D>, at: usize, after_free: bool) {
    match Block::read(call.words(), at) {
        Some(block) => Block { after_free, ..block }.write(call.words(), at),
        None => crate::damage::report(call.words().address(0), at - HEADER),
    }
}

/// Writes the header that ends a segment.
fn mark_end<D: Discipline>(call: &Call<'_, Best, D>, end: usize, after_free: bool) {
    Block { size: 0, busy: true, after_free }.write(call.words(), end);
}

/// Makes a busy block longer where it lies, from free memory behind it. Returns whether it is at
/// least `wanted` bytes long now.
fn lengthen<D: Discipline>(
    call: &mut Call<'_, Best, D>,
    at: usize,
    size: usize,
    wanted: usize,
) -> bool {
    if take_behind(call, at, size, wanted) {
        return true;
    }
    let words = call.words();
    let Some(segment) = call.segment_of(at) else { return false };
    let behind = Block::read(words, at + size);
    let free = behind.filter(|block| !block.busy).map_or(0, |block| block.size);
    let is_last = at + size + free == segment.end();
    is_last && call.extend(segment, wanted - size - free) && take_behind(call, at, size, wanted)
}

/// Adds the free block behind a busy one to it, if both together are at least `wanted` bytes long.
fn take_behind<D: Discipline>(
    call: &Call<'_, Best, D>,
    at: usize,
    size: usize,
    wanted: usize,
) -> bool {
    let (words, free) = (call.words(), &call.state().free);
    let Some(behind) = Block::read(words, at + size) else { return false };
    if behind.busy || size + behind.size < wanted || !free.remove(words, at + size, behind.size) {
        return false;
    }
    let Some(block) = Block::read(words, at) else { return false };
    Block { size: size + behind.size, ..block }.write(words, at);
    set_after_free(call, at + size + behind.size, false);
    true
}

/// Frees what a busy block has behind its first `size` bytes, if that is enough for a block.
fn cut_back<D: Discipline>(call: &Call<'_, Best, D>, at: usize, size: usize) {
    let words = call.words();
    let Some(block) = Block::read(words, at).filter(|block| block.size >= size + SMALLEST) else {
        return;
    };
    let rest = Block { size: block.size - size, busy: true, after_free: false };
    rest.write(words, at + size);
    Block { size, ..block }.write(words, at);
    put_back(call, at + size, rest);
}

/// Frees what a busy block has before its first address that has a multiple of `align` `lead` bytes
/// behind it. Returns this address.
fn cut_front<D: Discipline>(
    call: &Call<'_, Best, D>,
    at: usize,
    align: usize,
    lead: usize,
) -> usize {
    let words = call.words();
    let Some(block) = Block::read(words, at) else { return at };
    let multiple = (at + lead).checked_next_multiple_of(align);
    let mut aligned = multiple.map_or(at, |multiple| multiple - lead);
    if aligned == at {
        return at;
    }
    while aligned - at < SMALLEST {
        aligned += align;
    }
    let front = aligned - at;
    Block { size: block.size - front, busy: true, after_free: true }.write(words, aligned);
    let front = Block { size: front, ..block };
    front.write(words, at);
    put_back(call, at, front);
    aligned
}

/// Gives the discipline what is free at the end of a segment, or the whole segment.
fn compact_segment<D: Discipline>(call: &mut Call<'_, Best, D>, segment: &Segment) {
    let words = call.words();
    let (first, end) = (segment.first(), segment.end());
    let Some((at, size)) = Block::read(words, end)
        .filter(|block| block.after_free)
        .and_then(|_| free_before(words, end))
    else {
        return;
    };
    let Some(block) = Block::read(words, at).filter(|block| !block.busy && block.size == size)
    else {
        return;
    };
    if !call.state().free.remove(words, at, size) {
        return;
    }
    if at == first && call.give_back(segment) {
        return;
    }
    // What stays of the free block is nothing, or enough for a block.
    let rest = call.end_if_shorter(segment, at).map_or(0, |end| end - at);
    let least = if rest > 0 && rest < SMALLEST { at + SMALLEST } else { at };
    call.shorten(segment, least);
    let end = segment.end();
    mark_end(call, end, block.after_free);
    if end > at {
        add_free(call, at, end - at, block.after_free);
        mark_end(call, end, true);
    }
}
