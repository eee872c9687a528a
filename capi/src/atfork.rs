//! `__register_atfork`, so that the library's handlers of fork are the first.
//!
//! The library takes all of its locks in its handler. Handlers run before a fork in the reverse
//! order of registration, and one that a program or a library has registered may wait for a lock
//! under which another thread allocates. So it must run before the library's. The library registers
//! its handlers when it is loaded, or first used. But the constructor of another library may call
//! `pthread_atfork` before that. glibc has `pthread_atfork` in each object that calls it; it calls
//! this function, which registers the library's handlers if they are not, and passes the call on.
//!
//! The function is called `lumalloc_register_atfork`, and `build.rs` gives it the name
//! `__register_atfork` in the shared object. The archive has none, because a static program has no
//! other one to pass the call on to. It is defined in assembly, because each function that Rust
//! defines with a public name is exported under that name.
use crate::next_function;
use alloc_core::fork;
use core::arch::global_asm;
use core::ffi::{c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::AtomicPtr;

type Handler = Option<unsafe extern "C" fn()>;
type Register = unsafe extern "C" fn(Handler, Handler, Handler, *mut c_void) -> c_int;

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.lumalloc_register_atfork, \"ax\", @progbits",
    ".globl lumalloc_register_atfork",
    ".type lumalloc_register_atfork, @function",
    "lumalloc_register_atfork:",
    ".cfi_startproc",
    "endbr64",
    "jmp {register}",
    ".cfi_endproc",
    ".size lumalloc_register_atfork, . - lumalloc_register_atfork",
    ".popsection",
    register = sym register_atfork,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.lumalloc_register_atfork, \"ax\", @progbits",
    ".p2align 2",
    ".globl lumalloc_register_atfork",
    ".type lumalloc_register_atfork, @function",
    "lumalloc_register_atfork:",
    ".cfi_startproc",
    "hint #34",
    "b {register}",
    ".cfi_endproc",
    ".size lumalloc_register_atfork, . - lumalloc_register_atfork",
    ".popsection",
    register = sym register_atfork,
);

/// Puts `__register_atfork` on the list of exported symbols, as [`crate::variables`] explains for
/// `malloc_conf`. The value is not used.
#[unsafe(export_name = "[_]_register_atfork")]
pub static REGISTER_ATFORK_PATTERN: u8 = 0;

/// Registers handlers of fork: `prepare` runs before it, `parent` and `child` after it. `object`
/// names the library whose handlers they are. Returns 0, or `ENOMEM`.
///
/// # Safety
/// As glibc's function: the handlers can be called until the library is unloaded.
unsafe extern "C" fn register_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
    object: *mut c_void,
) -> c_int {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    // That calls this function again, which finds that they are registered.
    fork::register();
    let function = next_function::known(&REAL, c"__register_atfork");
    if function.is_null() {
        return libc::ENOMEM;
    }
    // SAFETY: glibc's function has this type.
    let register = unsafe { mem::transmute::<*mut c_void, Register>(function) };
    // SAFETY: the caller's promise.
    unsafe { register(prepare, parent, child, object) }
}
