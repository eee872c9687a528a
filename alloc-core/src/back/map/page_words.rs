//! The words of the page map: one for each page of the address space.
//!
//! ```text
//!   address   47 ………… 32 │ 31 ………… 21 │ 20 …… 12 │ 11 … 0
//!                 │              │           │
//!   ROOT[65536] ──┘   leaf[1M] ──┴───────────┘──▶ word
//!                 or  pieces[2048] ──▶ piece[512] ──▶ word
//! ```
//! The root is zero pages of .bss. A leaf takes 8 MiB of addresses. It is made when the first
//! reservation lies there, and only its used parts are written. If the system has no room for that
//! (because of a limit on addresses or on locked memory), a leaf is made of pieces, each a page for
//! 2 MiB of addresses. Leaves and pieces are never unmapped.

use super::table::{self, PIECE};
use super::writable::Writable;
use crate::back::metadata;
use crate::back::system::provider::system::system;
use crate::ground::checked::at;
use crate::ground::counters::SharedCount;
use crate::ground::sync::published::Published;
use crate::ground::units::{LG_PAGE, PAGE};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bits of an address inside the part of the address space that one leaf stands for.
const LEAF_BITS: u32 = 32;
const LEAF_WORDS: usize = 1 << (LEAF_BITS - LG_PAGE);
const ROOT_WORDS: usize = 1 << (48 - LEAF_BITS);

/// Bits of an address inside a chunk, the part of the address space that one huge page backs.
const LG_CHUNK: u32 = 21;
const LEAF_CHUNKS: usize = 1 << (LEAF_BITS - LG_CHUNK);
const CHUNK_WORDS: usize = 1 << (LG_CHUNK - LG_PAGE);

/// The notes of `chunk_notes` on each chunk.
type Notes = [AtomicU8; LEAF_CHUNKS];

/// The words of a part of the address space in a row.
#[repr(C, align(4096))]
struct Leaf {
    words: [AtomicU64; LEAF_WORDS],
    notes: Notes,
    writable: Writable<LEAF_NOTES>,
}

/// Words that hold a bit for each piece of a leaf.
const LEAF_NOTES: usize = LEAF_WORDS * 8 / PIECE / 64 + 1;
const _: () = assert!(LEAF_NOTES == size_of::<Leaf>().div_ceil(PIECE).div_ceil(64));

/// The offset of the part of a leaf that is writable from the beginning.
const NOTES_BEGIN: usize = core::mem::offset_of!(Leaf, notes);
const _: () = assert!(NOTES_BEGIN.is_multiple_of(PIECE) && size_of::<Leaf>() - NOTES_BEGIN == PAGE);

/// The words of one chunk.
#[repr(C, align(4096))]
struct Piece([AtomicU64; CHUNK_WORDS]);

/// The words of each chunk that is in use.
#[repr(C, align(4096))]
struct Pieces {
    pieces: [Published<Piece>; LEAF_CHUNKS],
    notes: Notes,
}

/// Added to the address of a [`Leaf`] in the root. The address of [`Pieces`] is not marked.
const WHOLE: usize = 1;

static ROOT: [Published<u8>; ROOT_WORDS] = [const { Published::nothing() }; ROOT_WORDS];

/// Bytes of addresses that leaves and the class map take.
pub(crate) static MAPPED: SharedCount = SharedCount::new();

/// The words of a part of the address space.
#[derive(Clone, Copy)]
enum Part {
    Whole(&'static Leaf),
    Pieces(&'static Pieces),
}

fn slot_of(address: usize) -> Option<&'static Published<u8>> {
    ROOT.get(address >> LEAF_BITS)
}

fn part_of(address: usize) -> Option<Part> {
    let part = slot_of(address)?.get();
    if part.addr() & WHOLE == 0 {
        // SAFETY: what the root holds without the mark is null or pieces, which stay for ever.
        return unsafe { part.cast::<Pieces>().as_ref() }.map(Part::Pieces);
    }
    // SAFETY: what the root holds with the mark is a leaf, which stays for ever.
    Some(Part::Whole(unsafe { &*part.wrapping_byte_sub(WHOLE).cast::<Leaf>() }))
}

/// The word of the page that contains `address`, or `None` if nothing near it was ever used.
#[inline(always)]
pub(in crate::back) fn word_of(address: usize) -> Option<&'static AtomicU64> {
    let index = address >> LEAF_BITS;
    if index >= ROOT_WORDS {
        return None;
    }
    // SAFETY: just checked.
    let slot = unsafe { at(&ROOT, index) };
    let part = slot.get();
    if part.addr() & WHOLE == 0 {
        return word_in_pieces(part.cast(), address);
    }
    // SAFETY: what the root holds with the mark is a leaf, which stays for ever.
    let leaf = unsafe { &*part.wrapping_byte_sub(WHOLE).cast::<Leaf>() };
    // SAFETY: 2^32 >> 12 is the number of words.
    Some(unsafe { at(&leaf.words, word_index(address)) })
}

