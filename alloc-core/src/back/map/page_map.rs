//! The page map: address → class and record, in two loads.
//!
//! There is a word for each page ([`page_words`]):
//!
//! ```text
//!   record << 16 │ offset of the class's bin
//! ```
//! The word of a page of a slab holds the slab's record and the offset of its class's bin in a
//! thread cache. A run that is no slab writes its first and last page only, with the offset of the
//! trap bin, 0. All other words are 0. So the low 16 bits of a word send the free of anything
//! unusual to the trap bin, which always takes the slow path.

use super::class_map;
use super::extent::Extent;
use super::page_words;
pub(in crate::back) use super::page_words::chunk_note;
use crate::ground::counters::SharedCount;
use crate::ground::low;
use crate::ground::units::{LG_PAGE, PAGE};
use core::sync::atomic::{AtomicBool, Ordering};

/// No record lies below this address. Such an address is the index of a destroyed arena.
const FIRST_RECORD: usize = 1 << 16;

/// Bytes of leaves that heap addresses use.
pub(crate) static USED: SharedCount = SharedCount::new();
/// Whether arenas have been destroyed.
static ANY_MARKED: AtomicBool = AtomicBool::new(false);

/// One word of the map.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    /// The word of a page that does not belong to the heap, or lies inside a run.
    pub(crate) const NONE: Entry = Entry(0);

    /// The word of the first or last page of a run that is no slab.
    pub(crate) fn of_extent(extent: &'static Extent) -> Entry {
        Entry::of_record(core::ptr::from_ref(extent).cast(), 0)
    }

    /// The word of a page of a slab: its record, and the offset of its class's bin, which is not 0.
    pub(crate) fn of_record(record: *const u8, bin_offset: u16) -> Entry {
        Entry((record.expose_provenance() as u64) << 16 | u64::from(bin_offset))
    }

    /// The word of a page of a destroyed arena. Its addresses do not belong to the heap any more. A
    /// program that frees such a block is told so.
    fn of_dead(arena: u32) -> Entry {
        Entry((u64::from(arena) + 1) << 16)
    }

    /// The arena that was destroyed with this page, if any.
    pub(crate) fn dead_arena(self) -> Option<u32> {
        let arena = (self.0 >> 16).wrapping_sub(1);
        let is_dead = arena < FIRST_RECORD as u64 && self.bin_offset() == 0;
        is_dead.then_some(arena as u32)
    }

    /// The offset of the class's bin in a thread cache. 0 is that of the trap bin.
    #[inline(always)]
    pub(crate) fn bin_offset(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// The address of the record, or null if there is none.
    #[inline(always)]
    pub(crate) fn record(self) -> *const u8 {
        core::ptr::with_exposed_provenance((self.0 >> 16) as usize)
    }

    /// Whether this is the first or last page of a run, or a page of a slab.
    pub(crate) fn is_of_run(self) -> bool {
        self.record().addr() > FIRST_RECORD
    }

    /// The run of which this is the first or last page, unless it is a slab.
    pub(crate) fn extent(self) -> Option<&'static Extent> {
        let record = self.record().cast::<Extent>();
        if record.addr() <= FIRST_RECORD || self.bin_offset() != 0 {
            return None;
        }
        // SAFETY: words with offset 0 are made by `of_extent` only, and records live for ever.
        Some(unsafe { &*record })
    }
}

/// The word of the page that contains `address`, which may be any address.
#[inline(always)]
pub(crate) fn lookup(address: usize) -> Entry {
    match page_words::word_of(address) {
        // Relaxed: the thread that holds a block synchronised with the thread that allocated it,
        // after the word was written.
        Some(word) => Entry(word.load(Ordering::Relaxed)),
        None => Entry::NONE,
    }
}

/// The first page at or after `address`, a multiple of the page, that has a word, with its word.
///
/// Any thread may ask for any address. The record that the word names is seen as it was when the
/// word was written, or as it became later.
pub(crate) fn next_from(address: usize) -> Option<(usize, Entry)> {
    let mut from = address;
    loop {
        let (page, word) = page_words::next_from(from)?;
        let entry = Entry(word);
        if entry.dead_arena().is_none() {
            return Some((page, entry));
        }
        from = page + PAGE;
    }
}

/// Whether both ends of a run lead to its record.
#[cfg(any(test, feature = "checks"))]
pub(in crate::back) fn leads_to(run: &Extent) -> bool {
    let ends = [run.base(), run.end() - 1].map(lookup);
    ends.iter().all(|end| end.extent().is_some_and(|found| found.is(run)))
}

