//! A table of bytes that all read zero at first, and that becomes writable piece by piece.
//!
//! The tables that map addresses are long, and little of them is used. If a process locks its
//! memory (mlockall(2) with `MCL_FUTURE`), the system gives it memory at once for all that it maps
//! writable, but none for a page that may only be read. So a table is mapped readable, and a piece
//! of it is made writable when something is first noted there.

use super::writable::{Part, Writable};
use crate::back::system::provider::system::system;
use crate::ground::units::PAGE;
use core::ptr::NonNull;

/// Bytes of a piece: a multiple of the largest page that a system has.
pub(in crate::back) const PIECE: usize = 64 << 10;

/// Makes `bytes` bytes from `from` on writable in the table of `size` bytes at `base`. Returns
/// `false` if the system refuses. Part of the range may be writable then.
///
/// # Safety
/// The table was reserved by [`reserve`] with that size, `writable` has its notes, and the range
/// lies in the table.
#[inline]
pub(in crate::back) unsafe fn open<const WORDS: usize>(
    writable: &Writable<WORDS>,
    base: NonNull<u8>,
    size: usize,
    from: usize,
    bytes: usize,
) -> bool {
    let (first, last) = (from / PIECE, (from + bytes - 1) / PIECE);
    // SAFETY: the caller's promise.
    writable.open_each(first..=last, |part| unsafe { make_writable(base, size, part) })
}

/// Makes a part of a table writable. Returns `false` if the system refuses.
///
/// # Safety
/// The table of `size` bytes at `base` was reserved by [`reserve`].
unsafe fn make_writable(base: NonNull<u8>, size: usize, part: Part) -> bool {
    let (from, length) = match part {
        Part::Piece(piece) => (piece * PIECE, PIECE.min(size.saturating_sub(piece * PIECE))),
        Part::All => (0, size),
    };
    if length == 0 {
        return false;
    }
    // SAFETY: inside the table (the caller's promise).
    let begin = unsafe { base.add(from) };
    // SAFETY: a part of the table, which is mapped for ever.
    unsafe { system().make_writable(begin, length) }
}

/// Reserves a table of `size` bytes, a multiple of the page, that all read zero. The `bytes` bytes
/// from `from` on are writable. Returns `None` if there is no room.
pub(in crate::back) fn reserve<const WORDS: usize>(
    size: usize,
    from: usize,
    bytes: usize,
    writable: &Writable<WORDS>,
) -> Option<NonNull<u8>> {
    if let Some(base) = system().reserve_readable(size) {
        // SAFETY: just reserved with this size; the caller's range lies in it.
        if unsafe { open(writable, base, size, from, bytes) } {
            return Some(base);
        }
        // SAFETY: just reserved, and no other code knows it.
        unsafe { system().release(base, size) };
    }
    let got = system().reserve(size, PAGE)?;
    writable.set_all();
    Some(got.base)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::units::LG_PAGE;

    #[test]
    fn a_table_reads_zero_and_is_written_where_it_is_open() {
        const SIZE: usize = 5 * PIECE + PAGE;
        let writable = Writable::<1>::none();
        let base = reserve(SIZE, 5 * PIECE, PAGE, &writable).unwrap();
        let byte = |at: usize| base.as_ptr().wrapping_add(at);
        for page in 0..SIZE >> LG_PAGE {
            // SAFETY: inside the table.
            assert_eq!(unsafe { byte(page << LG_PAGE).read() }, 0);
        }
        let is_open = [0, 1, 2, 3, 4, 5].map(|piece| writable.is_set(piece));
        assert_eq!(is_open, [false, false, false, false, false, true]);
        // SAFETY: `writable` has the notes of this table.
        assert!(unsafe { open(&writable, base, SIZE, 2 * PIECE - 1, 2) });
        for at in [PIECE, 2 * PIECE, 3 * PIECE - 1, 5 * PIECE, SIZE - 1] {
            // SAFETY: inside the table, and open.
            unsafe { byte(at).write(1) };
        }
        let is_open = [0, 1, 2, 3, 4, 5].map(|piece| writable.is_set(piece));
        assert_eq!(is_open, [false, true, true, false, false, true]);
    }

    #[test]
    fn a_table_that_is_writable_as_a_whole_has_each_piece_noted() {
        let writable = Writable::<2>::none();
        assert!((0..129).all(|piece| !writable.is_set(piece)));
        writable.set_all();
        assert!((0..128).all(|piece| writable.is_set(piece)));
        assert!(!writable.is_set(128));
    }
}
