//! A table of bytes that all read zero at first, and that becomes writable piece by piece.
//!
//! The tables that map addresses are long, and little of them is used. If a process locks its
//! memory (mlockall(2) with `MCL_FUTURE`), the system gives it memory at once for all that it maps
//! writable, but none for a page that may only be read. So a table is mapped readable, and a piece
//! of it is made writable when something is first noted there.

use crate::back::system::provider::system::system;
use crate::ground::units::PAGE;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a piece: a multiple of the largest page that a system has.
pub(in crate::back) const PIECE: usize = 64 << 10;

/// Which pieces of a table are writable, a bit for each.
pub(in crate::back) struct Writable<const WORDS: usize>([AtomicU64; WORDS]);

impl<const WORDS: usize> Writable<WORDS> {
    /// Notes that no piece is writable.
    pub(in crate::back) const fn none() -> Writable<WORDS> {
        Writable([const { AtomicU64::new(0) }; WORDS])
    }

    /// Notes that all pieces are writable.
    pub(in crate::back) fn set_all(&self) {
        // Release: pairs with the Acquire in `is_set`.
        self.0.iter().for_each(|word| word.store(!0, Ordering::Release));
    }

    /// Whether a piece is writable.
    pub(in crate::back) fn is_set(&self, piece: usize) -> bool {
        // Acquire: pairs with the Release in `set` and in `set_all`: the piece was writable before.
        let word = self.0.get(piece / 64).map(|word| word.load(Ordering::Acquire));
        word.is_some_and(|word| word >> (piece % 64) & 1 == 1)
    }

    fn set(&self, piece: usize) {
        if let Some(word) = self.0.get(piece / 64) {
            // Release: pairs with the Acquire in `is_set`.
            word.fetch_or(1 << (piece % 64), Ordering::Release);
        }
    }

    /// Makes `bytes` bytes from `from` on writable in the table of `size` bytes at `base`. Returns
    /// `false` if the system refuses. Part of the range may be writable then.
    ///
    /// # Safety
    /// The table was reserved by [`reserve`] with that size, `self` has its notes, and the range
    /// lies in the table.
    #[inline]
    pub(in crate::back) unsafe fn open(
        &self,
        base: NonNull<u8>,
        size: usize,
        from: usize,
        bytes: usize,
    ) -> bool {
        let (first, last) = (from / PIECE, (from + bytes - 1) / PIECE);
        (first..=last).all(|piece| {
            // SAFETY: the caller's promise.
            self.is_set(piece) || unsafe { self.open_piece(base, size, piece) }
        })
    }

    #[cold]
    unsafe fn open_piece(&self, base: NonNull<u8>, size: usize, piece: usize) -> bool {
        let from = piece * PIECE;
        let length = PIECE.min(size.saturating_sub(from));
        // SAFETY: inside the table (the caller's promise).
        let begin = unsafe { base.add(from) };
        // SAFETY: a part of the table, which is mapped for ever.
        if length > 0 && unsafe { system().make_writable(begin, length) } {
            self.set(piece);
            return true;
        }
        // A process at the limit of its mappings may still make one mapping of the whole table.
        // SAFETY: the table, which is mapped for ever.
        let is_open = unsafe { system().make_writable(base, size) };
        if is_open {
            self.set_all();
        }
        is_open
    }
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
        if unsafe { writable.open(base, size, from, bytes) } {
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
        assert!(unsafe { writable.open(base, SIZE, 2 * PIECE - 1, 2) });
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
