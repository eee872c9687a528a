//! The method for blocks of one size.
//!
//! A free block holds a sealed link to the next one, and the link is made invalid when the block is
//! handed out. So a block that is freed twice is found: its first word is a valid link, and only
//! then the list is searched.

mod compaction;

use super::carving::Carving;
use super::{Method, Resize, Stat, sealed};
use crate::data::Data;
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::{Number, Segment};
use crate::words::{GRANULE, Words};
use compaction::{carve_again, uncarve_free};

/// Blocks of the size of the first one. Source: vmalloc(3), `Vmpool`.
#[derive(Debug)]
pub enum Pool {}

/// What the method keeps.
#[repr(C)]
pub struct State {
    /// The size that the program asked for, or 0 before the first block.
    element: Number,
    /// The size of a block.
    slot: Number,
    /// (2⁶⁴ - 1) divided by the granules of a block, rounded down, to tell multiples without a
    /// division.
    reciprocal: Number,
    /// The distance of the first free block, or 0.
    free: Number,
    free_count: Number,
    carving: Carving,
}

impl State {
    /// Lets the next block set the size of all.
    fn forget_element(&self) {
        self.element.set(0);
        self.slot.set(GRANULE);
        self.reciprocal.set(0);
    }

    /// Takes the first free block, or carves one. Returns `None` if none can be carved, or the link
    /// in the free block was overwritten.
    #[inline]
    fn take(&self, words: Words) -> Option<usize> {
        let free = self.free.get();
        if free == 0 {
            return self.carving.carve(self.slot.get()).map(|distance| words.address(distance));
        }
        let at = words.address(free);
        let next = words.unseal_link(at)?;
        self.free.set(next);
        self.free_count.subtract(1);
        words.erase(at);
        Some(at)
    }

    /// Puts a block on the list of free ones.
    #[inline]
    fn put(&self, words: Words, at: usize) {
        words.set_linked(at, self.free.get());
        self.free.set(words.distance(at));
        self.free_count.add(1);
    }
}

impl sealed::Sealed for Pool {}

impl Method for Pool {
    type State = State;

