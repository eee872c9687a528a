//! Bounds on what is taken from the system: pages with memory in all arenas, in use or not, and the
//! allocator's own records.
//!
//! They are looked at only where new pages are taken from the system. Reaching the soft bound,
//! unused pages are purged by the next slow path. An allocation that would go beyond the hard one
//! (or its arena's own: [`arenas::set_limit`](super::arenas::set_limit)) purges, then asks the
//! callback, and fails when both were in vain: NULL and ENOMEM.

use crate::back::aging::limit;
use crate::front::life::thread_begin::real_cache;
use crate::front::miss::limit_callback;
use core::ffi::c_void;

pub use crate::front::miss::limit_callback::LimitCallback;

/// The soft bound in bytes; 0: none. Unless somebody sets it, it is 95 per cent of what the
/// process's cgroup may have (`memory.high` or `memory.max`).
#[must_use]
pub fn soft() -> usize {
    real_cache();
    limit::soft()
}

/// Sets the soft bound; 0: none.
///
/// ```
/// use lumalloc::control::limits;
/// limits::set_soft(1 << 30);
/// assert_eq!(limits::soft(), 1 << 30);
/// limits::set_soft(0);
/// ```
pub fn set_soft(bytes: usize) {
    real_cache();
    limit::set_soft(bytes);
}

/// The hard bound in bytes; 0: none.
#[must_use]
pub fn hard() -> usize {
    limit::hard()
}

/// Sets the hard bound; 0: none. What is held beyond it stays. [`set_hard_checked`] refuses a bound
/// below what is held.
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

/// As [`set_hard`], unless more than the bound is held now: then every allocation that needs new
/// pages would fail.
///
/// # Errors
/// The bytes held, where they are more than the bound. Nothing is changed.
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
    let held = limit::held();
    if bytes != 0 && bytes < held {
        return Err(held);
    }
    limit::set_hard(bytes);
    Ok(())
}

/// Bytes held now, as the bounds count them.
#[must_use]
pub fn held() -> usize {
    real_cache();
    limit::held()
}

/// How often the soft bound was reached, and unused pages purged for it, since the start.
#[must_use]
pub fn soft_reached() -> u64 {
    limit::reaches()
}

/// How often a hard bound, or an arena's own, refused pages since the start: purging, or the
/// callback, may have helped then.
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
    limit::refusals()
}

/// The function that is asked for memory at a hard bound, and its argument.
#[must_use]
pub fn callback() -> Option<(LimitCallback, *mut c_void)> {
    limit_callback::get()
}

/// Sets the function that is asked for memory at a hard bound, or none. It gets its argument, the
/// bytes held, the bound, the bytes wanted and the arena
/// ([`ARENAS_ALL`](super::ARENAS_ALL) where the bound is that of all), runs under no lock of the
/// allocator's, and answers whether it freed anything; what it allocates comes from the first
/// arena, past all caches. `false`: no memory to note it.
///
/// # Safety
/// The function may be called with this argument by any thread, from now on, even some time after
/// another was set.
#[must_use]
pub unsafe fn set_callback(function: Option<LimitCallback>, argument: *mut c_void) -> bool {
    real_cache();
    limit_callback::set(function, argument)
}

/// What is known when a hard bound is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Bytes held.
    pub held: usize,
    /// The bound.
    pub limit: usize,
    /// Bytes that were wanted.
    pub wanted: usize,
    /// The arena whose own bound it is, or [`ARENAS_ALL`](super::ARENAS_ALL).
    pub arena: u32,
}

/// As [`set_callback`], for a function of Rust.
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
        // SAFETY: the argument is the function that was set with this one.
        let function: fn(&Reached) -> bool = unsafe { core::mem::transmute(function) };
        function(&Reached { held, limit, wanted, arena })
    }
    // SAFETY: the function takes any arguments, by any thread, for ever.
    unsafe { set_callback(Some(call), function as *mut c_void) }
}
