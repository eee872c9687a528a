//! Taking free blocks at the ends of segments back, so that the discipline gets their memory.

use super::{Pool, free_blocks};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::segments::Segment;
use crate::words::Words;

/// The free blocks at the end of what was carved from a segment, as its tally notes them: how many
/// there seem to be, and of how many it is known.
#[derive(Clone, Copy)]
struct Tail {
    blocks: usize,
    known: usize,
}

impl Tail {
    const BITS: u32 = usize::BITS / 2;

    fn of(segment: &Segment) -> Tail {
        let tally = segment.tally();
        Tail { blocks: tally >> Tail::BITS, known: tally & ((1 << Tail::BITS) - 1) }
    }

    fn note(self, segment: &Segment) {
        segment.set_tally(self.blocks << Tail::BITS | self.known);
    }

    /// Returns where it begins.
    fn start(self, segment: &Segment, slot: usize) -> usize {
        segment.carved() - self.blocks * slot
    }

    /// Counts the blocks at the end of a segment that look free.
    fn seen(words: Words, segment: &Segment, slot: usize) -> Tail {
        let (first, mut start, mut blocks) = (segment.first(), segment.carved(), 0);
        while slot != 0 && start - first >= slot && words.unseal_link(start - slot).is_some() {
            start -= slot;
            blocks += 1;
        }
        Tail { blocks, known: 0 }
    }
}

/// Takes back what was carved behind the last busy block of each segment, and gives back segments
/// without busy blocks. A block that only looks free stops that. The tally of a segment notes what
/// was taken back. Returns the newest segment that was not carved before, if any is left.
pub(super) fn uncarve_free<'a, D: Discipline>(call: &mut Call<'a, Pool, D>) -> Option<&'a Segment> {
    let (words, slot) = (call.words(), call.state().slot.get());
    for segment in call.segments() {
        Tail::seen(words, segment, slot).note(segment);
    }
    for free in free_blocks(call) {
        if let Some(segment) = call.segment_of(free) {
            let tail = Tail::of(segment);
            let known = tail.known + usize::from(free >= tail.start(segment, slot));
            Tail { known, ..tail }.note(segment);
        }
    }
    for segment in call.segments() {
        let tail = Tail::of(segment);
        if tail.known != tail.blocks {
            segment.set_tally(0);
        }
    }
    forget_free(call, |segment, free| free >= Tail::of(segment).start(segment, slot));
    let (mut is_reserve, mut reserve) = (false, None);
    for segment in call.segments() {
        is_reserve |= call.state().carving.is_reserve(words, segment);
        segment.set_carved(Tail::of(segment).start(segment, slot));
        if segment.carved() == segment.first() && call.give_back(segment) {
            continue;
        }
        if is_reserve {
            reserve = reserve.or(Some(segment));
        }
    }
    reserve
}

/// Puts the blocks that were taken back from a segment on the list again, as far as the discipline
/// left their memory to the region.
pub(super) fn carve_again<D: Discipline>(call: &Call<'_, Pool, D>, segment: &Segment) {
    let (words, state) = (call.words(), call.state());
    let slot = state.slot.get();
    for _ in 0..Tail::of(segment).blocks {
        let at = segment.carved();
        if segment.end() - at < slot {
            return;
        }
        segment.set_carved(at + slot);
        state.put(words, at);
    }
}

/// Takes some free blocks off the list.
fn forget_free<D: Discipline>(call: &Call<'_, Pool, D>, wanted: impl Fn(&Segment, usize) -> bool) {
    let (words, state) = (call.words(), call.state());
    let (mut next, mut last) = (state.free.get(), 0);
    state.free.set(0);
    while next != 0 {
        let (distance, free) = (next, words.address(next));
        next = words.linked(free);
        if call.segment_of(free).is_some_and(|segment| wanted(segment, free)) {
            words.erase(free);
            state.free_count.subtract(1);
            continue;
        }
        if last == 0 {
            state.free.set(distance);
        } else {
            words.set_linked(last, distance);
        }
        last = free;
    }
    if last != 0 {
        words.set_linked(last, 0);
    }
}
