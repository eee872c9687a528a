//! The contents of an active run: zeros, written by hand or given by the system, or junk.

use super::chunk_notes;
use crate::back::map::extent::Extent;
use crate::back::system::mapping::Mapping;
use crate::back::system::page_provider::{PageProvider, Purged, Resident};
use crate::back::system::thp;
use crate::ground::fill_mode;
use crate::ground::units::{LG_PAGE, PAGE};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The value of freed bytes under `junk:free`. Source: jemalloc(3), `opt.junk`.
pub(crate) const JUNK_FREED: u8 = 0x5a;

/// Writes zeros over an active run from `from` bytes on. The caller owns the block.
pub(crate) fn zero(extent: &'static Extent, from: usize) {
    let base = extent.base_ptr().wrapping_add(from);
    // SAFETY: an active run is mapped and writable to its end, and the caller owns its block.
    unsafe { base.write_bytes(0, extent.bytes() - from) };
}

/// Shorter runs are zeroed by hand, which takes no longer than asking the system.
const SHORTEST_TO_ASK: usize = (256 << 10) / PAGE;
/// Of this many runs full of memory, one is given back, and the others are zeroed by hand.
const BY_HAND: usize = 128;

/// How an active run is made to read zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Zeroing {
    /// Zeros are written over all of it.
    ByHand,
    /// All of its pages are given back.
    GiveBack,
    /// Zeros are written over this many bytes at its beginning, and the rest is given back.
    Beginning(usize),
}

/// Chooses the better way to make an active run read zero.
///
/// The last use of a run predicts the next. A run of which most has no memory was hardly touched,
/// and writing zeros would fill it. But the touched pages at its beginning will be touched again. A
/// run that is full will be filled again, and faulting its pages in costs ten times as much as
/// zeros. But another user may have filled it, so now and then one is given back to see.
pub(crate) fn better_zeroing(provider: &dyn PageProvider, extent: &'static Extent) -> Zeroing {
    if extent.pages() < SHORTEST_TO_ASK {
        return Zeroing::ByHand;
    }
    let seen =
        NonNull::new(extent.base_ptr()).and_then(|base| provider.resident(base, extent.bytes()));
    seen.map_or(Zeroing::ByHand, |seen| choose(seen, extent.pages(), extent.mapping()))
}

fn choose(seen: Resident, pages: usize, mapping: Mapping) -> Zeroing {
    static FULL: AtomicUsize = AtomicUsize::new(0);
    let is_hardly_touched = seen.pages < pages / 2;
    // A run that is a mapping of its own becomes an ordinary one when it is given back whole.
    let is_ordinary = mapping == Mapping::Ordinary;
    let is_beginning = seen.leading > 0 && seen.leading == seen.pages && is_ordinary;
    match (is_hardly_touched, is_beginning) {
        (true, true) => Zeroing::Beginning(seen.leading << LG_PAGE),
        (true, false) => Zeroing::GiveBack,
        _ if FULL.fetch_add(1, Relaxed) % BY_HAND == BY_HAND - 1 => Zeroing::GiveBack,
        _ => Zeroing::ByHand,
    }
}

/// Makes an active run read zero in the given way. Returns `false` if the contents are undefined.
/// Pages without memory are given back too, because they may lie on a swap device.
pub(crate) fn zero_by(
    provider: &dyn PageProvider,
    extent: &'static Extent,
    zeroing: Zeroing,
) -> bool {
    match zeroing {
        Zeroing::ByHand => false,
        Zeroing::GiveBack => purge(provider, extent) == Purged::Zeroed,
        Zeroing::Beginning(bytes) => {
            let rest = extent.bytes().saturating_sub(bytes);
            let is_zero = rest > 0 && purge_part(provider, extent, bytes, rest) == Purged::Zeroed;
            if is_zero {
                // SAFETY: the beginning of an active run, whose block the caller owns.
                unsafe { extent.base_ptr().write_bytes(0, bytes) };
            }
            is_zero
        }
    }
}

/// Writes `byte` over an active run from `from` bytes on. The caller owns the block.
pub(crate) fn fill(extent: &'static Extent, from: usize, byte: u8) {
    let base = extent.base_ptr().wrapping_add(from);
    // SAFETY: an active run is mapped and writable to its end, and the caller owns its block.
    unsafe { base.write_bytes(byte, extent.bytes() - from) };
}

/// Fills a run that is about to be freed with junk if `junk:free` says so, and returns it.
pub(crate) fn junked(extent: &'static Extent) -> &'static Extent {
    if fill_mode::current().junk_freed {
        fill(extent, 0, JUNK_FREED);
        // A part that is cut off may be one that no block has used, and read zero until now.
        extent.note_used();
    }
    extent
}

/// Gives back part of an active run's memory, in which no block is in use. Less goes, or nothing,
/// if the part does not consist of whole pages of the system: then it is `Undefined`.
pub(crate) fn purge_part(
    provider: &dyn PageProvider,
    extent: &'static Extent,
    from: usize,
    size: usize,
) -> Purged {
    let Some(base) = NonNull::new(extent.base_ptr().wrapping_add(from)) else {
        return Purged::Refused;
    };
    if extent.mapping().may_be_chunks() {
        chunk_notes::break_up(provider, extent.base() + from, size);
    }
    // SAFETY: inside an active run, and its contents are not needed (the caller's promise).
    unsafe { provider.purge(base, size) }
}

/// Gives the pages of a run back, in which no block is in use. Returns what it reads then.
pub(crate) fn purge(provider: &dyn PageProvider, extent: &'static Extent) -> Purged {
    let Some(base) = NonNull::new(extent.base_ptr()) else { return Purged::Refused };
    // SAFETY: the caller owns the run, whose contents are not needed (the caller's promise).
    if extent.mapping().is_own() && unsafe { provider.renew(base, extent.bytes()) } {
        chunk_notes::forget_chunks(extent);
        thp::advise_new(provider, base, extent.bytes());
        return Purged::Zeroed;
    }
    if extent.mapping().may_be_chunks() {
        chunk_notes::break_up(provider, extent.base(), extent.bytes());
    }
    // SAFETY: the run lies in one reservation. Its contents are not needed (the caller's promise).
    unsafe { provider.purge(base, extent.bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Mapping::{Chunks, Huge, Ordinary};

    #[test]
    fn what_was_hardly_touched_is_given_back_but_for_its_beginning() {
        let choose = |pages, leading, mapping| choose(Resident { pages, leading }, 256, mapping);
        assert_eq!(choose(0, 0, Ordinary), Zeroing::GiveBack);
        assert_eq!(choose(1, 1, Ordinary), Zeroing::Beginning(PAGE));
        assert_eq!(choose(127, 127, Ordinary), Zeroing::Beginning(127 * PAGE));
        assert_eq!(choose(127, 126, Ordinary), Zeroing::GiveBack, "others too");
        assert_eq!([choose(1, 1, Chunks), choose(1, 1, Huge)], [Zeroing::GiveBack; 2]);
        let full = (0..2 * BY_HAND).map(|_| choose(128, 128, Ordinary));
        assert!(full.filter(|zeroing| *zeroing == Zeroing::GiveBack).count() >= 1);
        assert!(!(0..BY_HAND).any(|_| matches!(choose(256, 256, Ordinary), Zeroing::Beginning(_))));
    }
}
