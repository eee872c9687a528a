//! The method for structures that are dropped as a whole: blocks are carved one after the other,
//! and only the last one can be freed.

use super::carving::{Carving, rounded};
use super::{Method, Resize, Stat, carry_over, clear, sealed};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::misuse::Misuse;
use crate::mode;
use crate::segments::{Number, Segment};
use crate::words::{GRANULE, common_multiple};

/// Blocks one after the other. Source: vmalloc(3), `Vmlast`.
///
/// The length of a block is known as long as it is the last one. So of the counts, `busy_bytes` has
/// also what older blocks left behind when they moved, and `busy_largest` is the length of the last
/// block, or 0 if it was freed.
#[derive(Debug)]
pub enum Last {}

/// What the method keeps.
#[repr(C)]
pub struct State {
    carving: Carving,
    /// The distance to the last block, or 0 if it was freed.
    last: Number,
    last_size: Number,
    /// What the program asked for the last block.
    requested: Number,
}

impl State {
    fn note_last(&self, distance: usize, size: usize, requested: usize) {
        self.last.set(distance);
        self.last_size.set(size);
        self.requested.set(requested);
    }

    /// Returns whether nothing was carved behind the last block, and no other segment is carved.
    fn is_last_carved(&self) -> bool {
        self.last.get().wrapping_add(self.last_size.get()) == self.carving.next()
    }
}

impl sealed::Sealed for Last {}

impl Method for Last {
    type State = State;

    const MODE: u32 = mode::LAST;

    fn begin<D: Discipline>(call: &Call<'_, Self, D>) {
        call.state().carving.begin();
        call.state().last.set(0);
    }

    fn added<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment) {
        call.state().carving.carve_from(call.words(), segment);
    }

    fn extended<D: Discipline>(call: &Call<'_, Self, D>, segment: &Segment, _old_end: usize) {
        call.state().carving.note(call.words());
        call.state().carving.carve_from(call.words(), segment);
    }

    fn cleared<D: Discipline>(call: &Call<'_, Self, D>) {
        call.state().carving.start_over(call.words(), &call.head().segments);
        call.state().last.set(0);
    }

    #[inline]
    fn alloc<D: Discipline>(call: &mut Call<'_, Self, D>, request: usize) -> Option<usize> {
        let size = rounded(request)?;
        let state = call.state();
        if let Some(distance) = state.carving.carve(size) {
            state.note_last(distance, size, request);
            call.head().count_new(size);
            return Some(call.words().address(distance));
        }
        carve_elsewhere(call, request, GRANULE)
    }

    fn align<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        size: usize,
        align: usize,
    ) -> Option<usize> {
        carve_elsewhere(call, size, common_multiple(align)?)
    }

    fn free<D: Discipline>(call: &mut Call<'_, Self, D>, at: usize) -> Result<usize, Misuse> {
        let size = last_size(call, at)?;
        let state = call.state();
        if state.is_last_carved() {
            state.carving.uncarve(state.last.get());
        }
        state.last.set(0);
        call.head().count_gone(size);
        Ok(size)
    }

    fn resize<D: Discipline>(
        call: &mut Call<'_, Self, D>,
        at: usize,
        size: usize,
        how: Resize,
    ) -> Result<usize, Misuse> {
        let wanted = rounded(size).ok_or(Misuse::NoRoom)?;
        let requested = call.state().requested.get();
        let last = last_size(call, at);
        let old = match last {
            Ok(old) if stretch(call, old, wanted) => {
                call.head().count_resized(old, wanted);
                call.state().requested.set(size);
                if how.zero && size > requested {
                    clear(at + requested, size - requested);
                }
                return Ok(at);
            }
            Ok(_) if how.zero => requested,
            Ok(old) => old,
            // How long an older block is, is not known.
            Err(Misuse::NotTheLast) => carved_behind(call, at).ok_or(Misuse::NotABlock)?,
            Err(misuse) => return Err(misuse),
        };
        if !how.may_move() {
            return Err(Misuse::NoRoom);
        }
        let new = Self::alloc(call, size).ok_or(Misuse::NoRoom)?;
        // The discipline may have freed the block when there was no memory, and its segment may be
        // gone. A new block in its place has what it held.
        let Some(left) = carved_behind(call, at) else {
            Self::free(call, new)?;
            return Err(Misuse::NotABlock);
        };
        carry_over(at, old.min(left), new, size, how);
        // The bytes of an older block, whose length is not known, count on.
        call.head().count_left(last.unwrap_or(0));
        Ok(new)
    }

    fn size<D: Discipline>(call: &Call<'_, Self, D>, at: usize) -> Option<usize> {
        last_size(call, at).ok()
    }

    fn offset<D: Discipline>(call: &Call<'_, Self, D>, address: usize) -> Option<usize> {
        let last = call.state().last.get();
        let offset = call.words().distance(address).wrapping_sub(last);
        let size = call.state().last_size.get();
        (last != 0 && offset < size).then_some(offset)
    }

    fn compact<D: Discipline>(call: &mut Call<'_, Self, D>) {
        let (words, carving) = (call.words(), &call.state().carving);
        carving.note(words);
        let (mut is_reserve, mut reserve) = (false, None);
        for segment in call.segments() {
            is_reserve |= carving.is_reserve(words, segment);
            if segment.carved() == segment.first() && call.give_back(segment) {
                continue;
            }
            call.shorten(segment, segment.carved());
            if is_reserve {
                reserve = reserve.or(Some(segment));
            }
        }
        carving.after_compaction(words, &call.head().segments, reserve);
    }

    fn count<D: Discipline>(call: &Call<'_, Self, D>, stat: &mut Stat) {
        (stat.busy, stat.busy_bytes) = call.head().busy();
        // How long others are is not known.
        let is_there = call.state().last.get() != 0;
        stat.busy_largest = if is_there { call.state().last_size.get() } else { 0 };
        for segment in call.segments() {
            let carved = call.state().carving.carved(call.words(), segment);
            if segment.end() > carved {
                stat.add_free(segment.end() - carved);
            }
        }
    }
}

