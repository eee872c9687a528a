//! Functions of the program's that the allocator calls: extent hooks, limits.
//!
//! They run under no lock of an arena, a bin or a cache, and may call the allocator: while one
//! runs, its thread is past all caches, and what it allocates comes from the first arena.

use super::os;
use core::sync::atomic::{AtomicPtr, Ordering};

/// How a thread steps past its caches and back. The front tier knows.
pub(crate) struct Scope {
    /// Steps past the caches; answers what leads back.
    pub(crate) enter: fn() -> *mut u8,
    /// Steps back.
    pub(crate) leave: fn(*mut u8),
    /// Whether the calling thread is inside the allocator, or in a function that it called.
    pub(crate) is_inside: fn() -> bool,
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

/// Whether the calling thread is inside the allocator, or in a function that it called.
pub(crate) fn is_inside() -> bool {
    scope().is_some_and(|scope| (scope.is_inside)())
}

/// Calls a function of the program's. The caller holds no lock.
pub(crate) fn run<T>(function: impl FnOnce() -> T) -> T {
    let _back = Back(scope().map(|scope| (scope, (scope.enter)())));
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
