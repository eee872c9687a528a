//! Addresses that have a register of their own.

/// Returns an address, and keeps the compiler from adding its parts in each access to what lies
/// there.
///
/// Some x86-64 processors take a value straight from the store that wrote it, without waiting for
/// the cache, if both accesses name one register and a constant. With an index beside the register
/// they do not: see `mechanisms/thread_cache_bins.md`.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
#[allow(clippy::pointers_in_nomem_asm_block, reason = "nothing is read or written through it")]
pub(crate) fn in_register<T>(mut address: *const T) -> *const T {
    // SAFETY: the text is a comment, so nothing is executed and the register keeps its value.
    unsafe {
        core::arch::asm!(
            "/* {0} */",
            inout(reg) address,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    address
}

/// Returns the address, because it is not known that other processors gain anything.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn in_register<T>(address: *const T) -> *const T {
    address
}
