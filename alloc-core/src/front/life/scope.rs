//! How a thread moves from arena to arena: `thread.arena` for good, a scope for a while.
//!
//! A thread has one cache for each arena that it has entered. Entering an arena again finds its
//! cache and stores two words; nothing is flushed. Blocks stay charged to the arena of their slab,
//! wherever they are freed.

use super::thread_begin::real_cache;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::{current, registry, switch};
use crate::front::supply::thread_limits;
use crate::middle::arenas::arena::Arena;
use core::marker::PhantomData;

/// Makes the calling thread allocate from an arena. When dropped, the thread allocates from its
/// previous arena again. Scopes nest; each ends on the thread that began it.
#[must_use]
pub(crate) struct Scope {
    before: &'static RealCache,
    _not_send: PhantomData<*const ()>,
}

/// Makes the calling thread allocate from this arena only, until the scope is dropped. Returns
/// `None` if there is no memory for its cache, or if the thread is inside the allocator or past its
/// end.
#[inline]
pub(crate) fn enter(arena: &'static Arena) -> Option<Scope> {
    let before = real_cache()?;
    let cache = before.thread()?.cache_for(arena.id());
    switch::show(cache.or_else(|| add_cache(before, arena))?);
    Some(Scope { before, _not_send: PhantomData })
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        // After the thread's end the caches may belong to another thread.
        if current::real_cache().is_none() {
            return;
        }
        let is_live = self.before.owner.home.get().is_live();
        // The thread was moved inside the scope, and its arena destroyed.
        let moved = self.before.thread().filter(|_| !is_live).and_then(Thread::bound_cache);
        switch::show(moved.unwrap_or(self.before));
    }
}

/// Makes the calling thread allocate from this arena only, from now on. Returns `false` where
/// [`enter`] returns `None`, or if the arena has been destroyed.
pub(crate) fn move_to(arena: &'static Arena) -> bool {
    let Some(now) = real_cache() else { return false };
    let Some(thread) = now.thread() else { return false };
    if !arena.life().bind() {
        return false;
    }
    let cache = thread.cache_for(arena.id()).or_else(|| stay(thread, arena));
    let Some(cache) = cache.or_else(|| add_cache(now, arena)) else {
        arena.life().unbind();
        return false;
    };
    thread.bind(Some(arena));
    switch::show(cache);
    true
}

/// Returns the cache that the thread began with, if its present arena is `arena`, and binds it
/// there.
fn stay(thread: &'static Thread, arena: &'static Arena) -> Option<&'static RealCache> {
    let cache = thread.caches().next()?;
    let home = &cache.owner.home;
    if home.is_bound() || !core::ptr::eq(home.get(), arena) {
        return None;
    }
    home.bind(true);
    thread.note_bound(cache);
    Some(cache)
}

#[cold]
#[inline(never)]
fn add_cache(like: &'static RealCache, arena: &'static Arena) -> Option<&'static RealCache> {
    let thread = like.thread()?;
    let cache = registry::take(arena, true, Some(thread))?;
    thread_limits::inherit(cache, like);
    thread.add_cache(cache);
    Some(cache)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middle::arenas::choose_arena;
    use std::vec::Vec;

    /// The address of the cache of an arena that the calling thread moves to.
    fn moved_to(arena: &'static Arena) -> usize {
        assert!(move_to(arena));
        let cache = current::real_cache().expect("a cache");
        assert!(core::ptr::eq(cache.owner.home.get(), arena));
        cache.thread().expect("a thread").check_caches();
        core::ptr::from_ref(cache).addr()
    }

    #[test]
    fn a_thread_has_one_cache_for_each_of_many_arenas() {
        let thread = std::thread::spawn(|| {
            let began_with = real_cache().expect("a cache");
            let mut arenas: Vec<_> = (0..40).filter_map(|_| choose_arena::create()).collect();
            arenas.iter().for_each(|arena| assert!(moved_to(arena) > 0));
            // Not bound yet, so no other cache may be made for it.
            arenas.push(began_with.owner.home.get());
            let caches: Vec<_> = arenas.iter().map(|arena| moved_to(arena)).collect();
            assert_eq!(caches.last(), Some(&core::ptr::from_ref(began_with).addr()));
            let again: Vec<_> = arenas.iter().rev().map(|arena| moved_to(arena)).collect();
            assert!(again.into_iter().rev().eq(caches));
            let thread = began_with.thread().expect("a thread");
            assert_eq!(thread.caches().count(), arenas.len());
        });
        thread.join().expect("the thread");
    }
}
