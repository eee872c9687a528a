//! The size classes, as `arenas.bin.<i>.*` and `arenas.lextent.<i>.*` of jemalloc(3) list them.
//!
//! The sizes are those of jemalloc(3), Table 1. But slabs serve sizes up to 32 KiB here, and up to
//! 14 KiB in jemalloc. So the first five large classes of jemalloc are the last five small classes
//! here.

use super::arena_stats::{BINS, LEXTENTS, lextent_size};
use crate::ground::options;
use crate::ground::size_class::SizeClass;
use crate::ground::units::PAGE;

/// A small size class. Source: jemalloc(3), `arenas.bin.<i>.*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Bytes in a block.
    pub size: usize,
    /// Blocks in a slab.
    pub nregs: u32,
    /// Bytes in a slab.
    pub slab_size: usize,
}

/// Returns the number of small size classes. Source: jemalloc(3), `arenas.nbins`.
#[must_use]
pub fn nbins() -> u32 {
    BINS as u32
}

/// Returns a small size class, or `None` from index [`nbins`] on.
///
/// ```
/// let bin = lumalloc::observe::bin(1).unwrap();
/// assert_eq!(bin.size, 16);
/// assert_eq!(bin.slab_size, bin.nregs as usize * 16);
/// assert_eq!(lumalloc::observe::bin(lumalloc::observe::nbins() as usize), None);
/// ```
#[must_use]
pub fn bin(index: usize) -> Option<Bin> {
    let class = SizeClass::all().nth(index)?;
    Some(Bin {
        size: class.size(),
        nregs: class.slots() as u32,
        slab_size: usize::from(class.row().slab_pages) * PAGE,
    })
}

/// Returns the number of size classes that threads cache, with the options in force. Source:
/// jemalloc(3), `arenas.nhbins`.
#[must_use]
pub fn nhbins() -> u32 {
    let largest = options::current().tcache_max;
    SizeClass::all().filter(|class| class.size() <= largest).count() as u32
}

/// Returns the number of large size classes, up to the longest run that any address space holds.
/// Source: jemalloc(3), `arenas.nlextents`.
#[must_use]
pub fn nlextents() -> u32 {
    LEXTENTS as u32
}

/// Returns the size in bytes of a large class, or `None` from index [`nlextents`] on. Source:
/// jemalloc(3), `arenas.lextent.<i>.size`.
///
/// ```
/// assert_eq!(lumalloc::observe::lextent(0), Some(40960));
/// assert_eq!(lumalloc::observe::lextent(1), Some(49152));
/// let last = lumalloc::observe::nlextents() as usize - 1;
/// assert_eq!(lumalloc::observe::lextent(last), Some(1 << 48));
/// assert_eq!(lumalloc::observe::lextent(last + 1), None);
/// ```
#[must_use]
pub fn lextent(index: usize) -> Option<usize> {
    (index < LEXTENTS).then(|| lextent_size(index))
}
