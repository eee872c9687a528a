//! malloc over another heap: functions that take the place of the allocator's own. Source:
//! vmalloc(3), `Vmregion`.
//!
//! The C library offers a table of functions by a hidden symbol, which Rust programs do not have.
//! The slow paths ask it whether calls are to be diverted. Once it has said so, all threads have
//! façades for good, because only these ask whose block an address is before they free it.

use crate::ground::weak::weak_symbol;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Functions that take the place of malloc and free.
///
/// They run under no lock of the allocator. What they allocate and free through the allocator is
/// not diverted, bypasses all caches, and comes from the first arena.
#[derive(Clone, Copy, Debug)]
pub struct Diversion {
    /// Returns whether calls are to be diverted from now on. Slow paths call this until it says so.
    /// It must not allocate.
    pub is_wanted: fn() -> bool,
    /// Allocates `size` bytes at a multiple of `align`. Returns null if there is no memory, and
    /// `None` if the allocator is to serve the request.
    pub allocate: fn(size: usize, align: usize) -> Option<*mut u8>,
    /// Frees the block at an address, which is a block of the allocator if `is_own`. Returns
    /// `false` if the allocator is to free it.
    pub free: fn(block: *mut u8, is_own: bool) -> bool,
    /// Resizes the block at an address, as [`Diversion::allocate`] and [`Diversion::free`] do.
    pub resize: fn(block: *mut u8, is_own: bool, size: usize, align: usize) -> Option<*mut u8>,
    /// Returns the size of the block at an address that is no block of the allocator.
    pub size: fn(block: *mut u8) -> Option<usize>,
}

/// Stands for a table that was not looked for yet.
static UNKNOWN: Diversion = Diversion {
    is_wanted: || false,
    allocate: |_, _| None,
    free: |_, _| false,
    resize: |_, _, _, _| None,
    size: |_| None,
};

static OFFER: AtomicPtr<Diversion> = AtomicPtr::new((&raw const UNKNOWN).cast_mut());
static IS_ON: AtomicBool = AtomicBool::new(false);

/// Looks for a table, at the start of the process's allocator. Returns whether calls are to be
/// diverted from the start.
pub(crate) fn begin() -> bool {
    let table = core::ptr::with_exposed_provenance::<&'static Diversion>(table_address());
    if table.is_null() {
        OFFER.store(core::ptr::null_mut(), Ordering::Relaxed);
        return false;
    }
    // SAFETY: the symbol is that of a reference to a table, which the C library has.
    let table = unsafe { *table };
    OFFER.store(core::ptr::from_ref(table).cast_mut(), Ordering::Relaxed);
    let is_wanted = (table.is_wanted)();
    IS_ON.store(is_wanted, Ordering::Relaxed);
    is_wanted
}

/// Returns the table, or `None` if nothing offers one.
#[inline]
pub(crate) fn offer() -> Option<&'static Diversion> {
    // SAFETY: only tables that exist for ever are stored, which never change.
    unsafe { OFFER.load(Ordering::Relaxed).as_ref() }
}

/// Returns whether the start of the process's allocator is to come.
pub(crate) fn is_unknown(offer: &Diversion) -> bool {
    core::ptr::eq(offer, &UNKNOWN)
}

/// Returns whether calls are diverted.
#[inline]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Diverts calls from now on. All threads have façades already.
pub(crate) fn turn_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Diverts calls to these functions from now on, whatever they were diverted to before. What a
/// thread's cache can serve stays with the cache, because threads are given no façades for this.
pub(crate) fn turn_to(table: &'static Diversion) {
    OFFER.store(core::ptr::from_ref(table).cast_mut(), Ordering::Relaxed);
    turn_on();
}

weak_symbol!(table_address, "LUMALLOC_DIVERSION_0_1");
