//! `dlopen` and `dlmopen`, which remove `RTLD_DEEPBIND` unless `opt.dlopen_deepbind` says
//! otherwise.
//!
//! A file opened with this flag looks for symbols first in itself and its dependencies, and the C
//! library is one of these. So the file calls the `free` of the C library, which aborts on a block
//! of lumalloc. PHP opens its modules in this way, and passes blocks to and from them.
//!
//! The loader finds the caller of `dlopen` by the return address: it searches the directories in
//! the caller's `RUNPATH` and opens the file in the caller's namespace. So the functions here
//! change the flags and then jump to the C library's function, with the caller's return address in
//! its place. Only assembly can guarantee that.
//!
//! The functions are called `lumalloc_dlopen` and `lumalloc_dlmopen`. `build.rs` gives them the
//! names `dlopen` and `dlmopen` in the shared object. The archive has no `dlopen`, because the
//! linker would take it into static programs, which have no other one to jump to.
use crate::next_function;
use alloc_core::message;
use alloc_core::options::{self, DlopenDeepbind};
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// Where to jump, and with which flags. Both calling conventions return it in two registers.
#[repr(C)]
struct Onward {
    function: *mut c_void,
    flags: c_long,
}

#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text.lumalloc_dlopen, \"ax\", @progbits",
    // void *dlopen(const char *file /* rdi */, int flags /* esi */)
    ".globl lumalloc_dlopen",
    ".type lumalloc_dlopen, @function",
    "lumalloc_dlopen:",
    ".cfi_startproc",
    "endbr64",
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "call {open}",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    "mov esi, edx",
    "jmp rax",
    ".cfi_endproc",
    ".size lumalloc_dlopen, . - lumalloc_dlopen",
    // void *dlmopen(Lmid_t namespace /* rdi */, const char *file /* rsi */, int flags /* edx */)
    ".globl lumalloc_dlmopen",
    ".type lumalloc_dlmopen, @function",
    "lumalloc_dlmopen:",
    ".cfi_startproc",
    "endbr64",
    "push rdi",
    ".cfi_adjust_cfa_offset 8",
    "push rsi",
    ".cfi_adjust_cfa_offset 8",
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "call {open_in}",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "pop rsi",
    ".cfi_adjust_cfa_offset -8",
    "pop rdi",
    ".cfi_adjust_cfa_offset -8",
    // The flags are in edx.
    "jmp rax",
    ".cfi_endproc",
    ".size lumalloc_dlmopen, . - lumalloc_dlmopen",
    ".popsection",
    open = sym onward_open,
    open_in = sym onward_open_in,
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text.lumalloc_dlopen, \"ax\", @progbits",
    ".p2align 2",
    // void *dlopen(const char *file /* x0 */, int flags /* w1 */)
    ".globl lumalloc_dlopen",
    ".type lumalloc_dlopen, @function",
    "lumalloc_dlopen:",
    ".cfi_startproc",
    "hint #34",
    "stp x29, x30, [sp, #-32]!",
    ".cfi_adjust_cfa_offset 32",
    ".cfi_offset x29, -32",
    ".cfi_offset x30, -24",
    "mov x29, sp",
    "str x0, [sp, #16]",
    "bl {open}",
    "mov x16, x0",
    "ldr x0, [sp, #16]",
    // The flags are in w1.
    "ldp x29, x30, [sp], #32",
    ".cfi_adjust_cfa_offset -32",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "br x16",
    ".cfi_endproc",
    ".size lumalloc_dlopen, . - lumalloc_dlopen",
    // void *dlmopen(Lmid_t namespace /* x0 */, const char *file /* x1 */, int flags /* w2 */)
    ".globl lumalloc_dlmopen",
    ".type lumalloc_dlmopen, @function",
    "lumalloc_dlmopen:",
    ".cfi_startproc",
    "hint #34",
    "stp x29, x30, [sp, #-32]!",
    ".cfi_adjust_cfa_offset 32",
    ".cfi_offset x29, -32",
    ".cfi_offset x30, -24",
    "mov x29, sp",
    "stp x0, x1, [sp, #16]",
    "bl {open_in}",
    "mov x16, x0",
    "mov w2, w1",
    "ldp x0, x1, [sp, #16]",
    "ldp x29, x30, [sp], #32",
    ".cfi_adjust_cfa_offset -32",
    ".cfi_restore x29",
    ".cfi_restore x30",
    "br x16",
    ".cfi_endproc",
    ".size lumalloc_dlmopen, . - lumalloc_dlmopen",
    ".popsection",
    open = sym onward_open,
    open_in = sym onward_open_in,
);