/// The index of a word in its leaf: a 32-bit shift drops the bits of the root, so it is in range.
#[inline(always)]
fn word_index(address: usize) -> usize {
    ((address as u32) >> LG_PAGE) as usize
}

fn chunk_index(address: usize) -> usize {
    ((address as u32) >> LG_CHUNK) as usize
}

#[cold]
#[inline(never)]
fn word_in_pieces(pieces: *const Pieces, address: usize) -> Option<&'static AtomicU64> {
    // SAFETY: null, or pieces that stay for ever.
    let pieces = unsafe { pieces.as_ref() }?;
    piece_of(pieces, address)?.0.get(word_index(address) % CHUNK_WORDS)
}

fn piece_of(pieces: &'static Pieces, address: usize) -> Option<&'static Piece> {
    let piece = pieces.pieces.get(chunk_index(address))?.get();
    // SAFETY: null, or a piece, which stays for ever.
    unsafe { piece.as_ref() }
}

/// The note on the chunk that contains `address`, which is 0 at first. `None` if nothing near it
/// was ever used.
pub(in crate::back) fn chunk_note(address: usize) -> Option<&'static AtomicU8> {
    let notes = match part_of(address)? {
        Part::Whole(leaf) => &leaf.notes,
        Part::Pieces(pieces) => &pieces.notes,
    };
    notes.get(chunk_index(address))
}

/// Whether any address in the same part of the address space was ever used.
pub(in crate::back) fn is_near(address: usize) -> bool {
    part_of(address).is_some()
}

/// The first address behind the `1 << lg` bytes that contain `address`, which a word of the root or
/// a piece stands for.
fn end_of(address: usize, lg: u32) -> Option<usize> {
    (address | ((1 << lg) - 1)).checked_add(1)
}

/// Makes the words of a range ready. Returns `false`, and loses nothing, without memory.
pub(in crate::back) fn cover(base: usize, bytes: usize) -> bool {
    let Some(end) = base.checked_add(bytes) else { return false };
    let mut begin = base;
    while begin < end {
        let stop = end_of(begin, LEAF_BITS).map_or(end, |next| next.min(end));
        let Some(part) = part_of(begin).or_else(|| make_part(begin)) else { return false };
        let is_ready = match part {
            Part::Whole(leaf) => open_words(leaf, begin, stop),
            Part::Pieces(pieces) => make_pieces(pieces, begin, stop),
        };
        if !is_ready {
            return false;
        }
        begin = stop;
    }
    true
}

/// Makes the words of a range in one leaf writable.
fn open_words(leaf: &'static Leaf, begin: usize, end: usize) -> bool {
    let (from, bytes) = (word_index(begin) * 8, ((end - begin) >> LG_PAGE) * 8);
    // SAFETY: the leaf was reserved as a table with this size, and the words lie in it.
    unsafe {
        table::open(&leaf.writable, NonNull::from(leaf).cast(), size_of::<Leaf>(), from, bytes)
    }
}

fn make_pieces(pieces: &'static Pieces, begin: usize, end: usize) -> bool {
    let mut chunk = begin;
    while chunk < end {
        if piece_of(pieces, chunk).is_none() && !make_piece(pieces, chunk) {
            return false;
        }
        chunk = end_of(chunk, LG_CHUNK).unwrap_or(end);
    }
    true
}

fn make_piece(pieces: &'static Pieces, address: usize) -> bool {
    // SAFETY: words that are 0 are a valid piece.
    let Some(piece) = (unsafe { metadata::allocate_zeroed::<Piece>() }) else { return false };
    if let Some(slot) = pieces.pieces.get(chunk_index(address)) {
        // A piece that comes second is lost.
        slot.publish(core::ptr::from_ref(piece).cast_mut());
    }
    true
}

