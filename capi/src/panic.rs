//! The panic handler of a library without std: it writes a message and aborts.
use crate::die::die;
use core::arch::global_asm;

/// Nothing in the library panics (a test looks for panic code in the shared object), but a `no_std`
/// library must have a panic handler.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    die(b"<lumalloc>: internal error: panic\n")
}

// The precompiled core library has unwind tables that name this function, and without link-time
// optimisation (the development profile) some of its objects are linked in. Nothing unwinds through
// these objects, so the function is never called. It is weak, because a program may link another
// Rust library that has the real one.
global_asm!(
    ".pushsection .rodata.rust_eh_personality, \"a\", @progbits",
    ".weak rust_eh_personality",
    ".hidden rust_eh_personality",
    ".type rust_eh_personality, @object",
    "rust_eh_personality: .quad 0",
    ".size rust_eh_personality, . - rust_eh_personality",
    ".popsection",
);
