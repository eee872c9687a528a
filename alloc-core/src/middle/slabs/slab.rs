//! A slab: one extent cut into equal blocks, with its record out of line.
//!
//! ```text
//!   line 0   base, extent, links, used, class …      written under the guard's lock
//!   line 1   state, pending link                     written by any thread: see remote_free
//!   then     free words    [u64; n]                  1 = free, guarded
//!   then     remote words  [u64; n]                  1 = freed remotely
//! ```
//! `n` is a power of two, so that records of one length are recycled for any class that needs it.

use super::fresh_pages::FreshPages;
use super::holes::Holes;
use super::misuse::Misuse;
use super::remote_free::{Guard, Remote};
use super::slab_lines::take_groups;
use super::slab_links::{Links, ListName};
use super::slab_record::{self, record_bytes, words_bytes};
use crate::back::map::extent::Extent;
use crate::back::map::page_map::Entry;
use crate::back::metadata::{self, Recycled};
use crate::ground::checked::at;
use crate::ground::fatal::Place;
use crate::ground::size_class::{Grid, SizeClass};
use core::cell::Cell;
use core::sync::atomic::AtomicU64;

/// The record of a slab.
#[repr(C, align(64))]
pub(crate) struct Slab {
    base: Cell<usize>,
    extent: Cell<Option<&'static Extent>>,
    pub(in crate::middle) links: Links<Slab>,
    used: Cell<u32>,
    /// Set once, when the record is made, because records are recycled within their arena.
    arena: u32,
    class: Cell<SizeClass>,
    /// log2 of the number of free words, and of remote words, that follow.
    lg_words: u8,
    /// No word before this one has a free bit.
    first: Cell<u8>,
    /// Whether the blocks are samples: see [`crate::ground::low`].
    for_samples: Cell<bool>,
    /// Half of the slab's number of blocks.
    half: Cell<u16>,
    pub(crate) fresh: FreshPages,
    pub(in crate::middle) holes: Holes,
    /// The part that threads write without the guard's lock.
    pub(crate) remote: Remote,
}

// SAFETY: the cells are touched under the guard's lock only (see remote_free), or by the one thread
// that makes or recycles the record; `arena` and `lg_words` never change; `remote` is atomic.
unsafe impl Sync for Slab {}

const LINES: usize = size_of::<Slab>();
const _: () = assert!(LINES == slab_record::LINES);

impl Slab {
    /// Makes a record of an arena with `1 << lg` words, from memory that is never given back.
    pub(crate) fn new_record(lg: usize, arena: u32) -> Option<&'static Slab> {
        let words = 1usize << lg;
        let bytes = words_bytes(lg);
        let memory = metadata::allocate(record_bytes(lg), 64)?;
        // SAFETY: inside the memory just allocated.
        let remote = unsafe { memory.add(LINES + bytes) }.cast::<AtomicU64>();
        // SAFETY: zeroed memory is valid atomic words; it lives for ever and is used as nothing
        // else.
        let remote = unsafe { core::slice::from_raw_parts(remote.as_ptr(), words) };
        let record = memory.cast::<Slab>();
        let slab = Slab {
            base: Cell::new(0),
            extent: Cell::new(None),
            links: Links::new(),
            used: Cell::new(0),
            arena,
            class: Cell::new(SizeClass::of(0)),
            lg_words: lg as u8,
            first: Cell::new(0),
            for_samples: Cell::new(false),
            half: Cell::new(0),
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
        debug_assert_eq!(self.arena, extent.arena(), "a record stays in its arena");
        self.class.set(class);
        self.links.reset();
        self.first.set(0);
        self.for_samples.set(extent.is_low());
        self.half.set((class.slots() / 2) as u16);
        let mut left = class.slots();
        for word in self.free_words() {
            let bits = left.min(64);
            word.set(if bits == 64 { !0 } else { (1 << bits) - 1 });
            left -= bits;
        }
    }

    /// The slab that a page-map word names, if it names one.
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

    /// The page-map word for each page of the slab.
    pub(crate) fn entry(&'static self) -> Entry {
        let offset = self.class().bin() * crate::ground::size_class::BIN_BYTES;
        Entry::of_record(core::ptr::from_ref(self).cast(), offset as u16)
    }

    /// The slab's first address.
    #[inline]
    pub(crate) fn base(&self) -> usize {
        self.base.get()
    }

    /// The class of the slab's blocks.
    #[inline]
    pub(crate) fn class(&self) -> SizeClass {
        self.class.get()
    }

    /// The arena that the slab is charged to.
    #[inline]
    pub(crate) fn arena(&self) -> u32 {
        self.arena
    }

