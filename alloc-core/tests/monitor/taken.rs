//! What the sink refuses, and what it takes before the end: a thread whose first use of the
//! allocator is a free has no buffer of its own yet.

use super::{COUNT, EVENTS, REFUSES, keep};
use lumalloc::control::monitor::{self, What};
use lumalloc::raw;
use std::hint::black_box;
use std::sync::atomic::Ordering;

extern "C" fn free_first(block: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: freed once. It is the thread's first use of the allocator.
    unsafe { raw::free(block.cast()) };
    core::ptr::null_mut()
}

pub(crate) fn without_buffer() {
    let block = raw::malloc(100);
    assert_eq!(monitor::start(keep), Ok(()));
    let mut thread = core::mem::MaybeUninit::uninit();
    let (at, attributes) = (thread.as_mut_ptr(), core::ptr::null());
    // SAFETY: the place is writable, and the function takes the block.
    let status = unsafe { libc::pthread_create(at, attributes, free_first, block.cast()) };
    assert_eq!(status, 0);
    // SAFETY: the call has filled it.
    let thread = unsafe { thread.assume_init() };
    // SAFETY: the thread was started here, and nobody else joins it.
    assert_eq!(unsafe { libc::pthread_join(thread, core::ptr::null_mut()) }, 0);
    // This thread fills its buffer.
    for _ in 0..300 {
        // SAFETY: freed once.
        unsafe { raw::free(black_box(raw::malloc(10))) };
    }
    let is_taken = {
        let events = EVENTS.lock().expect("no panic");
        let mut taken = events[..COUNT.load(Ordering::Relaxed)].iter();
        taken.any(|event| {
            event.address == block as usize && matches!(event.what, What::Freed { .. })
        })
    };
    assert!(monitor::stop());
    assert!(is_taken);
}

pub(crate) fn refuses() {
    REFUSES.store(true, Ordering::Relaxed);
    assert_eq!(monitor::start(keep), Ok(()));
    let blocks = [(); 1000].map(|()| raw::malloc(10));
    assert!(monitor::stop());
    let counts = monitor::counts();
    assert!(counts.taken == 0 && counts.dropped >= 1000, "{counts:?}");
    REFUSES.store(false, Ordering::Relaxed);
    assert_eq!(monitor::start(keep), Ok(()));
    // SAFETY: freed once.
    blocks.into_iter().for_each(|block| unsafe { raw::free(block) });
    assert!(monitor::stop());
    assert!(monitor::counts().taken >= 1000 && monitor::counts().dropped == 0);
}
