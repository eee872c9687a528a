//! The variables of jemalloc(3) that a program may set: `malloc_conf`, `malloc_conf_2_conf_harder`
//! and `malloc_message`.
//!
//! # How `malloc_conf` is exported
//!
//! A program may *define* `const char *malloc_conf = "…";` itself. If it is linked against the
//! shared object, its definition wins, because the executable comes first in the loader's search.
//! If it is linked with the archive, two strong definitions would be an error, so this one must be
//! weak. Stable Rust cannot define a weak variable, so assembly defines it.
//!
//! rustc hands the linker a version script that names the Rust items with C names and makes
//! everything else local, including symbols of assembly. Neither `--dynamic-list` nor
//! `--export-dynamic-symbol` overrides that, and only lld accepts a second version script. But the
//! entries of a version script are patterns. [`MALLOC_CONF_PATTERN`] is a Rust item whose C name is
//! a pattern that matches `malloc_conf` but not itself, so the item is not exported. This works
//! with GNU ld and lld; the test of the exported symbols would notice if it stopped.
use crate::errno;
use alloc_core::system_calls;
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use lumalloc_namespace::writer::WriteCallback;

// `const char *malloc_conf` and `…_2_conf_harder`: options, read once at start by the core; NULL at
// first.
global_asm!(
    ".pushsection .data.malloc_conf, \"aw\", @progbits",
    ".p2align 3",
    ".weak malloc_conf",
    ".type malloc_conf, @object",
    ".size malloc_conf, 8",
    "malloc_conf: .quad 0",
    ".weak malloc_conf_2_conf_harder",
    ".type malloc_conf_2_conf_harder, @object",
    ".size malloc_conf_2_conf_harder, 8",
    "malloc_conf_2_conf_harder: .quad 0",
    ".popsection",
);

/// Puts `malloc_conf` on the list of exported symbols; see the head of this module. The value is
/// not used.
#[unsafe(export_name = "[m]alloc_conf")]
pub static MALLOC_CONF_PATTERN: u8 = 0;

/// Puts `malloc_conf_2_conf_harder` on the list of exported symbols, as [`MALLOC_CONF_PATTERN`]
/// does for `malloc_conf`.
#[unsafe(export_name = "[m]alloc_conf_2_conf_harder")]
pub static HARDER_PATTERN: u8 = 0;

/// `void (*malloc_message)(void *cbopaque, const char *s)`: the callback for messages, and for
/// statistics when no other callback was given. NULL, the initial value, means standard error.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that C programs assign to")]
pub static malloc_message: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The callback that the program stored, if any.
pub(crate) fn program_callback() -> Option<WriteCallback> {
    let stored = malloc_message.load(Ordering::Relaxed);
    // SAFETY: an Option of a function pointer has the layout of a C function pointer, with None as
    // NULL; by the variable's type the program promises that it stored such a pointer.
    unsafe { mem::transmute::<*mut c_void, Option<WriteCallback>>(stored) }
}

/// Delivers a message to `malloc_message`, or else to standard error.
///
/// # Safety
/// `text` must be NUL-terminated.
pub(crate) unsafe extern "C" fn deliver(opaque: *mut c_void, text: *const c_char) {
    match program_callback() {
        // SAFETY: the program vouches for its callback; the caller vouches for the text.
        Some(callback) => unsafe { callback(opaque, text) },
        None => {
            // SAFETY: the caller vouches for the text.
            let text = unsafe { CStr::from_ptr(text) };
            write_to_stderr(text.to_bytes());
        }
    }
}

/// Writes to standard error as much as it accepts, and leaves `errno` unchanged.
pub(crate) fn write_to_stderr(text: &[u8]) {
    system_calls::write_stderr(text);
}

/// Writes to a descriptor as much as it accepts, and leaves `errno` unchanged.
pub(crate) fn write_to(descriptor: c_int, text: &[u8]) {
    let before = errno::get();
    // A failed write only loses a message.
    let _ = system_calls::write_all(descriptor, text);
    errno::set(before);
}
