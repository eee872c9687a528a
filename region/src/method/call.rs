//! One call into a region: its core data, its words, and its discipline.

mod base;

use crate::data::{Data, Head};
use crate::discipline::{Discipline, Resized, Retry};
use crate::method::{Method, Stat};
use crate::mode;
use crate::position::{Origin, Position};
use crate::segments::{BODY, OVERHEAD, Segment};
use crate::warning::{Trouble, Warning};
use crate::words::{GRANULE, Words, common_multiple};
use core::ptr::NonNull;

pub(crate) use base::{Nothing, Reserve};

/// What a region asks for first, so that small regions stay small.
const FIRST_REQUEST: usize = 1088;

/// What the sizes of segments are multiples of, unless the discipline says otherwise.
const UNIT: usize = lumalloc::PAGE;

/// What a new region is to be.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Its flags: see [`mode`].
    pub flags: u32,
    /// Bytes of a handle in its memory, behind its core data, or 0 for none.
    pub handle: usize,
}

/// Access to a region during one call. Whoever makes one is in the region alone.
pub struct Call<'a, M: Method, D: Discipline> {
    data: &'a Data<M::State>,
    discipline: &'a mut D,
    words: Words,
    origin: Origin,
}

impl<'a, M: Method, D: Discipline> Call<'a, M, D> {
    /// Access to a region that is open.
    ///
    /// # Safety
    /// The core data is a region's with method `M`, which took its segments from the discipline,
    /// and no other thread is in the region.
    #[inline]
    pub unsafe fn new(data: NonNull<Data<M::State>>, discipline: &'a mut D) -> Call<'a, M, D> {
        // SAFETY: the core data stays mapped while the region is open, and has atomic fields only.
        let data = unsafe { data.as_ref() };
        Call { data, discipline, words: data.head.words(), origin: Origin::Unknown }
    }

    /// Notes where in its source the program calls from, if the method wants to know.
    #[inline]
    pub fn at(&mut self, origin: Origin) {
        if M::MODE & (mode::DEBUG | mode::PROFILE) != 0 {
            self.origin = origin;
        }
    }

    /// Opens a new region. Returns `None` if the discipline has no memory.
    pub fn open(discipline: &mut D, form: Form) -> Option<NonNull<Data<M::State>>> {
        let unit = unit_of(discipline.round())?;
        let head_size = size_of::<Data<M::State>>().next_multiple_of(GRANULE);
        let data_size = head_size + form.handle.next_multiple_of(GRANULE);
        let least = (data_size + OVERHEAD).max(FIRST_REQUEST).max(discipline.growth(0));
        let extent = multiple_of(least, unit)?;
        let memory = discipline.obtain(extent)?;
        let start = memory.as_ptr().expose_provenance();
        let base = start.next_multiple_of(GRANULE);
        let place = core::ptr::with_exposed_provenance_mut::<Data<M::State>>(base);
        // SAFETY: the memory is the region's, and long enough. All fields are atomic integers, for
        // which any bytes are a value.
        let data = unsafe { &*place };
        let handle = if form.handle == 0 { 0 } else { head_size };
        data.head.begin(M::MODE | form.flags, unit, handle);
        let first = base + data_size + GRANULE;
        let header = data.head.first.address();
        let words = data.head.words();
        // SAFETY: header and first block lie in the new memory.
        let segment = unsafe { data.head.segments.add(words, start, extent, header, first) };
        let call = Call::<M, D> { data, discipline, words, origin: Origin::Unknown };
        M::begin(&call);
        M::added(&call, segment);
        NonNull::new(place)
    }

    /// Gives all segments back, the first one last. The core data is gone after.
    pub fn close(mut self) {
        if self.data.head.lock().is_damaged() {
            self.data.head.recover_segments();
        }
        M::forgets(&mut self, true);
        let Call { data, discipline, words, .. } = self;
        // The discipline may keep the memory as it is, but the region is gone.
        data.head.note_closed();
        for segment in data.head.segments.each(words) {
            let Some(memory) = pointer(segment.memory()) else { continue };
            // SAFETY: the segment is the discipline's, with its size, and not used after.
            unsafe { discipline.release(memory, segment.extent()) };
        }
    }

    /// Frees all blocks, and keeps all segments.
    pub fn clear(&mut self) {
        let head = &self.data.head;
        if head.lock().is_damaged() {
            head.recover_segments();
        }
        M::forgets(self, false);
        head.note_clearing(true);
        head.forget_blocks();
        self.begin_again();
        head.lock().mended();
    }

    /// Starts over with all segments empty.
    fn begin_again(&mut self) {
        let head = &self.data.head;
        self.words = head.words();
        for segment in head.segments.each(self.words) {
            segment.set_carved(segment.first());
        }
        M::cleared(self);
        head.note_clearing(false);
    }

    /// Makes the region whole again if a process ended in it, and says so. Returns false if the
    /// method cannot: then the region can be cleared and closed, and used for nothing else.
    pub fn mend(&mut self) -> bool {
        let head = &self.data.head;
        if !head.lock().is_damaged() {
            return true;
        }
        let is_whole = M::RECOVERS || head.is_clearing();
        if is_whole {
            crate::damage::ended(self.words.address(0));
            self.recover();
        } else {
            crate::damage::lost(self.words.address(0));
        }
        is_whole
    }

    /// Makes the region whole, wherever a process ended in it. Blocks that the program has stay.
    pub(crate) fn recover(&mut self) {
        if self.data.head.is_clearing() {
            self.data.head.forget_blocks_again();
            self.begin_again();
        } else {
            self.data.head.recover_segments();
            M::recover(self);
        }
        self.data.head.lock().mended();
    }

    /// Returns start and size of the segment in whose memory an address lies.
    pub fn segment_around(&self, address: usize) -> Option<(usize, usize)> {
        self.segment_of(address).map(|segment| (segment.memory(), segment.extent()))
    }

    /// Iterates over the segments, the newest first: their starts and sizes.
    pub fn each_segment(&self) -> impl Iterator<Item = (usize, usize)> + use<'a, M, D> {
        self.segments().map(|segment| (segment.memory(), segment.extent()))
    }