/// Makes the words of the part that contains `address`. Returns `None` without memory.
fn make_part(address: usize) -> Option<Part> {
    let slot = slot_of(address)?;
    match make_leaf() {
        Some(leaf) => {
            let marked = leaf.as_ptr().wrapping_byte_add(WHOLE).cast();
            if slot.publish(marked) {
                MAPPED.add(size_of::<Leaf>() as u64);
            } else {
                // SAFETY: just reserved, and no other thread knows it.
                unsafe { system().release(leaf.cast(), size_of::<Leaf>()) };
            }
        }
        None => {
            // SAFETY: null pointers and notes of 0 are valid.
            let pieces = unsafe { metadata::allocate_zeroed::<Pieces>() }?;
            slot.publish(core::ptr::from_ref(pieces).cast_mut().cast());
        }
    }
    part_of(address)
}

fn make_leaf() -> Option<NonNull<Leaf>> {
    let noted = Writable::none();
    let leaf = table::reserve(size_of::<Leaf>(), NOTES_BEGIN, PAGE, &noted)?.cast::<Leaf>();
    // SAFETY: inside the table.
    let place = unsafe { &raw mut (*leaf.as_ptr()).writable };
    // SAFETY: the notes lie in the part that is writable, and no other thread knows the leaf.
    unsafe { place.write(noted) };
    Some(leaf)
}

/// Calls `visit` with the words of the `pages` pages from `base` on, as far as there are any.
pub(in crate::back) fn for_range(base: usize, pages: usize, mut visit: impl FnMut(&AtomicU64)) {
    let (mut address, end) = (base, base + (pages << LG_PAGE));
    while address < end {
        let lg = if let Some(Part::Pieces(_)) = part_of(address) { LG_CHUNK } else { LEAF_BITS };
        let stop = end_of(address, lg).map_or(end, |next| next.min(end));
        let (first, count) = (word_index(address), (stop - address) >> LG_PAGE);
        let words = match part_of(address) {
            Some(Part::Whole(leaf)) => leaf.words.get(first..first + count),
            Some(Part::Pieces(pieces)) => piece_of(pieces, address).and_then(|piece| {
                let first = first % CHUNK_WORDS;
                piece.0.get(first..first + count)
            }),
            None => None,
        };
        words.unwrap_or_default().iter().for_each(&mut visit);
        address = stop;
    }
}

/// The first address at or after `address`, a multiple of the page, whose word is not 0, with the
/// word.
pub(in crate::back) fn next_from(address: usize) -> Option<(usize, u64)> {
    let mut at = address;
    while at >> LEAF_BITS < ROOT_WORDS {
        let from = word_index(at);
        let found = match part_of(at) {
            Some(Part::Whole(leaf)) => next_in_leaf(leaf, from),
            Some(Part::Pieces(pieces)) => next_in_pieces(pieces, from),
            None => None,
        };
        if let Some((index, word)) = found {
            return Some(((at >> LEAF_BITS << LEAF_BITS) + (index << LG_PAGE), word));
        }
        at = end_of(at, LEAF_BITS)?;
    }
    None
}

/// The first word of a leaf from index `from` on that is not 0, with its index. Parts of the leaf
/// that were never written are not read, because that would take memory.
fn next_in_leaf(leaf: &Leaf, from: usize) -> Option<(usize, u64)> {
    const WORDS: usize = PIECE / 8;
    let mut pieces =
        (from / WORDS..LEAF_WORDS / WORDS).filter(|piece| leaf.writable.is_set(*piece));
    pieces.find_map(|piece| {
        let first = from.max(piece * WORDS);
        next_among(leaf.words.get(first..(piece + 1) * WORDS)?, first)
    })
}

fn next_in_pieces(pieces: &'static Pieces, from: usize) -> Option<(usize, u64)> {
    (from / CHUNK_WORDS..LEAF_CHUNKS).find_map(|chunk| {
        let piece = piece_of(pieces, chunk << LG_CHUNK)?;
        let first = from.max(chunk * CHUNK_WORDS);
        next_among(piece.0.get(first % CHUNK_WORDS..)?, first)
    })
}

/// The first of `words` that is not 0, with its index. The index of the first word is `first`.
fn next_among(words: &[AtomicU64], first: usize) -> Option<(usize, u64)> {
    words.iter().enumerate().find_map(|(n, word)| {
        // Acquire: pairs with the Release in `page_map::set` and in `page_map::set_all`.
        let word = word.load(Ordering::Acquire);
        (word != 0).then_some((first + n, word))
    })
}

