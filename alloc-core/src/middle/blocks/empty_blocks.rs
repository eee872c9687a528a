//! Blocks of no bytes: addresses that no thread may touch.
//!
//! ```text
//!   1 bit for each block, 8 KiB │ block │ block │ …      16 bytes each, without access: 1 MiB
//! ```
//! A request for 0 bytes gets one of these addresses, so that a read or a write faults where it
//! happens. Addresses are taken in turn, so that one is not used again soon. If nearly all are in
//! use, or the system has no addresses, a request gets a smallest block. The range is reserved at
//! the first request.

use crate::ground::fatal::{self, Place};
use crate::ground::os;
use crate::ground::sync::bits;
use crate::ground::units::round_up;
use crate::ground::untouchable;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Ordering::Relaxed};

/// Bytes between two blocks, so that they are as aligned as any block.
const STEP: usize = 16;
const WORDS: usize = 1024;
const BLOCKS: usize = WORDS * 64;
/// A request looks at this many words. Where nearly all blocks are in use, to look at all of them
/// takes ten times as long as another allocation.
const LOOKED_AT: usize = 64;
/// Bytes of the words with the bits.
const BITS: usize = WORDS * size_of::<AtomicU64>();

/// The address of the first block. 0 before the first request.
static FIRST: AtomicUsize = AtomicUsize::new(0);
/// Requests so far, which tell where the next one begins to look.
static REQUESTS: AtomicUsize = AtomicUsize::new(0);

/// Allocates a block of no bytes. Returns `None` if nearly all are in use.
pub(crate) fn allocate() -> Option<*mut u8> {
    let first = first().or_else(open)?;
    let begin = REQUESTS.fetch_add(1, Relaxed) % WORDS;
    let index = bits::take(words(first), begin, LOOKED_AT)?;
    Some(core::ptr::with_exposed_provenance_mut(first + index * STEP))
}

/// Returns whether an address lies among the blocks of no bytes.
#[inline]
pub(crate) fn holds(address: usize) -> bool {
    first().is_some_and(|first| address.wrapping_sub(first) < BLOCKS * STEP)
}

/// Returns whether a block of no bytes, in use, begins at an address.
pub(crate) fn is_block_at(address: usize) -> bool {
    let Some(first) = first().filter(|_| holds(address) && address.is_multiple_of(STEP)) else {
        return false;
    };
    let index = (address - first) / STEP;
    let word = words(first).get(index / 64);
    word.is_some_and(|word| word.load(Relaxed) >> (index % 64) & 1 != 0)
}

/// Returns the addresses of all blocks of no bytes that are in use.
pub(crate) fn in_use() -> impl Iterator<Item = usize> {
    let first = first();
    let words = first.map(words).unwrap_or_default().iter().enumerate();
    let in_word = |(index, word): (usize, &AtomicU64)| {
        // No ordering: other threads may take and give bits meanwhile anyway.
        let bits = word.load(Relaxed);
        (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| index * 64 + bit)
    };
    words.flat_map(in_word).map(move |index| first.unwrap_or(0) + index * STEP)
}

/// Frees a block of no bytes. Ends the process if no such block in use begins at the address, which
/// must lie among them.
pub(crate) fn free(address: usize) {
    let Some(first) = first() else { return };
    let place = Place::default();
    let offset = address.wrapping_sub(first);
    if !offset.is_multiple_of(STEP) {
        fatal::interior_free(address, address - offset % STEP, place);
    }
    if !bits::give(words(first), offset / STEP) {
        fatal::double_free(address, place);
    }
}

fn first() -> Option<usize> {
    // Acquire: pairs with the Release in `open`.
    let first = FIRST.load(Ordering::Acquire);
    (first != 0).then_some(first)
}

/// Reserves the range. Returns the address of the first block.
#[cold]
fn open() -> Option<usize> {
    // Access changes by whole pages of the system.
    let open = round_up(BITS, os::system_page());
    let base = untouchable::reserve(open + BLOCKS * STEP)?;
    let mine = base + open;
    if !untouchable::open_page(base, open) {
        untouchable::release(base, open + BLOCKS * STEP);
        return None;
    }
    // Release: pairs with the Acquire in `first`. The words read zero before.
    match FIRST.compare_exchange(0, mine, Ordering::Release, Relaxed) {
        Ok(_) => Some(mine),
        Err(_) => {
            untouchable::release(base, open + BLOCKS * STEP);
            first()
        }
    }
}

/// The words with a bit for each block, set while it is in use.
fn words(first: usize) -> &'static [AtomicU64] {
    let words = core::ptr::with_exposed_provenance(first - BITS);
    // SAFETY: `open` made these pages writable, they are never unmapped once `FIRST` names them,
    // and zeroed memory is valid atomic words.
    unsafe { core::slice::from_raw_parts(words, WORDS) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_apart_and_not_used_again_at_once() {
        let blocks = [(); 3].map(|()| allocate().expect("addresses") as usize);
        assert!(blocks.iter().all(|block| holds(*block) && block.is_multiple_of(STEP)));
        assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2]);
        assert!(blocks.iter().all(|block| in_use().any(|used| used == *block)));
        assert!(is_block_at(blocks[0]) && !is_block_at(blocks[0] + 8) && !holds(8));
        free(blocks[0]);
        assert!(!is_block_at(blocks[0]) && !in_use().any(|used| used == blocks[0]));
        let next = allocate().expect("addresses") as usize;
        assert_ne!(next, blocks[0]);
        [next, blocks[1], blocks[2]].into_iter().for_each(free);
    }
}
