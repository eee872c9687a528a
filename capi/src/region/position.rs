//! Where the program calls from: file, line and function, for each thread.

use alloc_core::control::diversion::past;
use alloc_core::raw;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use lumalloc_region::Position;

const NO_KEY: u32 = u32::MAX;

/// The key of the threads' records. There is none until the first position.
static KEY: AtomicU32 = AtomicU32::new(NO_KEY);

/// Returns whether a thread has recorded a position so far.
#[inline]
pub(super) fn are_recorded() -> bool {
    KEY.load(Ordering::Relaxed) != NO_KEY
}

/// Returns the position that the thread recorded for this call, and forgets it.
pub(super) fn take() -> Position {
    let key = KEY.load(Ordering::Relaxed);
    if key == NO_KEY {
        return Position::UNKNOWN;
    }
    // SAFETY: the key exists.
    let record = unsafe { libc::pthread_getspecific(key) }.cast::<Position>();
    if record.is_null() {
        return Position::UNKNOWN;
    }
    // SAFETY: the record is this thread's, and was written.
    unsafe { record.replace(Position::UNKNOWN) }
}

/// `vmfileline`: records a position for the next call of this thread that allocates or frees. NULL,
/// an empty string, and a line of 0 mean that it is unknown.
///
/// # Safety
/// The strings must be NULL or NUL-terminated. They must exist until that call is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmfileline(file: *const c_char, line: c_int, func: *const c_char) {
    if let Some(record) = key().and_then(record) {
        // SAFETY: the caller's promise.
        let file = unsafe { text(file) };
        // SAFETY: the caller's promise.
        let function = unsafe { text(func) };
        let position = Position::new(file, u32::try_from(line).unwrap_or(0), function);
        // SAFETY: the record is this thread's.
        unsafe { record.write(position) };
    }
}

/// The text at a pointer, which is empty for NULL.
///
/// # Safety
/// The pointer is NULL, or leads to a string that the program keeps until its next call.
unsafe fn text(string: *const c_char) -> &'static [u8] {
    if string.is_null() {
        return b"";
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(string) }.to_bytes()
}

/// Returns the key, which the first caller makes.
fn key() -> Option<u32> {
    let key = KEY.load(Ordering::Relaxed);
    if key != NO_KEY {
        return Some(key);
    }
    let mut new = 0;
    // SAFETY: the key has a place to go, and the function takes what is stored under it.
    if unsafe { libc::pthread_key_create(&raw mut new, Some(forget)) } != 0 {
        return None;
    }
    match KEY.compare_exchange(NO_KEY, new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => Some(new),
        Err(other) => {
            // SAFETY: nobody else has seen the key.
            unsafe { libc::pthread_key_delete(new) };
            Some(other)
        }
    }
}

/// Returns the record of this thread, which is made at first.
fn record(key: u32) -> Option<*mut Position> {
    // SAFETY: the key exists.
    let record = unsafe { libc::pthread_getspecific(key) }.cast::<Position>();
    if !record.is_null() {
        return Some(record);
    }
    let record = past(|| raw::malloc(size_of::<Position>()));
    // SAFETY: the key exists.
    if record.is_null() || unsafe { libc::pthread_setspecific(key, record.cast()) } != 0 {
        // SAFETY: the block is nobody else's.
        past(|| unsafe { raw::free(record) });
        return None;
    }
    Some(record.cast())
}

/// Frees the record of a thread that ends.
unsafe extern "C" fn forget(record: *mut c_void) {
    // SAFETY: the record is a block that `record` made.
    past(|| unsafe { raw::free(record.cast()) });
}
