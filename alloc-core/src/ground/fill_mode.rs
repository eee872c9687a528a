//! Which memory is filled: as `opt.junk` and `opt.zero` say at first, then as the program sets at
//! run time.
//!
//! Accesses are Relaxed, because a thread that has not seen a change yet may fill as before.

use super::options::Options;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

/// Which memory is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Allocated memory is filled with 0xa5, unless [`Fill::zero`] is set.
    pub junk_allocated: bool,
    /// Freed memory is filled with 0x5a.
    pub junk_freed: bool,
    /// Allocated memory reads zero.
    pub zero: bool,
}

const JUNK_ALLOCATED: u8 = 1;
const JUNK_FREED: u8 = 2;
const ZERO: u8 = 4;

static MODE: AtomicU8 = AtomicU8::new(0);
/// Whether freed memory was ever to be filled with junk.
static WAS_JUNK: AtomicBool = AtomicBool::new(false);

/// Returns which memory is filled now.
#[inline]
pub(crate) fn current() -> Fill {
    let mode = MODE.load(Relaxed);
    Fill {
        junk_allocated: mode & JUNK_ALLOCATED != 0,
        junk_freed: mode & JUNK_FREED != 0,
        zero: mode & ZERO != 0,
    }
}

/// Whether any memory is filled.
#[inline]
pub(crate) fn is_any() -> bool {
    MODE.load(Relaxed) != 0
}

/// Whether freed memory may be filled with junk, now or since some time before.
pub(crate) fn was_junk() -> bool {
    WAS_JUNK.load(Relaxed)
}

/// Sets which memory is filled from now on.
pub(crate) fn set(fill: Fill) {
    if fill.junk_freed {
        WAS_JUNK.store(true, Relaxed);
    }
    let bit = |on, bit| if on { bit } else { 0 };
    let allocated = bit(fill.junk_allocated, JUNK_ALLOCATED);
    MODE.store(allocated | bit(fill.junk_freed, JUNK_FREED) | bit(fill.zero, ZERO), Relaxed);
}

/// Returns which memory the options ask to fill.
pub(crate) const fn of(options: &Options) -> Fill {
    Fill { junk_allocated: options.junk.alloc, junk_freed: options.junk.free, zero: options.zero }
}
