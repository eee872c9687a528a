//! The segments of a region: pieces of memory that its discipline gave it.
//!
//! ```text
//!   memory          segment                body                                  memory + extent
//!     │ 0..15 bytes   │ header, 7 words      │ blocks                                    │
//! ```
//!
//! Segments are listed from the newest to the first, and found by address in a tree.

use crate::tree::{Key, Tree};
use crate::words::{GRANULE, Words, in_order};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A number in a region's core data. Only the thread that is in the region writes it; others may
/// read it.
#[repr(transparent)]
pub(crate) struct Number(AtomicUsize);

impl Number {
    #[inline]
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set(&self, value: usize) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn add(&self, more: usize) {
        self.set(self.get().wrapping_add(more));
    }

    #[inline]
    pub(crate) fn subtract(&self, less: usize) {
        self.set(self.get().wrapping_sub(less));
    }
}

/// A word that links to a piece of the region's memory. It is read and written through [`Words`].
#[repr(transparent)]
pub(crate) struct Link(AtomicU64);

impl Link {
    /// Returns the address of the word.
    #[inline]
    pub(crate) fn place(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }
}

/// The header of a segment. Its first two words are its links in the tree. It is aligned as blocks
/// are, because links count in this unit.
#[repr(C, align(16))]
pub struct Segment {
    left: Link,
    right: Link,
    older: Link,
    extent: Number,
    /// Bytes from the start of the discipline's memory to this header, at most 31, and above these
    /// eight bits, bytes from this header to the first address that can be a block's.
    places: Number,
    /// The end of what was carved, as bytes from this header, for methods that carve.
    carved: Number,
    /// A count of the method.
    tally: Number,
}

const SKIPPED_BITS: u32 = 8;
const SKIPPED: usize = (1 << SKIPPED_BITS) - 1;

/// Bytes from a segment's header to its first block, unless the core data lies between.
pub(crate) const BODY: usize = size_of::<Segment>();

const _: () = assert!(align_of::<Segment>() == GRANULE);

/// The most bytes of a new segment that no block can have: what is skipped, the header, and the
/// word that marks the end.
pub(crate) const OVERHEAD: usize = GRANULE + BODY + GRANULE;

impl Segment {
    /// The header at an address.
    ///
    /// # Safety
    /// There is a header, and it stays mapped as long as the reference is used.
    #[inline]
    pub(crate) unsafe fn at<'a>(address: usize) -> &'a Segment {
        // SAFETY: the caller's promise. All fields are atomic.
        unsafe { &*core::ptr::with_exposed_provenance::<Segment>(address) }
    }

    #[inline]
    pub(crate) fn address(&self) -> usize {
        core::ptr::from_ref(self).expose_provenance()
    }

    /// Returns the address of the memory as the discipline gave it.
    pub(crate) fn memory(&self) -> usize {
        self.address().wrapping_sub(self.places.get() & SKIPPED)
    }

    /// Returns the size of the memory as the discipline knows it.
    pub(crate) fn extent(&self) -> usize {
        self.extent.get()
    }

    /// Returns the first address that can be a block's.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        self.address() + (self.places.get() >> SKIPPED_BITS)
    }

    /// Returns the end of what blocks can have.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        let end = self.memory() + self.extent.get();
        end - end % GRANULE
    }

    /// Returns the end of what was carved.
    #[inline]
    pub(crate) fn carved(&self) -> usize {
        self.address() + self.carved.get()
    }

    /// Notes the end of what was carved.
    #[inline]
    pub(crate) fn set_carved(&self, end: usize) {
        self.carved.set(end - self.address());
    }

    /// Returns the count that [`Segment::set_tally`] noted.
    pub(crate) fn tally(&self) -> usize {
        self.tally.get()
    }

    /// Notes a count of the method.
    pub(crate) fn set_tally(&self, count: usize) {
        self.tally.set(count);
    }

    /// Returns the segment that was obtained before this one.
    pub(crate) fn older<'a>(&self, words: Words) -> Option<&'a Segment> {
        segment_at(words.link(self.older.place()))
    }
}

/// The list and the tree of a region's segments, with their sums.
#[repr(C)]
pub(crate) struct Segments {
    newest: Link,
    root: Link,
    /// The distance of the segment that was found last, or 0.
    found: Number,
    /// Where its blocks lie: the distance of the first one, and the bytes from there to its end.
    body: Number,
    room: Number,
    extent: Number,
    count: Number,
}

impl Segments {
    /// Makes the table empty.
    pub(crate) fn begin(&self, words: Words) {
        words.set_link(self.newest.place(), 0);
        words.set_link(self.root.place(), 0);
        self.forget_found();
        self.extent.set(0);
        self.count.set(0);
    }

    /// Returns the sum of the segments' sizes.
    pub(crate) fn extent(&self) -> usize {
        self.extent.get()
    }

    /// Returns how many segments there are.
    pub(crate) fn count(&self) -> usize {
        self.count.get()
    }

