//! A slab: one extent cut into equal blocks, its record out of line.
//!
//! ```text
//!   line 0   base, extent, links, used, class …      written under the guard's lock
//!   line 1   state, pending link                     written by anyone: see remote_free
//!   then     free words    [u64; n]                  1 = free, guarded
//!   then     remote words  [u64; n]                  1 = freed by somebody else
//! ```
//! `n` is a power of two, so that records of one length are recycled for any class that needs it.

use super::fresh_pages::FreshPages;
use super::holes::{self, Holes};
use super::misuse::Misuse;
use super::remote_free::Remote;
use super::slab_list::ListName;
use crate::back::extent::Extent;
use crate::back::metadata::{self, Recycled};
use crate::back::page_map::Entry;
use crate::ground::checked::at;
use crate::ground::size_class::{Grid, MAX_WORDS, SizeClass};
use core::cell::Cell;
use core::sync::atomic::AtomicU64;

/// log2 of the lengths that records come in, plus one.
pub(crate) const RECORD_CLASSES: usize = MAX_WORDS.trailing_zeros() as usize + 1;

/// The record of a slab.
#[repr(C, align(64))]
pub(crate) struct Slab {
    base: Cell<usize>,
    extent: Cell<Option<&'static Extent>>,
    pub(super) next: Cell<Option<&'static Slab>>,
    pub(super) previous: Cell<Option<&'static Slab>>,
    pub(super) used: Cell<u32>,
    arena: Cell<u32>,
    class: Cell<SizeClass>,
    pub(super) list: Cell<ListName>,
    /// log2 of the words that follow the record, twice.
    lg_words: u8,
    /// No word before this one has a free bit.
    first: Cell<u8>,
    /// Half of its blocks.
    half: Cell<u16>,
    /// It is kept in its list although all its blocks are free.
    pub(super) spare: Cell<bool>,
    /// Its pages that no block was taken of yet.
    pub(super) fresh: FreshPages,
    /// Its pages without memory.
    pub(crate) holes: Holes,
    /// The part that others write.
    pub(crate) remote: Remote,
}

// SAFETY: the cells are touched under the guard's lock only (see remote_free), or by the one thread
// that makes or recycles the record; `remote` is atomic.
unsafe impl Sync for Slab {}

const LINES: usize = size_of::<Slab>();
const _: () = assert!(LINES == 128);

/// log2 of the words that a record for `class` needs.
pub(crate) fn lg_words(class: SizeClass) -> usize {
    class.words().next_power_of_two().trailing_zeros() as usize
}

/// Bytes of one kind of words. Both kinds begin on lines of their own.
const fn words_bytes(lg: usize) -> usize {
    let bytes = 8 << lg;
    if bytes < 64 { 64 } else { bytes }
}

impl Slab {
    /// Bytes of a record with `1 << lg` words.
    pub(crate) const fn record_bytes(lg: usize) -> usize {
        LINES + 2 * words_bytes(lg)
    }

