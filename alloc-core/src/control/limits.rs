//! Bounds on what is taken from the system. They count pages with memory in all arenas, in use or
//! not, and the allocator's own records. For hard bounds holes in slabs (`stats.holes`) count too,
//! although they have no memory, because blocks in them are handed out without asking the bounds.
//!
//! The bounds are looked at only where new pages are taken from the system. When the soft bound is
//! reached, the next slow path purges unused pages. An allocation that would go beyond the hard
//! bound, or the bound of its arena ([`arenas::set_limit`](super::arenas::set_limit)), purges, then
//! calls the callback. If neither helps, it fails with NULL and ENOMEM.

use crate::back::aging::{held, limit, refusals, soft_limit};
use crate::back::runs::source;
use crate::front::life::thread_begin::real_cache;
use crate::front::miss::limit_callback;
use core::ffi::c_void;

pub use crate::front::miss::limit_callback::LimitCallback;

/// Returns the soft bound in bytes, where 0 means none. Unless the program sets it, it is 95 per
/// cent of what the process's cgroup may have (`memory.high` or `memory.max`). This may change
/// while the process runs. It is read again by this function, at the bound, and each time that what
/// is held has grown by a sixteenth of it, but not any more once there was none.
#[must_use]
pub fn soft() -> usize {
    real_cache();
    soft_limit::bytes()
}

/// Sets the soft bound in bytes, where 0 means none.
///
/// ```
/// use lumalloc::control::limits;
/// limits::set_soft(1 << 30);
/// assert_eq!(limits::soft(), 1 << 30);
/// limits::set_soft(0);
/// ```
pub fn set_soft(bytes: usize) {
    real_cache();
    soft_limit::set(bytes);
}

/// Notes the limits of addresses that the process has now (`RLIMIT_AS` and `RLIMIT_DATA`), under
/// which arenas keep fewer addresses without memory. The library asks for them when it begins, when
/// the system has refused addresses, and again as long as there was a limit. A program that sets a
/// limit calls this afterwards. One that runs with the shared object need not, because its
/// `setrlimit` and `prlimit` do.
///
/// ```
/// use lumalloc::control::limits;
/// // After a call of setrlimit(RLIMIT_AS, …).
/// limits::note_addresses();
/// ```
pub fn note_addresses() {
    source::note_address_limit();
}

/// Returns the hard bound in bytes, where 0 means none.
#[must_use]
pub fn hard() -> usize {
    limit::hard()
}

/// Sets the hard bound in bytes, where 0 means none. Memory that is held beyond it stays.
/// [`set_hard_checked`] refuses a bound below what is held.
///
/// ```
/// use lumalloc::control::limits;
/// limits::set_hard(limits::held() + (1 << 20));
/// assert!(lumalloc::raw::malloc(64 << 20).is_null());
/// limits::set_hard(0);
/// ```
pub fn set_hard(bytes: usize) {
    real_cache();
    limit::set_hard(bytes);
}

/// As [`set_hard`], but refuses a bound that is below what is held now, because every allocation
/// that needs new pages would fail.
///
/// # Errors
/// Returns the bytes held, if they are more than the bound. Nothing is changed then.
///
/// ```
/// use lumalloc::control::limits;
/// assert_eq!(limits::set_hard_checked(1 << 40), Ok(()));
/// assert!(limits::set_hard_checked(1).unwrap_err() > 1);
/// assert_eq!(limits::hard(), 1 << 40);
/// assert_eq!(limits::set_hard_checked(0), Ok(()));
/// ```
pub fn set_hard_checked(bytes: usize) -> Result<(), usize> {
    real_cache();
    let held = held::bytes();
    if bytes != 0 && bytes < held {
        return Err(held);
    }
    limit::set_hard(bytes);
    Ok(())
}

/// Returns the bytes held now, as the hard bound counts them.
#[must_use]
pub fn held() -> usize {
    real_cache();
    held::bytes()
}

/// Returns how often the soft bound was reached, and unused pages purged for it, since the start.
#[must_use]
pub fn soft_reached() -> u64 {
    soft_limit::reaches()
}

/// Returns how often the hard bound, or the bound of an arena, refused pages since the start.
/// Purging or the callback may have helped then.
///
/// ```
/// use lumalloc::control::limits;
/// let before = limits::hard_reached();
/// limits::set_hard(limits::held() + (1 << 20));
/// assert!(lumalloc::raw::malloc(64 << 20).is_null());
/// limits::set_hard(0);
/// assert!(limits::hard_reached() > before);
/// ```
#[must_use]
pub fn hard_reached() -> u64 {
    refusals::count()
}

/// Returns the function that is called for memory at a hard bound, and its argument.
#[must_use]
pub fn callback() -> Option<(LimitCallback, *mut c_void)> {
    limit_callback::get()
}

/// Sets the function that is called for memory at a hard bound, or none. The function gets its
/// argument, the bytes held, the bound, the bytes wanted and the arena
/// ([`ARENAS_ALL`](super::ARENAS_ALL) if the bound is that of all arenas). It runs under no lock of
/// the allocator, and returns whether it freed anything. Its allocations come from the first arena,
/// past all caches. Returns `false` if there is no memory to note the function.
///
/// # Safety
/// Any thread may call the function with this argument from now on, even some time after another
/// one was set.
#[must_use]
pub unsafe fn set_callback(function: Option<LimitCallback>, argument: *mut c_void) -> bool {
    real_cache();
    limit_callback::set(function, argument)
}

/// The state when a hard bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Bytes held.
    pub held: usize,
    /// The bound, in bytes.
    pub limit: usize,
    /// Bytes that were wanted.
    pub wanted: usize,
    /// The arena whose own bound was reached, or [`ARENAS_ALL`](super::ARENAS_ALL).
    pub arena: u32,
}

/// As [`set_callback`], but takes a Rust function.
///
/// ```
/// use lumalloc::control::limits;
/// assert!(limits::set_function(|reached| {
///     assert!(reached.held + reached.wanted > reached.limit);
///     false
/// }));
/// limits::set_hard(limits::held() + (1 << 20));
/// assert!(lumalloc::raw::malloc(64 << 20).is_null());
/// limits::set_hard(0);
/// ```
#[must_use]
pub fn set_function(function: fn(&Reached) -> bool) -> bool {
    unsafe extern "C" fn call(
        function: *mut c_void,
        held: usize,
        limit: usize,
        wanted: usize,
        arena: u32,
    ) -> bool {
        // SAFETY: the argument is the Rust function that was set with `call`.
        let function: fn(&Reached) -> bool = unsafe { core::mem::transmute(function) };
        function(&Reached { held, limit, wanted, arena })
    }
    // SAFETY: `call` may run in any thread, for ever, with this argument.
    unsafe { set_callback(Some(call), function as *mut c_void) }
}
