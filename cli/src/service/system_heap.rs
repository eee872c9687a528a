//! What the system's allocator says about itself: little.

/// Bytes of the system's heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemHeap {
    /// In use by the program (or kept in glibc's thread caches, which it counts as in use).
    pub(crate) allocated: u64,
    /// Taken from the kernel for it, and not given back.
    pub(crate) active: u64,
}

/// Asks glibc; other C libraries have nothing to ask.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn read() -> Option<SystemHeap> {
    // SAFETY: mallinfo2 has no preconditions; it locks what it reads.
    let heap = unsafe { libc::mallinfo2() };
    Some(SystemHeap {
        allocated: heap.uordblks.wrapping_add(heap.hblkhd) as u64,
        active: heap.arena.wrapping_add(heap.hblkhd) as u64,
    })
}

/// Asks glibc; other C libraries have nothing to ask.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn read() -> Option<SystemHeap> {
    None
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    #[test]
    fn glibc_answers() {
        let heap = super::read().unwrap();
        assert!(heap.allocated <= heap.active);
    }
}
