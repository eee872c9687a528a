//! The samples that are in use, by address.

use super::heads::Heads;
use super::history::Ticket;
use super::names::NameIndex;
use super::sites::SizeCount;
use crate::back::metadata::{self, Pool, Recycled};
use crate::ground::checked::at as part_at;
use crate::ground::counters::SharedCount;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};
use crossbeam_utils::CachePadded;

/// log2 of the parts that are locked apart.
const LG_PARTS: u32 = 6;

/// A sample in use. It is in one cache line.
#[repr(align(64))]
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

/// Samples whose hashes have the same upper bits. What each call uses is in one cache line.
#[repr(C)]
struct Part {
    heads: Heads<Sample>,
    held: RankedMutex<Held>,
}

/// What only the holder of a part's lock may touch.
pub(crate) struct Held {
    free: Pool<Sample>,
    count: usize,
    /// Samples ever added.
    added: u64,
}

// SAFETY: the samples are reached under the part's lock only, or by the one thread that took them
// off the list of those that are untold.
unsafe impl Send for Held {}

static PARTS: [CachePadded<Part>; 1 << LG_PARTS] =
    [const { CachePadded::new(Part::new()) }; 1 << LG_PARTS];
/// Freed samples of which the program is to be told, the last one first. They are in no part.
static UNTOLD: AtomicPtr<Sample> = AtomicPtr::new(core::ptr::null_mut());
/// Bytes of the records of samples, in use or not.
pub(crate) static BYTES: SharedCount = SharedCount::new();

/// Returns the locks of the parts, which fork takes too.
pub(crate) fn locks() -> impl Iterator<Item = &'static RankedMutex<Held>> {
    PARTS.iter().map(|part| &part.held)
}

/// Where the sample at an address is: its part, and the hash that chooses the list there.
#[derive(Clone, Copy)]
struct Place {
    part: &'static Part,
    hash: u64,
}

impl Place {
    #[inline]
    fn of(address: usize) -> Place {
        // Fibonacci hashing: the upper bits depend on all bits of the address.
        let hash = (address as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // SAFETY: the index has as many bits as the number of parts.
        let part = unsafe { part_at(&PARTS, (hash >> (u64::BITS - LG_PARTS)) as usize) };
        Place { part, hash: hash << LG_PARTS }
    }

    /// Returns the first sample of the list. Without the lock it may only be asked whether there
    /// is one. A thread that frees a sample sees one, because it has synchronised with the thread
    /// that allocated the block.
    #[inline]
    fn first(self) -> *mut Sample {
        self.part.heads.of(self.hash).load(Ordering::Relaxed)
    }

    /// Makes a sample the first one. Called under the lock.
    fn push(self, sample: &'static Sample) {
        push(self.part.heads.of(self.hash), sample);
    }
}

fn push(head: &AtomicPtr<Sample>, sample: &'static Sample) {
    // SAFETY: samples are never unmapped.
    sample.next.set(unsafe { head.load(Ordering::Relaxed).as_ref() });
    head.store(core::ptr::from_ref(sample).cast_mut(), Ordering::Relaxed);
}

/// Lets the processor load what [`add`] needs for a sample at this address, while the caller does
/// other work.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    let place = Place::of(address);
    load_early(&raw const place.part.held);
    load_early(place.part.heads.of(place.hash));
}

/// Lets the processor load a line that is written to soon.
#[inline(always)]
fn load_early<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads and writes nothing that can be seen.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Adds a sample. Returns `false` if there is no memory.
pub(super) fn add(known: Known) -> bool {
    let place = Place::of(known.address);
    let mut held = place.part.held.lock();
    let Some(sample) = held.free.take().or_else(Sample::make) else { return false };
    sample.address.set(known.address);
    sample.counts.set(Some(known.counts));
    sample.arena.set(known.arena);
    sample.thread.set(known.thread);
    sample.name.set(known.name);
    sample.time.set(known.time);
    sample.ticket.set(known.ticket);
    held.count += 1;
    held.added += 1;
    if held.count > place.part.heads.all().len() {
        place.part.grow();
    }
    place.push(sample);
    true
}

/// Takes the sample at an address out. `see` is called with what was known of it, if there is one,
/// and returns whether its free is to be told to the program ([`take_untold`]).
pub(super) fn remove(address: usize, see: impl FnOnce(Known) -> bool) {
    let place = Place::of(address);
    let first = place.first();
    if first.is_null() {
        return;
    }
    load_early(first);
    let mut held = place.part.held.lock();
    let Some(sample) = unlink(place, address) else { return };
    held.count -= 1;
    if sample.known().is_some_and(see) {
        put_untold(sample);
    } else {
        held.free.put(sample);
    }
}

/// Gives the sample at an address one of the `most` addresses behind it that no other sample has,
/// and returns that. They have the same list. `None`: there is no sample.
pub(super) fn hide(address: usize, most: usize) -> Option<usize> {
    let place = Place::of(address);
    debug_assert_eq!(place.hash, Place::of(address + most).hash);
    if place.first().is_null() {
        return None;
    }
    let _held = place.part.held.lock();
    let find = |at: usize| list(place.first()).find(|sample| sample.address.get() == at);
    let sample = find(address)?;
    let new = (address + 1..address + most).find(|new| find(*new).is_none());
    // So many at once share the last one.
    let new = new.unwrap_or(address + most);
    sample.address.set(new);
    Some(new)
}