    /// Makes a record with `1 << lg` words, from memory that is never given back.
    pub(crate) fn new_record(lg: usize) -> Option<&'static Slab> {
        let words = 1usize << lg;
        let bytes = words_bytes(lg);
        let memory = metadata::allocate(Slab::record_bytes(lg), 64)?;
        // SAFETY: inside the memory just allocated.
        let remote = unsafe { memory.add(LINES + bytes) }.cast::<AtomicU64>();
        // SAFETY: zeroed memory is valid atomic words; it lives for ever and is used as nothing
        // else.
        let remote = unsafe { core::slice::from_raw_parts(remote.as_ptr(), words) };
        let record = memory.cast::<Slab>();
        let slab = Slab {
            base: Cell::new(0),
            extent: Cell::new(None),
            next: Cell::new(None),
            previous: Cell::new(None),
            used: Cell::new(0),
            arena: Cell::new(0),
            class: Cell::new(SizeClass::of(0)),
            list: Cell::new(ListName::None),
            lg_words: lg as u8,
            first: Cell::new(0),
            half: Cell::new(0),
            spare: Cell::new(false),
            fresh: FreshPages::new(),
            holes: Holes::new(),
            remote: Remote::new(remote),
        };
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { record.write(slab) };
        // SAFETY: just written, and never unmapped.
        Some(unsafe { record.as_ref() })
    }

    /// Makes a free record stand for an extent, all blocks free. The caller then calls `birth`.
    pub(crate) fn prepare(&self, extent: &'static Extent, class: SizeClass) {
        self.base.set(extent.base());
        self.extent.set(Some(extent));
        self.used.set(0);
        self.arena.set(extent.arena());
        self.class.set(class);
        self.list.set(ListName::None);
        self.first.set(0);
        self.half.set((class.slots() / 2) as u16);
        self.spare.set(false);
        let mut left = class.slots();
        for word in self.free_words() {
            let bits = left.min(64);
            word.set(if bits == 64 { !0 } else { (1 << bits) - 1 });
            left -= bits;
        }
    }

    /// The slab of a page-map word, if it is a slab's.
    #[inline(always)]
    pub(crate) fn of(entry: Entry) -> Option<&'static Slab> {
        if entry.bin_offset() == 0 {
            return None;
        }
        // SAFETY: words with a bin's offset are made by `entry` only, and records live for ever.
        unsafe { entry.record().cast::<Slab>().as_ref() }
    }

    /// The slab whose remote part this is.
    ///
    /// # Safety
    /// `remote` is the field of a slab's record.
    pub(crate) unsafe fn of_remote(remote: *const Remote) -> &'static Slab {
        // SAFETY: the field lies at this offset inside a record (the caller's promise).
        let record = unsafe { remote.byte_sub(core::mem::offset_of!(Slab, remote)) };
        // SAFETY: records live for ever.
        unsafe { &*record.cast::<Slab>() }
    }

    /// What the page map says for each of its pages.
    pub(crate) fn entry(&'static self) -> Entry {
        let offset = self.class().bin() * crate::ground::size_class::BIN_BYTES;
        Entry::of_record(core::ptr::from_ref(self).cast(), offset as u16)
    }

    /// Its first address.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.get()
    }

    /// The class of its blocks.
    #[inline]
    pub(crate) fn class(&self) -> SizeClass {
        self.class.get()
    }

    /// The arena it is charged to.
    #[inline]
    pub(crate) fn arena(&self) -> u32 {
        self.arena.get()
    }

    /// The run of pages under it.
    #[inline]
    pub(crate) fn extent(&self) -> Option<&'static Extent> {
        self.extent.get()
    }

    /// log2 of the words of its record.
    pub(crate) fn lg_words(&self) -> usize {
        usize::from(self.lg_words)
    }

    /// Blocks that are not among the free bits.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used.get() as usize
    }

    /// Blocks that are neither free nor freed remotely. Under the guard's lock.
    pub(crate) fn in_use(&self) -> usize {
        let remote: u32 = (0..self.class().words()).map(|n| self.remote.seen(n).count_ones()).sum();
        self.used().saturating_sub(remote as usize)
    }

    /// Whether no block is free, remote ones apart.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used() == self.class().slots()
    }

    #[inline(always)]
    pub(super) fn free_words(&self) -> &[Cell<u64>] {
        let record = core::ptr::from_ref(self);
        // SAFETY: the words follow the record, in the same piece of memory.
        let words = unsafe { record.byte_add(LINES) }.cast::<Cell<u64>>();
        // SAFETY: as many words follow as the record says, for ever.
        unsafe { core::slice::from_raw_parts(words, 1 << self.lg_words) }
    }

    /// Takes up to `want` free blocks, lowest first, and hands each to `give`. Answers how many.
    #[inline]
    pub(crate) fn take_lowest(&self, want: usize, mut give: impl FnMut(*mut u8)) -> usize {
        let size = self.class().size();
        let mut left = want;
        let words = self.free_words();
        let mut index = usize::from(self.first.get());
        while let Some(word) = words.get(index) {
            let bits = word.get();
            let word_base = self.base() + index * 64 * size;
            if bits == !0 && left >= 64 {
                for slot in 0..64 {
                    give(core::ptr::with_exposed_provenance_mut(word_base + slot * size));
                }
                word.set(0);
                left -= 64;
            } else {
                let mut rest = bits;
                while rest != 0 && left > 0 {
                    let block = word_base + rest.trailing_zeros() as usize * size;
                    give(core::ptr::with_exposed_provenance_mut(block));
                    rest &= rest - 1;
                    left -= 1;
                }
                word.set(rest);
            }
            if self.holes.is_marked() {
                holes::note_taken(self, index, bits & !word.get());
            }
            if left == 0 {
                break;
            }
            index += 1;
        }
        self.first.set(index.min(usize::from(u8::MAX)) as u8);
        self.used.set(self.used.get() + (want - left) as u32);
        if self.fresh.are_left() {
            self.note_touched();
        }
        want - left
    }

    /// Puts the `count` blocks of `mask` in word `word` back. `Err`: the bits that were free
    /// already.
    #[inline]
    pub(crate) fn put(&self, word: usize, mask: u64, count: usize) -> Result<(), u64> {
        debug_assert_eq!(mask.count_ones() as usize, count);
        // SAFETY: the callers derive `word` from a slot of this slab's class.
        let cell = unsafe { at(self.free_words(), word) };
        let before = cell.get();
        if before & mask != 0 {
            return Err(before & mask);
        }
        cell.set(before | mask);
        self.used.set(self.used.get() - count as u32);
        if word < usize::from(self.first.get()) {
            self.first.set(word as u8);
        }
        Ok(())
    }

    /// Puts back the blocks at the beginning that lie here; answers how many they are. After an
    /// error the slab is half done.
    #[inline(always)]
    pub(crate) fn put_run(&self, grid: Grid, blocks: &[*mut u8]) -> Result<usize, Misuse> {
        let (base, words) = (self.base(), self.free_words());
        let (mut count, mut lowest) = (0, usize::MAX);
        // The block behind the last one, which is found without a division.
        let (mut slot, mut behind) = (0, usize::MAX);
        for block in blocks {
            let offset = block.expose_provenance().wrapping_sub(base);
            if offset >= grid.bytes() {
                break;
            }
            if offset != behind {
                let Some(found) = grid.slot_at(offset) else {
                    return Err(Misuse::Interior(base + offset));
                };
                slot = found;
            }
            // SAFETY: the slot is one of this slab's.
            let word = unsafe { at(words, slot / 64) };
            let (before, bit) = (word.get(), 1 << (slot % 64));
            if before & bit != 0 {
                return Err(Misuse::Twice(base + offset));
            }
            word.set(before | bit);
            lowest = lowest.min(slot);
            slot += 1;
            behind = grid.behind(offset);
            count += 1;
        }
        self.used.set(self.used.get() - count as u32);
        if lowest / 64 < usize::from(self.first.get()) {
            self.first.set((lowest / 64) as u8);
        }
        Ok(count)
    }

    /// Whether all blocks from slot `first` up to `end` are free.
    pub(crate) fn are_free(&self, first: usize, end: usize) -> bool {
        let mut slot = first;
        while slot < end {
            let n = (end - slot).min(64 - slot % 64);
            let mask = (!0 >> (64 - n)) << (slot % 64);
            let word = self.free_words().get(slot / 64).map_or(0, Cell::get);
            if word & mask != mask {
                return false;
            }
            slot += n;
        }
        true
    }

    /// Takes in what others have freed. Under the guard's lock, after PENDING was cleared.
    pub(crate) fn absorb(&self) -> Result<usize, (usize, u64)> {
        let mut taken = 0;
        for word in 0..self.class().words() {
            let bits = self.remote.take_word(word);
            if bits != 0 {
                let count = bits.count_ones() as usize;
                self.put(word, bits, count).map_err(|twice| (word, twice))?;
                taken += count;
            }
        }
        Ok(taken)
    }

    /// Whether taking in its remote words is cheap enough to do at every refill.
    #[inline]
    pub(crate) fn is_cheap_to_absorb(class: SizeClass) -> bool {
        class.words() <= 4
    }

    /// Whether the block at an address seems to be free, for last words: nothing is locked.
    #[cold]
    pub(crate) fn looks_free(&self, address: usize) -> bool {
        let slot = self.class().slot_around(address.wrapping_sub(self.base()));
        let Some(word) = self.free_words().get(slot / 64) else { return false };
        // SAFETY: a word of the record; it may be a moment old.
        let free = unsafe { word.as_ptr().read_volatile() };
        (free | self.remote.seen(slot / 64)) >> (slot % 64) & 1 != 0
    }

    /// Whether it may stay where it is in the list of partial slabs after `freed` blocks came back.
    #[inline]
    pub(crate) fn stays_in_place(&self, freed: usize) -> bool {
        let used = self.used();
        self.list() == ListName::Partial && used != 0 && !self.became_sparse(freed)
    }

    /// Whether the last `freed` blocks made it half empty.
    #[inline]
    pub(super) fn became_sparse(&self, freed: usize) -> bool {
        let half = usize::from(self.half.get());
        self.used() < half && self.used() + freed >= half
    }

    /// The address of the block of one bit.
    pub(crate) fn block_at(&self, word: usize, bit: u32) -> usize {
        self.base() + (word * 64 + bit as usize) * self.class().size()
    }

    /// Which list it is in.
    pub(crate) fn list(&self) -> ListName {
        self.list.get()
    }

    /// Judges itself: counts and bits agree.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let free: u32 = self.free_words().iter().map(|word| word.get().count_ones()).sum();
        assert_eq!(free as usize + self.used(), self.class().slots());
        let before = self.free_words().iter().take(usize::from(self.first.get()));
        assert!(before.into_iter().all(|word| word.get() == 0));
    }
}

