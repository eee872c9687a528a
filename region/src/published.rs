//! Regions of Rust programs that others may see: the namespace of lumalloc, and with it metrics,
//! the page and the doctor.

use crate::data::Head;
use crate::discipline::Discipline;
use crate::heap::Heap;
use crate::method::call::Call;
use crate::method::{Method, Stat};
use crate::mode;
use crate::region::Region;
use crate::system::System;
use core::any::TypeId;
use core::cell::Cell;
use core::ffi::CStr;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;
use lumalloc::observe::regions::{self, About, Counts, Table, Unanswered};
use lumalloc::raw;

/// A region that others may see by a name, as the keys `vm.region.<i>.*` of the namespace.
///
/// Its counts, checks and compactions may be asked for by another thread, which waits until no call
/// is in the region and keeps calls out as long. So calls of the region take one instruction more,
/// and the discipline may be called by another thread. Made by [`Region::publish`].
///
/// ```
/// use lumalloc::observe::regions;
/// use lumalloc_region::{Best, Heap, Region};
///
/// let region: Region<Best, Heap> = Region::open(Heap).unwrap();
/// let sessions = region.publish("sessions").unwrap();
/// let block = sessions.alloc(100).unwrap();
/// assert_eq!(regions::counts(sessions.number(), 1).map(|counts| counts.busy), Ok(1));
/// ```
pub struct PublishedRegion<M: Method, D: Discipline> {
    /// In a block of the heap, so that it stays where it is when this value moves.
    place: NonNull<Place<M, D>>,
    number: usize,
}

/// What the list of regions leads to.
struct Place<M: Method, D: Discipline> {
    region: Region<M, D>,
    /// Whether [`PublishedRegion::with_mut`] has the region now. Visitors, which only its own
    /// thread can be then, are turned away. Used under the lock of the list.
    is_lent: Cell<bool>,
}

/// The region is lent until this value is dropped.
struct Lent<'a>(&'a Cell<bool>);

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

// SAFETY: the region is this value's alone, but for visitors, which any thread may be.
unsafe impl<M: Method, D: Discipline + Send> Send for PublishedRegion<M, D> {}

impl<M: Method + 'static, D: Discipline + Send + 'static> Region<M, D> {
    /// Lets others see the region by a name, of which 31 bytes are kept.
    ///
    /// # Errors
    /// The region, if there is no memory.
    pub fn publish(self, name: &str) -> Result<PublishedRegion<M, D>, Region<M, D>> {
        let block = raw::malloc(size_of::<Place<M, D>>()).cast::<Place<M, D>>();
        let Some(place) = NonNull::new(block) else {
            return Err(self);
        };
        // SAFETY: the block is new, long enough, and aligned as all types are here.
        unsafe { place.write(Place { region: self, is_lent: Cell::new(false) }) };
        let table = &Functions::<M, D>::TABLE;
        // SAFETY: the region is withdrawn before it is gone, and the functions are those of its
        // type. Discipline and method may be used by any thread.
        match unsafe { regions::publish(place.as_ptr().cast(), table, name.as_bytes()) } {
            Some(number) => Ok(PublishedRegion { place, number }),
            // SAFETY: the block holds the region, and is this function's.
            None => Err(unsafe { taken_out(place) }.region),
        }
    }
}

impl<M: Method, D: Discipline> PublishedRegion<M, D> {
    /// Returns the number of the region: the index in `vm.region.<i>`.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Runs `f` on the region while no visitor can be there. Questions that `f` itself asks of the
    /// region are not answered ([`Unanswered::Busy`]).
    pub fn with_mut<T>(&mut self, f: impl FnOnce(&mut Region<M, D>) -> T) -> T {
        regions::alone(|| {
            // SAFETY: the block holds this as long as this value exists.
            let is_lent = unsafe { &(*self.place.as_ptr()).is_lent };
            is_lent.set(true);
            let lent = Lent(is_lent);
            // SAFETY: the block holds the region, which is borrowed. Visits are made under the lock
            // that is held here, and this thread's are turned away.
            let result = f(unsafe { &mut (*self.place.as_ptr()).region });
            drop(lent);
            result
        })
    }

    /// Ends that others see the region.
    #[must_use]
    pub fn withdraw(self) -> Region<M, D> {
        let this = ManuallyDrop::new(self);
        let place = this.place;
        regions::withdraw_at(this.number, place.as_ptr().cast());
        // SAFETY: the block holds the region, and nobody else knows it any more.
        unsafe { taken_out(place) }.region
    }
}

