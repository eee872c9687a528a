//! Indexing that cannot panic.
//!
//! Nothing reachable from malloc may panic. [`at`] and [`at_mut`] are for indices that are in range
//! by construction: debug builds check them, release builds do not branch.

/// `slice[index]` for an index that is in range by construction.
///
/// # Safety
/// `index < slice.len()`.
#[inline(always)]
pub(crate) unsafe fn at<T>(slice: &[T], index: usize) -> &T {
    debug_assert!(index < slice.len());
    // SAFETY: the caller's promise.
    unsafe { slice.get_unchecked(index) }
}

/// `&mut slice[index]` for an index that is in range by construction.
///
/// # Safety
/// `index < slice.len()`.
#[inline(always)]
pub(crate) unsafe fn at_mut<T>(slice: &mut [T], index: usize) -> &mut T {
    debug_assert!(index < slice.len());
    // SAFETY: the caller's promise.
    unsafe { slice.get_unchecked_mut(index) }
}
