//! Pages, lines, and rounding. Sizes are bytes unless a name says otherwise.

/// log2 of [`PAGE`].
pub(crate) const LG_PAGE: u32 = 12;

/// The allocator's page: always 4 KiB, whatever the system's page is.
///
/// The system's page (4, 16 or 64 KiB) only matters where memory is returned to the system.
pub const PAGE: usize = 1 << LG_PAGE;

/// Bytes of a slab of blocks of up to 1 KiB.
pub(crate) const SLAB_BYTES: usize = 64 << 10;

/// The largest size of any request: `PTRDIFF_MAX`, rounded down to a page.
pub const MAX_SIZE: usize = (isize::MAX as usize) & !(PAGE - 1);

/// Rounds `n` up to a multiple of `to`, a power of two. The caller makes sure that it does not
/// overflow.
#[inline(always)]
pub(crate) const fn round_up(n: usize, to: usize) -> usize {
    (n.wrapping_add(to - 1)) & !(to - 1)
}

/// Rounds `n` up to a multiple of `to`, a power of two. Returns `None` if that overflows.
#[inline(always)]
pub(crate) const fn checked_round_up(n: usize, to: usize) -> Option<usize> {
    match n.checked_add(to - 1) {
        Some(sum) => Some(sum & !(to - 1)),
        None => None,
    }
}

/// Rounds `n` down to a multiple of `to`, a power of two.
#[inline(always)]
pub(crate) const fn round_down(n: usize, to: usize) -> usize {
    n & !(to - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding() {
        assert_eq!(round_up(0, PAGE), 0);
        assert_eq!(round_up(1, PAGE), PAGE);
        assert_eq!(round_up(PAGE, PAGE), PAGE);
        assert_eq!(round_down(PAGE + 1, PAGE), PAGE);
        assert_eq!(checked_round_up(usize::MAX, PAGE), None);
        assert_eq!(checked_round_up(5, 4), Some(8));
    }
}
