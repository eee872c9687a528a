//! Fork: all locks are taken in rank order before, and released after in parent and child. The lock
//! of the C library's streams, which `fork` itself takes after the handlers, comes first.
//!
//! Slow paths and purging passes hold locks, so none is half done in the child. Pushes and pops of
//! other threads are not atomic across the copied pages. Therefore the child drops the *contents*
//! of their caches (those blocks stay allocated, and are counted) and gives their slabs up for
//! adoption.

use super::background;
use super::explicit;
use super::fork_lock::{ForkLock, Taker};
use super::former_thread::CHANGE;
use super::started::START;
use super::thread_end;
use crate::back::aging::refusals::NOTED;
use crate::back::metadata::METADATA;
use crate::back::system::provider::dss::BREAK;
use crate::front::bins::thread_cache::REENTRANT;
use crate::front::bins::tls;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::cache::registry::{self, REGISTRY};
use crate::front::cache::switch;
use crate::front::modes::guarded;
use crate::ground::counters::SharedCount;
use crate::ground::intervals;
use crate::ground::os;
use crate::ground::prof_prefix;
use crate::ground::size_class::SizeClass;
use crate::ground::stream_list;
use crate::ground::sync::exempt_thread;
use crate::middle::arenas::arena_hooks;
use crate::middle::arenas::arena_list::{self, MAKING};
use crate::middle::arenas::purge_gate::GATE;
use crate::middle::passes::arena_end;
use crate::middle::passes::decay_pass::PASS;
use crate::profile::event_buffer::{self, Buffer};
use crate::profile::history::{self, HISTORY};
use crate::profile::{live, names, recorder, sites};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::Relaxed};

/// Blocks that were left in caches of threads that do not exist after a fork, in this process's
/// past.
pub(crate) static ABANDONED: SharedCount = SharedCount::new();

/// Whether a fork in this process's past has left out threads that had caches. Such a thread may
/// have been about to write to a block.
pub(crate) static HAS_LOST_THREADS: AtomicBool = AtomicBool::new(false);

/// The number of forks between this process and its first ancestor that allocated.
pub(crate) static GENERATION: SharedCount = SharedCount::new();

/// The forking thread, from before the fork to after it, because the child keeps its caches.
static FORKING: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());

/// The newest buffer of events before the fork. Those made after it were not locked.
static NEWEST: AtomicPtr<Buffer> = AtomicPtr::new(core::ptr::null_mut());

/// Whether the handlers are registered.
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// Registers the handlers, once. They are registered early, so that most others run before them
/// before a fork, and after them after it: the shared object calls this before it passes the first
/// registration of another library on. Those that were registered earlier all the same may allocate
/// in between: see `ground/sync/exempt_thread.rs`.
pub fn register() {
    if IS_REGISTERED.swap(true, Relaxed) {
        return;
    }
    os::keep_errno(|| {
        // SAFETY: the handlers take no arguments and exist as long as the library.
        unsafe { libc::pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) }
    });
}

/// Calls `lock` on every lock, in rank order, but not on those of buffers newer than `buffer`.
///
/// The locks of caches that nobody has are left alone, because to write there would cost the parent
/// and the child two pages for each thread that ever lived ([`free_unused`]).
///
/// The caches and arenas are the same before a fork and after it: a new record is made under
/// METADATA, which is released behind their locks. What the forking thread itself has made in
/// between is held by no other thread, so a release changes nothing.
fn for_each_lock(buffer: Option<&'static Buffer>, lock: &mut dyn FnMut(&'static dyn ForkLock)) {
    lock(&CHANGE);
    lock(&START);
    lock(&PASS);
    lock(&GATE);
    lock(&REGISTRY);
    explicit::for_each_lock(lock);
    for cache in registry::all().filter(|cache| cache.is_in_use()) {
        lock(&cache.owner.state);
    }
    lock(&MAKING);
    for arena in arena_list::all() {
        for class in SizeClass::all() {
            lock(&arena.bin(class).slabs);
        }
    }
    for arena in arena_list::all() {
        lock(&arena.pages);
    }
    event_buffer::up_to(buffer).for_each(|buffer| lock(buffer.held()));
    lock(&recorder::STATE);
    live::locks().for_each(|part| lock(part));
    lock(&names::ADDING);
    lock(&sites::ADDING);
    lock(&prof_prefix::CURRENT);
    lock(&HISTORY);
    lock(&METADATA);
    lock(&BREAK);
    lock(&guarded::NEXT);
    lock(&NOTED);
}

/// Frees the locks of caches that nobody has, in the child: a thread of the parent may have been
/// reading there. None was writing, because passes and the registry were locked.
fn free_unused() {
    let unused = registry::all().filter(|cache| !cache.is_in_use());
    for cache in unused.filter(|cache| cache.owner.state.is_held()) {
        cache.owner.state.free_in_child();
    }
}

unsafe extern "C" fn prepare() {
    let holds_streams = stream_list::take();
    let newest = event_buffer::newest();
    let mut taker = Taker::new();
    for_each_lock(newest, &mut |lock| taker.take(lock));
    taker.settle();
    NEWEST.store(newest.map_or(core::ptr::null(), core::ptr::from_ref).cast_mut(), Relaxed);
    FORKING.store(address_of(registry::of_caller()), Relaxed);
    stream_list::note(holds_streams);
    exempt_thread::begin();
}