    /// Counts blocks and segments.
    pub fn stat(&self) -> Stat {
        let segments = &self.data.head.segments;
        let (count, extent) = (segments.count(), segments.extent());
        let mut stat = Stat { segments: count, extent, ..Stat::default() };
        M::count(self, &mut stat);
        stat
    }

    /// Returns where in its source the program calls from.
    pub(crate) fn position(&self) -> Position {
        self.origin.position()
    }

    /// Tells the discipline what a check found.
    #[cold]
    pub(crate) fn warn(&mut self, trouble: Trouble) {
        let warning = Warning { trouble, detected: self.position() };
        self.discipline.warn(&warning, self.words.address(0));
    }

    /// Returns what every region has.
    #[inline]
    pub fn head(&self) -> &'a Head {
        &self.data.head
    }

    /// Returns what the method keeps.
    #[inline]
    pub(crate) fn state(&self) -> &'a M::State {
        &self.data.state
    }

    #[inline]
    pub(crate) fn words(&self) -> Words {
        self.words
    }

    /// Returns the segment in whose memory an address lies.
    #[inline]
    pub(crate) fn segment_of(&self, address: usize) -> Option<&'a Segment> {
        self.data.head.segments.find(self.words, address)
    }

    /// Iterates from the newest segment to the first.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &'a Segment> + use<'a, M, D> {
        self.data.head.segments.each(self.words)
    }

    /// Calls `attempt`, and gets memory for a block of `needed` bytes as long as it fails and the
    /// discipline has memory.
    #[inline]
    pub(crate) fn with_memory(
        &mut self,
        needed: usize,
        attempt: impl Fn(&mut Self) -> Option<usize>,
    ) -> Option<usize> {
        match attempt(self) {
            Some(block) => Some(block),
            None => self.get_memory(needed, &attempt),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_memory(
        &mut self,
        needed: usize,
        attempt: &dyn Fn(&mut Self) -> Option<usize>,
    ) -> Option<usize> {
        let mut asks_once = false;
        loop {
            if self.grow(needed).is_some() {
                return attempt(self);
            }
            if asks_once {
                return None;
            }
            let retry = self.discipline.no_memory(needed);
            // The discipline may have cleared the region.
            self.words = self.data.head.words();
            match retry {
                Retry::Repeat => {
                    if let Some(block) = attempt(self) {
                        return Some(block);
                    }
                }
                Retry::AskOnce => asks_once = true,
                Retry::Fail => return None,
            }
        }
    }

    /// Makes the newest segment longer, or gets a new one, for a block of `needed` bytes.
    fn grow(&mut self, needed: usize) -> Option<()> {
        let unit = self.head().unit.get();
        let least = multiple_of(needed.checked_add(OVERHEAD)?, unit)?;
        let growth = self.discipline.growth(self.head().segments.extent());
        let wanted = multiple_of(growth, unit).map_or(least, |growth| growth.max(least));
        if let Some(newest) = self.head().segments.newest(self.words)
            && self.extend(newest, wanted)
        {
            return Some(());
        }
        if let Some(memory) = self.discipline.obtain(wanted) {
            return self.add(memory, wanted);
        }
        if wanted == least {
            return None;
        }
        self.grow_least(least)
    }

    /// As [`Call::grow`], by no more than is needed. The discipline had refused more.
    fn grow_least(&mut self, least: usize) -> Option<()> {
        if let Some(newest) = self.head().segments.newest(self.words)
            && self.extend(newest, least)
        {
            return Some(());
        }
        let memory = self.discipline.obtain(least)?;
        self.add(memory, least)
    }

    /// Makes a segment longer by at least `bytes`. The discipline may give another segment of so
    /// many bytes instead. Returns whether there is more memory.
    pub(crate) fn extend(&mut self, segment: &Segment, bytes: usize) -> bool {
        let extent = segment.extent();
        let Some(more) = self.rounded(bytes.max(OVERHEAD)) else { return false };
        let (Some(longer), Some(memory)) = (extent.checked_add(more), pointer(segment.memory()))
        else {
            return false;
        };
        // SAFETY: the segment is the discipline's, with this size.
        match unsafe { self.discipline.resize(memory, extent, longer) } {
            Resized::InPlace => {
                let old_end = segment.end();
                self.head().segments.resized(segment, longer);
                M::extended(self, segment, old_end);
                true
            }
            Resized::Another(memory) => self.add(memory, more).is_some(),
            Resized::Refused => false,
        }
    }

    /// Rounds a number of bytes up to what sizes of segments are multiples of.
    pub(crate) fn rounded(&self, bytes: usize) -> Option<usize> {
        multiple_of(bytes, self.head().unit.get())
    }

    /// Returns where a segment would end if it were made shorter, so that blocks end at `end`.
    pub(crate) fn end_if_shorter(&self, segment: &Segment, end: usize) -> Option<usize> {
        let end = segment.memory() + self.rounded(end - segment.memory())?;
        Some(end - end % GRANULE)
    }

    /// Makes a segment shorter, so that it ends at `end` or a little later. What lies behind is not
    /// used. The segment stays as it is if the discipline does not take memory back.
    pub(crate) fn shorten(&mut self, segment: &Segment, end: usize) {
        let Some(shorter) = self.rounded(end - segment.memory()) else { return };
        let extent = segment.extent();
        let Some(memory) = pointer(segment.memory()).filter(|_| shorter < extent) else { return };
        // SAFETY: the segment is the discipline's, with this size.
        if unsafe { self.discipline.resize(memory, extent, shorter) } == Resized::InPlace {
            self.head().segments.resized(segment, shorter);
        }
    }

    /// Gives a segment back in which no block is. The first one stays, because the core data is in
    /// it. Returns whether the discipline took it.
    pub(crate) fn give_back(&mut self, segment: &Segment) -> bool {
        let head = self.head();
        if segment.address() == head.first.address() {
            return false;
        }
        let Some(memory) = pointer(segment.memory()) else { return false };
        let extent = segment.extent();
        let link = head.segments.remove(self.words, segment);
        // SAFETY: the segment is the discipline's, with this size, and out of the table.
        if unsafe { self.discipline.release(memory, extent) } {
            return true;
        }
        // The discipline did not take the segment, which has its header.
        head.segments.restore(self.words, segment, link);
        false
    }

    fn add(&mut self, memory: NonNull<u8>, extent: usize) -> Option<()> {
        let start = memory.as_ptr().expose_provenance();
        let header = start.next_multiple_of(GRANULE);
        start.checked_add(extent)?;
        let head = self.head();
        // SAFETY: the memory is new, and `OVERHEAD` is less than its size.
        let segment =
            unsafe { head.segments.add(self.words, start, extent, header, header + BODY) };
        M::added(self, segment);
        Some(())
    }
}

/// What the sizes of segments are multiples of, for a discipline that rounds to `round`.
fn unit_of(round: usize) -> Option<usize> {
    if round == 0 { Some(UNIT) } else { common_multiple(round) }
}

fn multiple_of(bytes: usize, unit: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(unit)
}

fn pointer(address: usize) -> Option<NonNull<u8>> {
    NonNull::new(core::ptr::with_exposed_provenance_mut(address))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::best::Best;
    use std::vec::Vec;

    #[test]
    fn sizes_of_segments_are_multiples_of_round_and_of_the_alignment() {
        assert_eq!(unit_of(0), Some(4096));
        assert_eq!(unit_of(64), Some(64));
        assert_eq!(unit_of(127), Some(2032));
        assert_eq!(unit_of(24), Some(48));
        assert_eq!(unit_of(1), Some(16));
        assert_eq!(unit_of(usize::MAX), None);
        assert_eq!(multiple_of(1088, 64), Some(1088));
        assert_eq!(multiple_of(1088, 2032), Some(2032));
    }

    /// A segment with a bound, of a discipline that would rather give more than there is left.
    struct Bounded(Vec<u64>);

    const BOUND: usize = 16 << 10;

    // SAFETY: the memory belongs to the region alone.
    unsafe impl Discipline for Bounded {
        fn growth(&self, extent: usize) -> usize {
            if extent == 0 { 0 } else { BOUND }
        }

        fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
            let is_first = self.0.is_empty() && size <= BOUND;
            self.0.resize(BOUND / 8, 0);
            NonNull::new(self.0.as_mut_ptr().cast()).filter(|_| is_first)
        }

        unsafe fn resize(&mut self, _segment: NonNull<u8>, _: usize, new_size: usize) -> Resized {
            if new_size <= BOUND { Resized::InPlace } else { Resized::Refused }
        }

        unsafe fn release(&mut self, _segment: NonNull<u8>, _size: usize) -> bool {
            true
        }
    }

    #[test]
    fn a_segment_grows_by_what_is_needed_where_there_is_no_room_for_more() {
        let mut bounded = Bounded(Vec::new());
        let data = Call::<Best, Bounded>::open(&mut bounded, Form::default()).unwrap();
        // SAFETY: the region was opened here, with this discipline.
        let mut call = unsafe { Call::<Best, Bounded>::new(data, &mut bounded) };
        assert_eq!((call.stat().segments, call.stat().extent), (1, UNIT));
        assert!((0..3).all(|_| Best::alloc(&mut call, UNIT - OVERHEAD - GRANULE).is_some()));
        assert_eq!((call.stat().segments, call.stat().extent), (1, BOUND));
        call.close();
    }

    #[test]
    fn what_a_closed_region_leaves_is_no_region() {
        let mut bounded = Bounded(Vec::new());
        let data = Call::<Best, Bounded>::open(&mut bounded, Form::default()).unwrap();
        // SAFETY: the memory stays, and any bytes are a value.
        let head = unsafe { data.cast::<Head>().as_ref() };
        assert!(head.is_intact(Best::MODE));
        // SAFETY: the region was opened here, with this discipline.
        unsafe { Call::<Best, Bounded>::new(data, &mut bounded) }.close();
        assert!(!head.is_intact(Best::MODE));
    }
}
