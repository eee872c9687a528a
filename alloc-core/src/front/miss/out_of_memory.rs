//! The result of a request without memory.

use crate::front::life::thread_begin;
use crate::ground::counters::SharedCount;
use crate::ground::fatal;
use crate::ground::options;
use crate::ground::os;

/// The number of requests that found no memory.
pub(crate) static COUNT: SharedCount = SharedCount::new();

/// Returns null and sets ENOMEM, or ends the process under `xmalloc`.
#[cold]
pub(crate) fn no_memory(size: usize) -> *mut u8 {
    // Makes the options known at the first call.
    thread_begin::real_cache();
    if options::current().xmalloc {
        fatal::out_of_memory(size);
    }
    COUNT.add(1);
    os::set_errno(libc::ENOMEM);
    core::ptr::null_mut()
}
