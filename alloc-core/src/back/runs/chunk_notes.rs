//! Notes on chunks, each 2 MiB of addresses for which huge pages are asked, or were.
//!
//! The system would fill holes in an advised chunk again. So before a part of a chunk is purged,
//! the advice is taken back for all of it. The chunk is broken, and has small pages from then on.

use super::in_hand::InHand;
use crate::back::map::extent::Extent;
use crate::back::map::page_map;
use crate::back::system::mapping::{self, Mapping};
use crate::back::system::page_provider::PageProvider;
use crate::back::system::stretches::Stretches;
use crate::back::system::thp::{self, HUGE};
use crate::ground::units::{PAGE, round_down};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Pages of a chunk.
pub(in crate::back) const CHUNK: usize = HUGE / PAGE;
/// Runs of up to this many pages are not worth the loss of a huge page while others can be purged.
const TENTH: usize = CHUNK / 10;

// The notes on a chunk, in the page map.
const NEVER: u8 = 0;
const ADVISED: u8 = 1;
/// As [`ADVISED`], of a chunk for samples, which [`LOW_CHUNKS`] counts. The address does not tell,
/// because other memory may lie at low addresses too: that of `sbrk`, and in an emulator all.
const ADVISED_LOW: u8 = 2;
const BROKEN: u8 = 3;

/// The number of advised chunks for samples, and of those that are about to be advised.
static LOW_CHUNKS: AtomicUsize = AtomicUsize::new(0);
/// The number of broken chunks. At most as many mappings lie between advised ones.
static BROKEN_CHUNKS: AtomicUsize = AtomicUsize::new(0);

/// The stretches of advised chunks. What lies between two is a mapping, and each is one.
static ADVISED_STRETCHES: Stretches = Stretches::new();

fn note(chunk: usize, now: u8) {
    note_by(&ADVISED_STRETCHES, chunk, now);
}

fn note_by(stretches: &Stretches, chunk: usize, now: u8) {
    let Some(note) = page_map::chunk_note(chunk) else { return };
    let before = note.swap(now, Relaxed);
    if before == ADVISED_LOW && now != ADVISED_LOW {
        LOW_CHUNKS.fetch_sub(1, Relaxed);
    }
    let beside = || [chunk.wrapping_sub(HUGE), chunk.wrapping_add(HUGE)].map(is_advised);
    match (asks_for_huge(before), asks_for_huge(now)) {
        (true, false) => stretches.remove(beside()),
        (false, true) => stretches.add(beside()),
        _ => {}
    }
    match (before == BROKEN, now == BROKEN) {
        (true, false) => drop(BROKEN_CHUNKS.fetch_sub(1, Relaxed)),
        (false, true) => drop(BROKEN_CHUNKS.fetch_add(1, Relaxed)),
        _ => {}
    }
}

fn address(chunk: usize) -> *mut u8 {
    core::ptr::with_exposed_provenance_mut(chunk)
}

/// The bases of the chunks that a range touches.
fn chunks(base: usize, bytes: usize) -> impl Iterator<Item = usize> {
    let first = round_down(base, HUGE);
    let next = |chunk: &usize| chunk.checked_add(HUGE);
    core::iter::successors(Some(first), next).take_while(move |chunk| *chunk < base + bytes)
}

fn asks_for_huge(note: u8) -> bool {
    matches!(note, ADVISED | ADVISED_LOW)
}

/// Whether huge pages are asked for the chunk that contains `address`.
pub(in crate::back) fn is_advised(address: usize) -> bool {
    page_map::chunk_note(address).is_some_and(|note| asks_for_huge(note.load(Relaxed)))
}

/// Whether huge pages were asked for the chunk that contains `address`, and are no more.
pub(in crate::back) fn is_broken(address: usize) -> bool {
    page_map::chunk_note(address).is_some_and(|note| note.load(Relaxed) == BROKEN)
}

/// Whether huge pages are asked for the chunk in which a run begins.
pub(crate) fn is_in_huge_pages(run: &Extent) -> bool {
    run.mapping().may_be_chunks() && is_advised(run.base())
}

/// Whether huge pages were asked for the beginning of a run.
pub(crate) fn may_be_huge(run: &Extent) -> bool {
    thp::backs_everything() || run.mapping().is_advised() || is_in_huge_pages(run)
}

/// Whether purging a run would cost a huge page of which most is in use.
pub(in crate::back) fn is_better_kept(run: &Extent) -> bool {
    run.pages() <= TENTH && is_in_huge_pages(run)
}

/// Whether a run consists of whole chunks.
pub(in crate::back) fn is_whole_chunks(run: &Extent) -> bool {
    (run.base() | run.end()).is_multiple_of(HUGE)
}

/// Takes back the advice for all chunks that a range touches. Part of them is to be purged.
pub(in crate::back) fn break_up(provider: &dyn PageProvider, base: usize, bytes: usize) {
    for chunk in chunks(base, bytes).filter(|chunk| is_advised(*chunk)) {
        note(chunk, BROKEN);
        let Some(start) = NonNull::new(address(chunk)) else { continue };
        // SAFETY: an advised chunk was reserved whole, and stays so. Its contents are not touched.
        unsafe { provider.advise_huge(start, HUGE, false) };
    }
}

/// Notes that a run is an ordinary mapping again. Chunks that other runs share keep their notes.
pub(in crate::back) fn forget_chunks(run: &Extent) {
    let is_whole = |chunk: usize| chunk >= run.base() && chunk + HUGE <= run.end();
    forget_where(run, is_whole);
}