/// Gives the sample at an address another address, which has the same list.
pub(super) fn rename(address: usize, new: usize) {
    let place = Place::of(address);
    debug_assert_eq!(place.hash, Place::of(new).hash);
    if place.first().is_null() {
        return;
    }
    let _held = place.part.held.lock();
    if let Some(sample) = list(place.first()).find(|sample| sample.address.get() == address) {
        sample.address.set(new);
    }
}

/// Makes the sample at an address one of other counts, as if it had been so from the start.
pub(super) fn recount(address: usize, counts: &'static SizeCount) {
    let place = Place::of(address);
    let _held = place.part.held.lock();
    if let Some(sample) = list(place.first()).find(|sample| sample.address.get() == address) {
        counts.note_allocated();
        sample.counts.replace(Some(counts)).into_iter().for_each(SizeCount::forget);
    }
}

/// Takes the sample at an address out of its list. Called under the part's lock.
fn unlink(place: Place, address: usize) -> Option<&'static Sample> {
    let head = place.part.heads.of(place.hash);
    let mut before = None::<&'static Sample>;
    // SAFETY: samples are never unmapped.
    let mut next = unsafe { head.load(Ordering::Relaxed).as_ref() };
    while let Some(sample) = next {
        next = sample.next.get();
        if sample.address.get() == address {
            match before {
                Some(before) => before.next.set(next),
                None => {
                    let next = next
                        .map_or(core::ptr::null_mut(), |next| core::ptr::from_ref(next).cast_mut());
                    head.store(next, Ordering::Relaxed);
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
    take_list(first, |sample| {
        let known = sample.known();
        Place::of(sample.address.get()).part.held.lock().free.put(sample);
        known.into_iter().for_each(&mut tell);
    });
}

/// Returns what is known of the sample at an address. `None` if there is none.
pub(crate) fn at(address: usize) -> Option<Known> {
    let place = Place::of(address);
    if place.first().is_null() {
        return None;
    }
    let _held = place.part.held.lock();
    list(place.first()).find(|sample| sample.address.get() == address)?.known()
}

/// Calls `see` with each sample, under the lock of its part. `see` must not lock or allocate.
pub(crate) fn for_each(mut see: impl FnMut(Known)) {
    for part in &PARTS {
        let _held = part.held.lock();
        for head in part.heads.all() {
            list(head.load(Ordering::Relaxed)).filter_map(Sample::known).for_each(&mut see);
        }
    }
}

/// Forgets all samples.
pub(super) fn clear() {
    for part in &PARTS {
        let mut held = part.held.lock();
        for head in part.heads.all() {
            let first = head.swap(core::ptr::null_mut(), Ordering::Relaxed);
            take_list(first, |sample| {
                sample.counts.get().into_iter().for_each(SizeCount::forget);
                held.free.put(sample);
            });
        }
        held.count = 0;
    }
}

/// Returns the number of samples.
pub(crate) fn count() -> usize {
    locks().map(|held| held.lock().count).sum()
}

/// Returns the number of samples that were ever added.
pub(crate) fn added() -> u64 {
    locks().map(|held| held.lock().added).sum()
}

/// Returns the samples of a list. Used under the part's lock.
fn list(first: *mut Sample) -> impl Iterator<Item = &'static Sample> {
    // SAFETY: samples are never unmapped.
    let first = unsafe { first.as_ref() };
    core::iter::successors(first, |sample: &&'static Sample| sample.next.get())
}

/// Calls `take` with each sample of a list, and lets it use the link to the next one.
fn take_list(first: *mut Sample, mut take: impl FnMut(&'static Sample)) {
    // SAFETY: samples are never unmapped.
    let mut next: Option<&'static Sample> = unsafe { first.as_ref() };
    while let Some(sample) = next {
        next = sample.next.get();
        take(sample);
    }
}

impl Part {
    const fn new() -> Part {
        let held = Held { free: Pool::new(), count: 0, added: 0 };
        Part { held: RankedMutex::new(LockRank::Samples, held), heads: Heads::new() }
    }

    /// Makes more lists, so that they stay short. Called under the lock.
    #[cold]
    #[inline(never)]
    fn grow(&self) {
        self.heads.grow(|first, head_of| {
            take_list(first, |sample| push(head_of(Place::of(sample.address.get()).hash), sample));
        });
    }
}

impl Sample {
    fn make() -> Option<&'static Sample> {
        let memory = metadata::allocate(size_of::<Sample>(), align_of::<Sample>())?;
        BYTES.add(size_of::<Sample>() as u64);
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
    use core::sync::atomic::AtomicUsize;

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

    #[test]
    fn sanit_another_thread_finds_each_sample_while_the_lists_become_more() {
        const FIRST: usize = NOWHERE + (1 << 34);
        static ADDED: AtomicUsize = AtomicUsize::new(0);
        let most = 4000;
        let adding = std::thread::spawn(move || {
            for n in 0..most {
                assert!(add(known(FIRST + n * 48)));
                // Release: pairs with the Acquire below.
                ADDED.store(n + 1, Ordering::Release);
            }
        });
        let mut taken = 0;
        while taken < most {
            // Acquire: pairs with the Release above.
            let added = ADDED.load(Ordering::Acquire);
            // Half of them stay, so that the lists grow.
            for n in (taken..added).filter(|n| n % 2 == 0) {
                assert!(removed(FIRST + n * 48, false).is_some(), "sample {n}");
            }
            taken = added;
        }
        adding.join().expect("the other thread");
        let left = (0..most).filter(|n| removed(FIRST + n * 48, false).is_some());
        assert_eq!(left.count(), most / 2);
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
