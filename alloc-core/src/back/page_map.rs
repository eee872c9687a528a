//! The page map: address → class and record, in two loads.
//!
//! ```text
//!   address   47 ………… 32 │ 31 ………………… 12 │ 11 … 0
//!                 │              │
//!   ROOT[65536] ──┘   leaf[1M] ──┘──▶ word = record << 16 │ offset of the class's bin
//! ```
//! The root is zero pages of .bss; a leaf (8 MiB of addresses, touched where used) is made on
//! demand. A page of a slab holds the slab's record and the offset of its class's bin in a thread
//! cache. A run that is no slab writes its first and last page only, with the offset of the trap
//! bin, 0; all other words are 0. So the low half of a word sends the free of anything unusual to
//! the trap bin, which always takes the slow path.

use super::class_map;
use super::extent::Extent;
use super::page_provider::system;
use crate::ground::checked::at;
use crate::ground::counters::SharedCount;
use crate::ground::units::{LG_PAGE, PAGE};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering};

const LEAF_BITS: u32 = 32;
const LEAF_WORDS: usize = 1 << (LEAF_BITS - LG_PAGE);
const ROOT_WORDS: usize = 1 << (48 - LEAF_BITS);

/// No record lies below this address: what does is the index of an arena that was destroyed.
const FIRST_RECORD: usize = 1 << 16;

/// Bits of an address inside a chunk, the part of the address space that one huge page backs.
const LG_CHUNK: u32 = 21;
const LEAF_CHUNKS: usize = 1 << (LEAF_BITS - LG_CHUNK);

#[repr(C, align(4096))]
struct Leaf {
    words: [AtomicU64; LEAF_WORDS],
    /// What `dense` knows of each chunk.
    chunks: [AtomicU8; LEAF_CHUNKS],
}

static ROOT: [AtomicPtr<Leaf>; ROOT_WORDS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; ROOT_WORDS];

/// Bytes of leaves that heap addresses make use of.
pub(crate) static USED: SharedCount = SharedCount::new();
/// Bytes of addresses that leaves take.
pub(crate) static MAPPED: SharedCount = SharedCount::new();

/// Arenas have been destroyed.
static GRAVES: AtomicBool = AtomicBool::new(false);

/// One word of the map.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(u64);

impl Entry {
    /// A page that is not ours, or lies inside a run.
    pub(crate) const NONE: Entry = Entry(0);

    /// The first or last page of a run that is no slab.
    pub(crate) fn of_extent(extent: &'static Extent) -> Entry {
        Entry::of_record(core::ptr::from_ref(extent).cast(), 0)
    }

    /// A page of a slab: its record, and the offset of its class's bin, which is not 0.
    pub(crate) fn of_record(record: *const u8, bin_offset: u16) -> Entry {
        Entry((record.expose_provenance() as u64) << 16 | u64::from(bin_offset))
    }

    /// A page of an arena that was destroyed. Its addresses are not ours any more: who still has
    /// such a block is told so.
    fn of_dead(arena: u32) -> Entry {
        Entry((u64::from(arena) + 1) << 16)
    }

    /// The arena that was destroyed with this page, if one was.
    pub(crate) fn dead_arena(self) -> Option<u32> {
        let arena = (self.0 >> 16).wrapping_sub(1);
        let is_dead = arena < FIRST_RECORD as u64 && self.bin_offset() == 0;
        is_dead.then_some(arena as u32)
    }

