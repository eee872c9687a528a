//! The samples that are in use, by address.

use super::history::Ticket;
use super::names::NameIndex;
use super::sites::SizeCount;
use crate::back::metadata::{self, Pool, Recycled};
use crate::back::system::provider::system::system;
use crate::ground::checked;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::units::PAGE;
use core::cell::Cell;
use core::iter::StepBy;
use core::slice::Iter;
use core::sync::atomic::{AtomicPtr, Ordering};
use crossbeam_utils::CachePadded;

/// Parts that are locked apart.
const PARTS: usize = 64;
/// Places of all parts together, which suffice for samples of large amounts of memory.
const PLACES: usize = 1 << 14;
/// Places if each allocation is a sample.
const MANY_PLACES: usize = 1 << 20;

/// A sample in use.
pub(crate) struct Sample {
    address: Cell<usize>,
    counts: Cell<Option<&'static SizeCount>>,
    arena: Cell<u32>,
    thread: Cell<u64>,
    name: Cell<NameIndex>,
    time: Cell<u64>,
    ticket: Cell<Option<Ticket>>,
    next: Cell<Option<&'static Sample>>,
}

/// What is known of a sample.
#[derive(Clone, Copy)]
pub(crate) struct Known {
    /// Where the block is.
    pub(crate) address: usize,
    /// The stack and the size.
    pub(crate) counts: &'static SizeCount,
    /// The arena of the block.
    pub(crate) arena: u32,
    /// The number of the thread that allocated it.
    pub(crate) thread: u64,
    /// The name of that thread at the time.
    pub(crate) name: NameIndex,
    /// When it was allocated, in nanoseconds of the monotonic clock.
    pub(crate) time: u64,
    /// Its place among the last samples, if they are kept.
    pub(crate) ticket: Option<Ticket>,
}

/// Samples whose addresses have one hash in common.
pub(crate) struct Part {
    free: Pool<Sample>,
    count: usize,
}

// SAFETY: the samples are reached under the part's lock only, or by the one thread that took them
// off the list of those that are untold.
unsafe impl Send for Part {}

type Head = AtomicPtr<Sample>;

/// The first sample of each place. Places of one part have the same lower bits.
static FEW: [Head; PLACES] = [const { AtomicPtr::new(core::ptr::null_mut()) }; PLACES];
/// More places, if there are any.
static MANY: AtomicPtr<Head> = AtomicPtr::new(core::ptr::null_mut());
/// Freed samples of which the program is to be told, the last one first. They are in no part.
static UNTOLD: AtomicPtr<Sample> = AtomicPtr::new(core::ptr::null_mut());
/// The locks of the parts, which fork takes too.
pub(crate) static LOCKS: [CachePadded<RankedMutex<Part>>; PARTS] = {
    const PART: Part = Part { free: Pool::new(), count: 0 };
    [const { CachePadded::new(RankedMutex::new(LockRank::Samples, PART)) }; PARTS]
};

/// The place of an address: its part, and the head of its list.
struct Place {
    lock: &'static RankedMutex<Part>,
    head: &'static AtomicPtr<Sample>,
}

/// Makes room for very many samples. Called at start, before the first one. Without memory the
/// lists are longer.
pub(super) fn expect_many() {
    let bytes = MANY_PLACES * size_of::<Head>();
    if let Some(got) = system().reserve(bytes, PAGE) {
        MANY.store(got.base.as_ptr().cast(), Ordering::Relaxed);
    }
}

/// Returns the first samples of all places.
fn heads() -> &'static [Head] {
    // Relaxed: set before the first sample.
    let many = MANY.load(Ordering::Relaxed);
    if many.is_null() {
        return &FEW;
    }
    // SAFETY: zeroed memory of the system, which is never unmapped, with so many places. All-zero
    // bytes are null pointers.
    unsafe { core::slice::from_raw_parts(many, MANY_PLACES) }
}

fn place(address: usize) -> Place {
    let heads = heads();
    // Blocks that follow each other have places that do, so that few pages are touched.
    let near = address as u64 >> 4;
    let far = (address as u64 >> 26).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let index = (near ^ far) as usize & (heads.len() - 1);
    // SAFETY: the length is a power of two, so the mask keeps the index below it.
    let head = unsafe { heads.get_unchecked(index) };
    // SAFETY: the part is below PARTS.
    Place { lock: &**unsafe { checked::at(&LOCKS, index % PARTS) }, head }
}