fn address_of(thread: Option<&'static Thread>) -> *mut Thread {
    thread.map_or(core::ptr::null(), core::ptr::from_ref).cast_mut()
}

/// Gives all locks back, and that of the registry last: without it a thread may take or put a
/// cache, and which caches are in use tells which of their locks were taken.
fn give_in_parent(newest: Option<&'static Buffer>) {
    for_each_lock(newest, &mut |lock| {
        if !core::ptr::addr_eq(lock, &raw const REGISTRY) {
            lock.give_in_parent();
        }
    });
    REGISTRY.give_in_parent();
}

unsafe extern "C" fn in_parent() {
    exempt_thread::end();
    FORKING.store(core::ptr::null_mut(), Relaxed);
    // SAFETY: buffers live for ever.
    let newest = unsafe { NEWEST.load(Relaxed).as_ref() };
    let holds_streams = stream_list::was_held();
    give_in_parent(newest);
    if holds_streams {
        // SAFETY: `prepare` took it.
        unsafe { stream_list::release() };
    }
}

unsafe extern "C" fn in_child() {
    exempt_thread::end();
    let mine = FORKING.swap(core::ptr::null_mut(), Relaxed);
    if stream_list::was_held() {
        // SAFETY: `prepare` took it, and the child has one thread.
        unsafe { stream_list::release_in_child() };
    }
    GENERATION.add(1);
    // The thread that made a newer buffer, and may have locked it, is not in the child.
    for_each_lock(event_buffer::newest(), &mut |lock| lock.give_in_child());
    free_unused();
    // A thread without a cache may have got one since `prepare`.
    let mine = if mine.is_null() { address_of(registry::of_caller()) } else { mine };
    // SAFETY: records live for ever.
    unsafe { mine.as_ref() }.into_iter().for_each(Thread::note_child);
    background::begin_in_child();
    arena_hooks::forget_in_child();
    arena_end::forget_in_child();
    intervals::forget_in_child();
    history::forget_in_child();
    let cache = tls::current();
    if RealCache::of(cache).is_some() {
        tls::set_current(&REENTRANT);
    }
    for cache in registry::all() {
        if cache.thread().is_some_and(|thread| !core::ptr::eq(thread, mine)) {
            HAS_LOST_THREADS.store(true, Relaxed);
            ABANDONED.add(thread_end::abandon(cache) as u64);
        }
    }
    // SAFETY: records live for ever.
    switch::end_recording_in_child(unsafe { mine.as_ref() });
    registry::abandon_threads_but(mine);
    match RealCache::of(cache) {
        Some(real) => switch::show(real),
        None => tls::set_current(cache),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::bins::thread_cache::Kind;
    use crate::front::bins::tls;
    use crate::front::life::thread_begin;
    use crate::ground::size_class::CLASSES;
    use crate::ground::sync::lock_rank::LockRank;
    use core::ffi::{c_int, c_void};

    /// A lock that is left out would some day be found taken for ever in a child.
    #[test]
    fn a_fork_takes_every_lock_in_order() {
        // Repeated if another test makes the first arena meanwhile.
        while thread_begin::real_cache().is_none() {
            std::thread::yield_now();
        }
        let id = thread_begin::real_cache().and_then(explicit::create).expect("memory");
        recorder::take_buffer().expect("memory");
        // Other tests make more caches and arenas.
        let in_use = || registry::all().filter(|cache| cache.is_in_use()).count();
        let (in_use, arenas) = (in_use(), arena_list::all().count());
        let mut seen = Vec::new();
        for_each_lock(event_buffer::newest(), &mut |lock| seen.push(lock.rank()));
        assert!(seen.contains(&None), "the gate of purges");
        let taken: Vec<LockRank> = seen.into_iter().flatten().collect();
        assert!(taken.is_sorted(), "{taken:?}");
        for rank in LockRank::ALL {
            let least = match rank {
                LockRank::Pass | LockRank::Guarded => 2,
                LockRank::Cache => in_use,
                LockRank::Bin => arenas * CLASSES,
                LockRank::Pages => arenas,
                _ => 1,
            };
            let found = taken.iter().filter(|other| **other == rank).count();
            assert!(least > 0 && found >= least, "{rank:?}: {found} of {least}");
        }
        assert!(explicit::destroy(id));
    }

    #[test]
    fn the_child_of_a_vfork_leaves_the_word_of_its_parent_s_thread() {
        extern "C" fn in_child(_: *mut c_void) -> c_int {
            c_int::from(thread_begin::real_cache().is_some())
        }
        while thread_begin::real_cache().is_none() {
            std::thread::yield_now();
        }
        let thread = std::thread::spawn(|| {
            let mut stack = std::vec![0_u128; 16 << 10];
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            let end = stack.as_mut_ptr_range().end.cast();
            // SAFETY: the child has a stack of its own, and the parent waits for its end.
            let child = unsafe { libc::clone(in_child, end, flags, core::ptr::null_mut()) };
            assert!(child > 0);
            let mut status = -1;
            // SAFETY: the child is this thread's.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            assert_eq!((status, tls::current().kind()), (0, Kind::Empty));
            assert!(thread_begin::real_cache().is_some());
        });
        thread.join().expect("the thread");
    }
}
