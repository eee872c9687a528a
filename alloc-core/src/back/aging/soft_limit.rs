//! The soft bound: once so much memory is held, unused pages are purged soon.
//!
//! If the program sets none, it is a part of the container's memory. That is read when the process
//! holds enough to be worth it, and again as it grows, because a container can be resized.

use super::held;
use crate::ground::memory_quota;
use crate::ground::units::PAGE;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The bound, as [`Bound::word`].
static BOUND: AtomicUsize = AtomicUsize::new(Bound::NotRead.word());
/// Whether [`reached`] is to be called: the bound of the container is to be read, or a purge may be
/// due.
static DUE: AtomicBool = AtomicBool::new(false);
/// Bytes held from which on the bound of the container is read again.
static READ_AT: AtomicUsize = AtomicUsize::new(0);
/// Bytes held from which on the next purge is due.
static PURGE_AT: AtomicUsize = AtomicUsize::new(0);
/// How often the bound was reached.
static REACHED: AtomicU64 = AtomicU64::new(0);

/// Pages held from which on the bound of the container is read.
const WORTH_A_LOOK: usize = (16 << 20) / PAGE;
/// The bound in a container, in hundredths of the container's memory.
const PART: u64 = 95;
/// The bound of the container is read again after growth by this part of it.
const READ_AGAIN: usize = 16;
/// Unused pages are purged once more after growth by this part of the bound, or of what the last
/// purge has left if that is more. They are also purged at the bound, if what is held was meanwhile
/// by this part of the bound less than the last purge had left.
const AGAIN: usize = 64;

/// Whose bound it is, and how many bytes. 0 bytes are no bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bound {
    /// The program has set none, and that of the container was not read yet.
    NotRead,
    /// That of the container, which may change while the process runs.
    OfContainer(usize),
    /// The program has set it.
    Set(usize),
}

impl Bound {
    /// The bit that tells a bound of the container.
    const OF_CONTAINER: usize = 1 << (usize::BITS - 1);
    const NOT_READ: usize = usize::MAX;
    /// The most bytes that a bound can be, about half of all addresses.
    const MOST: usize = Bound::OF_CONTAINER - 2;

    /// Returns the word that stands for it.
    const fn word(self) -> usize {
        match self {
            Bound::NotRead => Bound::NOT_READ,
            Bound::OfContainer(bytes) => bytes | Bound::OF_CONTAINER,
            Bound::Set(bytes) => bytes,
        }
    }

    const fn of_word(word: usize) -> Bound {
        match word {
            Bound::NOT_READ => Bound::NotRead,
            word if word & Bound::OF_CONTAINER != 0 => {
                Bound::OfContainer(word & !Bound::OF_CONTAINER)
            }
            word => Bound::Set(word),
        }
    }

    /// Returns the bytes as far as they are known. That of the container is none until it was read.
    const fn bytes(self) -> usize {
        match self {
            Bound::NotRead => 0,
            Bound::OfContainer(bytes) | Bound::Set(bytes) => bytes,
        }
    }
}

/// Returns the bound that is known.
fn known() -> Bound {
    Bound::of_word(BOUND.load(Relaxed))
}

/// Returns the bound in bytes, or 0. Reads that of the container if none was set. Called under no
/// lock.
pub(crate) fn bytes() -> usize {
    match known() {
        Bound::Set(bytes) => bytes,
        known => read(known),
    }
}

/// Sets the bound. 0 is no bound.
pub(crate) fn set(bytes: usize) {
    BOUND.store(Bound::Set(bytes.min(Bound::MOST)).word(), Relaxed);
    PURGE_AT.store(0, Relaxed);
    DUE.store(bytes != 0, Relaxed);
}

/// Reads the bound of the container, instead of what was `known` of it. Returns the bound.
#[cold]
#[inline(never)]
fn read(known: Bound) -> usize {
    let bytes = match memory_quota::bytes() {
        Some(quota) => {
            usize::try_from(u128::from(quota) * u128::from(PART) / 100).unwrap_or(Bound::MOST)
        }
        None => known.bytes(),
    };
    let bytes = bytes.min(Bound::MOST);
    READ_AT.store(held::bytes_with_memory().saturating_add(bytes / READ_AGAIN), Relaxed);
    replace(&BOUND, &PURGE_AT, known, bytes)
}

