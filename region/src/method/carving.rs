//! Carving: blocks are cut from a segment one after the other, with no words between them.

use crate::segments::{Number, Segment, Segments};
use crate::words::{GRANULE, Words};

/// Where the next block comes from. Distances are from the core data.
#[repr(C)]
pub(super) struct Carving {
    /// The distance to the segment that is carved, or 0.
    segment: Number,
    /// The distance to its first block, to what is free in it, and to its end.
    first: Number,
    next: Number,
    end: Number,
    /// The distance to a segment that was not carved since the region was cleared, and is older
    /// than all that were, or 0.
    reserve: Number,
}

impl Carving {
    /// Makes the state of a region without segments.
    pub(super) fn begin(&self) {
        for number in [&self.segment, &self.first, &self.next, &self.end, &self.reserve] {
            number.set(0);
        }
    }

    /// Goes on with the free end of a segment.
    pub(super) fn carve_from(&self, words: Words, segment: &Segment) {
        self.note(words);
        self.segment.set(words.distance(segment.address()));
        self.first.set(words.distance(segment.first()));
        self.next.set(words.distance(segment.carved()));
        self.end.set(words.distance(segment.end()));
    }

    /// Starts over in a region whose segments are all empty.
    pub(super) fn start_over(&self, words: Words, segments: &Segments) {
        self.begin();
        if let Some(newest) = segments.newest(words) {
            self.carve_from(words, newest);
            self.reserve_older(words, newest);
        }
    }

    /// Notes in the segment how far it is carved.
    pub(super) fn note(&self, words: Words) {
        if let Some(segment) = self.segment(words) {
            segment.set_carved(words.address(self.next.get()));
        }
    }

    /// Returns the segment that is carved.
    fn segment<'a>(&self, words: Words) -> Option<&'a Segment> {
        let distance = self.segment.get();
        // SAFETY: the state names only segments of the region.
        (distance != 0).then(|| unsafe { Segment::at(words.address(distance)) })
    }

    /// Returns whether a segment is the one that is carved.
    pub(super) fn is_from(&self, words: Words, segment: &Segment) -> bool {
        self.segment.get() == words.distance(segment.address())
    }

    /// Returns the distance of a new block of `size` bytes, or `None` if the segment is used up.
    #[inline]
    pub(super) fn carve(&self, size: usize) -> Option<usize> {
        let next = self.next.get();
        if size > self.end.get().wrapping_sub(next) {
            return None;
        }
        self.next.set(next.wrapping_add(size));
        Some(next)
    }

    /// As [`Carving::carve`], at a multiple of `align`. Nothing changes if there is no room.
    pub(super) fn carve_aligned(&self, words: Words, size: usize, align: usize) -> Option<usize> {
        let (next, end) = (words.address(self.next.get()), words.address(self.end.get()));
        let distance = words.distance(place(next, end, size, align)?);
        self.next.set(distance.wrapping_add(size));
        Some(distance)
    }

    /// Goes on with the newest segment that is not carved and has room for a block of `size` bytes
    /// at a multiple of `align`. Returns false, and changes nothing, if there is none.
    pub(super) fn next_reserve(&self, words: Words, size: usize, align: usize) -> bool {
        let distance = self.reserve.get();
        // SAFETY: the state names only segments of the region.
        let newest = (distance != 0).then(|| unsafe { Segment::at(words.address(distance)) });
        let mut reserves = core::iter::successors(newest, |segment| segment.older(words));
        let has_room =
            |segment: &&Segment| place(segment.first(), segment.end(), size, align).is_some();
        let Some(segment) = reserves.find(has_room) else { return false };
        self.carve_from(words, segment);
        self.reserve_older(words, segment);
        true
    }

    fn reserve_older(&self, words: Words, segment: &Segment) {
        let older = segment.older(words);
        self.reserve.set(older.map_or(0, |older| words.distance(older.address())));
    }

    /// Returns how far behind the first block of the segment that is carved an address lies, if it
    /// was carved from this segment.
    #[inline]
    pub(super) fn behind_first(&self, words: Words, address: usize) -> Option<usize> {
        let first = self.first.get();
        let behind = words.distance(address).wrapping_sub(first);
        (behind < self.next.get().wrapping_sub(first)).then_some(behind)
    }

    /// Returns the distance to what is free in the segment.
    #[inline]
    pub(super) fn next(&self) -> usize {
        self.next.get()
    }

    /// Takes back what was carved behind a distance in the segment that is carved.
    #[inline]
    pub(super) fn uncarve(&self, distance: usize) {
        self.next.set(distance);
    }

    /// Returns the end of what was carved from a segment.
    pub(super) fn carved(&self, words: Words, segment: &Segment) -> usize {
        if self.is_from(words, segment) { words.address(self.next.get()) } else { segment.carved() }
    }

    /// Returns whether a segment is the one that is carved next.
    pub(super) fn is_reserve(&self, words: Words, segment: &Segment) -> bool {
        self.reserve.get() == words.distance(segment.address())
    }

    /// Goes on after segments were made shorter or were given back. `reserve` is the newest of
    /// those that are left and were not carved, if any.
    pub(super) fn after_compaction(
        &self,
        words: Words,
        segments: &Segments,
        reserve: Option<&Segment>,
    ) {
        let distance = self.segment.get();
        let same = |segment: &&Segment| words.distance(segment.address()) == distance;
        let segment = segments.each(words).find(same).or_else(|| segments.newest(words));
        self.begin();
        let Some(segment) = segment else { return };
        self.carve_from(words, segment);
        match reserve {
            Some(reserve) if reserve.address() == segment.address() => {
                self.reserve_older(words, segment);
            }
            Some(reserve) => self.reserve.set(words.distance(reserve.address())),
            None => {}
        }
    }
}

/// Returns the size of a block for a request, or `None` if no block can be so large.
#[inline]
pub(super) fn rounded(request: usize) -> Option<usize> {
    if request > isize::MAX as usize {
        return None;
    }
    Some(request.max(1).next_multiple_of(GRANULE))
}

/// Returns the first multiple of `align` where a block of `size` bytes fits between two addresses.
fn place(start: usize, end: usize, size: usize, align: usize) -> Option<usize> {
    let at = start.checked_next_multiple_of(align)?;
    (at.checked_add(size)? <= end).then_some(at)
}
