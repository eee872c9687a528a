//! The method for blocks of one size.
//!
//! A free block holds a sealed link to the next one. Free blocks are on a list, so a block that is
//! freed twice is found: its first word then is a valid seal, and only then the list is searched.

use super::carving::Carving;
use super::{Method, Resize, Stat, sealed};
use crate::call::Call;
use crate::discipline::Discipline;
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::{Link, Number, Segment};
use crate::words::GRANULE;

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
    /// 2⁶⁴ divided by the granules of a block, rounded up, to tell multiples without a division.
    reciprocal: Number,
    free: Link,
    free_count: Number,
    carving: Carving,
}

impl sealed::Sealed for Pool {}

impl Method for Pool {
    type State = State;

    const MODE: u32 = mode::POOL;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        let state = call.state();
        state.element.set(0);
        state.slot.set(GRANULE);
        state.reciprocal.set(0);
        state.free_count.set(0);
        call.words().set_link(state.free.place(), 0);
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
        let state = call.state();
        if (size != state.element.get() || size == 0) && !set_element(state, size) {
            return None;
        }
        let words = call.words();
        let free = words.link(state.free.place());
        let at = if free != 0 {
            words.set_link(state.free.place(), words.link(free));
            state.free_count.subtract(1);
            free
        } else if let Some(distance) = state.carving.carve(state.slot.get()) {
            words.address(distance)
        } else {
            carve_elsewhere(call)?
        };
        call.head().count_new(size);
        Some(at)
    }

    /// Blocks of a pool lie one after the other, so there is no choice of addresses.
    fn align<D: Discipline>(_: &mut Call<'_, Self, D>, _: usize, _: usize) -> Option<usize> {
        None
    }

    #[inline]
    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, at: usize) -> Result<usize, Misuse> {
        check_slot(call, at)?;
        let (words, state) = (call.words(), call.state());
        if words.unseal(at).is_some() && is_free(call, at) {
            return Err(Misuse::FreedBefore);
        }
        words.set_link(at, words.link(state.free.place()));
        words.set_link(state.free.place(), at);
        state.free_count.add(1);
        let size = state.element.get();
        call.head().count_gone(size);
        Ok(size)
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
        let is_free = call.words().unseal(at).is_some() && is_free(call, at);
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
        release_empty(call);
        for segment in call.segments() {
            call.shorten(segment, segment.carved());
        }
        state.carving.after_compaction(words, &call.head().segments);
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        let (words, state) = (call.words(), call.state());
        let (element, slot) = (state.element.get(), state.slot.get());
        (stat.busy, stat.busy_bytes) = call.head().busy();
        stat.busy_largest = if stat.busy == 0 { 0 } else { element };
        if element == 0 {
            return;
        }
        let left = |segment: &Segment| {
            let bytes = segment.end().saturating_sub(state.carving.carved(words, segment));
            bytes.checked_div(slot).unwrap_or(0)
        };
        let uncarved: usize = call.segments().map(left).sum();
        stat.free = state.free_count.get() + uncarved;
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
    state.reciprocal.set(u64::MAX.checked_div(granules).unwrap_or(0).wrapping_add(1) as usize);
    true
}

#[cold]
#[inline(never)]
fn carve_elsewhere<D: Discipline>(call: &mut Call<'_, Pool, D>) -> Option<usize> {
    let slot = call.state().slot.get();
    call.with_memory(slot, |call| {
        let (words, carving) = (call.words(), &call.state().carving);
        loop {
            if let Some(distance) = carving.carve(slot) {
                return Some(words.address(distance));
            }
            if !carving.next_reserve(words) {
                return None;
            }
        }
    })
}

/// Checks that an address is the start of a block, busy or free.
#[inline]
fn check_slot<D: Discipline>(call: &Call<'_, Pool, D>, at: usize) -> Result<(), Misuse> {
    let state = call.state();
    let segment = call.segment_of(at).ok_or(Misuse::NotABlock)?;
    let behind = at.wrapping_sub(segment.first());
    let end = state.carving.carved(call.words(), segment);
    if behind >= end.wrapping_sub(segment.first())
        || !at.is_multiple_of(GRANULE)
        || !is_multiple(behind / GRANULE, state)
    {
        return Err(Misuse::NotABlock);
    }
    Ok(())
}

/// Returns whether so many granules are a whole number of blocks.
#[inline]
fn is_multiple(granules: usize, state: &State) -> bool {
    let reciprocal = state.reciprocal.get();
    if granules > u32::MAX as usize {
        return granules.is_multiple_of(state.slot.get() / GRANULE);
    }
    // With r = ceil(2⁶⁴ / d) and both n and d below 2³², d divides n exactly if n * r modulo 2⁶⁴ is
    // less than r. For d = 1, r is 0 modulo 2⁶⁴.
    reciprocal == 0 || granules.wrapping_mul(reciprocal) < reciprocal
}

/// Returns whether a block is on the list of free ones. This takes time, and is asked only about a
/// block that looks free.
#[cold]
fn is_free<D: Discipline>(call: &Call<'_, Pool, D>, at: usize) -> bool {
    free_blocks(call).any(|free| free == at)
}

fn free_blocks<D: Discipline>(call: &Call<'_, Pool, D>) -> impl Iterator<Item = usize> + use<D> {
    let words = call.words();
    let mut next = words.link(call.state().free.place());
    core::iter::from_fn(move || {
        let free = next;
        next = if free == 0 { 0 } else { words.link(free) };
        (free != 0).then_some(free)
    })
}

/// Gives back the segments in which no block is busy.
fn release_empty<D: Discipline>(call: &mut Call<'_, Pool, D>) {
    let slot = call.state().slot.get();
    // How many blocks of each segment are free. The numbers stand in the segments.
    for segment in call.segments() {
        segment.set_tally(0);
    }
    for free in free_blocks(call) {
        if let Some(segment) = call.segment_of(free) {
            segment.set_tally(segment.tally() + 1);
        }
    }
    let is_empty = |segment: &Segment| segment.tally() * slot == segment.carved() - segment.first();
    forget_free(call, is_empty);
    for segment in call.segments() {
        if is_empty(segment) {
            segment.set_carved(segment.first());
            call.give_back(segment);
        }
    }
}

/// Takes the free blocks of some segments off the list.
fn forget_free<D: Discipline>(call: &Call<'_, Pool, D>, of: impl Fn(&Segment) -> bool) {
    let (words, state) = (call.words(), call.state());
    let mut link = state.free.place();
    let mut next = words.link(link);
    while next != 0 {
        let after = words.link(next);
        if call.segment_of(next).is_some_and(&of) {
            words.set_link(link, after);
            state.free_count.subtract(1);
        } else {
            link = next;
        }
        next = after;
    }
}