/// Sets the bound of the container to `bytes`, instead of what was `known` of it. Another bound
/// puts no purge off. Returns the bound.
fn replace(bound: &AtomicUsize, purge_at: &AtomicUsize, known: Bound, bytes: usize) -> usize {
    let new = Bound::OfContainer(bytes).word();
    // Fails if the program has set the bound meanwhile.
    match bound.compare_exchange(known.word(), new, Relaxed, Relaxed) {
        Ok(_) => {
            if bytes != known.bytes() {
                purge_at.store(0, Relaxed);
            }
            bytes
        }
        Err(other) => Bound::of_word(other).bytes(),
    }
}

/// Whether [`reached`] is to be called.
#[inline]
pub(crate) fn is_due() -> bool {
    DUE.load(Relaxed)
}

/// Whether unused pages are to be purged because the bound is reached. Called under no lock.
pub(crate) fn reached() -> bool {
    DUE.store(false, Relaxed);
    let soft = bytes();
    let is_reached =
        soft != 0 && level(held::bytes_with_memory(), soft, PURGE_AT.load(Relaxed)) == Level::Due;
    if is_reached {
        REACHED.fetch_add(1, Relaxed);
    }
    is_reached
}

/// How often the bound was reached so far.
pub(crate) fn reaches() -> u64 {
    REACHED.load(Relaxed)
}

/// Notes that unused pages were purged, and when the next purge is due.
pub(crate) fn note_purge() {
    PURGE_AT.store(put_off(held::bytes_with_memory(), known().bytes()), Relaxed);
}

/// Notes that so many holes in slabs have memory again, or their slab is gone.
pub(crate) fn note_filled_holes(pages: u32) {
    note_held(held::note_filled_holes(pages));
}

/// Notes that all arenas hold `pages` pages now, holes among them, and with that whether anything
/// is due. In line, because small programs run it, and nothing else here.
#[inline(always)]
pub(super) fn note_held(pages: usize) {
    let pages = held::without_holes(pages);
    match known() {
        Bound::NotRead if pages < WORTH_A_LOOK => {}
        Bound::NotRead => DUE.store(true, Relaxed),
        Bound::OfContainer(0) | Bound::Set(0) => {}
        Bound::OfContainer(soft) => {
            let held = held::bytes_beside_records(pages);
            note_growth(held, soft);
            note_level(held, soft);
        }
        Bound::Set(soft) => note_level(held::bytes_beside_records(pages), soft),
    }
}

/// Returns up to how many bytes held a purge that has left `left` puts the next one off, beside the
/// soft bound `soft`. In a heap far beyond the bound a purge costs as much as the heap is large, so
/// the step is a part of the heap.
fn put_off(left: usize, soft: usize) -> usize {
    left.saturating_add(soft.max(left) / AGAIN)
}

/// How much memory is held beside a soft bound.
#[derive(PartialEq, Eq, Debug)]
enum Level {
    /// So much that a purge is due.
    Due,
    /// Clearly less than the last purge has left, so the next one is due at the bound.
    Fallen,
    /// The next purge is due where the last one has put it off to.
    PutOff,
}

/// Returns the level of `held` bytes beside the soft bound `soft`. The last purge has put the next
/// one off until `put_off` bytes are held.
///
/// A program whose blocks in use nearly reach the bound goes beyond it again and again. That is no
/// reason for a purge each time, so the last one counts until clearly less is held than it has
/// left.
fn level(held: usize, soft: usize, put_off: usize) -> Level {
    let part = soft / AGAIN;
    // As in `put_off`.
    let left = put_off.saturating_sub(part.max(put_off / (AGAIN + 1)));
    if held >= soft.max(put_off) {
        Level::Due
    } else if held < soft && held + part < left {
        Level::Fallen
    } else {
        Level::PutOff
    }
}

