//! Regions in files that others may see: the namespace of lumalloc, and with it metrics, the page
//! and the doctor.

use crate::method::Method;
use crate::method::best::Best;
use crate::mode;
use crate::persistent::{Persist, Persistent};
use crate::published::taken_out;
use crate::shared_region::SharedRegion;
use core::fmt;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::NonNull;
use lumalloc::observe::regions::{self, About, Counts, Holder, Table, Unanswered};
use lumalloc::raw;

/// A region in a file that others may see by a name, as the keys `vm.region.<i>.*` of the
/// namespace. Made by [`Persistent::publish`].
pub struct PublishedPersistent<T: Persist> {
    /// In a block of the heap, so that it stays where it is when this value moves.
    region: NonNull<Persistent<T>>,
    number: usize,
}

// SAFETY: the region may be used by any thread.
unsafe impl<T: Persist> Send for PublishedPersistent<T> {}

// SAFETY: as above.
unsafe impl<T: Persist> Sync for PublishedPersistent<T> {}

impl<T: Persist> Persistent<T> {
    /// Lets others see the region by a name, of which 31 bytes are kept.
    ///
    /// ```no_run
    /// use core::sync::atomic::AtomicU64;
    /// use lumalloc_region::Persistent;
    /// let visits = Persistent::open(c"visits.region", 0, AtomicU64::new(0))?.publish("visits");
    /// assert_eq!(visits.ok().map(|visits| visits.stat().segments), Some(1));
    /// # Ok::<(), lumalloc_region::OpenError>(())
    /// ```
    ///
    /// # Errors
    /// The region, if there is no memory.
    pub fn publish(self, name: &str) -> Result<PublishedPersistent<T>, Persistent<T>> {
        let Some(place) = NonNull::new(raw::malloc(size_of::<Self>()).cast::<Self>()) else {
            return Err(self);
        };
        // SAFETY: the block is new, long enough, and aligned.
        unsafe { place.write(self) };
        // SAFETY: the block holds the region until it is withdrawn.
        let region: *const SharedRegion = unsafe { place.as_ref() }.region();
        // SAFETY: the region is withdrawn before it is gone, and any thread may use it.
        match unsafe { regions::publish(region.cast(), &TABLE, name.as_bytes()) } {
            Some(number) => Ok(PublishedPersistent { region: place, number }),
            // SAFETY: the block holds the region, and is this function's.
            None => Err(unsafe { taken_out(place) }),
        }
    }
}

impl<T: Persist> PublishedPersistent<T> {
    /// Returns the number of the region: the index in `vm.region.<i>`.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Ends that others see the region.
    #[must_use]
    pub fn withdraw(self) -> Persistent<T> {
        let this = ManuallyDrop::new(self);
        this.end();
        // SAFETY: the block holds the region, and nobody else knows it any more.
        unsafe { taken_out(this.region) }
    }

    fn end(&self) {
        let region: *const SharedRegion = self.region();
        regions::withdraw_at(self.number, region.cast());
    }
}

impl<T: Persist> Deref for PublishedPersistent<T> {
    type Target = Persistent<T>;

    fn deref(&self) -> &Persistent<T> {
        // SAFETY: the block holds the region as long as this value exists.
        unsafe { self.region.as_ref() }
    }
}

impl<T: Persist> Drop for PublishedPersistent<T> {
    fn drop(&mut self) {
        self.end();
        // SAFETY: the block holds the region, and nobody else knows it any more.
        drop(unsafe { taken_out(self.region) });
    }
}

impl<T: Persist> fmt::Debug for PublishedPersistent<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PublishedPersistent").field("number", &self.number).finish()
    }
}

static TABLE: Table = Table { about, count, check, compact, file };

/// The region that was published.
///
/// # Safety
/// The list is held, and the region is in it.
unsafe fn published<'a>(region: *const ()) -> &'a SharedRegion {
    // SAFETY: the caller's promise.
    unsafe { &*region.cast() }
}

unsafe fn about(region: *const ()) -> About {
    // SAFETY: the caller's promise.
    let head = unsafe { published(region) }.head();
    let holder = head.lock().holder();
    About {
        method: mode::method_name(Best::MODE),
        discipline: c"file",
        flags: head.mode(),
        address: head.address(),
        holder: holder
            .map(|holder| Holder { process: holder.process, is_alive: holder.is_alive() }),
    }
}

unsafe fn count(region: *const ()) -> Option<Counts> {
    // SAFETY: the caller's promise.
    unsafe { published(region) }.visit(|call| call.stat()).map(Counts::from)
}

unsafe fn check(region: *const ()) -> Result<usize, Unanswered> {
    // SAFETY: the caller's promise.
    let checked = unsafe { published(region) }.visit(Best::check);
    checked.ok_or(Unanswered::Busy)?.ok_or(Unanswered::Unknown)
}

unsafe fn compact(region: *const ()) -> bool {
    // SAFETY: the caller's promise.
    unsafe { published(region) }.visit(Best::compact).is_some()
}

unsafe fn file(region: *const (), into: &mut [u8]) -> usize {
    // SAFETY: the caller's promise.
    unsafe { published(region) }.path(into)
}
