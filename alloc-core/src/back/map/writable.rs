//! Notes on which pieces of a table are writable. A thread that finds a piece noted does not ask
//! the system to make it writable.

use crate::ground::sync::seam::{AtomicU64, Ordering};
use core::ops::RangeInclusive;

/// Which pieces of a table are writable, a bit for each.
pub(in crate::back) struct Writable<const WORDS: usize>([AtomicU64; WORDS]);

/// What is made writable at once.
#[derive(Clone, Copy)]
pub(super) enum Part {
    Piece(usize),
    /// The whole table.
    All,
}

impl<const WORDS: usize> Writable<WORDS> {
    /// Notes that no piece is writable.
    #[cfg(not(loom))]
    pub(in crate::back) const fn none() -> Writable<WORDS> {
        Writable([const { AtomicU64::new(0) }; WORDS])
    }

    #[cfg(loom)]
    pub(in crate::back) fn none() -> Writable<WORDS> {
        Writable([0; WORDS].map(AtomicU64::new))
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

    /// Has pieces made writable by `make`, as far as they are not. Returns `false` if it fails.
    /// Some of them may be writable then.
    #[inline]
    pub(super) fn open_each(
        &self,
        mut pieces: RangeInclusive<usize>,
        make: impl Fn(Part) -> bool,
    ) -> bool {
        pieces.all(|piece| self.is_set(piece) || self.open_piece(piece, &make))
    }

    #[cold]
    fn open_piece(&self, piece: usize, make: impl Fn(Part) -> bool) -> bool {
        if make(Part::Piece(piece)) {
            self.set(piece);
            return true;
        }
        // A process at the limit of its mappings may still make one mapping of the whole table.
        let is_open = make(Part::All);
        if is_open {
            self.set_all();
        }
        is_open
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::ground::sync::seam::model;
    use loom::sync::Arc;
    use loom::thread;

    /// The notes on a table of two pieces, and whether the system has made them writable.
    struct World {
        notes: Writable<1>,
        made: [AtomicU64; 2],
        /// The first piece that the system does not make writable alone.
        refused: usize,
    }

    impl World {
        fn make(&self, part: Part) -> bool {
            let pieces = match part {
                Part::Piece(piece) if piece >= self.refused => return false,
                Part::Piece(piece) => &self.made[piece..=piece],
                Part::All => &self.made[..],
            };
            pieces.iter().for_each(|piece| piece.store(1, Ordering::Relaxed));
            true
        }

        /// Opens pieces and writes to them.
        fn write(&self, pieces: RangeInclusive<usize>) {
            assert!(self.notes.open_each(pieces.clone(), |part| self.make(part)));
            for piece in pieces {
                assert_eq!(self.made[piece].load(Ordering::Relaxed), 1, "it can be written");
            }
        }
    }

    #[test]
    fn loom_a_piece_is_writable_for_each_thread_that_finds_it_noted() {
        for refused in 0..3 {
            model(move || {
                let made = [0, 0].map(AtomicU64::new);
                let world = Arc::new(World { notes: Writable::none(), made, refused });
                let other = Arc::clone(&world);
                let other = thread::spawn(move || other.write(0..=1));
                world.write(1..=1);
                other.join().unwrap();
                assert!(world.notes.is_set(0) && world.notes.is_set(1), "no note is lost");
            });
        }
    }
}
