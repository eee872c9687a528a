//! What is filled: by `opt.junk` and `opt.zero` at first, then as the program says at run time.
//!
//! Relaxed: a thread that has not seen a change yet fills as before.

use super::options::Options;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What is filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// What is allocated reads 0xa5, unless it is to read zero.
    pub junk_allocated: bool,
    /// What is freed reads 0x5a.
    pub junk_freed: bool,
    /// What is allocated reads zero.
    pub zero: bool,
}

const JUNK_ALLOCATED: u8 = 1;
const JUNK_FREED: u8 = 2;
const ZERO: u8 = 4;

static MODE: AtomicU8 = AtomicU8::new(0);

/// What is filled now.
#[inline]
pub(crate) fn current() -> Fill {
    let mode = MODE.load(Relaxed);
    Fill {
        junk_allocated: mode & JUNK_ALLOCATED != 0,
        junk_freed: mode & JUNK_FREED != 0,
        zero: mode & ZERO != 0,
    }
}

/// Whether anything is.
#[inline]
pub(crate) fn is_any() -> bool {
    MODE.load(Relaxed) != 0
}

/// Says what is filled from now on.
pub(crate) fn set(fill: Fill) {
    let bit = |on, bit| if on { bit } else { 0 };
    let allocated = bit(fill.junk_allocated, JUNK_ALLOCATED);
    MODE.store(allocated | bit(fill.junk_freed, JUNK_FREED) | bit(fill.zero, ZERO), Relaxed);
}

/// What the options ask for.
pub(crate) const fn of(options: &Options) -> Fill {
    Fill { junk_allocated: options.junk.alloc, junk_freed: options.junk.free, zero: options.zero }
}
