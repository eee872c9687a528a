//! What `operator new` needs for exceptions, on the machines for which it is written in assembly.
//!
//! C++ demands: while a new-handler is installed, call it and try again; with none, throw
//! `std::bad_alloc` (the nothrow forms: answer NULL, also when the handler throws).
//!
//! An exception must not pass through a frame of Rust: under `panic=abort` Rust turns one into an
//! abort, and through an `extern "C"` function it is undefined. So the frames that an exception
//! passes through or ends in are assembly: they call Rust for a block, and themselves call the
//! handler and the throwing function of the C++ runtime. Each describes its frame to the unwinder
//! (`.cfi_*`); the nothrow one also says, in the table that the C++ personality reads, that it
//! catches everything its handler call throws.
//!
//! The runtime's functions are weak references, loaded from the global offset table: NULL when no
//! C++ runtime was there when the library was loaded. (A *static* C++ program has
//! `std::__throw_bad_alloc` only if something else in it needs that object of libstdc++; link with
//! `-Wl,-u,_ZSt17__throw_bad_allocv` to be sure.)
use super::{aligned, plain};
use crate::lifecycle::die;
use core::arch::global_asm;
use core::ffi::c_void;

// Where the unwinder finds the address of the personality. (Hidden and global: Rust may put the
// function that names it into another object file. References are declared weak beside each use for
// the same reason.)
global_asm!(
    ".weak __gxx_personality_v0",
    ".pushsection .data.rel.ro.lumalloc_personality, \"aw\", @progbits",
    ".p2align 3",
    ".hidden lumalloc_personality",
    ".globl lumalloc_personality",
    "lumalloc_personality: .quad __gxx_personality_v0",
    ".popsection",
);

/// The block that is tried for again after the handler ran.
pub(super) extern "C" fn again(size: usize, alignment: usize) -> *mut c_void {
    if alignment == 1 { plain(size) } else { aligned(size, alignment) }
}

/// There is nothing to throw `std::bad_alloc` with.
pub(super) extern "C" fn cannot_throw() -> ! {
    die(b"<lumalloc>: operator new: out of memory, and no C++ runtime to throw std::bad_alloc\n")
}
