//! The thread cache: a row of bins, one for each class, with a trap as bin 0.
//!
//! The thread's TLS word points to a thread cache. A *real* cache has bins that hold blocks. A
//! *façade* has bins that always miss and take nothing, so that every operation takes the slow
//! path, which checks the façade's kind; the fast path never tests a mode. The façades here are
//! read-only and shared by all threads. The façade with a real cache behind it is in
//! `front/cache/facade.rs`.
//!
//! Bin 0 is the trap. Large, foreign and null pointers have bin offset 0 in the page map, and a bin
//! that takes nothing sends their free to the slow path.

use super::cache_bin::CacheBin;
use crate::ground::in_register::in_register;
use crate::ground::low;
use crate::ground::size_class::{BIN_BYTES, CLASSES, SizeClass};
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

/// Bins in a cache: the trap, and one bin for each class.
pub(crate) const BINS: usize = CLASSES + 1;

/// What the slow path finds behind a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The thread has not called the allocator before.
    Empty,
    /// The thread is inside the allocator (its first call, or fork). Operations bypass all caches.
    Reentrant,
    /// The thread's cache is gone. Operations bypass all caches.
    Uncached,
    /// Bins that hold blocks.
    Real,
    /// A thread's own façade, with a real cache behind it. A mode sees every operation.
    Mode,
}

/// The part of a cache that the fast paths touch.
#[repr(C, align(64))]
pub(crate) struct ThreadCache {
    bins: [CacheBin; BINS],
    kind: Kind,
    /// The end of the low addresses: see [`crate::ground::low`]. A copy, so that the fast path
    /// finds it beside the bins.
    low_end: Cell<usize>,
    /// The cells of the thread, if this is a façade that does no more than move them: see
    /// `front/miss/counted.rs`. Null elsewhere.
    cells: AtomicPtr<Cells>,
}

/// The bytes that a thread allocated, and those that it freed, for the program to read.
pub(crate) type Cells = [AtomicU64; 2];

// SAFETY: `low_end` is written before the cache has a thread, and read by that thread. The rest is
// shared by itself or atomic.
unsafe impl Sync for ThreadCache {}

// The TLS word points to the bins, and offsets of bins are counted from there.
const _: () = assert!(core::mem::offset_of!(ThreadCache, bins) == 0);

macro_rules! facade {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        // In pages that are read-only after the loader's relocations.
        #[unsafe(link_section = ".data.rel.ro.lumalloc")]
        pub(crate) static $name: ThreadCache = ThreadCache::facade(Kind::$kind);
    };
}

facade!(
    /// The façade that every thread begins with.
    EMPTY, Empty
);
facade!(
    /// The façade of a thread that is inside the allocator.
    REENTRANT, Reentrant
);
facade!(
    /// The façade of a thread whose cache is gone.
    UNCACHED, Uncached
);

facade!(
    /// The façade of a thread while the program is asked for memory at a bound, or a hook of the
    /// heap profiler runs.
    CALLBACK, Reentrant
);

facade!(
    /// The façade of a thread while an extent hook runs.
    HOOK, Reentrant
);

