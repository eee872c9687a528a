//! The variables of jemalloc(3) that a program may set: `malloc_conf`, `malloc_conf_2_conf_harder`
//! and `malloc_message`.
//!
//! # How `malloc_conf` is exported
//!
//! A program may *define* `const char *malloc_conf = "…";` itself. Linked against the shared
//! object, its definition wins because the executable comes first in the loader's search. Linked
//! with the archive, two strong definitions would be an error, so ours must be weak; stable Rust
//! cannot define a weak variable, so assembly does.
//!
//! rustc hands the linker a version script that names the Rust items with C names and makes
//! everything else local, symbols of assembly too. Neither `--dynamic-list` nor
//! `--export-dynamic-symbol` overrides that, and a second version script is accepted by lld only.
//! But entries of a version script are patterns: [`MALLOC_CONF_PATTERN`] is a Rust item whose C
//! name is a pattern that matches `malloc_conf` (and not itself, so it is not exported). This holds
//! with GNU ld and lld; the test of the exported symbols would notice if it stopped.
use crate::errno;
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use lumalloc_namespace::writer::WriteCallback;

// `const char *malloc_conf` and `…_2_conf_harder`: options, read once at start by the core; NULL.
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

/// Puts `malloc_conf` on the list of exported symbols; see the head of this module. The value means
/// nothing.
#[unsafe(export_name = "[m]alloc_conf")]
pub static MALLOC_CONF_PATTERN: u8 = 0;

/// The same for `malloc_conf_2_conf_harder`.
#[unsafe(export_name = "[m]alloc_conf_2_conf_harder")]
pub static HARDER_PATTERN: u8 = 0;

/// `void (*malloc_message)(void *cbopaque, const char *s)`: where messages and statistics go when
/// no other callback was given; NULL (the start value) means standard error.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name that C programs assign to")]
pub static malloc_message: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// The callback that the program stored, if any.
pub(crate) fn program_callback() -> Option<WriteCallback> {
    let stored = malloc_message.load(Ordering::Relaxed);
    // SAFETY: an Option of a function pointer has the layout of a C function pointer, NULL being
    // None; the program promises by the variable's type that it stored such a pointer.
    unsafe { mem::transmute::<*mut c_void, Option<WriteCallback>>(stored) }
}

/// Delivers a message: to `malloc_message`, else to standard error.
///
/// # Safety
/// `text` must be NUL-terminated.
pub(crate) unsafe extern "C" fn deliver(opaque: *mut c_void, text: *const c_char) {
    match program_callback() {
        // SAFETY: the program vouches for its callback; the text is the caller's.
        Some(callback) => unsafe { callback(opaque, text) },
        None => {
            // SAFETY: the caller vouches for the text.
            let text = unsafe { CStr::from_ptr(text) };
            write_to_stderr(text.to_bytes());
        }
    }
}

/// Writes to standard error as much as it takes; `errno` stays as it was.
pub(crate) fn write_to_stderr(text: &[u8]) {
    write_to(libc::STDERR_FILENO, text);
}

/// Writes to a descriptor as much as it takes; `errno` stays as it was.
pub(crate) fn write_to(descriptor: c_int, text: &[u8]) {
    let before = errno::get();
    // SAFETY: the slice is readable for its length. A short or failed write loses a message, no
    // more.
    unsafe { libc::write(descriptor, text.as_ptr().cast(), text.len()) };
    errno::set(before);
}
