//! The destination of messages: standard error, or the sink that the program set
//! (`malloc_message`).

use super::raised_signals;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

/// The shape of jemalloc(3)'s `malloc_message`: an opaque pointer (null here) and a C string.
pub type Sink = unsafe extern "C" fn(*mut c_void, *const c_char);

static SINK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Sends all further messages to `sink`, or to standard error for `None`. Source: jemalloc(3).
///
/// # Safety
/// Any thread may call the sink with a null pointer and any C string, even some time after another
/// one was set.
///
/// ```compile_fail,E0133
/// unsafe extern "C" fn never_call_this(_: *mut core::ffi::c_void, _: *const core::ffi::c_char) {}
/// lumalloc::message::set_sink(Some(never_call_this));
/// ```
pub unsafe fn set_sink(sink: Option<Sink>) {
    let pointer = sink.map_or(core::ptr::null_mut(), |f| f as *mut c_void);
    // Release: pairs with the Acquire in `write`, which then sees what was set up for the sink.
    SINK.store(pointer, Ordering::Release);
}

/// Writes `text` as one message. At most 1023 bytes reach a sink at once.
pub fn write(text: &[u8]) {
    // Acquire: pairs with the Release in `set_sink`.
    let sink = SINK.load(Ordering::Acquire);
    if sink.is_null() {
        raised_signals::write_stderr(text);
        return;
    }
    // SAFETY: only `set_sink` stores here, and it stores only functions of this type.
    let sink: Sink = unsafe { core::mem::transmute(sink) };
    let mut buffer = [0u8; 1024];
    for piece in text.chunks(buffer.len() - 1) {
        buffer.fill(0);
        for (slot, &byte) in buffer.iter_mut().zip(piece) {
            *slot = byte;
        }
        // SAFETY: by its contract the sink takes any C string, and the buffer ends in a zero.
        unsafe { sink(core::ptr::null_mut(), buffer.as_ptr().cast()) };
    }
}
