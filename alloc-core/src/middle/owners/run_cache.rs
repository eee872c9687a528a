//! Large blocks that a thread cache keeps: a few runs, of which the newest is reused first.
//!
//! A server that reads into buffers of 32 to 512 KiB and drops them would otherwise take its
//! arena's lock twice for each buffer, and fault the pages in again whenever decay was quicker. A
//! kept run stays active for its arena, but its record says [`ExtentState::Kept`], so a second free
//! of it is noticed. The lock of the cache's owner guards the runs. Any holder of it may give them
//! back, so an idle thread pins nothing.
//!
//! Only a run of exactly the requested length is reused. So a block's usable size stays what
//! `nallocx` says, and a program that requests all lengths gets no longer blocks than it requested.

use crate::back::map::extent::{Extent, ExtentState};
#[cfg(feature = "checks")]
use crate::ground::holds::holds;
use crate::ground::size_class::{MAX_CACHED, page_class_ceil};
use crate::ground::units::{LG_PAGE, PAGE};
use crate::middle::arenas::large;

/// Runs kept at most.
const MOST: usize = 32;
/// Lengths that are kept, in pages. The shortest is that of the largest class of slabs: requests of
/// that class come here where canaries leave no room for them in a slab.
const SHORTEST: usize = MAX_CACHED / PAGE;
const LONGEST: usize = (512 << 10) / PAGE;
/// How many classes of lengths these are.
pub(crate) const LENGTHS: usize = page_class_ceil(LONGEST) + 1 - page_class_ceil(SHORTEST);
/// A thread keeps nothing before it has requested so many such runs. Overflows count against
/// requests, so a thread that only frees keeps nothing either.
const SEVERAL: u8 = 4;
const WORTH_MOST: u8 = 16;

/// Bytes that one thread keeps at most, and all threads together.
const THREAD_BYTES: usize = 1 << 20;
const ALL_BYTES: usize = 64 << 20;

// The places of runs are bits of 32, and lengths have 16 bits.
const _: () = assert!(MOST <= u32::BITS as usize && LONGEST <= u16::MAX as usize);

/// The runs that one thread cache keeps, the oldest first.
pub(crate) struct RunCache {
    runs: [Option<&'static Extent>; MOST],
    /// The pages of each run, so that a search reads no record.
    lengths: [u16; MOST],
    count: usize,
    pages: usize,
    worth: u8,
    /// The fewest runs since the last step of collection.
    fewest: usize,
}

/// Whether runs of this length are kept at all.
#[inline]
pub(crate) const fn is_kept(bytes: usize) -> bool {
    bytes >> LG_PAGE >= SHORTEST && bytes >> LG_PAGE <= LONGEST
}

/// Which of the [`LENGTHS`] classes a kept run of `pages` pages belongs to.
#[inline]
pub(crate) const fn length_class(pages: usize) -> usize {
    page_class_ceil(pages) - page_class_ceil(SHORTEST)
}

/// The class of runs of pages for one of the [`LENGTHS`] classes.
pub(crate) const fn page_class(length: usize) -> usize {
    length + page_class_ceil(SHORTEST)
}

/// Bytes that each of `caches` threads may keep.
pub(crate) fn share(caches: u64) -> usize {
    let caches = usize::try_from(caches).unwrap_or(usize::MAX).max(1);
    THREAD_BYTES.min(ALL_BYTES / caches)
}

impl RunCache {
    /// A cache that keeps no run.
    pub(crate) const fn new() -> RunCache {
        RunCache { runs: [None; MOST], lengths: [0; MOST], count: 0, pages: 0, worth: 0, fewest: 0 }
    }

    /// Bytes in the runs that are kept.
    pub(crate) fn bytes(&self) -> usize {
        self.pages << LG_PAGE
    }

    /// The runs that are kept.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Extent> {
        self.runs.iter().flatten().copied()
    }