/// Returns the lock and the places of each part.
fn parts() -> impl Iterator<Item = (&'static RankedMutex<Part>, OfPart)> {
    let heads = heads();
    let of_part = move |part| heads.get(part..).unwrap_or_default().iter().step_by(PARTS);
    LOCKS.iter().enumerate().map(move |(part, lock)| (&**lock, of_part(part)))
}

/// The places of a part.
type OfPart = StepBy<Iter<'static, Head>>;

/// Lets the processor load what [`add`] needs for a sample at this address, while the caller does
/// other work.
#[inline(always)]
pub(super) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        let place = place(address);
        // SAFETY: a prefetch reads and writes nothing that can be seen.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(core::ptr::from_ref(place.lock).cast()) };
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(place.head.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Adds a sample. Returns `false` if there is no memory.
pub(super) fn add(known: Known) -> bool {
    let place = place(known.address);
    let mut part = place.lock.lock();
    let Some(sample) = part.free.take().or_else(Sample::make) else { return false };
    sample.address.set(known.address);
    sample.counts.set(Some(known.counts));
    sample.arena.set(known.arena);
    sample.thread.set(known.thread);
    sample.name.set(known.name);
    sample.time.set(known.time);
    sample.ticket.set(known.ticket);
    // SAFETY: samples are never unmapped.
    sample.next.set(unsafe { place.head.load(Ordering::Relaxed).as_ref() });
    place.head.store(core::ptr::from_ref(sample).cast_mut(), Ordering::Relaxed);
    part.count += 1;
    true
}

/// Takes the sample at an address out. `see` is called with what was known of it, if there is one,
/// and returns whether its free is to be told to the program ([`take_untold`]).
pub(super) fn remove(address: usize, see: impl FnOnce(Known) -> bool) {
    let place = place(address);
    // Relaxed: the thread that frees a block synchronised with the one that allocated it.
    if place.head.load(Ordering::Relaxed).is_null() {
        return;
    }
    let mut part = place.lock.lock();
    let Some(sample) = unlink(&place, address) else { return };
    part.count -= 1;
    if sample.known().is_some_and(see) {
        put_untold(sample);
    } else {
        part.free.put(sample);
    }
}

/// Takes the sample at an address out of its list. Called under the part's lock.
fn unlink(place: &Place, address: usize) -> Option<&'static Sample> {
    let mut before = None::<&'static Sample>;
    // SAFETY: samples are never unmapped.
    let mut next = unsafe { place.head.load(Ordering::Relaxed).as_ref() };
    while let Some(sample) = next {
        next = sample.next.get();
        if sample.address.get() == address {
            match before {
                Some(before) => before.next.set(next),
                None => {
                    let next = next
                        .map_or(core::ptr::null_mut(), |next| core::ptr::from_ref(next).cast_mut());
                    place.head.store(next, Ordering::Relaxed);
                }
            }
            return Some(sample);
        }
        before = Some(sample);
    }
    None
}