/// Carves a block that the present segment has no room for, or that wants an alignment.
#[cold]
#[inline(never)]
fn carve_elsewhere<D: Discipline>(
    call: &mut Call<'_, Last, D>,
    request: usize,
    align: usize,
) -> Option<usize> {
    let size = rounded(request)?;
    let at = call.with_memory(size.checked_add(align)?, |call| {
        let (words, carving) = (call.words(), &call.state().carving);
        loop {
            if let Some(distance) = carving.carve_aligned(words, size, align) {
                call.state().note_last(distance, size, request);
                return Some(words.address(distance));
            }
            if !carving.next_reserve(words, size, align) {
                return None;
            }
        }
    })?;
    call.head().count_new(size);
    Some(at)
}

/// Returns the size of the block at an address, if it is the last one.
fn last_size<D: Discipline>(call: &Call<'_, Last, D>, at: usize) -> Result<usize, Misuse> {
    let last = call.state().last.get();
    if last != 0 && call.words().distance(at) == last {
        return Ok(call.state().last_size.get());
    }
    Err(if carved_behind(call, at).is_some() { Misuse::NotTheLast } else { Misuse::NotABlock })
}

/// Returns how many bytes were carved from a segment from an address on, if a block may begin
/// there.
fn carved_behind<D: Discipline>(call: &Call<'_, Last, D>, at: usize) -> Option<usize> {
    let segment = call.segment_of(at)?;
    let end = call.state().carving.carved(call.words(), segment);
    let is_block = at.is_multiple_of(GRANULE) && at >= segment.first() && at < end;
    is_block.then(|| end - at)
}

/// Changes the size of the last block where it lies. Returns whether there was room.
fn stretch<D: Discipline>(call: &mut Call<'_, Last, D>, old: usize, wanted: usize) -> bool {
    let state = call.state();
    if wanted <= old {
        if state.is_last_carved() {
            state.carving.uncarve(state.last.get().wrapping_add(wanted));
        }
        state.last_size.set(wanted);
        return true;
    }
    if !state.is_last_carved() || !carve_more(call, wanted - old) {
        return false;
    }
    state.last_size.set(wanted);
    true
}

/// Carves bytes behind the last block, in a segment that may have to grow.
fn carve_more<D: Discipline>(call: &mut Call<'_, Last, D>, bytes: usize) -> bool {
    let (words, state) = (call.words(), call.state());
    if state.carving.carve(bytes).is_some() {
        return true;
    }
    let last = words.address(state.last.get());
    let Some(segment) = call.segment_of(last) else { return false };
    // The discipline may have given another segment instead.
    call.extend(segment, bytes)
        && state.carving.is_from(words, segment)
        && state.carving.carve(bytes).is_some()
}