impl Recycled for Slab {
    fn next_free(&self) -> &Cell<Option<&'static Slab>> {
        &self.next
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::back::page_allocator::{Memory, PageAllocator};
    use crate::back::provider::fixed::Fixed;
    use crate::middle::remote_free::Guard;
    use proptest::prelude::*;

    pub(crate) fn slab(class: SizeClass) -> &'static Slab {
        let mut pages = PageAllocator::new(1, Fixed::leak(8 << 20));
        let row = class.row();
        let extent = pages.allocate(usize::from(row.slab_pages), 1 << 16, Memory::Any).unwrap();
        let slab = Slab::new_record(lg_words(class)).unwrap();
        slab.prepare(extent, class);
        slab.remote.birth(Guard::Bin);
        slab
    }

    #[test]
    fn fixed_every_class_gives_all_blocks_in_order_and_takes_them_back() {
        for class in SizeClass::all() {
            let slab = slab(class);
            slab.check();
            let mut blocks = Vec::new();
            while slab.take_lowest(7, |block| blocks.push(block as usize)) > 0 {}
            assert_eq!(blocks.len(), class.slots());
            assert!(blocks.windows(2).all(|pair| pair[1] - pair[0] == class.size()));
            assert!(slab.is_full());
            for (slot, block) in blocks.iter().enumerate().rev() {
                assert_eq!(class.slot_at(block - slab.base()), Some(slot));
                slab.put(slot / 64, 1 << (slot % 64), 1).unwrap();
                assert_eq!(slab.put(slot / 64, 1 << (slot % 64), 1), Err(1 << (slot % 64)));
            }
            assert_eq!(slab.used(), 0);
            slab.check();
        }
    }

    #[test]
    fn fixed_lines_are_taken_whole() {
        let class = SizeClass::of(16);
        let slab = slab(class);
        let mut blocks = Vec::new();
        assert_eq!(slab.take_lowest(2, |_| ()), 2);
        assert_eq!(slab.take_lines(4, |block| blocks.push(block as usize - slab.base())), 4);
        assert_eq!(blocks, [64, 80, 96, 112]);
        assert_eq!(slab.used(), 6);
        slab.check();
    }

    #[test]
    fn fixed_remote_frees_come_home() {
        let class = SizeClass::of(64);
        let slab = slab(class);
        assert_eq!(slab.take_lowest(100, |_| ()), 100);
        // SAFETY: the blocks are allocated, and records live for ever.
        unsafe { slab.remote.free(0, 0b1010, |_| None) }.unwrap();
        assert_eq!(slab.absorb(), Ok(2));
        assert_eq!(slab.used(), 98);
        slab.check();
    }

    #[test]
    fn the_words_of_a_record_follow_it_on_lines_of_their_own() {
        assert_eq!([0, 3, 4, 7].map(Slab::record_bytes), [256, 256, 384, 128 + 2048]);
        let longest = SizeClass::all().map(lg_words).max().unwrap();
        assert_eq!(longest + 1, RECORD_CLASSES);
        for lg in 0..RECORD_CLASSES {
            let slab = Slab::new_record(lg).unwrap();
            assert_eq!((slab.lg_words(), slab.free_words().len()), (lg, 1 << lg));
            let word_at = |bytes: usize| {
                let word = core::ptr::from_ref(slab).wrapping_byte_add(bytes).cast::<u64>();
                // SAFETY: inside the record.
                unsafe { word.read_volatile() }
            };
            slab.remote.birth(Guard::Bin);
            for (n, word) in slab.free_words().iter().enumerate() {
                let mark = 1 << (n % 64);
                word.set(!mark);
                // SAFETY: nobody else has blocks of the record, which lives for ever.
                unsafe { slab.remote.free(n, mark, |_| None) }.unwrap();
            }
            let remote = LINES + (8 << lg).max(64);
            for n in 0..1 << lg {
                let mark = 1 << (n % 64);
                assert_eq!((word_at(LINES + 8 * n), word_at(remote + 8 * n)), (!mark, mark));
            }
        }
    }

    #[test]
    fn a_slab_is_sparse_where_less_than_half_of_it_is_used() {
        for class in SizeClass::all() {
            let (slab, half) = (slab(class), class.slots() / 2);
            assert!(slab.extent().is_some_and(|run| run.base() == slab.base()));
            slab.take_lowest(half, |_| ());
            assert!(!slab.became_sparse(1));
            assert_eq!(slab.list(), ListName::None);
            assert!(!slab.stays_in_place(1), "in no list");
            slab.list.set(ListName::Partial);
            assert!(half == 0 || slab.stays_in_place(1));
            slab.put(0, 1, 1).unwrap();
            assert!(slab.became_sparse(1) && !slab.became_sparse(0));
            assert!(!slab.stays_in_place(1), "it moves back");
            assert_eq!(slab.stays_in_place(0), half > 1, "it is empty");
        }
    }

    #[test]
    fn remote_words_are_read_at_every_refill_where_they_are_few() {
        let is_cheap = |size| Slab::is_cheap_to_absorb(SizeClass::of(size));
        assert_eq!([1024, 256, 224, 8].map(is_cheap), [true, true, false, false]);
    }

    #[test]
    fn a_block_that_was_freed_here_and_elsewhere_looks_free() {
        let slab = slab(SizeClass::of(64));
        slab.take_lowest(2, |_| ());
        assert!(!slab.looks_free(slab.base()));
        // SAFETY: the block is in use, and the record lives for ever.
        unsafe { slab.remote.free(0, 1, |_| None) }.unwrap();
        assert!(slab.looks_free(slab.base()));
        slab.put(0, 1, 1).unwrap();
        assert!(slab.looks_free(slab.base()) && !slab.looks_free(slab.base() + 64));
    }

    #[test]
    fn records_wait_for_their_next_use() {
        let mut pool = metadata::Pool::new();
        let records = [0, 0].map(|lg| Slab::new_record(lg).unwrap());
        records.into_iter().for_each(|record| pool.put(record));
        let mut next = || pool.take().map(core::ptr::from_ref);
        let [first, second] = records.map(core::ptr::from_ref);
        assert_eq!([next(), next(), next()], [Some(second), Some(first), None]);
    }

    #[test]
    fn a_run_of_blocks_with_a_bad_one_is_refused_with_its_address() {
        for class in SizeClass::all() {
            let last = class.size();
            for (first, second, is_interior) in [(0, last + 1, true), (last, last, false)] {
                let slab = slab(class);
                slab.take_lowest(2, |_| ());
                let bad = slab.base() + second;
                let blocks = [slab.base() + first, bad].map(core::ptr::with_exposed_provenance_mut);
                let found = match slab.put_run(class.grid(), &blocks) {
                    Err(Misuse::Interior(at)) => (at, true),
                    Err(Misuse::Twice(at)) => (at, false),
                    _ => panic!("nothing was found"),
                };
                assert_eq!(found, (bad, is_interior));
            }
        }
    }

    /// The blocks of a slab as a set: `true` for a free one.
    struct Model {
        slab: &'static Slab,
        free: Vec<bool>,
        remote: Vec<bool>,
    }

    impl Model {
        fn new(class: SizeClass) -> Model {
            let (free, remote) = (vec![true; class.slots()], vec![false; class.slots()]);
            Model { slab: slab(class), free, remote }
        }

        fn take(&mut self, want: usize) {
            let mut blocks = Vec::new();
            let taken = self.slab.take_lowest(want, |block| blocks.push(block as usize));
            let lowest = (0..self.free.len()).filter(|slot| self.free[*slot]).take(want);
            let lowest: Vec<usize> = lowest.collect();
            let block_of = |slot: &usize| self.slab.block_at(slot / 64, (slot % 64) as u32);
            assert_eq!(blocks, lowest.iter().map(block_of).collect::<Vec<_>>());
            assert_eq!(taken, lowest.len());
            lowest.iter().for_each(|slot| self.free[*slot] = false);
        }

        fn take_lines(&mut self, want: usize) {
            let group = self.slab.class().blocks_of_lines();
            let whole = (0..=self.free.len() - group).step_by(group);
            let whole = whole.filter(|first| self.free[*first..first + group].iter().all(|f| *f));
            let slots: Vec<usize> =
                whole.flat_map(|first| first..first + group).take(want).collect();
            let mut blocks = Vec::new();
            let taken = self.slab.take_lines(want, |block| blocks.push(block as usize));
            let size = self.slab.class().size();
            let expected: Vec<usize> = slots.iter().map(|n| self.slab.base() + n * size).collect();
            assert_eq!((taken, blocks), (slots.len(), expected));
            slots.iter().for_each(|slot| self.free[*slot] = false);
        }

        /// The slots from `first` on, in steps, that are in use.
        fn in_use(&self, first: usize, step: usize, most: usize) -> Vec<usize> {
            let slots = (first..self.free.len()).step_by(step);
            slots.filter(|slot| !self.free[*slot] && !self.remote[*slot]).take(most).collect()
        }

        fn put_run(&mut self, slots: &[usize]) {
            let size = self.slab.class().size();
            let address = |slot: &usize| self.slab.base() + slot * size;
            let mut blocks: Vec<usize> = slots.iter().map(address).collect();
            // What lies behind the slab is not put.
            blocks.push(self.slab.base() + self.slab.class().slots() * size);
            let blocks: Vec<*mut u8> =
                blocks.into_iter().map(core::ptr::with_exposed_provenance_mut).collect();
            let grid = self.slab.class().grid();
            assert!(self.slab.put_run(grid, &blocks).is_ok_and(|count| count == slots.len()));
            slots.iter().for_each(|slot| self.free[*slot] = true);
        }

        fn free_remotely(&mut self, slots: &[usize]) {
            for slot in slots {
                // SAFETY: the block is in use, and the record lives for ever.
                unsafe { self.slab.remote.free(slot / 64, 1 << (slot % 64), |_| None) }.unwrap();
                self.remote[*slot] = true;
            }
        }

        fn absorb(&mut self) {
            let remote = self.remote.iter().filter(|is_remote| **is_remote).count();
            assert_eq!(self.slab.absorb(), Ok(remote));
            for (free, remote) in self.free.iter_mut().zip(&mut self.remote) {
                *free |= core::mem::take(remote);
            }
        }

        fn check(&self, first: usize, end: usize) {
            let slab = self.slab;
            slab.check();
            let used = self.free.iter().filter(|free| !**free).count();
            let remote = self.remote.iter().filter(|is_remote| **is_remote).count();
            assert_eq!((slab.used(), slab.in_use()), (used, used - remote));
            assert_eq!(slab.is_full(), used == self.free.len());
            assert_eq!(slab.are_free(first, end), self.free[first..end].iter().all(|free| *free));
            let seems = |slot: usize| slab.looks_free(slab.block_at(slot / 64, slot as u32 % 64));
            for slot in [first, end - 1] {
                assert_eq!(seems(slot), self.free[slot] || self.remote[slot], "{slot}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None, cases: 64, ..Default::default()
        })]

        #[test]
        fn a_slab_gives_its_lowest_blocks_and_takes_any_back(
            class in 0usize..SizeClass::all().count(),
            steps in prop::collection::vec((0u8..6, any::<(u16, u16)>(), 1usize..5), 1..40),
        ) {
            let class = SizeClass::all().nth(class).unwrap();
            let mut model = Model::new(class);
            for (kind, (a, b), step) in steps {
                let (a, b) = (usize::from(a) % class.slots(), usize::from(b) % class.slots());
                let slots = model.in_use(a, step, b);
                match kind {
                    0 | 1 => model.take(b + 1),
                    2 => model.put_run(&slots),
                    3 => model.free_remotely(&slots),
                    4 => model.take_lines(b + 1),
                    _ => model.absorb(),
                }
                model.check(a.min(b), a.max(b) + 1);
            }
        }
    }
}
