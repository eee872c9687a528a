//! Bounds on the pages that arenas have from the system. Looked at where new pages are taken only.
//!
//! What counts are pages with memory, in use or not, and the allocator's own records. Reaching the
//! soft bound, unused pages are purged soon. Beyond the hard one, or an arena's own, an allocation
//! fails until something was given back (see `front/retry.rs`).

use super::page_allocator::PageAllocator;
use super::{metadata, page_map};
use crate::ground::memory_quota;
use crate::ground::units::{LG_PAGE, PAGE};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Bytes; 0: no bound.
static HARD: AtomicUsize = AtomicUsize::new(0);
static SOFT: AtomicUsize = AtomicUsize::new(UNKNOWN);
/// The soft bound was not set, and the container's was not asked for yet.
const UNKNOWN: usize = usize::MAX;
/// Pages held from which on the container's bound is worth a look.
const WORTH_A_LOOK: usize = (16 << 20) / PAGE;
/// The part of a container's memory that is the soft bound, in hundredths.
const PART: u64 = 95;
/// Growth beyond the soft bound, as a part of it, until unused pages are purged once more.
const AGAIN: usize = 64;

/// Pages with memory in all arenas, as far as they reported.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Bytes held from which on the next purge is due.
static PURGE_AT: AtomicUsize = AtomicUsize::new(0);
static DUE: AtomicBool = AtomicBool::new(false);
/// How often the soft bound was reached.
static REACHED: AtomicU64 = AtomicU64::new(0);
/// How often a bound refused pages.
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// The last refusal: bytes wanted, and the arena whose own bound it was, or [`ANY`].
static WANTED: AtomicUsize = AtomicUsize::new(0);
static WHERE: AtomicUsize = AtomicUsize::new(ANY);
/// The bound was that of all arenas.
pub(crate) const ANY: usize = usize::MAX;

/// Bytes that are held: pages with memory, and records.
pub(crate) fn held() -> usize {
    let records = metadata::USED.get() + page_map::USED.get();
    (HELD.load(Relaxed) << LG_PAGE) + records as usize
}

/// The hard bound in bytes; 0: none.
pub(crate) fn hard() -> usize {
    HARD.load(Relaxed)
}

/// Sets it.
pub(crate) fn set_hard(bytes: usize) {
    HARD.store(bytes, Relaxed);
}

/// The soft bound in bytes; 0: none. Asks for the container's if nobody set one. Under no lock.
pub(crate) fn soft() -> usize {
    match SOFT.load(Relaxed) {
        UNKNOWN => of_container(),
        bytes => bytes,
    }
}

#[cold]
#[inline(never)]
fn of_container() -> usize {
    let quota = memory_quota::bytes().unwrap_or(0);
    let bytes = (u128::from(quota) * u128::from(PART) / 100) as usize;
    SOFT.store(bytes, Relaxed);
    bytes
}

/// Sets it.
pub(crate) fn set_soft(bytes: usize) {
    SOFT.store(bytes.min(UNKNOWN - 1), Relaxed);
    PURGE_AT.store(0, Relaxed);
    DUE.store(bytes != 0, Relaxed);
}

/// Whether [`reached`] should be asked.
#[inline]
pub(crate) fn is_due() -> bool {
    DUE.load(Relaxed)
}

/// Whether unused pages are to be purged because the soft bound is reached. Under no lock.
pub(crate) fn reached() -> bool {
    DUE.store(false, Relaxed);
    let soft = soft();
    let is_reached = soft != 0 && held() >= soft.max(PURGE_AT.load(Relaxed));
    if is_reached {
        REACHED.fetch_add(1, Relaxed);
    }
    is_reached
}

/// How often the soft bound was reached so far.
pub(crate) fn reaches() -> u64 {
    REACHED.load(Relaxed)
}

/// Notes that unused pages were purged.
pub(crate) fn note_purge() {
    PURGE_AT.store(held().saturating_add(soft() / AGAIN), Relaxed);
}

/// How often a bound refused pages so far.
pub(crate) fn refusals() -> u64 {
    REFUSED.load(Relaxed)
}

/// The last refusal: bytes wanted, and the arena, or [`ANY`].
pub(crate) fn last_refusal() -> (usize, usize) {
    (WANTED.load(Relaxed), WHERE.load(Relaxed))
}

fn refuse(pages: usize, place: usize) -> bool {
    WANTED.store(pages << LG_PAGE, Relaxed);
    WHERE.store(place, Relaxed);
    REFUSED.fetch_add(1, Relaxed);
    false
}

impl PageAllocator {
    /// Pages with memory.
    pub(crate) fn held(&self) -> usize {
        self.counts.mapped.saturating_sub(self.retained.pages())
    }

    /// Whether so many new pages may be taken.
    pub(super) fn admits(&mut self, pages: usize) -> bool {
        self.report();
        self.bound_of(pages).is_none_or(|place| refuse(pages, place))
    }

    /// Whether there is room for so many new pages; nobody is refused anything.
    pub(super) fn has_room_for(&self, pages: usize) -> bool {
        self.bound_of(pages).is_none()
    }

    /// Whose bound so many new pages would go beyond, if any.
    fn bound_of(&self, pages: usize) -> Option<usize> {
        let hard = HARD.load(Relaxed);
        let is_bound = hard != 0 && !self.limit_exempt;
        if is_bound && held().saturating_add(pages << LG_PAGE) > hard {
            return Some(ANY);
        }
        let own = self.limit != 0 && (self.held() + pages) << LG_PAGE > self.limit;
        own.then_some(self.arena as usize)
    }

    /// Notes how many pages are held now, and whether the soft bound is reached.
    pub(super) fn report(&mut self) {
        let now = self.held();
        let change = now.wrapping_sub(core::mem::replace(&mut self.reported, now));
        let all = HELD.fetch_add(change, Relaxed).wrapping_add(change);
        match SOFT.load(Relaxed) {
            0 => {}
            UNKNOWN if all < WORTH_A_LOOK => {}
            UNKNOWN => DUE.store(true, Relaxed),
            soft if all << LG_PAGE >= soft.max(PURGE_AT.load(Relaxed)) => DUE.store(true, Relaxed),
            _ => {}
        }
    }
}
