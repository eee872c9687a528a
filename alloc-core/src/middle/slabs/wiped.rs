//! Slabs of the hardened tier that leave their pages zero.
//!
//! There a free block reads zero but for its last word, if the pages of its slab read zero when it
//! was made. So a slab that ends has only these words to clear. The next slab of the pages then
//! finds writes after a free as one of fresh pages does.

use super::slab::Slab;
use crate::ground::fill_mode;
use crate::ground::options;

/// Bytes of the word that is kept at the end of a free block.
const WORD: usize = size_of::<u64>();

/// Zeroes all that was written to the pages of a slab. The caller has released the slab. Returns
/// `false` if more than the last words of its blocks may have been written.
pub(in crate::middle) fn leave_zero(slab: &Slab) -> bool {
    let class = slab.class();
    let is_wiped = options::current().hardened && !fill_mode::was_junk() && class.size() > WORD;
    let is_unused = slab.used() == 0 && !slab.is_for_samples();
    if !is_wiped || !is_unused || !slab.fresh.were_zero() {
        return false;
    }
    for slot in 0..class.slots() {
        let end = slab.base() + (slot + 1) * class.size();
        let word: *mut u64 = core::ptr::with_exposed_provenance_mut(end - WORD);
        // SAFETY: an aligned word of the slab, whose blocks are all free and in no cache.
        let word = unsafe { &mut *word };
        // A page that was never touched stays without memory.
        if *word != 0 {
            *word = 0;
        }
    }
    true
}