/// Notes whether the bound `soft` of the container is to be read again, with `held` bytes beside
/// it. After a fall it is read again after growth from there.
fn note_growth(held: usize, soft: usize) {
    let (read_at, part) = (READ_AT.load(Relaxed), soft / READ_AGAIN);
    if held >= read_at {
        DUE.store(true, Relaxed);
    } else if held + 2 * part < read_at {
        READ_AT.store(held + part, Relaxed);
    }
}

/// Notes whether a purge is due, with `held` bytes beside the soft bound `soft`.
fn note_level(held: usize, soft: usize) {
    let put_off = PURGE_AT.load(Relaxed);
    match level(held, soft, put_off) {
        Level::Due => DUE.store(true, Relaxed),
        Level::Fallen if put_off != 0 => PURGE_AT.store(0, Relaxed),
        Level::Fallen | Level::PutOff => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_purge_during_a_peak_puts_none_off_after_it() {
        assert_eq!(level(1000, 1000, 0), Level::Due);
        // A purge at 2000 has put the next one off.
        assert_eq!(level(2010, 1000, 2015), Level::PutOff);
        assert_eq!(level(2015, 1000, 2015), Level::Due);
        assert_eq!(level(1000, 1000, 2015), Level::PutOff);
        assert_eq!(level(999, 1000, 2015), Level::Fallen, "the next one is due at the bound again");
    }

    #[test]
    fn use_that_goes_up_and_down_at_the_bound_is_not_purged_each_time() {
        // A purge has left 999 of 1000.
        assert_eq!(level(999, 1000, 1014), Level::PutOff);
        assert_eq!(level(1000, 1000, 1014), Level::PutOff);
        assert_eq!(level(984, 1000, 1014), Level::PutOff);
        assert_eq!(level(983, 1000, 1014), Level::Fallen);
        assert_eq!(level(1014, 1000, 1014), Level::Due);
    }

    #[test]
    fn growth_far_beyond_the_bound_is_purged_in_steps_that_grow_with_it() {
        const SOFT: usize = 1 << 20;
        let (mut held, mut purge_at, mut purges) = (SOFT, 0, 0);
        while held < 200 * SOFT {
            if level(held, SOFT, purge_at) == Level::Due {
                purges += 1;
                purge_at = put_off(held, SOFT);
            }
            assert_eq!(level(held, SOFT, purge_at), Level::PutOff);
            held += 4096;
        }
        assert!((300..400).contains(&purges), "{purges}");
        // What the last purge has left is known.
        for (left, soft) in [(100, 6400), (6400, 6400), (64_000, 6400), (65_000, 6400)] {
            let put_off = put_off(left, soft);
            assert_eq!(level(left, soft, put_off), Level::PutOff, "{left}");
            let fallen = left.saturating_sub(101).min(soft - 1);
            let expected = if left > 101 { Level::Fallen } else { Level::PutOff };
            assert_eq!(level(fallen, soft, put_off), expected, "{left}");
        }
    }

    #[test]
    fn another_bound_of_the_container_puts_no_purge_off() {
        let (soft, purge_at) = (AtomicUsize::new(Bound::NotRead.word()), AtomicUsize::new(0));
        let replace = |known, bytes| replace(&soft, &purge_at, known, bytes);
        assert_eq!(replace(Bound::NotRead, 1000), 1000);
        purge_at.store(1015, Relaxed);
        assert_eq!(replace(Bound::OfContainer(1000), 1000), 1000);
        assert_eq!(purge_at.load(Relaxed), 1015, "it is the same");
        assert_eq!(replace(Bound::OfContainer(1000), 500), 500);
        assert_eq!(purge_at.swap(507, Relaxed), 0);
        // The program has set one.
        soft.store(Bound::Set(700).word(), Relaxed);
        assert_eq!(replace(Bound::OfContainer(500), 900), 700);
        assert_eq!(purge_at.load(Relaxed), 507);
    }

    #[test]
    fn a_word_tells_whose_bound_it_is() {
        let bounds = [
            Bound::NotRead,
            Bound::OfContainer(0),
            Bound::OfContainer(Bound::MOST),
            Bound::Set(0),
            Bound::Set(Bound::MOST),
        ];
        for bound in bounds {
            assert_eq!(Bound::of_word(bound.word()), bound);
        }
    }
}