    /// The offset of the class's bin in a thread cache; 0 is the trap's.
    #[inline(always)]
    pub(crate) fn bin_offset(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// The record's address; null if there is none.
    #[inline(always)]
    pub(crate) fn record(self) -> *const u8 {
        core::ptr::with_exposed_provenance((self.0 >> 16) as usize)
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

#[inline(always)]
fn leaf_of(address: usize) -> Option<&'static Leaf> {
    let index = address >> LEAF_BITS;
    if index >= ROOT_WORDS {
        return None;
    }
    // SAFETY: just checked.
    let slot = unsafe { at(&ROOT, index) };
    // Acquire: pairs with the Release in `make_leaf`.
    let leaf = slot.load(Ordering::Acquire);
    // SAFETY: a leaf in the root is mapped for ever.
    unsafe { leaf.as_ref() }
}

/// A 32-bit shift: the bits of the root fall away, and the index is in range by construction.
#[inline(always)]
fn word_index(address: usize) -> usize {
    ((address as u32) >> LG_PAGE) as usize
}

#[inline(always)]
fn word_in(leaf: &Leaf, address: usize) -> &AtomicU64 {
    // SAFETY: 2^32 >> 12 is the number of words.
    unsafe { at(&leaf.words, word_index(address)) }
}

/// The word of the page that `address` lies in. Any address may be asked for.
#[inline(always)]
pub(crate) fn lookup(address: usize) -> Entry {
    match leaf_of(address) {
        // Relaxed: who holds a block synchronised with who allocated it, after the word was
        // written.
        Some(leaf) => Entry(word_in(leaf, address).load(Ordering::Relaxed)),
        None => Entry::NONE,
    }
}

/// The note on the chunk that an address lies in; 0 at first. `None`: no addresses of ours.
pub(super) fn chunk_note(address: usize) -> Option<&'static AtomicU8> {
    let chunk = (address as u32) >> LG_CHUNK;
    leaf_of(address)?.chunks.get(chunk as usize)
}

/// Makes the leaves that a new reservation needs. `false`: no memory; nothing is lost.
pub(crate) fn cover(base: usize, bytes: usize) -> bool {
    let Some(last) = base.checked_add(bytes - 1) else { return false };
    if last >> LEAF_BITS >= ROOT_WORDS {
        return false;
    }
    for index in base >> LEAF_BITS..=last >> LEAF_BITS {
        if leaf_of(index << LEAF_BITS).is_none() && !make_leaf(index) {
            return false;
        }
    }
    class_map::open(base);
    // A word and the class map's byte for each page.
    USED.add((bytes >> LG_PAGE) as u64 * 9);
    true
}

/// Notes that so many bytes of addresses are not ours any more. Their words are 0 already.
pub(crate) fn uncover(bytes: usize) {
    USED.sub((bytes >> LG_PAGE) as u64 * 8);
}

/// Notes that so many bytes of addresses are ours again, whose leaves are there.
pub(crate) fn recover(bytes: usize) {
    USED.add((bytes >> LG_PAGE) as u64 * 8);
}

fn make_leaf(index: usize) -> bool {
    let Some(got) = system().reserve(size_of::<Leaf>(), PAGE) else { return false };
    // SAFETY: `cover` checked the index.
    let slot = unsafe { at(&ROOT, index) };
    let leaf = got.base.as_ptr().cast();
    let null = core::ptr::null_mut();
    // Release: pairs with the Acquire in `leaf_of`.
    if slot.compare_exchange(null, leaf, Ordering::Release, Ordering::Relaxed).is_err() {
        // SAFETY: just reserved, and nobody else knows it.
        unsafe { system().release(got.base, size_of::<Leaf>()) };
    } else {
        MAPPED.add(size_of::<Leaf>() as u64);
    }
    true
}

/// Sets the word of one page, which [`cover`] was asked for.
#[inline]
pub(crate) fn set(address: usize, entry: Entry) {
    if let Some(leaf) = leaf_of(address) {
        word_in(leaf, address).store(entry.0, Ordering::Relaxed);
    }
}

/// Sets the words of the first and last page of a run.
pub(crate) fn set_ends(extent: &'static Extent) {
    let entry = Entry::of_extent(extent);
    set(extent.base(), entry);
    set(extent.end() - PAGE, entry);
}

/// Clears the words of the first and last page of a run that is to be swallowed by another.
pub(crate) fn clear_ends(extent: &Extent) {
    set(extent.base(), Entry::NONE);
    set(extent.end() - PAGE, Entry::NONE);
}

/// Sets the words of all pages of a run, and the bytes of the class map.
pub(crate) fn set_all(extent: &Extent, entry: Entry) {
    let (mut address, end) = (extent.base(), extent.end());
    while address < end {
        // Leaf by leaf; few runs lie in two.
        let stop = end.min((address | ((1 << LEAF_BITS) - 1)) + 1);
        if let Some(leaf) = leaf_of(address) {
            let (first, pages) = (word_index(address), (stop - address) >> LG_PAGE);
            for word in leaf.words.get(first..first + pages).unwrap_or_default() {
                word.store(entry.0, Ordering::Relaxed);
            }
        }
        address = stop;
    }
    class_map::set(extent.base(), extent.pages(), entry.bin_offset());
}

/// Marks all pages of a run whose arena is destroyed, and whose addresses go back.
pub(crate) fn bury(run: &Extent) {
    GRAVES.store(true, Ordering::Relaxed);
    set_all(run, Entry::of_dead(run.arena()));
}

/// Clears what [`bury`] left on new addresses, which the system may have given us before.
pub(crate) fn clear_graves(run: &Extent) {
    if GRAVES.load(Ordering::Relaxed) {
        set_all(run, Entry::NONE);
    }
}

/// Calls `visit` with each range of addresses that is ours, whatever its state: base and bytes.
///
/// Looks at words only, not at records: the first and the last page of a run have the same one.
pub(crate) fn for_each_range(mut visit: impl FnMut(usize, usize)) {
    let (mut begin, mut end) = (0, 0);
    let mut open = None;
    for_each_word(|page, word| {
        let is_last = open.take() == Some(word);
        if is_last || page == end {
            end = page + PAGE;
        } else {
            if end > begin {
                visit(begin, end - begin);
            }
            (begin, end) = (page, page + PAGE);
        }
        if !is_last && word & 0xffff == 0 {
            open = Some(word);
        }
    });
    if end > begin {
        visit(begin, end - begin);
    }
}

/// Calls `visit` with each page that has a word, and the word.
fn for_each_word(mut visit: impl FnMut(usize, u64)) {
    for (index, slot) in ROOT.iter().enumerate() {
        // Acquire: pairs with the Release in `make_leaf`.
        // SAFETY: a leaf in the root is mapped for ever.
        let Some(leaf) = (unsafe { slot.load(Ordering::Acquire).as_ref() }) else { continue };
        for (page, word) in leaf.words.iter().enumerate() {
            let word = word.load(Ordering::Relaxed);
            if word != 0 && Entry(word).dead_arena().is_none() {
                visit((index << LEAF_BITS) + (page << LG_PAGE), word);
            }
        }
    }
}

/// The run around an address inside it, found by walking down: for last words only.
pub(crate) fn extent_around(address: usize) -> Option<&'static Extent> {
    let mut page = address & !(PAGE - 1);
    for _ in 0..1 << 22 {
        let entry = lookup(page);
        if entry != Entry::NONE {
            return entry.extent().filter(|extent| address < extent.end());
        }
        page = page.checked_sub(PAGE)?;
        // Skip what has no leaf at all.
        leaf_of(page)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_addresses_answer_nothing() {
        for address in [0, 1, 0x1000, usize::MAX, 1 << 48, (1 << 48) - 1, 1 << 63] {
            assert!(lookup(address) == Entry::NONE);
            assert!(lookup(address).extent().is_none());
        }
    }
}