/// Notes that the addresses of a run are given back. No chunk that it touches is whole any more.
pub(in crate::back) fn forget_lost_chunks(run: &Extent) {
    forget_where(run, |_| true);
}

fn forget_where(run: &Extent, wanted: impl Fn(usize) -> bool) {
    if matches!(run.mapping(), Mapping::Chunks | Mapping::Several) {
        let wanted = chunks(run.base(), run.bytes()).filter(|chunk| wanted(*chunk));
        wanted.for_each(|chunk| note(chunk, NEVER));
    }
    run.set_mapping(Mapping::Ordinary);
}

/// Whether there may be one more advised chunk. It may be broken later.
pub(in crate::back) fn may_advise_more() -> bool {
    mapping::may_have(BROKEN_CHUNKS.load(Relaxed) + ADVISED_STRETCHES.count())
}

/// Asks for huge pages under whole chunks without memory. Returns `false` if refused.
pub(in crate::back) fn advise(provider: &dyn PageProvider, run: &InHand) -> bool {
    advise_with_note(provider, run, ADVISED)
}

fn advise_with_note(provider: &dyn PageProvider, run: &InHand, now: u8) -> bool {
    let Some(base) = NonNull::new(run.base_ptr()) else { return false };
    // SAFETY: the run is in hand.
    if !unsafe { provider.advise_huge(base, run.bytes(), true) } {
        return false;
    }
    chunks(run.base(), run.bytes()).for_each(|chunk| note(chunk, now));
    run.set_mapping(Mapping::Chunks);
    true
}

/// One more chunk at low addresses. It is counted from before it is taken, because many threads
/// may take one at a time.
pub(in crate::back) struct LowChunk(());

impl LowChunk {
    /// Counts one more, if there are fewer than `most` in all arenas.
    pub(in crate::back) fn one_of(most: usize) -> Option<LowChunk> {
        let chunk = LowChunk(());
        (LOW_CHUNKS.fetch_add(1, Relaxed) < most && may_advise_more()).then_some(chunk)
    }

    /// As [`advise`], for a run that is this chunk. It is counted as long as the advice holds.
    pub(in crate::back) fn advise(self, provider: &dyn PageProvider, run: &InHand) -> bool {
        let is_advised = advise_with_note(provider, run, ADVISED_LOW);
        if is_advised {
            core::mem::forget(self);
        }
        is_advised
    }
}

impl Drop for LowChunk {
    fn drop(&mut self) {
        LOW_CHUNKS.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::system::provider::fixed::Fixed;

    #[test]
    fn a_range_touches_the_chunks_that_it_lies_in() {
        let touched = |base, bytes| chunks(base, bytes).collect::<Vec<_>>();
        assert_eq!(touched(HUGE, 1), [HUGE]);
        assert_eq!(touched(2 * HUGE - 1, 2), [HUGE, 2 * HUGE]);
        assert_eq!(touched(3 * HUGE, 2 * HUGE), [3 * HUGE, 4 * HUGE]);
    }

    #[test]
    fn advised_chunks_that_are_neighbours_are_one_stretch() {
        // The allocator is needed only for its page map.
        let mut pages = PageAllocator::for_test(Fixed::leak(12 << 20));
        let run = pages.allocate(4 * CHUNK, HUGE, Memory::Any).unwrap();
        let stretches = Stretches::new();
        let noted = |chunk: usize, now| {
            note_by(&stretches, run.base() + chunk * HUGE, now);
            stretches.count()
        };
        let advised = [0, 2, 2, 1].map(|chunk| noted(chunk, ADVISED));
        assert_eq!(advised, [1, 2, 2, 1]);
        assert_eq!([noted(1, BROKEN), noted(0, NEVER), noted(2, BROKEN)], [2, 1, 0]);
        (0..3).for_each(|chunk| _ = noted(chunk, NEVER));
        assert_eq!(stretches.count(), 0);
    }

    #[test]
    fn chunks_that_other_runs_share_keep_their_notes() {
        // The allocator is needed only for its page map.
        let provider = Fixed::leak(8 << 20);
        let mut pages = PageAllocator::for_test(provider);
        let run = pages.allocate(2 * CHUNK, HUGE, Memory::Any).unwrap();
        let chunks = [run.base(), run.base() + HUGE];
        let advised = || chunks.map(is_advised);
        assert_eq!(advised(), [false, false]);
        chunks.iter().for_each(|chunk| note(*chunk, ADVISED));

        let part = Extent::new(0);
        part.set_range(chunks[0], CHUNK + 1);
        part.set_mapping(Mapping::Chunks);
        assert!(is_in_huge_pages(&part) && !is_whole_chunks(&part));
        forget_chunks(&part);
        assert_eq!((advised(), part.mapping()), ([false, true], Mapping::Ordinary));
        assert!(!is_in_huge_pages(&part));

        // A run of several mappings whose addresses go back.
        part.set_range(chunks[1] + PAGE, 1);
        part.set_mapping(Mapping::Several);
        forget_lost_chunks(&part);
        assert_eq!((advised(), part.mapping()), ([false, false], Mapping::Ordinary));

        // An ordinary run has no notes to forget.
        chunks.iter().for_each(|chunk| note(*chunk, ADVISED));
        forget_lost_chunks(&part);
        assert_eq!(advised(), [true, true]);

        let broken = || BROKEN_CHUNKS.load(Relaxed);
        break_up(provider, chunks[0] + PAGE, PAGE);
        assert_eq!(advised(), [false, true]);
        // Other tests break chunks too, but each counts its own chunks.
        assert!(broken() >= 1);
        note(chunks[0], NEVER);
        note(chunks[1], NEVER);
    }
}