    /// Adds memory of the discipline, with the header at `header` and blocks from `first`.
    ///
    /// # Safety
    /// The memory is the region's, and header and first block lie in it.
    pub(crate) unsafe fn add<'a>(
        &self,
        words: Words,
        memory: usize,
        extent: usize,
        header: usize,
        first: usize,
    ) -> &'a Segment {
        // SAFETY: the header lies in memory of the region (the caller's promise).
        let segment = unsafe { Segment::at(header) };
        segment.extent.set(extent);
        segment.places.set((first - header) << SKIPPED_BITS | (header - memory));
        segment.tally.set(0);
        segment.carved.set(first - header);
        words.set_link(segment.older.place(), words.link(self.newest.place()));
        // The process may end here: the list leads to whole headers only.
        in_order();
        words.set_link(self.newest.place(), header);
        self.tree(words).insert(header);
        self.extent.add(extent);
        self.count.add(1);
        segment
    }

    /// Makes tree and sums anew of the segments in the list, after a process ended. If the list
    /// does not lead to the first segment, only that one is left.
    pub(crate) fn recover(&self, words: Words, first: &Segment) {
        words.set_link(self.root.place(), 0);
        self.forget_found();
        self.extent.set(0);
        self.count.set(0);
        let mut last = 0;
        for segment in self.each(words) {
            self.tree(words).insert(segment.address());
            self.extent.add(segment.extent());
            self.count.add(1);
            last = segment.address();
        }
        if last != first.address() {
            self.begin_with(words, first);
        }
    }

    /// Notes that the discipline changed the size of a segment.
    pub(crate) fn resized(&self, segment: &Segment, extent: usize) {
        self.extent.add(extent.wrapping_sub(segment.extent()));
        segment.extent.set(extent);
        self.forget_found();
    }

    /// Makes the table anew, of one segment only, which has its header.
    pub(crate) fn begin_with(&self, words: Words, segment: &Segment) {
        let (memory, extent) = (segment.memory(), segment.extent());
        let (header, first) = (segment.address(), segment.first());
        self.begin(words);
        // SAFETY: the segment is one of the region, with its header and first block.
        unsafe { self.add(words, memory, extent, header, first) };
    }

    /// Takes a segment out of the table. It is not the first one. Returns the place of the link
    /// that led to it.
    pub(crate) fn remove(&self, words: Words, segment: &Segment) -> usize {
        let header = segment.address();
        self.forget_found();
        self.tree(words).remove(header);
        let mut link = self.newest.place();
        while let Some(other) = segment_at(words.link(link)) {
            if other.address() == header {
                words.set_link(link, words.link(other.older.place()));
                break;
            }
            link = other.older.place();
        }
        self.extent.subtract(segment.extent());
        self.count.subtract(1);
        link
    }

    /// Puts a segment that was just taken out of the table to where it was: `link` is what
    /// [`Segments::remove`] returned.
    pub(crate) fn restore(&self, words: Words, segment: &Segment, link: usize) {
        let header = segment.address();
        words.set_link(segment.older.place(), words.link(link));
        in_order();
        words.set_link(link, header);
        self.tree(words).insert(header);
        self.extent.add(segment.extent());
        self.count.add(1);
    }

    /// Returns the segment that was obtained last.
    pub(crate) fn newest<'a>(&self, words: Words) -> Option<&'a Segment> {
        segment_at(words.link(self.newest.place()))
    }

    /// Iterates from the newest segment to the first. The present one may be removed meanwhile.
    pub(crate) fn each<'a>(&self, words: Words) -> impl Iterator<Item = &'a Segment> + use<'a> {
        let mut next = self.newest(words);
        core::iter::from_fn(move || {
            let segment = next?;
            next = segment.older(words);
            Some(segment)
        })
    }

    /// Returns the segment in whose memory an address lies.
    #[inline]
    pub(crate) fn find<'a>(&self, words: Words, address: usize) -> Option<&'a Segment> {
        let found = self.found.get();
        if found != 0
            && let Some(segment) = segment_at(words.address(found))
            && contains(segment, address)
        {
            return Some(segment);
        }
        self.search(words, address)
    }

    /// Returns whether an address lies where a segment has its blocks.
    #[inline]
    pub(crate) fn has_blocks_at(&self, words: Words, address: usize) -> bool {
        self.is_in_body(words, address)
            || self.search(words, address).is_some() && self.is_in_body(words, address)
    }

    /// Returns whether an address lies among the blocks of the segment that was found last.
    #[inline]
    pub(crate) fn is_in_body(&self, words: Words, address: usize) -> bool {
        words.distance(address).wrapping_sub(self.body.get()) < self.room.get()
    }

    #[cold]
    #[inline(never)]
    fn search<'a>(&self, words: Words, address: usize) -> Option<&'a Segment> {
        let below = |bound| segment_at(self.tree(words).at_most((0, bound)));
        let has_it = |segment: &&Segment| contains(segment, address);
        // The memory begins less than two granules before the header, but that of the first segment
        // begins with the core data.
        let near = |distance| below(address.saturating_add(distance)).filter(has_it);
        let segment = near(0).or_else(|| near(2 * GRANULE)).or_else(|| near(SKIPPED))?;
        self.found.set(words.distance(segment.address()));
        self.body.set(words.distance(segment.first()));
        self.room.set(segment.end().saturating_sub(segment.first()));
        Some(segment)
    }

    fn forget_found(&self) {
        self.found.set(0);
        self.room.set(0);
    }

    /// Seals list and tree anew, with a new key.
    pub(crate) fn reseal(&self, old: Words, new: Words) {
        let newest = old.link(self.newest.place());
        let mut next = newest;
        new.set_link(self.newest.place(), newest);
        new.set_link(self.root.place(), 0);
        while let Some(segment) = segment_at(next) {
            next = old.link(segment.older.place());
            new.set_link(segment.older.place(), next);
            self.tree(new).insert(segment.address());
        }
    }

    fn tree(&self, words: Words) -> Tree<fn(usize) -> Key> {
        Tree::new(words, self.root.place(), |segment| (0, segment))
    }
}

fn contains(segment: &Segment, address: usize) -> bool {
    address.wrapping_sub(segment.memory()) < segment.extent()
}

/// The segment that a link leads to.
fn segment_at<'a>(address: usize) -> Option<&'a Segment> {
    // SAFETY: links of the table lead to segments of the region, which stay mapped until they are
    // taken out; a link that was overwritten has the value 0.
    (address != 0).then(|| unsafe { Segment::at(address) })
}