/// Makes ready the words for a new reservation. Returns `false`, and loses nothing, without memory.
pub(crate) fn cover(base: usize, bytes: usize) -> bool {
    if !page_words::cover(base, bytes) {
        return false;
    }
    // The class map knows no samples, so that the free of one takes the slow path.
    if !low::is_low_or_null(core::ptr::without_provenance(base)) {
        class_map::open(base);
    }
    USED.add(words_of(bytes));
    true
}

/// Uncounts bytes of addresses that leave the heap. Their words are 0 already.
pub(crate) fn uncover(bytes: usize) {
    USED.sub(words_of(bytes));
}

/// Counts bytes of addresses that come back to the heap. Their leaves are there.
pub(crate) fn recover(bytes: usize) {
    USED.add(words_of(bytes));
}

/// Bytes of the map for bytes of addresses: each page has a word, and a byte in the class map.
fn words_of(bytes: usize) -> u64 {
    (bytes >> LG_PAGE) as u64 * 9
}

/// Sets the word of one page that [`cover`] has made ready.
#[inline]
pub(crate) fn set(address: usize, entry: Entry) {
    if let Some(word) = page_words::word_of(address) {
        // Release: pairs with the Acquire in `next_from`.
        word.store(entry.0, Ordering::Release);
    }
}

/// Sets the words of the first and last page of a run.
pub(crate) fn set_ends(extent: &'static Extent) {
    let entry = Entry::of_extent(extent);
    set(extent.base(), entry);
    set(extent.end() - PAGE, entry);
}

/// Clears the words of the first and last page of a run.
pub(crate) fn clear_ends(extent: &Extent) {
    set(extent.base(), Entry::NONE);
    set(extent.end() - PAGE, Entry::NONE);
}

/// Sets the words of all pages of a run, and the bytes of the class map.
pub(crate) fn set_all(extent: &Extent, entry: Entry) {
    page_words::for_range(extent.base(), extent.pages(), |word| {
        // Release: pairs with the Acquire in `next_from`.
        word.store(entry.0, Ordering::Release);
    });
    class_map::set(extent.base(), extent.pages(), entry.bin_offset());
}

/// Marks all pages of a run whose arena is destroyed, and whose addresses are given back.
pub(crate) fn mark_given_back(run: &Extent) {
    ANY_MARKED.store(true, Ordering::Relaxed);
    set_all(run, Entry::of_dead(run.arena()));
}

/// Clears the marks of [`mark_given_back`] on new addresses, which the heap may have had before.
pub(crate) fn clear_marks(run: &Extent) {
    if ANY_MARKED.load(Ordering::Relaxed) {
        set_all(run, Entry::NONE);
    }
}

/// Calls `visit` with the base and the bytes of each range of addresses of the heap, in any state.
///
/// Reads words only, not records: the first and the last page of a run have the same word.
pub(crate) fn for_each_range(mut visit: impl FnMut(usize, usize)) {
    let mut range: Option<(usize, usize)> = None;
    let mut open = None;
    page_words::for_each(|page, word| {
        if Entry(word).dead_arena().is_some() {
            return;
        }
        let is_last = open.take() == Some(word);
        match &mut range {
            Some((_, end)) if is_last || page == *end => *end = page + PAGE,
            _ => {
                if let Some((begin, end)) = range.replace((page, page + PAGE)) {
                    visit(begin, end - begin);
                }
            }
        }
        if !is_last && word & 0xffff == 0 {
            open = Some(word);
        }
    });
    if let Some((begin, end)) = range {
        visit(begin, end - begin);
    }
}