    /// The run of pages under the slab.
    #[inline]
    pub(crate) fn extent(&self) -> Option<&'static Extent> {
        self.extent.get()
    }

    /// Returns whether the slab's blocks are samples. Such a slab is always guarded by a bin.
    #[inline]
    pub(crate) fn is_for_samples(&self) -> bool {
        self.for_samples.get()
    }

    /// What is known of the slab, for a message.
    pub(crate) fn place(&self) -> Place {
        let guard = self.remote.guard();
        let owner = if let Some(Guard::Owner(id)) = guard { Some(id) } else { None };
        Place { size: self.class().size(), arena: self.arena(), owner }
    }

    /// log2 of the free words of the record.
    pub(crate) fn lg_words(&self) -> usize {
        usize::from(self.lg_words)
    }

    /// Blocks that are not among the free bits.
    #[inline]
    pub(crate) fn used(&self) -> usize {
        self.used.get() as usize
    }

    /// Blocks that are neither free nor freed remotely. Called under the guard's lock.
    pub(crate) fn in_use(&self) -> usize {
        let remote: u32 = (0..self.class().words()).map(|n| self.remote.seen(n).count_ones()).sum();
        self.used().saturating_sub(remote as usize)
    }

    /// Whether no block is free. Remotely freed blocks do not count as free.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used() == self.class().slots()
    }

    /// Whether a block is free. Remotely freed blocks do not count as free. Under the guard's lock.
    #[inline]
    pub(in crate::middle) fn is_free(&self, slot: usize) -> bool {
        self.free_words().get(slot / 64).is_some_and(|word| word.get() >> (slot % 64) & 1 != 0)
    }

    #[inline(always)]
    pub(in crate::middle) fn free_words(&self) -> &[Cell<u64>] {
        let record = core::ptr::from_ref(self);
        // SAFETY: the words follow the record, in the same piece of memory.
        let words = unsafe { record.byte_add(LINES) }.cast::<Cell<u64>>();
        // SAFETY: as many words follow as the record says, for ever.
        unsafe { core::slice::from_raw_parts(words, 1 << self.lg_words) }
    }

    /// Takes up to `want` free blocks, lowest first, and hands each to `give`. Returns how many.
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
            self.note_word(index, bits & !word.get());
            if left == 0 {
                break;
            }
            index += 1;
        }
        self.first.set(index.min(usize::from(u8::MAX)) as u8);
        self.note_used(want - left)
    }

    /// Takes up to `want` free blocks, of cache lines whose blocks are all free, and hands each to
    /// `give`. Returns how many.
    pub(crate) fn take_lines(&self, want: usize, mut give: impl FnMut(*mut u8)) -> usize {
        let (size, group) = (self.class().size(), self.class().blocks_of_lines());
        let mut left = want;
        for (index, word) in self.free_words().iter().enumerate() {
            let before = word.get();
            let word_base = self.base() + index * 64 * size;
            left -= take_groups(word, group, left, |bit| {
                give(core::ptr::with_exposed_provenance_mut(word_base + bit * size));
            });
            self.note_word(index, before & !word.get());
            if left == 0 {
                break;
            }
        }
        self.note_used(want - left)
    }

    /// Notes that the blocks of `taken` in word `word` are handed out.
    #[inline(always)]
    fn note_word(&self, word: usize, taken: u64) {
        if self.holes.is_marked() {
            self.holes.note_taken(self.arena(), self.class().size(), word, taken);
        }
    }

    /// Counts `taken` blocks that were handed out, and returns `taken`.
    #[inline(always)]
    fn note_used(&self, taken: usize) -> usize {
        self.used.set(self.used.get() + taken as u32);
        if self.fresh.are_left() {
            let class = self.class();
            self.fresh.note_used(self.used() * class.size(), usize::from(class.row().slab_pages));
        }
        taken
    }

    /// Puts the `count` blocks of `mask` in word `word` back. `Err`: the bits that were already
    /// free.
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

    /// Puts back the first of `blocks`, as many as lie in this slab, and returns how many. After an
    /// error some of them are back and not counted.
    #[inline(always)]
    pub(crate) fn put_run(&self, grid: Grid, blocks: &[*mut u8]) -> Result<usize, Misuse> {
        let (base, words) = (self.base(), self.free_words());
        let (mut count, mut lowest) = (0, usize::MAX);
        // The slot and the offset behind the last block, found without a division.
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

    /// Takes in remotely freed blocks. Called under the guard's lock, after PENDING was cleared.
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

    /// Whether the slab may stay in its place in the partial list after `freed` blocks came back.
    #[inline]
    pub(crate) fn stays_in_place(&self, freed: usize) -> bool {
        let used = self.used();
        self.list() == ListName::Partial && used != 0 && !self.became_sparse(freed)
    }

    /// Whether the last `freed` blocks brought the slab below half of its blocks in use.
    #[inline]
    pub(in crate::middle) fn became_sparse(&self, freed: usize) -> bool {
        let half = usize::from(self.half.get());
        self.used() < half && self.used() + freed >= half
    }

    /// The address of the block that a bit of a word stands for.
    pub(crate) fn block_at(&self, word: usize, bit: u32) -> usize {
        self.base() + (word * 64 + bit as usize) * self.class().size()
    }

    /// Which list the slab is in.
    pub(crate) fn list(&self) -> ListName {
        self.links.list.get()
    }

    /// Checks that counts and bits agree.
    #[cfg(any(test, feature = "checks"))]
    pub(crate) fn check(&self) {
        use crate::ground::holds::holds;
        let free: u32 = self.free_words().iter().map(|word| word.get().count_ones()).sum();
        holds(free as usize + self.used() == self.class().slots());
        holds(self.free_words().iter().take(self.first.get().into()).all(|word| word.get() == 0));
    }
}

impl Recycled for Slab {
    fn next_free(&self) -> &Cell<Option<&'static Slab>> {
        &self.links.next
    }
}

#[cfg(test)]
#[path = "slab_test.rs"]
pub(crate) mod tests;
