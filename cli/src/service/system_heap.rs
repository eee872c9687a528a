//! The few numbers that the system's allocator reports about itself.

/// Bytes of the system's heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemHeap {
    /// Bytes in use by the program, or kept in glibc's thread caches, which glibc counts as in use.
    pub(crate) allocated: u64,
    /// Bytes taken from the kernel for the heap, and not given back.
    pub(crate) active: u64,
}

/// Asks glibc. Other C libraries cannot be asked.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn read() -> Option<SystemHeap> {
    // SAFETY: mallinfo2 has no preconditions, and locks what it reads.
    let heap = unsafe { libc::mallinfo2() };
    Some(SystemHeap {
        allocated: heap.uordblks.wrapping_add(heap.hblkhd) as u64,
        active: heap.arena.wrapping_add(heap.hblkhd) as u64,
    })
}

/// Returns `None`, because only glibc can be asked.
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