    /// Takes the newest run of exactly `pages` pages at a multiple of `align`, and makes it active
    /// again. Its memory does not read zero.
    pub(crate) fn take(&mut self, pages: usize, align: usize) -> Option<&'static Extent> {
        self.worth = (self.worth + 1).min(WORTH_MOST);
        let at = self.newest(pages, align.max(PAGE))?;
        let run = self.remove(at)?;
        let is_active = run.state.advance(ExtentState::Kept, ExtentState::Active);
        debug_assert!(is_active, "a kept run has another state");
        Some(run)
    }

    /// Keeps a run that its thread frees, if it is worth it, within `most` bytes. `Ok(false)`: the
    /// caller gives it to its arena. `Err`: the run is not in use.
    pub(crate) fn keep(&mut self, run: &'static Extent, most: usize) -> Result<bool, ()> {
        debug_assert!(is_kept(run.bytes()));
        if self.worth < SEVERAL || run.bytes() > most {
            return Ok(false);
        }
        if !run.state.advance(ExtentState::Active, ExtentState::Kept) {
            return Err(());
        }
        if self.count == MOST || self.bytes() + run.bytes() > most {
            self.worth -= 1;
            self.make_room(most - run.bytes());
        }
        run.zeroed.set(false);
        if let Some(slot) = self.runs.get_mut(self.count) {
            *slot = Some(run);
        }
        if let Some(length) = self.lengths.get_mut(self.count) {
            *length = run.pages() as u16;
        }
        self.count += 1;
        self.pages += run.pages();
        Ok(true)
    }

    /// Checks that counts and lengths are those of the runs, which are kept.
    #[cfg(feature = "checks")]
    pub(in crate::middle) fn check(&self) {
        let mut pages = 0;
        for (n, (run, length)) in self.runs.iter().zip(self.lengths).enumerate() {
            holds(run.is_some() == (n < self.count));
            holds(run.map_or(0, |run| run.pages()) == usize::from(length));
            holds(run.is_none_or(|run| run.state.get() == ExtentState::Kept));
            pages += usize::from(length);
        }
        holds(pages == self.pages && self.fewest <= self.count);
    }

    /// Gives the older half back to the arenas, and more until at most `most` bytes are left.
    fn make_room(&mut self, most: usize) {
        let mut left = self.bytes();
        let mut n = 0;
        for run in self.runs.iter().flatten() {
            if n * 2 >= self.count && left <= most {
                break;
            }
            left -= run.bytes();
            n += 1;
        }
        self.return_oldest(n);
    }

    /// Gives all runs back to their arenas.
    pub(crate) fn empty(&mut self) {
        self.return_oldest(self.count);
    }

    /// As [`RunCache::empty`], and forgets how the thread behaved: it has ended, or slept for long.
    pub(crate) fn forget(&mut self) {
        self.empty();
        self.worth = 0;
    }

    /// One step of collection: gives back half of the runs not needed since the last step.
    pub(crate) fn age(&mut self) {
        self.return_oldest(self.fewest.div_ceil(2));
        self.fewest = self.count;
    }

    fn return_oldest(&mut self, n: usize) {
        let Some(oldest) = self.runs.get(..n).filter(|runs| !runs.is_empty()) else { return };
        // Before the runs are freed, because after that their records belong to the arenas.
        self.pages -= oldest.iter().flatten().map(|run| run.pages()).sum::<usize>();
        large::free_all(oldest.iter().flatten().copied());
        self.close_gap(0, n);
        self.count -= n;
        self.fewest = self.fewest.min(self.count);
    }

    /// Moves the runs behind the `n` places that begin at `at` down over these places.
    fn close_gap(&mut self, at: usize, n: usize) {
        for place in at..self.count {
            let next = self.runs.get(place + n).copied().flatten();
            if let Some(slot) = self.runs.get_mut(place) {
                *slot = next;
            }
            let next = self.lengths.get(place + n).copied().unwrap_or(0);
            if let Some(length) = self.lengths.get_mut(place) {
                *length = next;
            }
        }
    }

    /// Where the newest run of `pages` pages at a multiple of `align` is.
    fn newest(&self, pages: usize, align: usize) -> Option<usize> {
        let wanted = pages as u16;
        // Without a branch, so that the processor compares eight at a time.
        let mut found = 0u32;
        for (place, length) in self.lengths.iter().enumerate() {
            found |= u32::from(*length == wanted) << place;
        }
        while found != 0 {
            let at = found.ilog2() as usize;
            let run = self.runs.get(at).copied().flatten();
            if run.is_some_and(|run| run.base().is_multiple_of(align)) {
                return Some(at);
            }
            found ^= 1 << at;
        }
        None
    }

    fn remove(&mut self, at: usize) -> Option<&'static Extent> {
        let run = self.runs.get_mut(at)?.take()?;
        self.close_gap(at, 1);
        self.count -= 1;
        self.pages -= run.pages();
        self.fewest = self.fewest.min(self.count);
        Some(run)
    }
}