    const MODE: u32 = mode::POOL;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        let state = call.state();
        state.forget_element();
        state.free_count.set(0);
        state.free.set(0);
        state.carving.begin();
    }

    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment) {
        call.state().carving.carve_from(call.words(), segment);
    }

    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, _old_end: usize) {
        call.state().carving.note(call.words());
        call.state().carving.carve_from(call.words(), segment);
    }

    fn cleared<D: Discipline>(call: &Call<'_, Self, D>) {
        Self::begin(call);
        call.state().carving.start_over(call.words(), &call.head().segments);
    }

    #[inline]
    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, size: usize) -> Option<usize> {
        if size != call.state().element.get() || size == 0 {
            return alloc_first(call, size);
        }
        match call.state().take(call.words()) {
            Some(block) => Some(block),
            None => alloc_elsewhere(call, size),
        }
    }

    const IS_QUICK: bool = true;

    #[inline]
    fn quick_alloc(data: &Data<State>, size: usize) -> Option<usize> {
        // A size of 0 is no block's, and no element has it after the first block.
        let is_known = size == data.state.element.get() && size != 0;
        if is_known { data.state.take(data.head.words()) } else { None }
    }

    #[inline]
    fn quick_free(data: &Data<State>, at: usize) -> Option<()> {
        let (words, state) = (data.head.words(), &data.state);
        let behind = state.carving.behind_first(words, at)?;
        // What looks free is searched for.
        if !is_slot(behind, state) || words.unseal_link(at).is_some() {
            return None;
        }
        state.put(words, at);
        Some(())
    }

    /// Blocks of a pool lie one after the other, so there is no choice of addresses.
    fn align<D: Discipline>(_: &mut Call<'_, Self, D>, _: usize, _: usize) -> Option<usize> {
        None
    }

    #[inline]
    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, at: usize) -> Result<usize, Misuse> {
        let (words, state) = (call.words(), call.state());
        match state.carving.behind_first(words, at) {
            Some(behind) if is_slot(behind, state) => {}
            _ => check_slot(call, at)?,
        }
        if words.unseal_link(at).is_some() && is_free(call, at) {
            return Err(Misuse::FreedBefore);
        }
        state.put(words, at);
        Ok(state.element.get())
    }

    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        at: usize,
        size: usize,
        _how: Resize,
    ) -> Result<usize, Misuse> {
        let element = Self::size(call, at).ok_or(Misuse::NotABlock)?;
        if size == element { Ok(at) } else { Err(Misuse::NoRoom) }
    }

    fn size<D: Discipline>(call: &Call<'_, Self, D>, at: usize) -> Option<usize> {
        check_slot(call, at).ok()?;
        let is_free = call.words().unseal_link(at).is_some() && is_free(call, at);
        (!is_free).then(|| call.state().element.get())
    }

    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize> {
        let segment = call.segment_of(address)?;
        let behind = address.checked_sub(segment.first())?;
        let offset = behind.checked_rem(call.state().slot.get())?;
        Self::size(call, address - offset)?;
        Some(offset)
    }

    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>) {
        let (words, state) = (call.words(), call.state());
        state.carving.note(words);
        let reserve = uncarve_free(call);
        for segment in call.segments() {
            call.shorten(segment, segment.carved());
        }
        state.carving.after_compaction(words, &call.head().segments, reserve);
        for segment in call.segments() {
            if !state.carving.is_from(words, segment) {
                carve_again(call, segment);
            }
        }
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        let (words, state) = (call.words(), call.state());
        let (element, slot) = (state.element.get(), state.slot.get());
        if element == 0 {
            return;
        }
        let (mut carved, mut left) = (0, 0);
        for segment in call.segments() {
            let end = state.carving.carved(words, segment);
            carved += (end - segment.first()).checked_div(slot).unwrap_or(0);
            left += segment.end().saturating_sub(end).checked_div(slot).unwrap_or(0);
        }
        stat.busy = carved - state.free_count.get();
        stat.busy_bytes = stat.busy * element;
        stat.busy_largest = if stat.busy == 0 { 0 } else { element };
        stat.free = state.free_count.get() + left;
        stat.free_bytes = stat.free * element;
        stat.free_largest = if stat.free == 0 { 0 } else { element };
    }
}

/// Sets the size of all blocks, if there is none yet and it is not 0.
#[cold]
fn set_element(state: &State, size: usize) -> bool {
    if size == 0 || state.element.get() != 0 || size > isize::MAX as usize {
        return false;
    }
    let slot = size.next_multiple_of(GRANULE);
    state.element.set(size);
    state.slot.set(slot);
    let granules = (slot / GRANULE) as u64;
    state.reciprocal.set(u64::MAX.checked_div(granules).unwrap_or(0) as usize);
    true
}

/// Allocates the first block, whose size is that of all blocks from then on.
#[cold]
#[inline(never)]
fn alloc_first<D: Discipline>(call: &mut Call<'_, Pool, D>, size: usize) -> Option<usize> {
    if !set_element(call.state(), size) {
        return None;
    }
    let block = call.state().take(call.words()).or_else(|| alloc_elsewhere(call, size));
    let (words, state) = (call.words(), call.state());
    let is_empty = |segment: &Segment| state.carving.carved(words, segment) == segment.first();
    if block.is_none() && call.segments().all(is_empty) {
        state.forget_element();
    }
    block
}

/// Allocates a block when the segment that is carved is used up. If a word of the first free block
/// was overwritten, all free blocks stay unused from now on.
#[cold]
#[inline(never)]
fn alloc_elsewhere<D: Discipline>(call: &mut Call<'_, Pool, D>, size: usize) -> Option<usize> {
    call.with_memory(call.state().slot.get(), |call| {
        let (words, state) = (call.words(), call.state());
        // The discipline may have cleared the region when there was no memory, or freed blocks.
        if state.element.get() != size && !set_element(state, size) {
            return None;
        }
        loop {
            if let Some(block) = state.take(words) {
                return Some(block);
            }
            let free = state.free.get();
            if free != 0 {
                crate::damage::report(words.address(0), words.address(free));
                state.free.set(0);
                state.free_count.set(0);
            } else if !state.carving.next_reserve(words, state.slot.get(), GRANULE) {
                return None;
            }
        }
    })
}

