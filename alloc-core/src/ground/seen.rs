//! Loads of what another thread may be writing at the same time. Each is one machine load that the
//! compiler does not know of: what it reads may be a moment old, but is never torn.

/// Returns the number at a place.
///
/// # Safety
/// The place must be live and aligned.
pub(crate) unsafe fn number_seen(place: *const i32) -> i32 {
    let seen: i32;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: one aligned load, by the caller's promise.
    unsafe {
        core::arch::asm!("mov {0:e}, dword ptr [{1}]", out(reg) seen, in(reg) place,
            options(readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: one aligned load, by the caller's promise.
    unsafe {
        core::arch::asm!("ldr {0:w}, [{1}]", out(reg) seen, in(reg) place,
            options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // SAFETY: one aligned load, by the caller's promise.
        seen = unsafe { place.read_volatile() };
    }
    seen
}

/// Returns the address in a word.
///
/// # Safety
/// The word must be live and aligned.
pub(crate) unsafe fn address_seen(place: *const *mut u8) -> *mut u8 {
    let seen: *mut u8;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: one aligned load, by the caller's promise.
    unsafe {
        core::arch::asm!("mov {0}, qword ptr [{1}]", out(reg) seen, in(reg) place,
            options(readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: one aligned load, by the caller's promise.
    unsafe {
        core::arch::asm!("ldr {0}, [{1}]", out(reg) seen, in(reg) place,
            options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // SAFETY: one aligned load, by the caller's promise.
        seen = unsafe { place.read_volatile() };
    }
    seen
}
