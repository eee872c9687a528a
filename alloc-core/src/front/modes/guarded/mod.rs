//! Guarded samples (`opt.guarded_sample`): now and then a small block gets its own page between
//! pages that no thread may touch.
//!
//! ```text
//!   guard │ slot 0 │ guard │ slot 1 │ guard │ …        one reservation, made at start
//!            block at the end of its page, or at the beginning
//! ```
//! A freed sample stays inaccessible until its slot is used again; slots are used in turn. A touch
//! of a guard or of a freed slot is a fault, and [`fault`] reports what it was. The free finds a
//! write between block and guard ([`rest`]). `front/supply/countdown.rs` decides which requests get
//! a sample, and `front/supply/layouts.rs` handles frees that tell the size. The idea is from
//! GWP-ASan.

pub(crate) mod gap;
mod rest;
pub(crate) mod fault;

use crate::ground::counters::SharedCount;
use crate::ground::fatal;
use crate::ground::guarded_fatal::{self, Sample};
use crate::ground::os;
use crate::ground::size_class::SizeClass;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::trace::{self, TRACE};
use crate::ground::untouchable;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// The number of samples that are live, or wait freed, at a time.
pub(crate) const SLOTS: usize = 128;

const UNUSED: usize = 0;
const LIVE: usize = 1;
const FREED: usize = 2;

/// One slot. Written under the lock; read without it for the report of a fault.
struct Slot {
    state: AtomicUsize,
    block: AtomicUsize,
    size: AtomicUsize,
    /// The bin that would have served the request.
    bin: AtomicUsize,
    /// The pattern in the rest of the page.
    pattern: AtomicU64,
    allocated_by: AtomicUsize,
    freed_by: AtomicUsize,
    allocated_from: [AtomicUsize; TRACE],
    freed_from: [AtomicUsize; TRACE],
}

static TABLE: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

/// The slot that is tried next.
pub(crate) static NEXT: RankedMutex<usize> = RankedMutex::new(LockRank::Guarded, 0);

/// Samples made, samples freed, and requests that should have got one and did not.
pub(crate) static MADE: SharedCount = SharedCount::new();
pub(crate) static FREED_SO_FAR: SharedCount = SharedCount::new();
pub(crate) static FAILED: SharedCount = SharedCount::new();

/// The first address of the reservation. 0 if there is none.
static BASE: AtomicUsize = AtomicUsize::new(0);
/// Bytes of a slot, and of a guard: a page of the system.
static UNIT: AtomicUsize = AtomicUsize::new(0);

impl Slot {
    const fn new() -> Slot {
        Slot {
            state: AtomicUsize::new(UNUSED),
            block: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            bin: AtomicUsize::new(0),
            pattern: AtomicU64::new(0),
            allocated_by: AtomicUsize::new(0),
            freed_by: AtomicUsize::new(0),
            allocated_from: [const { AtomicUsize::new(0) }; TRACE],
            freed_from: [const { AtomicUsize::new(0) }; TRACE],
        }
    }

    fn is(&self, state: usize) -> bool {
        self.state.load(Relaxed) == state
    }

    /// Returns what is known of the sample, for a report.
    fn sample(&self) -> Sample {
        let read = |trace: &[AtomicUsize; TRACE]| trace.each_ref().map(|at| at.load(Relaxed));
        Sample {
            block: self.block.load(Relaxed),
            size: self.size.load(Relaxed),
            allocated_by: self.allocated_by.load(Relaxed),
            allocated_from: read(&self.allocated_from),
            freed_by: self.is(FREED).then(|| self.freed_by.load(Relaxed)),
            freed_from: read(&self.freed_from),
        }
    }
}

/// Reserves the slots and installs the fault handler. Called once, at start. Without addresses for
/// them there are no samples.
pub(crate) fn prepare() {
    let unit = os::system_page();
    let Some(base) = untouchable::reserve((2 * SLOTS + 1) * unit) else { return };
    gap::prepare();
    UNIT.store(unit, Relaxed);
    BASE.store(base, Relaxed);
    fault::watch();
}

/// Returns whether an address lies among the slots and guards.
#[inline]
pub(crate) fn holds(address: usize) -> bool {
    let base = BASE.load(Relaxed);
    base != 0 && address.wrapping_sub(base) < (2 * SLOTS + 1) * UNIT.load(Relaxed)
}

/// Returns whether samples are taken.
#[inline]
pub(crate) fn is_on() -> bool {
    BASE.load(Relaxed) != 0
}

/// Returns whether a request of `size` bytes may get a sample, which holds no more than these.
pub(crate) fn may_be_sample(size: usize) -> bool {
    is_on() && size <= UNIT.load(Relaxed)
}

/// Returns the first address of the slots and guards, and their bytes. `None` if there are none.
pub(crate) fn range() -> Option<(usize, usize)> {
    let base = BASE.load(Relaxed);
    (base != 0).then(|| (base, (2 * SLOTS + 1) * UNIT.load(Relaxed)))
}

/// Returns the block and the size of each live sample. Samples that threads allocate or free
/// meanwhile may be missing.
pub(crate) fn live() -> impl Iterator<Item = (usize, usize)> {
    (0..SLOTS).filter_map(live_in)
}

/// Returns the block and the size of the live sample in a slot.
pub(crate) fn live_in(index: usize) -> Option<(usize, usize)> {
    let slot = TABLE.get(index)?;
    let _next = NEXT.lock();
    slot.is(LIVE).then(|| (slot.block.load(Relaxed), slot.size.load(Relaxed)))
}

fn page_of(index: usize) -> usize {
    BASE.load(Relaxed) + (2 * index + 1) * UNIT.load(Relaxed)
}

