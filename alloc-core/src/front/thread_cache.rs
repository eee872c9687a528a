//! The thread cache: a bin for each class, in a row, and a trap in front.
//!
//! The thread's TLS word names one of these. A *real* cache has bins that hold blocks. A *façade*
//! has bins that always miss and take nothing, so that every operation goes the slow way, which
//! asks for the façade's kind; the fast path never tests a mode. The façades here are read-only and
//! shared by all; the one with a real cache behind it is in [`super::facade`].
//!
//! Bin 0 is the trap: large, foreign and null pointers have bin offset 0 in the page map, and a bin
//! that takes nothing sends their free the slow way.

use super::cache_bin::CacheBin;
use super::facade::Facade;
use super::guarded;
use super::hardened::canary;
use super::registry::RealCache;
use super::switch;
use super::tls;
use crate::ground::callback::{Callback, Scope};
use crate::ground::size_class::{BIN_BYTES, CLASSES, SizeClass};

/// Bins in a cache: the trap and one for each class.
pub(crate) const BINS: usize = CLASSES + 1;

/// What the slow way finds behind a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The thread has not called before.
    Empty,
    /// The thread is inside the allocator (its first call, or fork): past all caches.
    Reentrant,
    /// The thread's cache is gone: past all caches.
    Uncached,
    /// Bins that hold blocks.
    Real,
    /// A mode sees every operation: a thread's own façade, with a real cache behind it.
    Mode,
}

/// The part of a cache that the fast paths touch.
#[repr(C, align(64))]
pub(crate) struct ThreadCache {
    bins: [CacheBin; BINS],
    kind: Kind,
}

macro_rules! facade {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        // In pages that are read-only once the loader has relocated them.
        #[unsafe(link_section = ".data.rel.ro.lumalloc")]
        pub(crate) static $name: ThreadCache = ThreadCache::facade(Kind::$kind);
    };
}

facade!(
    /// What every thread begins with.
    EMPTY, Empty
);
facade!(
    /// What a thread has while it is inside the allocator.
    REENTRANT, Reentrant
);
facade!(
    /// What a thread has when its cache is gone.
    UNCACHED, Uncached
);

facade!(
    /// What a thread has while the program is asked for memory at a bound.
    CALLBACK, Reentrant
);

facade!(
    /// What a thread has while an extent hook runs.
    HOOK, Reentrant
);

/// How such a function is called.
pub(crate) static SCOPE: Scope = Scope {
    enter: |which| {
        let word = tls::load();
        set_current(match which {
            Callback::Hook => &HOOK,
            Callback::Limit => &CALLBACK,
        });
        word
    },
    leave,
    is_in_hook: || core::ptr::eq(current(), &HOOK),
};

/// Leads back to what the thread's word was. A mode may have been switched meanwhile, which passed
/// over this thread: so a real cache is shown anew.
fn leave(word: *mut u8) {
    match named_by(word).as_real() {
        Some(cache) => switch::show(cache),
        None => tls::store(word),
    }
}

impl ThreadCache {
    const fn facade(kind: Kind) -> ThreadCache {
        ThreadCache { bins: [const { CacheBin::none() }; BINS], kind }
    }

    /// The front of a real cache, without arrays yet.
    pub(crate) const fn real() -> ThreadCache {
        ThreadCache::facade(Kind::Real)
    }

    /// The front of a thread's own façade.
    pub(crate) const fn mode() -> ThreadCache {
        ThreadCache::facade(Kind::Mode)
    }

    /// The bin with a number below [`BINS`].
    #[inline(always)]
    pub(crate) fn bin(&self, bin: usize) -> &CacheBin {
        self.bin_at(bin * BIN_BYTES)
    }

    /// The bin at a byte offset: a multiple of [`BIN_BYTES`] below `BINS * BIN_BYTES`.
    #[inline(always)]
    pub(crate) fn bin_at(&self, offset: usize) -> &CacheBin {
        debug_assert!(offset.is_multiple_of(BIN_BYTES) && offset < BINS * BIN_BYTES);
        let first = self.bins.as_ptr();
        // SAFETY: offsets come from the size table, the page map or a class: all within the bins.
        let bin = unsafe { first.byte_add(offset) };
        // SAFETY: as above.
        unsafe { &*bin }
    }

    /// Has [`calls`](super::hardened::calls) serve the hardened tier from a façade with this front,
    /// or no more: its bins know the room before a canary. No block of the first class has any.
    pub(crate) fn set_rooms(&self, known: bool) {
        for class in SizeClass::all() {
            let room = if known { class.size().saturating_sub(canary::BYTES) } else { 0 };
            self.bin(class.bin()).set_room(room as u16);
        }
    }

