//! Loads of what a bin's thread may be writing at the same time. Each is one machine load that the
//! compiler does not know of: what it reads may be a moment old, but is never torn.

/// Returns the number at a place.
///
/// # Safety
/// The place must be live and aligned.
pub(super) unsafe fn number_seen(place: *const i32) -> i32 {
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

/// Returns the block in a slot.
///
/// # Safety
/// The slot must be one of a bin's array, which must stay meanwhile.
pub(super) unsafe fn slot_seen(slot: *const *mut u8) -> *mut u8 {
    let seen: *mut u8;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: one aligned load from the array.
    unsafe {
        core::arch::asm!("mov {0}, qword ptr [{1}]", out(reg) seen, in(reg) slot,
            options(readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: one aligned load from the array.
    unsafe {
        core::arch::asm!("ldr {0}, [{1}]", out(reg) seen, in(reg) slot,
            options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // SAFETY: one aligned load from the array.
        seen = unsafe { slot.read_volatile() };
    }
    seen
}