/// Makes a sample for a request that the class would serve. Returns `None` if it is too large for a
/// page, all slots are in use, or the system has no memory.
pub(crate) fn allocate(class: SizeClass, size: usize, align: usize) -> Option<*mut u8> {
    let block = make(class, size, align);
    if block.is_some() {
        MADE.add(1)
    } else {
        FAILED.add(1)
    }
    block
}

fn make(class: SizeClass, size: usize, align: usize) -> Option<*mut u8> {
    let unit = UNIT.load(Relaxed);
    let align = align.max(if size >= 16 { 16 } else { 8 });
    let room = size.max(1).checked_next_multiple_of(align)?;
    if BASE.load(Relaxed) == 0 || room > unit || align > unit {
        return None;
    }
    let mut next = NEXT.lock();
    let index = (0..SLOTS).map(|n| (*next + n) % SLOTS).find(|n| !slot(*n).is(LIVE))?;
    let page = page_of(index);
    if !untouchable::open_page(page, unit) {
        return None;
    }
    *next = index + 1;
    let mut draw = gap::draws();
    let block = if draw() & 1 == 0 { page } else { page + unit - room };
    let pattern = rest::pattern(draw());
    for range in [page..block, block + size..page + unit] {
        // SAFETY: parts of the page that was just opened, which no other thread knows yet.
        unsafe { rest::fill(range, pattern) };
    }
    let slot = slot(index);
    slot.block.store(block, Relaxed);
    slot.size.store(size, Relaxed);
    slot.bin.store(class.bin(), Relaxed);
    slot.pattern.store(pattern, Relaxed);
    slot.allocated_by.store(os::thread_id(), Relaxed);
    note(&slot.allocated_from);
    slot.state.store(LIVE, Relaxed);
    Some(core::ptr::with_exposed_provenance_mut(block))
}

fn slot(index: usize) -> &'static Slot {
    // SAFETY: the callers' indices are below SLOTS.
    unsafe { crate::ground::checked::at(&TABLE, index) }
}

fn note(trace: &[AtomicUsize; TRACE]) {
    for (place, address) in trace.iter().zip(trace::here()) {
        place.store(address, Relaxed);
    }
}

/// Returns how many pages of the reservation lie before the page of an address.
fn pages_before(address: usize) -> usize {
    address.wrapping_sub(BASE.load(Relaxed)) / UNIT.load(Relaxed).max(1)
}

/// Returns the slot whose page an address lies in. Ends the process if it is in a guard or in a
/// slot that was never used.
fn slot_of(address: usize) -> &'static Slot {
    let pages = pages_before(address);
    if pages.is_multiple_of(2) || slot(pages / 2).is(UNUSED) {
        fatal::foreign_free(address);
    }
    slot(pages / 2)
}

/// Frees a sample, or ends the process. The address is one that [`holds`].
pub(crate) fn free(address: usize) {
    let _next = NEXT.lock();
    let slot = slot_of(address);
    if slot.is(FREED) {
        guarded_fatal::double_free(&slot.sample());
    }
    if slot.block.load(Relaxed) != address {
        guarded_fatal::invalid_free(address, &slot.sample());
    }
    judge_rest(slot);
    slot.freed_by.store(os::thread_id(), Relaxed);
    note(&slot.freed_from);
    slot.state.store(FREED, Relaxed);
    FREED_SO_FAR.add(1);
    let unit = UNIT.load(Relaxed);
    untouchable::close_page(address & !(unit - 1), unit);
}

/// Ends the process if something was written between a live sample and its guards.
fn judge_rest(slot: &Slot) {
    let (block, unit) = (slot.block.load(Relaxed), UNIT.load(Relaxed));
    let (page, end) = (block & !(unit - 1), block + slot.size.load(Relaxed));
    let pattern = slot.pattern.load(Relaxed);
    // SAFETY: the page of a live sample is open, and this part of it belongs to the allocator.
    if let Some(address) = unsafe { rest::damaged(end..page + unit, pattern) } {
        guarded_fatal::overflow_found(address, &slot.sample());
    }
    // SAFETY: as above.
    if let Some(address) = unsafe { rest::damaged(page..block, pattern) } {
        guarded_fatal::underflow_found(address, &slot.sample());
    }
}

/// Returns the slot of a live sample that begins at an address.
fn live_at(address: usize) -> Option<&'static Slot> {
    if !holds(address) {
        return None;
    }
    let slot = TABLE.get(pages_before(address) / 2)?;
    (slot.is(LIVE) && slot.block.load(Relaxed) == address).then_some(slot)
}

/// Returns the bytes that a sample may hold, which is the requested size. `None` if no sample
/// begins there.
pub(crate) fn usable_size(address: usize) -> Option<usize> {
    live_at(address).map(|slot| slot.size.load(Relaxed))
}

/// Returns the bin that would have served a sample's request. `None` if no sample begins there.
pub(crate) fn bin_of(address: usize) -> Option<usize> {
    live_at(address).map(|slot| slot.bin.load(Relaxed))
}

/// If a sample that was freed lies at the address, ends the process because it was queried.
#[cold]
pub(crate) fn freed_query(address: usize) {
    let pages = pages_before(address);
    if holds(address)
        && !pages.is_multiple_of(2)
        && let Some(slot) = TABLE.get(pages / 2).filter(|slot| slot.is(FREED))
    {
        guarded_fatal::freed_query(address, &slot.sample());
    }
}

/// If a sample begins at the address, ends the process because it was freed by a wrong size.
#[cold]
pub(crate) fn wrong_size(address: usize, given: usize) {
    if let Some(slot) = live_at(address) {
        guarded_fatal::wrong_size(given, &slot.sample());
    }
}