    /// The real cache that this is the front of, or that its façade stands before.
    #[inline]
    pub(crate) fn as_real(&'static self) -> Option<&'static RealCache> {
        if self.kind != Kind::Real {
            return self.as_facade().map(|facade| facade.real);
        }
        // SAFETY: a front of kind Real is the first field of a real cache, which lives for ever.
        Some(unsafe { &*core::ptr::from_ref(self).cast::<RealCache>() })
    }

    /// The real cache that this is the front of, where no mode is in force: neither its blocks nor
    /// its operations are anything special.
    #[inline(always)]
    pub(crate) fn as_plain(&'static self) -> Option<&'static RealCache> {
        if self.kind != Kind::Real || switch::is_watching() || guarded::is_on() {
            return None;
        }
        self.as_real()
    }

    /// The façade with a real cache behind it that this is the front of.
    #[inline(always)]
    pub(crate) fn as_facade(&'static self) -> Option<&'static Facade> {
        if self.kind != Kind::Mode {
            return None;
        }
        // SAFETY: a front of kind Mode is a façade's.
        Some(unsafe { self.to_facade() })
    }

    /// The façade that this is the front of.
    ///
    /// # Safety
    /// It is of kind Mode.
    #[inline(always)]
    pub(crate) unsafe fn to_facade(&'static self) -> &'static Facade {
        // SAFETY: a front of kind Mode is the first field of a façade, which lives for ever.
        unsafe { &*core::ptr::from_ref(self).cast::<Facade>() }
    }

    /// What the slow way finds here.
    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }
}

/// The calling thread's cache, real or façade.
#[inline(always)]
pub(crate) fn current() -> &'static ThreadCache {
    // SAFETY: the word names a façade or the front of a real cache; both live for ever.
    unsafe { &*tls::load().cast::<ThreadCache>() }
}

/// What a thread's word names, which somebody else has read.
///
/// The words hold nothing but what [`set_current`] is given.
pub(crate) fn named_by(word: *mut u8) -> &'static ThreadCache {
    // SAFETY: as in `current`.
    unsafe { &*word.cast::<ThreadCache>() }
}

/// Makes another cache the calling thread's.
pub(crate) fn set_current(cache: &'static ThreadCache) {
    tls::store(core::ptr::from_ref(cache).cast_mut().cast());
}

/// Whether the calling thread's arena has a reserve: it does nothing for others then, and waits for
/// nobody.
pub(crate) fn lives_on_reserve() -> bool {
    current().as_real().is_some_and(|cache| cache.owner.home.get().has_reserve())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::{facade, registry};
    use crate::middle::{arena_list, choose_arena};

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

    fn is(cache: &'static ThreadCache, other: &'static ThreadCache) -> bool {
        core::ptr::eq(cache, other)
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
            assert!(facade.as_real().is_none() && facade.as_plain().is_none());
            assert!(facade.as_facade().is_none());
            assert!(is(named_by(core::ptr::from_ref(facade).cast_mut().cast()), facade));
        }
        let fronts = [ThreadCache::real(), ThreadCache::mode()];
        assert_eq!(fronts.map(|front| front.kind()), [Kind::Real, Kind::Mode]);
    }

    #[test]
    fn a_front_leads_to_the_cache_and_the_facade_behind_it() {
        // No other thread has this arena.
        let home = arena_list::create(choose_arena::limit()).unwrap();
        let cache = registry::take(home, false, None).unwrap();
        let is_cache = |found: Option<&RealCache>| found.is_some_and(|it| core::ptr::eq(it, cache));
        assert!(is_cache(cache.front.as_real()) && is_cache(cache.front.as_plain()));
        assert!(cache.front.as_facade().is_none());

        assert!(facade::prepare(cache));
        let facade = cache.facade().unwrap();
        let front = facade.front();
        assert!(is_cache(front.as_real()) && front.as_plain().is_none());
        assert!(front.as_facade().is_some_and(|it| core::ptr::eq(it, facade)));

        assert!(!lives_on_reserve());
        set_current(&cache.front);
        assert!(!lives_on_reserve());
        home.set_reserve(1);
        assert!(lives_on_reserve());
        home.set_reserve(0);
        set_current(&EMPTY);
        registry::put(cache);
    }

    #[test]
    fn a_thread_in_a_callback_has_the_callback_s_facade() {
        for (which, facade) in [(Callback::Hook, &HOOK), (Callback::Limit, &CALLBACK)] {
            let before = current();
            let word = (SCOPE.enter)(which);
            assert!(is(current(), facade) && is(named_by(word), before));
            assert_eq!((SCOPE.is_in_hook)(), is(facade, &HOOK));
            (SCOPE.leave)(word);
            assert!(is(current(), before) && !(SCOPE.is_in_hook)());
        }
    }

    #[test]
    fn rooms_are_the_sizes_of_the_classes_but_for_a_canary() {
        let front = ThreadCache::mode();
        let rooms = || SizeClass::all().map(|class| front.bin(class.bin()).room());
        assert!(rooms().all(|room| room == 0));
        front.set_rooms(true);
        for class in SizeClass::all() {
            let room = front.bin_at(class.bin() * BIN_BYTES).room();
            assert_eq!(room, class.size() - 8, "{}", class.size());
        }
        front.set_rooms(false);
        assert!(rooms().all(|room| room == 0));
        assert_eq!((front.bin(0).room(), BINS), (0, SizeClass::all().count() + 1));
    }
}
