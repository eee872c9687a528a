//! Functions of the program that the allocator calls: extent hooks, the limit callback, the hooks
//! of the heap profiler, and functions that take the place of malloc. The C library is such a
//! function too while it makes a thread of the allocator.
//!
//! They run under no lock of an arena, a bin or a cache, and may call the allocator. While one
//! runs, its thread bypasses all caches, and its allocations come from the first arena.
//!
//! While an extent hook runs, the allocator calls no other hook in that thread as a side effect,
//! because the running hook may hold a lock of the program that the other would wait for. Work that
//! would call a hook is put off until the running hook returns.

use super::os;
use core::sync::atomic::{AtomicPtr, Ordering};

/// The kind of program function that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callback {
    /// An extent hook.
    Hook,
    /// The function that is called for memory at a bound.
    Limit,
    /// A hook of the heap profiler.
    Profiler,
    /// A function that takes the place of malloc or free.
    Diversion,
    /// The C library, which makes a thread for the allocator.
    Thread,
}

/// How a thread bypasses its caches and returns to them. The front tier supplies the functions.
pub(crate) struct Scope {
    /// Bypasses the caches. Returns the word that [`Scope::leave`] takes.
    pub(crate) enter: fn(Callback) -> *mut u8,
    /// Returns to the caches, by the word that [`Scope::enter`] returned.
    pub(crate) leave: fn(*mut u8),
    /// Whether an extent hook runs in the calling thread.
    pub(crate) is_in_hook: fn() -> bool,
    /// Whether the calling thread is outside of the allocator and of all callbacks but for the
    /// present call.
    pub(crate) is_outside: fn() -> bool,
}

static SCOPE: AtomicPtr<Scope> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the scope, when the process starts.
pub(crate) fn set_scope(scope: &'static Scope) {
    // Release: pairs with the Acquire in `scope`.
    SCOPE.store(core::ptr::from_ref(scope).cast_mut(), Ordering::Release);
}

fn scope() -> Option<&'static Scope> {
    // Acquire: pairs with the Release in `set_scope`.
    // SAFETY: only `'static` scopes are stored.
    unsafe { SCOPE.load(Ordering::Acquire).as_ref() }
}

/// Whether an extent hook runs in the calling thread.
pub(crate) fn is_in_hook() -> bool {
    scope().is_some_and(|scope| (scope.is_in_hook)())
}

/// Whether the calling thread is outside of the allocator and of all callbacks but for the present
/// call, so that a callback may be called as a side effect.
pub(crate) fn is_outside() -> bool {
    scope().is_some_and(|scope| (scope.is_outside)())
}

/// Calls a function of the program. The caller holds no lock.
pub(crate) fn run<T>(which: Callback, function: impl FnOnce() -> T) -> T {
    let _back = Back(scope().map(|scope| (scope, (scope.enter)(which))));
    os::keep_errno(function)
}

/// Calls [`Scope::leave`] when it is dropped, also if the function unwinds.
struct Back(Option<(&'static Scope, *mut u8)>);

impl Drop for Back {
    fn drop(&mut self) {
        if let Some((scope, word)) = self.0 {
            (scope.leave)(word);
        }
    }
}
