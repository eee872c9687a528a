//! Functions of the program's that the allocator calls: extent hooks, limits.
//!
//! They run under no lock of an arena, a bin or a cache, and may call the allocator: while one
//! runs, its thread is past all caches, and what it allocates comes from the first arena.
//!
//! While an extent hook runs, its thread calls no other by the way: the hook may hold a lock of the
//! program's that the other would wait for. What would call one is put off until the hook is done.

use super::os;
use core::sync::atomic::{AtomicPtr, Ordering};

/// Which function of the program's runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Callback {
    /// An extent hook.
    Hook,
    /// The function that is asked for memory at a bound.
    Limit,
}

/// How a thread steps past its caches and back. The front tier knows.
pub(crate) struct Scope {
    /// Steps past the caches; answers what leads back.
    pub(crate) enter: fn(Callback) -> *mut u8,
    /// Steps back.
    pub(crate) leave: fn(*mut u8),
    /// Whether an extent hook runs in the calling thread.
    pub(crate) is_in_hook: fn() -> bool,
}

static SCOPE: AtomicPtr<Scope> = AtomicPtr::new(core::ptr::null_mut());

/// Makes the scope known, at the start.
pub(crate) fn set_scope(scope: &'static Scope) {
    // Release: pairs with the Acquire in `scope`.
    SCOPE.store(core::ptr::from_ref(scope).cast_mut(), Ordering::Release);
}

fn scope() -> Option<&'static Scope> {
    // Acquire: pairs with the Release in `set_scope`.
    // SAFETY: only scopes that stay are stored.
    unsafe { SCOPE.load(Ordering::Acquire).as_ref() }
}

/// Whether an extent hook runs in the calling thread.
pub(crate) fn is_in_hook() -> bool {
    scope().is_some_and(|scope| (scope.is_in_hook)())
}

/// Calls a function of the program's. The caller holds no lock.
pub(crate) fn run<T>(which: Callback, function: impl FnOnce() -> T) -> T {
    let _back = Back(scope().map(|scope| (scope, (scope.enter)(which))));
    os::keep_errno(function)
}

/// The way back, also where the function unwinds.
struct Back(Option<(&'static Scope, *mut u8)>);

impl Drop for Back {
    fn drop(&mut self) {
        if let Some((scope, word)) = self.0 {
            (scope.leave)(word);
        }
    }
}
