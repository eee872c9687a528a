//! Bounds on the pages that arenas take from the system, checked only where new pages are taken.
//!
//! The bounds limit the pages with memory, in use or not, and the allocator's own records. When the
//! soft bound is reached, unused pages are purged soon. Beyond the hard bound, or the bound of an
//! arena, an allocation fails until memory was given back (see `front/miss/retry.rs`).

use super::refusals::{self, Refusal};
use crate::back::map::page_map;
use crate::back::metadata;
use crate::ground::intervals;
use crate::ground::memory_quota;
use crate::ground::units::{LG_PAGE, PAGE};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The hard bound in bytes. 0 is no bound.
static HARD: AtomicUsize = AtomicUsize::new(0);
/// The soft bound in bytes, with [`OF_CONTAINER`] unless it was set.
static SOFT: AtomicUsize = AtomicUsize::new(UNKNOWN);
/// The soft bound is that of the container, which may change while the process runs.
const OF_CONTAINER: usize = 1 << (usize::BITS - 1);
/// The soft bound was not set, and the bound of the container was not read yet.
const UNKNOWN: usize = usize::MAX;
/// Pages held from which on the bound of the container is read.
const WORTH_A_LOOK: usize = (16 << 20) / PAGE;
/// The soft bound in a container, in hundredths of the container's memory.
const PART: u64 = 95;
/// Unused pages are purged once more after growth by this part of the soft bound, or of what the
/// last purge has left if that is more. They are also purged at the bound, if what is held was
/// meanwhile by this part of the bound less than the last purge had left.
const AGAIN: usize = 64;

/// The bound of the container is read again after growth by this part of it.
const READ_AGAIN: usize = 16;
/// Bytes held from which on the bound of the container is read again.
static READ_AT: AtomicUsize = AtomicUsize::new(0);

/// Pages with memory in all arenas, as they last reported.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Bytes held from which on the next purge is due.
static PURGE_AT: AtomicUsize = AtomicUsize::new(0);
static DUE: AtomicBool = AtomicBool::new(false);
/// How often the soft bound was reached.
static REACHED: AtomicU64 = AtomicU64::new(0);
/// Stands for the bound of all arenas.
pub(crate) const ANY: usize = usize::MAX;

/// The bytes that count for the bounds: pages with memory, and records.
pub(crate) fn held() -> usize {
    bytes_beside_records(HELD.load(Relaxed))
}

fn bytes_beside_records(pages: usize) -> usize {
    let records = metadata::USED.get() + page_map::USED.get();
    (pages << LG_PAGE) + records as usize
}

/// The hard bound in bytes. 0 is no bound.
pub(crate) fn hard() -> usize {
    HARD.load(Relaxed)
}

/// Sets the hard bound.
pub(crate) fn set_hard(bytes: usize) {
    HARD.store(bytes, Relaxed);
}

/// The soft bound in bytes, or 0. Reads that of the container if none was set. Called under no
/// lock.
pub(crate) fn soft() -> usize {
    let known = SOFT.load(Relaxed);
    if known & OF_CONTAINER == 0 { known } else { of_container(known) }
}

/// Reads the bound of the container, instead of what was `known` of it.
#[cold]
#[inline(never)]
fn of_container(known: usize) -> usize {
    let bytes = match memory_quota::bytes() {
        Some(quota) => (u128::from(quota) * u128::from(PART) / 100) as usize & !OF_CONTAINER,
        None => without_reading(known),
    };
    READ_AT.store(held().saturating_add(bytes / READ_AGAIN), Relaxed);
    replace_known(&SOFT, &PURGE_AT, known, bytes)
}

/// Sets the bound of the container to `bytes`, instead of what was `known` of it. Another bound
/// puts no purge off. Returns the bound.
fn replace_known(soft: &AtomicUsize, purge_at: &AtomicUsize, known: usize, bytes: usize) -> usize {
    // Fails if the program has set the bound meanwhile.
    match soft.compare_exchange(known, bytes | OF_CONTAINER, Relaxed, Relaxed) {
        Ok(_) => {
            if bytes != without_reading(known) {
                purge_at.store(0, Relaxed);
            }
            bytes
        }
        Err(other) => without_reading(other),
    }
}