/// Takes a region out of its block.
///
/// # Safety
/// The block came from the heap, holds a region, and is not used any more.
pub(crate) unsafe fn taken_out<T>(place: NonNull<T>) -> T {
    // SAFETY: the caller's promise.
    let region = unsafe { place.read() };
    // SAFETY: the caller's promise.
    unsafe { raw::free(place.as_ptr().cast()) };
    region
}

impl<M: Method, D: Discipline> Deref for PublishedRegion<M, D> {
    type Target = Region<M, D>;

    #[inline]
    fn deref(&self) -> &Region<M, D> {
        // SAFETY: the block holds the region as long as this value exists.
        unsafe { &(*self.place.as_ptr()).region }
    }
}

impl<M: Method, D: Discipline> Drop for PublishedRegion<M, D> {
    fn drop(&mut self) {
        regions::withdraw_at(self.number, self.place.as_ptr().cast());
        // SAFETY: the block holds the region, and nobody else knows it any more.
        drop(unsafe { taken_out(self.place) });
    }
}

impl<M: Method, D: Discipline> fmt::Debug for PublishedRegion<M, D> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PublishedRegion").field("number", &self.number).finish()
    }
}

/// The functions of regions of a type.
struct Functions<M, D>(M, D);

impl<M: Method + 'static, D: Discipline + Send + 'static> Functions<M, D> {
    const TABLE: Table = Table {
        about: Self::about,
        count: Self::count,
        check: Self::check,
        compact: Self::compact,
        file: |_, _| 0,
    };

    /// Returns a region for a visitor, or `None` if it is lent.
    ///
    /// # Safety
    /// A region of this type was published as `region`. The list is held.
    unsafe fn open<'a>(region: *const ()) -> Option<&'a Region<M, D>> {
        let place = region.cast::<Place<M, D>>();
        // SAFETY: the caller's promise.
        if unsafe { (*place).is_lent.get() } {
            return None;
        }
        // SAFETY: the caller's promise, and nobody has the region alone.
        Some(unsafe { &(*place).region })
    }

    /// Runs `f` in a region, as a visitor. Returns `None` if a call stays in it.
    ///
    /// # Safety
    /// As [`Self::open`].
    unsafe fn visit<T>(region: *const (), f: impl FnOnce(&mut Call<'_, M, D>) -> T) -> Option<T> {
        // SAFETY: the caller's promise.
        unsafe { Self::open(region) }?.visit(f)
    }

    unsafe fn about(region: *const ()) -> About {
        // SAFETY: the caller's promise.
        let head = unsafe { Self::open(region) }.map(Region::head);
        About {
            method: mode::method_name(M::MODE),
            discipline: discipline_name::<D>(),
            flags: head.map_or(M::MODE, Head::mode),
            address: head.map_or(region.addr(), Head::address),
            holder: None,
        }
    }

    unsafe fn count(region: *const ()) -> Option<Counts> {
        // SAFETY: the caller's promise.
        unsafe { Self::visit(region, |call| call.stat()) }.map(Counts::from)
    }

    unsafe fn check(region: *const ()) -> Result<usize, Unanswered> {
        // SAFETY: the caller's promise.
        let checked = unsafe { Self::visit(region, |call| M::check(call)) };
        checked.ok_or(Unanswered::Busy)?.ok_or(Unanswered::Unknown)
    }

    unsafe fn compact(region: *const ()) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Self::visit(region, |call| M::compact(call)) }.is_some()
    }
}

fn discipline_name<D: 'static>() -> &'static CStr {
    let of = TypeId::of::<D>();
    if of == TypeId::of::<System>() {
        c"system"
    } else if of == TypeId::of::<Heap>() {
        c"heap"
    } else {
        c"program"
    }
}

impl From<Stat> for Counts {
    fn from(stat: Stat) -> Counts {
        Counts {
            busy: stat.busy,
            busy_bytes: stat.busy_bytes,
            busy_largest: stat.busy_largest,
            free: stat.free,
            free_bytes: stat.free_bytes,
            free_largest: stat.free_largest,
            segments: stat.segments,
            extent: stat.extent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Best, Last, Pool};
    use std::sync::atomic::Ordering;
    use std::thread;

    /// Another epoch for each count, so that none stands.
    fn count(number: usize) -> Result<Counts, Unanswered> {
        use std::sync::atomic::AtomicU64;
        static EPOCH: AtomicU64 = AtomicU64::new(1);
        regions::counts(number, EPOCH.fetch_add(1, Ordering::Relaxed))
    }

    fn published<M: Method + 'static>(name: &str) -> PublishedRegion<M, Heap> {
        let region = Region::<M, Heap>::open(Heap).unwrap();
        region.publish(name).unwrap()
    }

    fn text(bytes: &[u8]) -> &str {
        CStr::from_bytes_until_nul(bytes).unwrap().to_str().unwrap()
    }

