//! What is returned where there is no memory.

use crate::front::life::thread_begin;
use crate::ground::counters::SharedCount;
use crate::ground::fatal;
use crate::ground::options;
use crate::ground::os;

/// How many requests found no memory.
pub(crate) static COUNT: SharedCount = SharedCount::new();

/// Null and ENOMEM, or death under `xmalloc`, for a request of `size` bytes.
#[cold]
pub(crate) fn no_memory(size: usize) -> *mut u8 {
    // Even as the very first call it knows the options.
    thread_begin::real_cache();
    if options::current().xmalloc {
        fatal::out_of_memory(size);
    }
    COUNT.add(1);
    os::set_errno(libc::ENOMEM);
    core::ptr::null_mut()
}
