//! The functions of the C++ runtime that `operator new` needs when there is no memory.
//!
//! They are weak references: NULL if there was no C++ runtime when the library was loaded. A C
//! program may load one later, with a module in C++ (`dlopen`). So those that are missing are
//! looked for when they are needed, in libraries of the known names. That takes the loader's lock,
//! and the program loses the text of an earlier failure that it has not asked `dlerror` for. A
//! runtime that is linked into a module is not found, nor one that a *static* program has only in
//! part: it has `std::__throw_bad_alloc` only if something else in it needs that object of
//! libstdc++; linking with `-Wl,-u,_ZSt17__throw_bad_allocv` makes sure.
use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

// The places are hidden and global, because Rust may put the functions that name them into other
// object files. The unwinder finds the address of the personality in the first one.
global_asm!(
    ".weak __gxx_personality_v0",
    ".weak _ZSt15get_new_handlerv",
    ".weak _ZSt17__throw_bad_allocv",
    ".weak __cxa_begin_catch",
    ".weak __cxa_end_catch",
    ".pushsection .data.lumalloc_cxx_runtime, \"aw\", @progbits",
    ".p2align 3",
    ".hidden lumalloc_personality",
    ".globl lumalloc_personality",
    ".hidden lumalloc_cxx_runtime",
    ".globl lumalloc_cxx_runtime",
    "lumalloc_cxx_runtime:",
    "lumalloc_personality: .quad __gxx_personality_v0",
    ".quad _ZSt15get_new_handlerv",
    ".quad _ZSt17__throw_bad_allocv",
    ".quad __cxa_begin_catch",
    ".quad __cxa_end_catch",
    ".popsection",
);

const NAMES: [&CStr; 5] = [
    c"__gxx_personality_v0",
    c"_ZSt15get_new_handlerv", // std::get_new_handler()
    c"_ZSt17__throw_bad_allocv",
    c"__cxa_begin_catch",
    c"__cxa_end_catch",
];

/// Where each place lies behind `lumalloc_cxx_runtime`, for assembly.
macro_rules! place {
    (get_new_handler) => {
        "lumalloc_cxx_runtime + 8"
    };
    (throw_bad_alloc) => {
        "lumalloc_cxx_runtime + 16"
    };
    (begin_catch) => {
        "lumalloc_cxx_runtime + 24"
    };
    (end_catch) => {
        "lumalloc_cxx_runtime + 32"
    };
}
pub(super) use place;

unsafe extern "C" {
    #[link_name = "lumalloc_cxx_runtime"]
    static FUNCTIONS: [AtomicPtr<c_void>; NAMES.len()];
}

/// The libraries that have the functions.
const LIBRARIES: [&CStr; 3] = [c"libstdc++.so.6", c"libc++.so.1", c"libc++abi.so.1"];

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Dlopen = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;
type Dlerror = unsafe extern "C" fn() -> *mut c_char;

// The C library's functions, by weak references, so that a program linked with the archive does not
// pull in the loader.
alloc_core::weak_symbol!(dlsym, "dlsym");
alloc_core::weak_symbol!(dlopen, "dlopen");
alloc_core::weak_symbol!(dlerror, "dlerror");

/// Looks for the functions that were missing so far.
pub(super) extern "C" fn find() {
    // SAFETY: the places live for ever, and are read and written as atomic pointers, except by
    // assembly and the unwinder, which read whole words.
    let functions = unsafe { &*ptr::addr_of!(FUNCTIONS) };
    // Relaxed: what a place names was loaded before, and a place that names a function keeps one.
    if functions.iter().any(|function| function.load(Relaxed).is_null()) {
        look_for(functions);
    }
}

#[cold]
fn look_for(functions: &[AtomicPtr<c_void>]) {
    let function = ptr::with_exposed_provenance::<()>;
    let (dlsym, dlopen, dlerror) = (function(dlsym()), function(dlopen()), function(dlerror()));
    if dlsym.is_null() || dlopen.is_null() || dlerror.is_null() {
        return;
    }
    // SAFETY: POSIX's function of this type.
    let dlsym = unsafe { mem::transmute::<*const (), Dlsym>(dlsym) };
    // SAFETY: as above.
    let dlopen = unsafe { mem::transmute::<*const (), Dlopen>(dlopen) };
    // SAFETY: as above.
    let dlerror = unsafe { mem::transmute::<*const (), Dlerror>(dlerror) };
    for library in LIBRARIES {
        // It is not closed, so a library that is there stays, because its functions are kept.
        // SAFETY: a C string, and nothing is loaded.
        let library = unsafe { dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if library.is_null() {
            continue;
        }
        for (place, name) in functions.iter().zip(NAMES) {
            // SAFETY: the library is open, and the name is a C string.
            let found = unsafe { dlsym(library, name.as_ptr()) };
            if place.load(Relaxed).is_null() && !found.is_null() {
                place.store(found, Relaxed);
            }
        }
    }
    // So that the program does not read the text of a failure of this search.
    // SAFETY: the call has no arguments.
    unsafe { dlerror() };
}