/// The run around an address inside it, found by walking down. Only for reports of errors and for
/// questions about the heap.
pub(crate) fn extent_around(address: usize) -> Option<&'static Extent> {
    let mut page = address & !(PAGE - 1);
    for _ in 0..1 << 22 {
        let entry = lookup(page);
        if entry != Entry::NONE {
            return entry.extent().filter(|extent| address < extent.end());
        }
        page = page.checked_sub(PAGE)?;
        if !page_words::is_near(page) {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::fixed::keep;

    /// A part of the address space that no system hands out to a program.
    const FREE: usize = 0x3456 << 32;

    fn run(arena: u32, base: usize, pages: usize) -> &'static Extent {
        let run = keep(Box::new(Extent::new(arena)));
        run.set_range(base, pages);
        run
    }

    fn lookups(addresses: &[usize]) -> Vec<u64> {
        addresses.iter().map(|address| lookup(*address).0).collect()
    }

    #[test]
    fn a_word_is_of_a_slab_or_a_run_or_an_arena_that_is_gone() {
        let extent = run(3, FREE, 2);
        let of_extent = Entry::of_extent(extent);
        assert!(of_extent.extent().is_some_and(|found| found.is(extent)));
        assert_eq!((of_extent.bin_offset(), of_extent.dead_arena()), (0, None));
        let record = core::ptr::from_ref(extent).cast::<u8>();
        let of_slab = Entry::of_record(record, 0xfff8);
        assert_eq!((of_slab.record(), of_slab.bin_offset()), (record, 0xfff8));
        assert!(of_slab.extent().is_none() && of_slab.dead_arena().is_none());
        // The highest index that an arena may have.
        for arena in [0, 1, 77, (1 << 16) - 1] {
            let dead = Entry::of_dead(arena);
            assert_eq!((dead.dead_arena(), dead.bin_offset()), (Some(arena), 0));
            assert!(dead.extent().is_none(), "{arena}");
        }
        assert_eq!(Entry::NONE.dead_arena(), None);
        assert_eq!(Entry::of_record(core::ptr::without_provenance(9), 8).dead_arena(), None);
        let first_record = core::ptr::without_provenance(FIRST_RECORD + 1);
        assert_eq!(Entry::of_record(first_record, 0).dead_arena(), None);
    }

    #[test]
    fn ranges_are_what_runs_and_slabs_beside_each_other_take() {
        // Above all memory of the process.
        let base = 0xffff << 32;
        assert!(page_words::cover(base, 64 * PAGE));
        let slab = run(0, base + 3 * PAGE, 2);
        let runs = [(0, 3), (7, 1), (8, 4), (20, 1)];
        let runs = runs.map(|(page, pages)| run(0, base + page * PAGE, pages));
        runs.into_iter().for_each(set_ends);
        set_all(slab, Entry::of_record(core::ptr::from_ref(slab).cast(), 8));
        let dead = run(5, base + 12 * PAGE, 3);
        mark_given_back(dead);
        let ranges = || {
            let mut ranges = Vec::new();
            for_each_range(|begin, bytes| {
                if begin >> 32 == base >> 32 {
                    ranges.push(((begin - base) / PAGE, bytes / PAGE));
                }
            });
            ranges
        };
        assert_eq!(ranges(), [(0, 5), (7, 5), (20, 1)]);
        assert_eq!(lookup(base + 14 * PAGE).dead_arena(), Some(5));
        // The ranges without the slab and one of the runs.
        clear_ends(runs[1]);
        set_all(slab, Entry::NONE);
        assert_eq!(ranges(), [(0, 3), (8, 4), (20, 1)]);
        runs.into_iter().for_each(clear_ends);
        clear_marks(dead);
        assert_eq!(lookups(&[base, base + 2 * PAGE, base + 11 * PAGE, base + 14 * PAGE]), [0; 4]);
        assert!(ranges().is_empty());
    }

    #[test]
    fn leaves_in_use_are_counted() {
        // Much more than all that other tests reserve meanwhile.
        let (base, bytes) = (0x4567 << 32, 64 << 30);
        let pages = (bytes / PAGE) as u64;
        let grows_by = |expected: u64, before: u64| {
            let more = USED.get() - before;
            assert!(more >= expected && more < expected + expected / 16, "{more} {expected}");
        };
        let before = USED.get();
        assert!(cover(base, bytes));
        grows_by(9 * pages, before);
        // Addresses that are given back and come again are counted once.
        for _ in 0..100 {
            uncover(bytes);
            assert!(cover(base, bytes));
            uncover(bytes);
            recover(bytes);
        }
        grows_by(9 * pages, before);
    }

    #[test]
    fn the_run_around_an_address_is_found_from_any_page_of_it() {
        let base = FREE + (1 << 32);
        assert!(page_words::cover(base, 64 * PAGE));
        let found = |address| extent_around(address).map(core::ptr::from_ref);
        assert_eq!(found(base + 5 * PAGE), None);
        let (first, second) = (run(0, base + PAGE, 4), run(0, base + 5 * PAGE, 3));
        set_ends(first);
        set_ends(second);
        for address in [first.base(), first.base() + 1, first.end() - PAGE - 1, first.end() - 1] {
            assert_eq!(found(address), Some(core::ptr::from_ref(first)), "{address:#x}");
        }
        assert_eq!(found(second.base() + PAGE), Some(core::ptr::from_ref(second)));
        assert_eq!([base, second.end(), second.end() + PAGE].map(found), [None; 3]);
        clear_ends(second);
        set_all(second, Entry::of_record(core::ptr::from_ref(second).cast(), 8));
        assert_eq!(found(second.base() + PAGE), None);
        set_all(second, Entry::NONE);
        clear_ends(first);
    }

    #[test]
    fn unknown_addresses_answer_nothing() {
        for address in [0, 1, 0x1000, usize::MAX, 1 << 48, (1 << 48) - 1, 1 << 63] {
            assert!(lookup(address) == Entry::NONE);
            assert!(lookup(address).extent().is_none());
        }
    }
}