fn put_untold(sample: &'static Sample) {
    let mut first = UNTOLD.load(Ordering::Relaxed);
    loop {
        // SAFETY: samples are never unmapped.
        sample.next.set(unsafe { first.as_ref() });
        let new = core::ptr::from_ref(sample).cast_mut();
        // Release: pairs with the Acquire in `take_untold`.
        match UNTOLD.compare_exchange_weak(first, new, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Returns whether there are freed samples of which the program is to be told.
#[inline]
pub(super) fn has_untold() -> bool {
    !UNTOLD.load(Ordering::Relaxed).is_null()
}

/// Takes all freed samples of which the program is to be told, and calls `tell` with each. No lock
/// is held meanwhile.
pub(super) fn take_untold(mut tell: impl FnMut(Known)) {
    // Acquire: pairs with the Release in `put_untold`.
    let first = UNTOLD.swap(core::ptr::null_mut(), Ordering::Acquire);
    // SAFETY: samples are never unmapped.
    let mut next = unsafe { first.as_ref() };
    while let Some(sample) = next {
        next = sample.next.get();
        let known = sample.known();
        place(sample.address.get()).lock.lock().free.put(sample);
        known.into_iter().for_each(&mut tell);
    }
}

/// Returns what is known of the sample at an address. `None` if there is none.
pub(crate) fn at(address: usize) -> Option<Known> {
    let place = place(address);
    if place.head.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let _part = place.lock.lock();
    // SAFETY: samples are never unmapped.
    let first = unsafe { place.head.load(Ordering::Relaxed).as_ref() };
    let mut samples = core::iter::successors(first, |sample: &&'static Sample| sample.next.get());
    samples.find(|sample| sample.address.get() == address)?.known()
}

/// Calls `see` with each sample, under the lock of its part. `see` must not lock or allocate.
pub(crate) fn for_each(mut see: impl FnMut(Known)) {
    for (lock, heads) in parts() {
        let _part = lock.lock();
        for head in heads {
            // SAFETY: samples are never unmapped.
            let first = unsafe { head.load(Ordering::Relaxed).as_ref() };
            let samples =
                core::iter::successors(first, |sample: &&'static Sample| sample.next.get());
            samples.filter_map(Sample::known).for_each(&mut see);
        }
    }
}

/// Forgets all samples.
pub(super) fn clear() {
    for (lock, heads) in parts() {
        let mut part = lock.lock();
        for head in heads {
            // SAFETY: samples are never unmapped.
            let mut next: Option<&'static Sample> =
                unsafe { head.swap(core::ptr::null_mut(), Ordering::Relaxed).as_ref() };
            while let Some(sample) = next {
                next = sample.next.get();
                part.free.put(sample);
                part.count -= 1;
            }
        }
    }
}

/// Returns the number of samples.
pub(crate) fn count() -> usize {
    LOCKS.iter().map(|lock| lock.lock().count).sum()
}

impl Sample {
    fn make() -> Option<&'static Sample> {
        let memory = metadata::allocate(size_of::<Sample>(), align_of::<Sample>())?;
        let memory = memory.cast::<Sample>();
        let sample = Sample {
            address: Cell::new(0),
            counts: Cell::new(None),
            arena: Cell::new(0),
            thread: Cell::new(0),
            name: Cell::new(NameIndex::default()),
            time: Cell::new(0),
            ticket: Cell::new(None),
            next: Cell::new(None),
        };
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { memory.write(sample) };
        // SAFETY: just written, and never unmapped.
        Some(unsafe { memory.as_ref() })
    }

    fn known(&self) -> Option<Known> {
        Some(Known {
            address: self.address.get(),
            counts: self.counts.get()?,
            arena: self.arena.get(),
            thread: self.thread.get(),
            name: self.name.get(),
            time: self.time.get(),
            ticket: self.ticket.get(),
        })
    }
}

impl Recycled for Sample {
    fn next_free(&self) -> &Cell<Option<&'static Sample>> {
        &self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::sites;

    /// Addresses that no block has.
    const NOWHERE: usize = 0x6660_0000_0000;

    fn known(address: usize) -> Known {
        let counts = sites::counts(&[0x3001], 64, 64).expect("memory");
        let name = NameIndex::default();
        Known { address, counts, arena: 3, thread: 4, name, time: 5, ticket: None }
    }

    #[test]
    fn each_sample_is_found_once_by_its_address() {
        let addresses: std::vec::Vec<usize> = (0..5000).map(|n| NOWHERE + n * 16).collect();
        assert!(addresses.iter().all(|address| add(known(*address))));
        let mut seen = 0;
        for_each(|sample| seen += usize::from(sample.address >= NOWHERE));
        assert_eq!(seen, 5000);
        assert!(count() >= 5000);
        assert!(addresses.iter().all(|one| at(*one).is_some_and(|known| known.address == *one)));
        assert!(at(NOWHERE + 8).is_none());
        for address in addresses.iter().rev() {
            let sample = removed(*address, false).expect("a sample");
            assert_eq!(
                (sample.address, sample.arena, sample.thread, sample.time),
                (*address, 3, 4, 5)
            );
            assert!(removed(*address, false).is_none() && at(*address).is_none());
        }
        assert!(removed(NOWHERE + 8, false).is_none());
    }

    fn removed(address: usize, is_told: bool) -> Option<Known> {
        let mut seen = None;
        remove(address, |known| {
            seen = Some(known);
            is_told
        });
        seen
    }

    #[test]
    fn the_program_is_told_of_each_freed_sample_once() {
        const FIRST: usize = NOWHERE + (1 << 30);
        for address in [FIRST, FIRST + 16, FIRST + 32] {
            assert!(add(known(address)));
        }
        assert!(removed(FIRST, true).is_some() && removed(FIRST + 16, false).is_some());
        assert!(removed(FIRST + 32, true).is_some() && has_untold());
        let mut told = std::vec::Vec::new();
        take_untold(|known| told.push(known.address));
        told.retain(|address| (FIRST..FIRST + 64).contains(address));
        assert_eq!(told, [FIRST + 32, FIRST]);
        take_untold(|known| assert!(!(FIRST..FIRST + 64).contains(&known.address)));
    }
}