/// Returns the bytes of a value of [`SOFT`]. No bound is known until that of the container was
/// read.
fn without_reading(soft: usize) -> usize {
    if soft == UNKNOWN { 0 } else { soft & !OF_CONTAINER }
}

/// Sets the soft bound.
pub(crate) fn set_soft(bytes: usize) {
    SOFT.store(bytes.min(!OF_CONTAINER), Relaxed);
    PURGE_AT.store(0, Relaxed);
    DUE.store(bytes != 0, Relaxed);
}

/// Whether [`reached`] should be called.
#[inline]
pub(crate) fn is_due() -> bool {
    DUE.load(Relaxed)
}

/// Whether unused pages are to be purged because the soft bound is reached. Called under no lock.
pub(crate) fn reached() -> bool {
    DUE.store(false, Relaxed);
    let soft = soft();
    let is_reached = soft != 0 && level(held(), soft, PURGE_AT.load(Relaxed)) == Level::Due;
    if is_reached {
        REACHED.fetch_add(1, Relaxed);
    }
    is_reached
}

/// How often the soft bound was reached so far.
pub(crate) fn reaches() -> u64 {
    REACHED.load(Relaxed)
}

/// Notes that unused pages were purged, and when the next purge is due.
pub(crate) fn note_purge() {
    let soft = without_reading(SOFT.load(Relaxed));
    PURGE_AT.store(put_off(held(), soft), Relaxed);
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
fn note_beside(held: usize, soft: usize) {
    let put_off = PURGE_AT.load(Relaxed);
    match level(held, soft, put_off) {
        Level::Due => DUE.store(true, Relaxed),
        Level::Fallen if put_off != 0 => PURGE_AT.store(0, Relaxed),
        Level::Fallen | Level::PutOff => {}
    }
}

fn refuse(pages: usize, place: usize) -> bool {
    refusals::note(Refusal { wanted: pages << LG_PAGE, place });
    false
}

/// The bounds of one arena, and what it last reported.
pub(crate) struct Bounds {
    arena: u32,
    own: usize,
    is_exempt: bool,
    /// The pages that the arena held when it last reported.
    reported: usize,
}

impl Bounds {
    /// Creates the bounds of an arena without its own bound.
    pub(in crate::back) const fn new(arena: u32) -> Bounds {
        Bounds { arena, own: 0, is_exempt: false, reported: 0 }
    }

    /// The bytes that the arena may hold. 0 is no bound.
    pub(crate) fn own(&self) -> usize {
        self.own
    }

    /// Sets the bytes that the arena may hold.
    pub(crate) fn set_own(&mut self, bytes: usize) {
        self.own = bytes;
    }

    /// Whether the arena is exempt from the bound of all arenas.
    pub(crate) fn is_exempt(&self) -> bool {
        self.is_exempt
    }

    /// Sets whether the arena is exempt from the bound of all arenas.
    pub(crate) fn set_exempt(&mut self, is_exempt: bool) {
        self.is_exempt = is_exempt;
    }

    /// Whether the arena, which holds `held` pages, may take `pages` new ones. Counts a refusal.
    pub(in crate::back) fn admits(&mut self, held: usize, pages: usize) -> bool {
        self.report(held);
        self.bound_of(held, pages).is_none_or(|place| refuse(pages, place))
    }

    /// As [`Bounds::admits`], but also counts the pages as held, so that several arenas do not take
    /// the same room at the same time. The caller takes them, and then calls [`Bounds::report`]
    /// whether it got them or not.
    pub(in crate::back) fn take_room(&mut self, held: usize, pages: usize) -> bool {
        if !self.is_bound() {
            return self.admits(held, pages);
        }
        // First, because another arena may do the same at this moment.
        self.report(held + pages);
        let place = self.bound_of(held, 0).or_else(|| self.own_bound_of(held, pages));
        if let Some(place) = place {
            self.report(held);
            return refuse(pages, place);
        }
        true
    }

    /// Whether there is room for `pages` new pages. No refusal is counted.
    pub(in crate::back) fn has_room_for(&self, held: usize, pages: usize) -> bool {
        self.bound_of(held, pages).is_none()
    }

    /// Whether the bound of all arenas applies.
    fn is_bound(&self) -> bool {
        HARD.load(Relaxed) != 0 && !self.is_exempt
    }

    /// The bound that `pages` new pages would exceed, if any: that of an arena, or [`ANY`].
    fn bound_of(&self, own_held: usize, pages: usize) -> Option<usize> {
        if self.is_bound() && held().saturating_add(pages << LG_PAGE) > HARD.load(Relaxed) {
            return Some(ANY);
        }
        self.own_bound_of(own_held, pages)
    }

    fn own_bound_of(&self, own_held: usize, pages: usize) -> Option<usize> {
        let own = self.own != 0 && (own_held + pages) << LG_PAGE > self.own;
        own.then_some(self.arena as usize)
    }

    /// The pages that the arena held when it last reported.
    #[cfg(any(test, feature = "checks"))]
    pub(in crate::back) fn reported(&self) -> usize {
        self.reported
    }

    /// Notes how many pages the arena holds now, and whether the soft bound is reached.
    pub(in crate::back) fn report(&mut self, held: usize) {
        let change = held.wrapping_sub(core::mem::replace(&mut self.reported, held));
        let all = HELD.fetch_add(change, Relaxed).wrapping_add(change);
        intervals::note_held(all);
        match SOFT.load(Relaxed) {
            0 | OF_CONTAINER => {}
            UNKNOWN if all < WORTH_A_LOOK => {}
            UNKNOWN => DUE.store(true, Relaxed),
            soft => {
                let held = bytes_beside_records(all);
                if soft & OF_CONTAINER != 0 {
                    note_growth(held, soft & !OF_CONTAINER);
                }
                note_beside(held, soft & !OF_CONTAINER);
            }
        }
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
        let (soft, purge_at) = (AtomicUsize::new(UNKNOWN), AtomicUsize::new(0));
        let replace = |known, bytes| replace_known(&soft, &purge_at, known, bytes);
        assert_eq!(replace(UNKNOWN, 1000), 1000);
        purge_at.store(1015, Relaxed);
        assert_eq!(replace(1000 | OF_CONTAINER, 1000), 1000);
        assert_eq!(purge_at.load(Relaxed), 1015, "it is the same");
        assert_eq!(replace(1000 | OF_CONTAINER, 500), 500);
        assert_eq!(purge_at.swap(507, Relaxed), 0);
        // The program has set one.
        soft.store(700, Relaxed);
        assert_eq!(replace(500 | OF_CONTAINER, 900), 700);
        assert_eq!(purge_at.load(Relaxed), 507);
    }

    #[test]
    fn an_arena_stays_within_its_own_bound() {
        let mut bounds = Bounds::new(7);
        assert!(bounds.has_room_for(usize::MAX >> 16, 1), "there is none");
        bounds.set_own(12 << LG_PAGE);
        bounds.set_exempt(true);
        assert_eq!((bounds.own(), bounds.is_exempt()), (12 << LG_PAGE, true));
        assert!(bounds.has_room_for(10, 2) && bounds.admits(10, 2));
        assert!(!bounds.has_room_for(10, 3));
        let refused = refusals::count();
        assert!(!bounds.admits(10, 3));
        let refusal = Refusal { wanted: 3 << LG_PAGE, place: 7 };
        assert_eq!(refusals::take_since(refused), Some(refusal));
        // Takes the pages out of the count of all arenas again.
        bounds.report(0);
    }
}
