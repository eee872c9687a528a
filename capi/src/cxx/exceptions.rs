//! The parts of `operator new` that exceptions need, for machines on which it is written in
//! assembly.
//!
//! C++ demands that `new`, while a new-handler is installed, calls the handler and tries again, and
//! otherwise throws `std::bad_alloc`. The nothrow forms return NULL instead, also when the handler
//! throws. An alignment that is no power of two fails without a call of the handler, as in
//! libstdc++.
//!
//! An exception must not pass through a frame of Rust: under `panic=abort` Rust turns it into an
//! abort, and through an `extern "C"` function it is undefined behaviour. So the frames that an
//! exception passes through or ends in are written in assembly. They call Rust for a block, and
//! call the handler and the throwing function of the C++ runtime themselves. Each describes its
//! frame to the unwinder (`.cfi_*`). The nothrow one also says, in the table that the C++
//! personality reads, that it catches everything that the handler throws.
//!
//! [`runtime`](super::runtime) finds the functions of the runtime.
use super::aligned;
use crate::die::die;
use alloc_core::raw::{self, Operator};
use core::ffi::c_void;

/// The table of a function that catches all: an exception of any type from the call between the
/// labels 5 and 6 lands at 9. One from elsewhere in the function, which begins at 10, terminates.
macro_rules! catch_all_table {
    ($name:literal) => {
        concat!(
            ".pushsection .gcc_except_table, \"a\", @progbits
             .p2align 2
             ",
            $name,
            ":
                 .byte 0xff            // landing pads count from the function's start
                 .byte 0x9b            // types: indirect, pc-relative
                 .uleb128 25f - 21f
             21: .byte 1               // call sites: uleb128
                 .uleb128 23f - 22f
             22: .uleb128 5b - 10b
                 .uleb128 6b - 5b
                 .uleb128 9b - 10b
                 .uleb128 1            // the first action
             23: .byte 1, 0            // the action: type 1, no next
                 .p2align 2
                 .long 0               // type 1: everything
             25: .popsection"
        )
    };
}
pub(super) use catch_all_table;

/// Tries again for a block after the handler ran. Its operator stays unknown.
pub(super) extern "C" fn again(size: usize, alignment: usize) -> *mut c_void {
    if alignment == 1 {
        raw::malloc(size).cast()
    } else {
        aligned(size, alignment, Operator::Unknown)
    }
}

/// Aborts, because there is no function to throw `std::bad_alloc` with.
pub(super) extern "C" fn cannot_throw() -> ! {
    die(b"<lumalloc>: operator new: out of memory, and no C++ runtime to throw std::bad_alloc\n")
}