/// Calls `visit` with each address whose word is not 0, and with the word.
pub(in crate::back) fn for_each(mut visit: impl FnMut(usize, u64)) {
    for index in 0..ROOT_WORDS {
        let base = index << LEAF_BITS;
        match part_of(base) {
            Some(Part::Whole(leaf)) => visit_words(base, &leaf.words, &mut visit),
            Some(Part::Pieces(pieces)) => {
                for chunk in (0..LEAF_CHUNKS).map(|chunk| base + (chunk << LG_CHUNK)) {
                    if let Some(piece) = piece_of(pieces, chunk) {
                        visit_words(chunk, &piece.0, &mut visit);
                    }
                }
            }
            None => {}
        }
    }
}

fn visit_words(base: usize, words: &[AtomicU64], visit: &mut impl FnMut(usize, u64)) {
    for (page, word) in words.iter().enumerate() {
        let word = word.load(Ordering::Relaxed);
        if word != 0 {
            visit(base + (page << LG_PAGE), word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of the address space that no system hands out to a program.
    const FREE: usize = 0x1234 << LEAF_BITS;

    fn in_pieces(base: usize) {
        // SAFETY: null pointers and notes of 0 are valid.
        let pieces = unsafe { metadata::allocate_zeroed::<Pieces>() }.unwrap();
        let pieces = core::ptr::from_ref(pieces).cast_mut().cast();
        assert!(slot_of(base).unwrap().publish(pieces));
    }

    fn read(address: usize) -> Option<u64> {
        word_of(address).map(|word| word.load(Ordering::Relaxed))
    }

    fn write(base: usize, pages: usize, first: u64) -> u64 {
        let mut next = first;
        for_range(base, pages, |word| {
            word.store(next, Ordering::Relaxed);
            next += 1;
        });
        next - first
    }

    /// The words that are not 0 from one address up to another, found one after the other.
    fn each_from(from: usize, end: usize) -> Vec<(usize, u64)> {
        let next = |seen: &(usize, u64)| next_from(seen.0 + PAGE);
        core::iter::successors(next_from(from), next).take_while(|seen| seen.0 < end).collect()
    }

    #[test]
    fn leaves_and_pieces_hold_the_same_words() {
        let chunk = 1 << LG_CHUNK;
        for (base, pieces) in [(FREE, false), (FREE + (2 << LEAF_BITS), true)] {
            if pieces {
                in_pieces(base);
            }
            // The end of one chunk, a whole chunk, and the beginning of a third.
            let (begin, pages) = (base + 4 * chunk - PAGE, CHUNK_WORDS + 2);
            assert!(cover(begin, pages << LG_PAGE));
            assert_eq!(matches!(part_of(base), Some(Part::Pieces(_))), pieces);
            assert_eq!(write(begin, pages, 7), pages as u64);
            assert_eq!(read(begin), Some(7));
            assert_eq!(read(begin + (pages << LG_PAGE) - 1), Some(6 + pages as u64));
            assert_eq!(read(begin - PAGE), Some(0));
            // A page that was not covered has a word of 0, or none.
            assert_eq!(read(base + 9 * chunk).unwrap_or(0), 0);
            assert_eq!(chunk_note(base + 9 * chunk).unwrap().load(Ordering::Relaxed), 0);
            let mut seen = Vec::new();
            for_each(|address, word| {
                if address >> LEAF_BITS == base >> LEAF_BITS {
                    seen.push((address, word));
                }
            });
            assert_eq!((seen.len(), seen[1]), (pages, (begin + PAGE, 8)));
            assert_eq!(each_from(base, begin + (pages << LG_PAGE)), seen);
            assert_eq!(next_from(begin + PAGE), Some((begin + PAGE, 8)));
            assert_eq!(write(begin, pages, 0), pages as u64);
            for_range(begin, pages, |word| word.store(0, Ordering::Relaxed));
            assert!(is_near(base) && !is_near(base + (1 << LEAF_BITS)));
        }
    }

    #[test]
    fn a_range_over_two_leaves_is_covered_in_both() {
        let base = (0x2345 << LEAF_BITS) - (4 << LG_PAGE);
        in_pieces(0x2345 << LEAF_BITS);
        assert!(cover(base, 8 << LG_PAGE));
        assert_eq!(write(base, 8, 1), 8);
        assert_eq!((read(base), read(base + (7 << LG_PAGE))), (Some(1), Some(8)));
        for_range(base, 8, |word| word.store(0, Ordering::Relaxed));
        // A range to the end of a piece needs no other piece.
        assert!(cover(0x2345 << LEAF_BITS, 1 << LG_CHUNK));
        assert_eq!(read((0x2345 << LEAF_BITS) + (1 << LG_CHUNK)), None);
        assert!(!cover(usize::MAX - PAGE + 1, PAGE) && !cover((1 << 48) - PAGE, 2 * PAGE));
    }
}