/// Checks that an address is the start of a block, busy or free.
#[inline(never)]
fn check_slot<D: Discipline>(call: &Call<'_, Pool, D>, at: usize) -> Result<(), Misuse> {
    let state = call.state();
    let segment = call.segment_of(at).ok_or(Misuse::NotABlock)?;
    let behind = at.wrapping_sub(segment.first());
    let length = state.carving.carved(call.words(), segment) - segment.first();
    if behind < length && is_slot(behind, state) { Ok(()) } else { Err(Misuse::NotABlock) }
}

/// Returns whether so many bytes are a whole number of blocks.
#[inline]
fn is_slot(bytes: usize, state: &State) -> bool {
    let (granules, reciprocal) = (bytes / GRANULE, state.reciprocal.get());
    if granules > u32::MAX as usize {
        return bytes.is_multiple_of(state.slot.get());
    }
    // With r = floor((2⁶⁴ - 1) / d), and both n and d below 2³², d divides n exactly if
    // n * (r + 1) modulo 2⁶⁴ is at most r.
    bytes.is_multiple_of(GRANULE) && granules.wrapping_mul(reciprocal.wrapping_add(1)) <= reciprocal
}

/// Returns whether a block is on the list of free ones. This takes time, and is asked only about a
/// block that looks free.
#[cold]
fn is_free<D: Discipline>(call: &Call<'_, Pool, D>, at: usize) -> bool {
    free_blocks(call).any(|free| free == at)
}

fn free_blocks<D: Discipline>(call: &Call<'_, Pool, D>) -> impl Iterator<Item = usize> + use<D> {
    let words = call.words();
    let mut next = call.state().free.get();
    core::iter::from_fn(move || {
        let free = words.address(next);
        if next == 0 {
            return None;
        }
        next = words.linked(free);
        Some(free)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::Heap;
    use crate::method::call::Form;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Checks the list of free blocks.
    fn check(call: &Call<'_, Pool, Heap>) {
        let mut all: Vec<usize> = free_blocks(call).collect();
        assert_eq!(all.len(), call.state().free_count.get());
        assert!(all.iter().all(|&at| check_slot(call, at).is_ok()));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), call.state().free_count.get());
    }

    proptest! {
        #[test]
        fn the_list_has_each_free_block_once(
            steps in proptest::collection::vec((0..10u8, any::<usize>()), 1..300),
            size in 1..300usize,
        ) {
            let mut heap = Heap;
            let data = Call::<Pool, Heap>::open(&mut heap, Form::default()).unwrap();
            // SAFETY: the region was opened here, with this discipline.
            let mut call = unsafe { Call::<Pool, Heap>::new(data, &mut heap) };
            let mut live: Vec<usize> = Vec::new();
            for &(step, index) in &steps {
                match step {
                    0 => Pool::compact(&mut call),
                    1..6 => {
                        let was_free = call.state().free.get() != 0;
                        let at = Pool::alloc(&mut call, size).unwrap();
                        // A block that was used before does not look free any more.
                        prop_assert!(!was_free || call.words().unseal_link(at).is_none());
                        prop_assert!(!live.contains(&at));
                        prop_assert!(!is_free(&call, at));
                        live.push(at);
                    }
                    _ if live.is_empty() => {}
                    _ => {
                        let at = live.swap_remove(index % live.len());
                        prop_assert_eq!(Pool::free(&mut call, at), Ok(size));
                        prop_assert_eq!(Pool::free(&mut call, at), Err(Misuse::FreedBefore));
                    }
                }
                check(&call);
            }
            call.close();
        }
    }
}
