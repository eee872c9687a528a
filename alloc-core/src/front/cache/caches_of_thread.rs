//! The caches of a thread, and how that of an arena is found.

use super::volume::Volume;
use crate::back::record_table::{Numbered, RecordTable};
use core::cell::Cell;

/// Arenas whose caches a thread finds at one look.
const NEAR: usize = 8;

/// What a thread needs from each of its caches, whose number is the index of the arena.
pub(crate) trait OfThread: Numbered {
    /// Returns the link to the next cache of the same thread.
    fn next_of_thread(&self) -> &Cell<Option<&'static Self>>;
    /// Returns whether the cache is bound to its arena, as it is from then on.
    fn is_bound(&self) -> bool;
    /// Returns the bytes that the thread got from the cache and gave back to it.
    fn volume_of_thread(&self) -> Volume;
}

/// The caches of a thread. They are changed by the thread only.
pub(super) struct CachesOfThread<C: 'static> {
    /// The caches, linked: the one that the thread began with, then the newest first.
    first: Cell<Option<&'static C>>,
    /// Caches by the low bits of their arena's index.
    near: [Cell<Option<&'static C>>; NEAR],
    /// The caches that are bound to an arena, if they are many.
    far: RecordTable<C>,
}

impl<C: OfThread> CachesOfThread<C> {
    pub(super) const fn new() -> CachesOfThread<C> {
        CachesOfThread {
            first: Cell::new(None),
            near: [const { Cell::new(None) }; NEAR],
            far: RecordTable::new(),
        }
    }

    /// Forgets all caches.
    pub(super) fn clear(&self) {
        self.first.set(None);
        self.near.iter().for_each(|near| near.set(None));
        self.far.clear();
    }

    /// Adds a cache.
    pub(super) fn add(&self, cache: &'static C) {
        match self.first.get().map(C::next_of_thread) {
            Some(after) => cache.next_of_thread().set(after.replace(Some(cache))),
            None => self.first.set(Some(cache)),
        }
        if cache.is_bound() {
            self.note_bound(cache);
        }
    }

    /// Notes that a cache was bound to its arena.
    pub(super) fn note_bound(&self, cache: &'static C) {
        self.far.add(cache, self.bound(), self.bound());
    }

    /// Returns all caches, first the one that the thread began with.
    pub(super) fn all(&self) -> impl Iterator<Item = &'static C> + Clone + use<C> {
        core::iter::successors(self.first.get(), |cache| cache.next_of_thread().get())
    }

    fn bound(&self) -> impl Iterator<Item = &'static C> + Clone + use<C> {
        self.all().filter(|cache| cache.is_bound())
    }

    /// Returns the cache that is bound to an arena.
    #[inline]
    pub(super) fn of(&self, arena: u32) -> Option<&'static C> {
        let near = self.near.get(arena as usize % NEAR)?;
        if let Some(cache) = near.get().filter(|cache| cache.number() == arena) {
            return Some(cache);
        }
        let found = self.far.find(arena, self.bound())?;
        near.set(Some(found));
        Some(found)
    }

    /// Checks how caches are found.
    #[cfg(any(test, feature = "checks"))]
    pub(super) fn check(&self) {
        self.far.check(self.bound());
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::boxed::Box;
    use std::vec::Vec;

    /// A cache of an arena, with a volume that the test sets.
    pub(in super::super) struct Fake {
        next: Cell<Option<&'static Fake>>,
        arena: u32,
        is_bound: Cell<bool>,
        pub(in super::super) volume: Cell<Volume>,
    }

    impl Numbered for Fake {
        fn number(&self) -> u32 {
            self.arena
        }
    }

    impl OfThread for Fake {
        fn next_of_thread(&self) -> &Cell<Option<&'static Fake>> {
            &self.next
        }

        fn is_bound(&self) -> bool {
            self.is_bound.get()
        }

        fn volume_of_thread(&self) -> Volume {
            self.volume.get()
        }
    }

    pub(in super::super) fn fake(arena: u32) -> &'static Fake {
        let (is_bound, volume) = (Cell::new(true), Cell::new(Volume::default()));
        Box::leak(Box::new(Fake { next: Cell::new(None), arena, is_bound, volume }))
    }

    fn caches_with(fakes: &[&'static Fake]) -> CachesOfThread<Fake> {
        let caches = CachesOfThread::new();
        fakes.iter().for_each(|cache| caches.add(*cache));
        caches
    }

    fn assert_finds(caches: &CachesOfThread<Fake>, arena: u32) {
        assert_eq!(caches.of(arena).map(|cache| cache.arena), Some(arena));
    }

    #[test]
    fn each_arena_s_cache_is_found_also_where_arenas_share_a_near_place() {
        let near = NEAR as u32;
        let caches = caches_with(&[fake(1), fake(1 + near), fake(2)]);
        let order: Vec<u32> = caches.all().map(|cache| cache.arena).collect();
        assert_eq!(order, [1, 2, 1 + near], "the first one, then the newest first");
        [1, 1 + near, 1, 2, 1 + near].iter().for_each(|arena| assert_finds(&caches, *arena));
        assert!(caches.of(3).is_none());
    }

    #[test]
    fn each_of_many_caches_is_found_once_it_is_bound() {
        let first = fake(7);
        first.is_bound.set(false);
        let caches = caches_with(&[first]);
        for arena in (0..1000).filter(|arena| *arena != 7) {
            assert!(caches.of(arena).is_none());
            caches.add(fake(arena));
            caches.check();
        }
        assert!(caches.of(7).is_none());
        first.is_bound.set(true);
        caches.note_bound(first);
        caches.check();
        (0..1000).rev().for_each(|arena| assert_finds(&caches, arena));
        caches.clear();
        assert!(caches.of(7).is_none());
    }
}