/// Puts `dlopen` on the list of exported symbols, as [`crate::variables`] explains for
/// `malloc_conf`. The value is not used.
#[unsafe(export_name = "[d]lopen")]
pub static DLOPEN_PATTERN: u8 = 0;

/// Puts `dlmopen` on the list of exported symbols, as [`DLOPEN_PATTERN`] does for `dlopen`.
#[unsafe(export_name = "[d]lmopen")]
pub static DLMOPEN_PATTERN: u8 = 0;

/// The function and flags that `dlopen` goes on with.
///
/// # Safety
/// `file` must be NULL or a C string.
unsafe extern "C" fn onward_open(file: *const c_char, flags: c_int) -> Onward {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    // SAFETY: the caller upholds the contract.
    unsafe { onward(&REAL, c"dlopen", file, flags) }
}

/// The function and flags that `dlmopen` goes on with. A namespace other than the program's has a C
/// library of its own, whose `malloc` and `free` are used everywhere in it, so the flags are not
/// changed.
///
/// # Safety
/// `file` must be NULL or a C string.
unsafe extern "C" fn onward_open_in(
    namespace: c_long,
    file: *const c_char,
    flags: c_int,
) -> Onward {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    if namespace == libc::LM_ID_BASE {
        // SAFETY: the caller upholds the contract.
        unsafe { onward(&REAL, c"dlmopen", file, flags) }
    } else {
        Onward { function: real(&REAL, c"dlmopen"), flags: flags.into() }
    }
}

/// # Safety
/// `file` must be NULL or a C string.
unsafe fn onward(
    known: &AtomicPtr<c_void>,
    name: &CStr,
    file: *const c_char,
    flags: c_int,
) -> Onward {
    let function = real(known, name);
    let option = options::current().dlopen_deepbind;
    if flags & libc::RTLD_DEEPBIND == 0 || option == DlopenDeepbind::Keep {
        return Onward { function, flags: flags.into() };
    }
    static SAID: AtomicBool = AtomicBool::new(false);
    if option == DlopenDeepbind::Warn && !SAID.swap(true, Ordering::Relaxed) {
        // SAFETY: the caller vouches for `file`.
        let file = if file.is_null() { c"NULL" } else { unsafe { CStr::from_ptr(file) } };
        say(name, file);
    }
    Onward { function, flags: (flags & !libc::RTLD_DEEPBIND).into() }
}

/// Says in one message that the flag was removed. A long path is cut.
#[cold]
fn say(name: &CStr, file: &CStr) {
    let mut line = [0; 1024];
    let mut used = 0;
    let longest = file.to_bytes().len().min(700);
    for part in [
        b"<lumalloc>: ".as_slice(),
        name.to_bytes(),
        b" of ",
        file.to_bytes().get(..longest).unwrap_or_default(),
        b": RTLD_DEEPBIND was removed, because the file would use the C library's malloc and free \
          and the program uses lumalloc's (dlopen_deepbind:keep passes the flag on)\n",
    ] {
        for (place, &byte) in line.iter_mut().skip(used).zip(part) {
            *place = byte;
        }
        used += part.len();
    }
    message::warn(line.get(..used).unwrap_or_default());
}

/// The next function with this name after ours: that of the C library or of a debugging tool. It is
/// looked up at the first call, when all libraries of the program are loaded.
fn real(known: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let function = next_function::known(known, name);
    if function.is_null() { refuse as *mut c_void } else { function }
}

/// Replaces the function in a process that has none: nothing can be opened.
extern "C" fn refuse() -> *mut c_void {
    ptr::null_mut()
}