    #[test]
    fn a_region_tells_what_it_is() {
        let mut pool = published::<Pool>("nodes");
        let number = pool.number();
        let about = regions::about(number).unwrap();
        assert_eq!((about.method, about.discipline), (c"pool", c"heap"));
        assert_eq!((about.flags, about.holder), (mode::POOL, None));
        assert_eq!(regions::lookup(about.address), Some(number));
        assert_eq!(text(&regions::name(number).unwrap()), "nodes");
        for _ in 0..3 {
            pool.alloc(24).unwrap();
        }
        assert_eq!(count(number), Ok(pool.stat().into()));
        assert_eq!(regions::check(number), Err(Unanswered::Unknown));
        assert_eq!(regions::file(number, &mut [0; 9]), Some(0));
        pool.with_mut(Region::clear);
        assert_eq!(count(number).map(|counts| counts.busy), Ok(0));
        let region = pool.withdraw();
        assert_eq!(regions::about(number), None);
        assert!(region.alloc(24).is_some());
    }

    #[test]
    fn a_region_is_compacted_and_checked_from_outside() {
        let best = published::<Best>("documents");
        let block = best.alloc(1 << 20).unwrap();
        best.alloc(10).unwrap();
        // SAFETY: the block is used no more.
        unsafe { best.free(block) }.unwrap();
        let before = count(best.number()).unwrap();
        assert!(before.free_largest >= 1 << 20);
        let number = best.number();
        let other = thread::spawn(move || (regions::compact(number), regions::check(number)));
        assert_eq!(other.join().unwrap(), (Ok(()), Ok(0)));
        assert!(count(number).unwrap().extent <= before.extent);
    }

    #[test]
    fn a_region_that_is_lent_turns_its_own_thread_away() {
        let best = Region::<Best, Heap>::open(Heap).unwrap();
        let blocks: Vec<_> = (0..20).map(|_| best.alloc(1 << 20).unwrap()).collect();
        let mut best = best.publish("lent").unwrap();
        for block in blocks {
            // SAFETY: the block is used no more.
            unsafe { best.free(block) }.unwrap();
        }
        let number = best.number();
        best.with_mut(|region| {
            let before = region.extent();
            let mut segments = region.segments();
            let first = segments.next().map_or(0, |(_, size)| size);
            // A compaction would give the segments back that the iterator is to come to.
            assert_eq!(regions::compact(number), Err(Unanswered::Busy));
            assert_eq!(count(number), Err(Unanswered::Busy));
            assert_eq!(regions::about(number).unwrap().method, c"best");
            assert_eq!(first + segments.map(|(_, size)| size).sum::<usize>(), before);
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            best.with_mut(|_| std::panic::resume_unwind(Box::new(())))
        }));
        assert!(outcome.is_err());
        assert_eq!(regions::compact(number), Ok(()));
    }

    #[test]
    fn a_call_that_stays_in_the_region_is_not_waited_for() {
        let last = published::<Last>("a parse");
        let number = last.number();
        last.alloc(100).unwrap();
        assert_eq!(count(number).map(|counts| counts.busy), Ok(1));
        let best = published::<Best>("another");
        best.alloc(10).unwrap();
        best.for_each_block(|_, _| {
            assert_eq!(count(best.number()), Err(Unanswered::Busy));
            assert_eq!(regions::compact(best.number()), Err(Unanswered::Busy));
            assert_eq!(regions::check(best.number()), Err(Unanswered::Busy));
        });
        assert_eq!(count(best.number()).map(|counts| counts.busy), Ok(1));
    }

    #[test]
    fn counts_from_outside_are_right_while_the_region_is_used() {
        let best = published::<Best>("in use");
        let number = best.number();
        thread::scope(|scope| {
            let visitor = scope.spawn(|| {
                let (mut counted, mut checked) = (0, 0);
                while counted < 100 || checked < 100 {
                    // A region that is always busy is seen between two calls.
                    if let Ok(counts) = count(number) {
                        assert!(counts.busy <= 1 && counts.segments > 0, "{counts:?}");
                        counted += 1;
                    }
                    if let Ok(wrong) = regions::check(number) {
                        assert_eq!(wrong, 0);
                        checked += 1;
                    }
                }
            });
            // As long as the visitor needs.
            let mut rounds = 0;
            while rounds < 20_000 || !visitor.is_finished() {
                let block = best.alloc(rounds % 500).unwrap();
                // SAFETY: the block is used no more.
                unsafe { best.free(block) }.unwrap();
                rounds += 1;
                assert!(rounds < 10_000_000, "the visitor is not answered");
            }
            visitor.join().unwrap();
        });
        assert_eq!(best.stat().busy, 0);
    }
}
