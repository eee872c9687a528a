//! The lock of the C library's list of streams.
//!
//! glibc's `fork` takes it after the handlers of `pthread_atfork`. Another thread may hold it while
//! it waits for a stream (`fflush(NULL)`) whose holder waits for memory (`getline`). If the handler
//! held the allocator's locks then, all three would wait for ever. So it takes this lock first.
//! Elsewhere, where the C library has no such functions, nothing is done.

use super::weak::weak_symbol;
use core::sync::atomic::{AtomicBool, AtomicI8, Ordering::Relaxed};

weak_symbol!(lock, "_IO_list_lock");
weak_symbol!(unlock, "_IO_list_unlock");
weak_symbol!(reset, "_IO_list_resetlock");
weak_symbol!(is_single, "__libc_single_threaded");

/// Whether the fork that is under way holds the lock. Only the forking thread uses it, because it
/// has closed out other forks by then.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Calls a function of the C library, if there is one at the address.
fn call(address: usize) {
    if address != 0 {
        let function = core::ptr::with_exposed_provenance::<()>(address);
        // SAFETY: the three functions take no arguments, and return nothing.
        let function = unsafe { core::mem::transmute::<*const (), extern "C" fn()>(function) };
        function();
    }
}

/// Returns whether the C library says that there is one thread only. Then none can hold the lock
/// but the calling one, which may be using the list.
fn has_one_thread() -> bool {
    let place = core::ptr::with_exposed_provenance_mut::<i8>(is_single());
    // SAFETY: the variable is one byte, which the C library writes.
    !place.is_null() && unsafe { AtomicI8::from_ptr(place) }.load(Relaxed) != 0
}

/// Takes the lock for a fork, before all locks that allocation waits for. A thread may take it
/// several times. Returns whether it was taken.
#[must_use]
pub fn take() -> bool {
    let takes = lock() != 0 && unlock() != 0 && reset() != 0 && !has_one_thread();
    if takes {
        call(lock());
    }
    takes
}

/// Notes whether the fork holds the lock. Called under the allocator's locks.
pub(crate) fn note(is_held: bool) {
    IS_HELD.store(is_held, Relaxed);
}

/// Returns what was noted, and forgets it. Called under the allocator's locks.
pub(crate) fn was_held() -> bool {
    IS_HELD.swap(false, Relaxed)
}

/// Releases the lock in the parent.
///
/// # Safety
/// This thread has taken the lock by [`take`], once for each call.
pub unsafe fn release() {
    call(unlock());
}

/// Releases the lock in the child, where the C library has done so if it counted several threads.
///
/// # Safety
/// The thread that forked has taken the lock by [`take`], and no thread of the child uses streams.
pub unsafe fn release_in_child() {
    call(reset());
}