impl ThreadCache {
    const fn facade(kind: Kind) -> ThreadCache {
        ThreadCache {
            bins: [const { CacheBin::none() }; BINS],
            kind,
            low_end: Cell::new(1),
            cells: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Creates the front of a real cache, without arrays yet.
    pub(crate) const fn real() -> ThreadCache {
        ThreadCache::facade(Kind::Real)
    }

    /// Creates the front of a thread's own façade.
    pub(crate) const fn mode() -> ThreadCache {
        ThreadCache::facade(Kind::Mode)
    }

    /// Returns the bin with a number below [`BINS`].
    #[inline(always)]
    pub(crate) fn bin(&self, bin: usize) -> &CacheBin {
        self.bin_at(bin * BIN_BYTES)
    }

    /// Returns the bin at a byte offset, which must be a multiple of [`BIN_BYTES`] below `BINS *
    /// BIN_BYTES`.
    #[inline(always)]
    pub(crate) fn bin_at(&self, offset: usize) -> &CacheBin {
        debug_assert!(offset.is_multiple_of(BIN_BYTES) && offset < BINS * BIN_BYTES);
        let first = self.bins.as_ptr();
        // SAFETY: offsets come from the size table, the page map or a class, and are all within the
        // bins.
        let bin = in_register(unsafe { first.byte_add(offset) });
        // SAFETY: as above.
        unsafe { &*bin }
    }

    /// Pops a block from the bin at a byte offset, as [`CacheBin::pop_or`].
    #[inline(always)]
    pub(crate) fn pop_or(
        &self,
        offset: usize,
        hit: impl FnOnce(*mut u8),
        miss: impl FnOnce() -> *mut u8,
    ) -> *mut u8 {
        self.bin_at(offset).pop_or(self.low_end.get(), hit, miss)
    }

    /// As [`ThreadCache::pop_or`], but returns null.
    #[inline(always)]
    pub(crate) fn pop(&self, offset: usize) -> *mut u8 {
        self.pop_or(offset, |_| (), core::ptr::null_mut)
    }

    /// Notes the end of the low addresses. Called before a thread gets the cache.
    pub(crate) fn begin(&self) {
        self.low_end.set(low::end());
    }

    /// Sets in each bin how many bytes of a block lie before its last `reserved` bytes, which
    /// belong to the allocator: see `front/miss/sealed.rs`. `None` sets 0 in all bins. Blocks of
    /// the first class have no reserved bytes.
    pub(crate) fn set_rooms(&self, reserved: Option<usize>) {
        for class in SizeClass::all() {
            let room = reserved.map_or(0, |reserved| class.size().saturating_sub(reserved));
            self.bin(class.bin()).set_room(room as u16);
        }
    }

    /// Returns the cells of the thread, if this is a façade that does no more than move them.
    #[inline(always)]
    pub(crate) fn cells(&self) -> Option<&'static Cells> {
        // Relaxed: its partner is the store in `set_cells`. The thread's own cells are visible to
        // it already.
        // SAFETY: null or set by `set_cells`.
        unsafe { self.cells.load(Relaxed).as_ref() }
    }

    /// Sets whether this façade does no more than move its thread's cells, which are these.
    pub(crate) fn set_cells(&self, cells: Option<&'static Cells>) {
        let cells =
            cells.map_or(core::ptr::null_mut(), |cells| core::ptr::from_ref(cells).cast_mut());
        // Relaxed: its partner is the load in `cells`. Where the thread must see it, a membarrier
        // follows (`front/cache/switch.rs`, `front/cache/emptying.rs`).
        self.cells.store(cells, Relaxed);
    }

    /// Returns what the slow path finds behind this cache.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::bins::tls;

    #[test]
    fn facades_are_in_read_only_pages() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        for facade in [&EMPTY, &REENTRANT, &UNCACHED, &CALLBACK, &HOOK] {
            let address = core::ptr::from_ref(facade) as usize;
            let line = maps.lines().find(|line| {
                let range = line.split(' ').next().unwrap();
                let (begin, end) = range.split_once('-').unwrap();
                let parse = |text| usize::from_str_radix(text, 16).unwrap();
                (parse(begin)..parse(end)).contains(&address)
            });
            let line = line.expect("mapped");
            assert!(line.split(' ').nth(1).unwrap().starts_with("r--"), "{line}");
        }
    }

    #[test]
    fn a_facade_without_a_cache_behind_it_says_what_it_is() {
        for (facade, kind) in [
            (&EMPTY, Kind::Empty),
            (&REENTRANT, Kind::Reentrant),
            (&UNCACHED, Kind::Uncached),
            (&CALLBACK, Kind::Reentrant),
            (&HOOK, Kind::Reentrant),
        ] {
            assert_eq!(facade.kind(), kind);
            assert!(core::ptr::eq(tls::named_by(tls::word_for(facade)), facade));
        }
        let fronts = [ThreadCache::real(), ThreadCache::mode()];
        assert_eq!(fronts.map(|front| front.kind()), [Kind::Real, Kind::Mode]);
    }

    #[test]
    fn rooms_are_the_sizes_of_the_classes_but_for_a_canary() {
        let front = ThreadCache::mode();
        let rooms = || SizeClass::all().map(|class| front.bin(class.bin()).room());
        assert!(rooms().all(|room| room == 0));
        front.set_rooms(Some(8));
        for class in SizeClass::all() {
            let room = front.bin_at(class.bin() * BIN_BYTES).room();
            assert_eq!(room, class.size() - 8, "{}", class.size());
        }
        front.set_rooms(None);
        assert!(rooms().all(|room| room == 0));
        assert_eq!((front.bin(0).room(), BINS), (0, SizeClass::all().count() + 1));
    }
}
