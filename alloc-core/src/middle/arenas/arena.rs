//! An arena: a heap shard with its own pages, bins and locks.
//!
//! A slab or large block belongs to the arena that its pages come from, whichever thread frees it.
//! Records of arenas are never unmapped. For how arenas are made see [`super::arena_list`], for the
//! end of those that programs create [`crate::middle::passes::arena_end`].

use super::arena_life::Life;
use super::arena_pages::ArenaPages;
use super::arena_purge;
use super::bin::ArenaBin;
use super::purge_gate::{self, GATE};
use crate::back::hooked::hooks::{ExtentHooks, Hooks};
use crate::back::metadata;
use crate::back::page_allocator::PageAllocator;
use crate::back::system::page_provider::PageProvider;
use crate::ground::callback;
use crate::ground::checked::at;
use crate::ground::in_place::{Place, write_fields};
use crate::ground::os;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::units::LG_PAGE;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::wiped;
use core::sync::atomic::{
    AtomicBool, AtomicIsize, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};

/// One arena.
pub(crate) struct Arena {
    id: u32,
    /// The program created it. Only threads that are sent here use it, and it can be destroyed.
    created: bool,
    /// Whether blocks may be allocated here: see `arena_end`.
    life: Life,
    /// The dirty decay time in milliseconds, for those who do not hold the lock of the pages.
    decay_ms: AtomicIsize,
    /// Unused pages that stay, whatever purges: see `reserve`.
    reserve: AtomicUsize,
    /// The functions that the arena's pages come from, if it has hooks.
    hooks: Hooks,
    hooked: AtomicBool,
    /// A purge was put off: see `arena_hooks`.
    is_purge_put_off: AtomicBool,
    /// How often the arena's blocks were discarded.
    resets: AtomicU32,
    /// Heap profiles and the counts beside them leave the arena's allocations out.
    unprofiled: AtomicBool,
    /// The arena's pages.
    pub(crate) pages: RankedMutex<ArenaPages>,
    bins: [ArenaBin; CLASSES],
    /// When the arena was made or came back to life, in nanoseconds of the monotonic clock.
    pub(crate) born: AtomicU64,
}

impl Arena {
    /// A record for the arena with an index. Called under the lock of the list.
    pub(in crate::middle) fn new_at(
        id: u32,
        created: bool,
        provider: &'static dyn PageProvider,
    ) -> Option<&'static Arena> {
        let memory = metadata::allocate(size_of::<Arena>(), align_of::<Arena>().max(64))?;
        let memory = memory.cast::<Arena>();
        // SAFETY: fresh memory of the right size and alignment.
        let place = unsafe { Place::new(memory) };
        write_fields!(place => Arena {
            id: id,
            created: created,
            life: Life::new(),
            decay_ms: AtomicIsize::new(-1),
            reserve: AtomicUsize::new(0),
            hooks: Hooks::new(id),
            hooked: AtomicBool::new(false),
            is_purge_put_off: AtomicBool::new(false),
            resets: AtomicU32::new(0),
            unprofiled: AtomicBool::new(false),
            pages => |at| RankedMutex::begin_at(at, LockRank::Pages, |at| {
                ArenaPages::begin_at(at, id, created, provider);
            }),
            bins => |at: Place<_>| at.write_each(ArenaBin::new),
            born: AtomicU64::new(os::nanoseconds_of_system()),
        });
        // SAFETY: just written, and never unmapped.
        Some(unsafe { memory.as_ref() })
    }

    /// The arena's index.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Where the arena's pages come from.
    pub(crate) fn provider(&self) -> &'static dyn PageProvider {
        self.pages.lock().allocator.source().provider()
    }

    /// As [`Arena::provider`], or `None` if the pages come from hooks.
    pub(in crate::middle) fn provider_unless_hooked(&self) -> Option<&'static dyn PageProvider> {
        let mut pages = self.pages.lock();
        (!pages.allocator.is_hooked()).then(|| pages.allocator.source().provider())
    }

    /// The arena's bin of a class.
    #[inline(always)]
    pub(crate) fn bin(&self, class: SizeClass) -> &ArenaBin {
        // SAFETY: a class's index is below CLASSES.
        unsafe { at(&self.bins, class.index()) }
    }

    /// Takes back the pages of a slab that its guard has just released.
    pub(crate) fn take_back(&self, slab: &'static Slab) {
        let Some(extent) = slab.extent() else { return };
        slab.fresh.end_at(0);
        slab.holes.clear(self.id());
        let is_zero = !self.is_hooked() && wiped::leave_zero(slab);
        self.pages.lock().take_back(slab, extent, is_zero);
        self.purge_if_at_once();
    }

    /// Ages unused pages to `now` (milliseconds) and purges what is due. Returns when to call it
    /// again. `None`: no page ages. Hooks are called, so the caller holds no lock.
    pub(crate) fn decay(&self, now: u64) -> Option<u64> {
        if self.waits_for_hook() {
            return Some(now);
        }
        self.decay_by(now, Arena::purge_now)
    }

    /// As [`Arena::decay`], but purges nothing if the arena has hooks.
    pub(in crate::middle) fn decay_unless_hooked(&self, now: u64) -> Option<u64> {
        self.decay_by(now, Arena::purge_unless_hooked)
    }

    fn decay_by(&self, now: u64, purge: impl Fn(&Arena, usize, usize)) -> Option<u64> {
        let (dirty, muzzy) = {
            let Some(mut pages) = self.pages.try_lock() else { return Some(now) };
            if !pages.allocator.is_decay_due(now) {
                return pages.allocator.next_decay();
            }
            pages.allocator.advance(now)
        };
        // Muzzy pages first, because the dirty pages that become muzzy now stay for a decay time.
        purge(self, usize::MAX, muzzy);
        purge(self, dirty, usize::MAX);
        match self.pages.try_lock() {
            Some(pages) => pages.allocator.next_decay(),
            None => Some(now),
        }
    }

    /// Whether the arena has unused pages with memory that decay is to give back. `false` also if
    /// the lock is taken.
    pub(crate) fn has_aging_pages(&self) -> bool {
        self.pages.try_lock().is_some_and(|pages| pages.allocator.next_decay().is_some())
    }

    /// Purges the pages that were just freed at once, if the decay time is 0.
    pub(crate) fn purge_if_at_once(&self) {
        if self.purges_at_once() && self.is_hooked() {
            // Locks may be held, so hooks are called later.
            purge_gate::note_hooked_due();
        } else if self.purges_at_once() {
            // Closed while a fork is under way; then the next purge takes these pages too.
            if let Some(_inside) = GATE.enter() {
                self.purge_unless_hooked(0, usize::MAX);
            }
        }
    }

    /// Purges unused pages until at most `dirty` and `muzzy` ones are left. Inside an extent hook,
    /// all of them are purged when the hook is done.
    pub(crate) fn purge_beyond(&self, dirty: usize, muzzy: usize) {
        if self.waits_for_hook() {
            self.put_purge_off();
        } else {
            self.purge_now(dirty, muzzy);
        }
    }

    /// Whether the program created the arena, by `arenas.create`.
    #[inline]
    pub(crate) fn is_created(&self) -> bool {
        self.created
    }

    /// Whether blocks may be allocated here, so the arena has not been destroyed.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.life.is_live()
    }

    /// Whether the arena's blocks were ever discarded.
    pub(crate) fn was_reset(&self) -> bool {
        self.resets.load(Relaxed) > 0
    }

    /// Whether allocations of the arena are in heap profiles.
    #[inline]
    pub(crate) fn is_profiled(&self) -> bool {
        !self.unprofiled.load(Relaxed)
    }

    /// Sets [`Arena::is_profiled`], and returns what it was.
    pub(in crate::middle) fn note_profiled(&self, is_profiled: bool) -> bool {
        !self.unprofiled.swap(!is_profiled, Relaxed)
    }

    /// The arena's life, which ends when the arena is destroyed, and what is bound to it.
    #[inline]
    pub(crate) fn life(&self) -> &Life {
        &self.life
    }

    /// Begins the end of a created arena: from now on no thread allocates here. `false`: threads
    /// are bound to the arena, or it is not live.
    pub(crate) fn begin_end(&self) -> bool {
        self.life.begin_end()
    }

    /// Bytes of the reserve: unused pages that stay.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserve.load(Relaxed) << LG_PAGE
    }

    /// Whether the arena has a reserve.
    pub(crate) fn has_reserve(&self) -> bool {
        self.reserve.load(Relaxed) != 0
    }

    /// Gives up the reserve: its pages are like others from now on.
    pub(in crate::middle) fn forget_reserve(&self) {
        self.reserve.store(0, Relaxed);
    }

    /// Purges unused pages until at most `dirty` and `muzzy` ones are left, but leaves the reserve.
    /// Purges at once, also inside an extent hook.
    pub(in crate::middle) fn purge_now(&self, dirty: usize, muzzy: usize) {
        self.purge_while(dirty, muzzy, |_| true);
    }

    /// As [`Arena::purge_now`], but ends once the arena has hooks, which another thread may set at
    /// any time. So it may be called under a lock.
    pub(in crate::middle) fn purge_unless_hooked(&self, dirty: usize, muzzy: usize) {
        self.purge_while(dirty, muzzy, |allocator| !allocator.is_hooked());
    }

    fn purge_while(&self, dirty: usize, muzzy: usize, may: impl Fn(&PageAllocator) -> bool) {
        let dirty = dirty.max(self.reserve.load(Relaxed));
        arena_purge::purge_batches(&self.pages, |allocator| {
            may(allocator).then(|| allocator.take_batch(dirty, muzzy)).flatten()
        });
    }

    /// Whether the arena's unused pages are given back at once.
    #[inline]
    pub(crate) fn purges_at_once(&self) -> bool {
        self.decay_ms.load(Relaxed) == 0
    }

    /// Notes the decay time of dirty pages in milliseconds: -1 never, 0 at once.
    pub(in crate::middle) fn note_decay_ms(&self, millis: isize) {
        self.decay_ms.store(millis, Relaxed);
    }

    /// The decay time of dirty pages in milliseconds: -1 never, 0 at once.
    pub(in crate::middle) fn decay_ms(&self) -> isize {
        self.decay_ms.load(Relaxed)
    }

    /// Whether the arena's unused pages are never given back by decay.
    pub(in crate::middle) fn keeps_unused(&self) -> bool {
        self.decay_ms.load(Relaxed) < 0
    }

    /// Purges unused pages until at most `dirty` and `muzzy` ones are left, unless a fork is under
    /// way: then the next pass purges these pages too. Called under no lock.
    pub(in crate::middle) fn purge_by_hand(&self, dirty: usize, muzzy: usize) {
        self.unless_forking(|| self.purge_beyond(dirty, muzzy));
    }

    /// As [`Arena::decay`], outside the decay pass, unless a fork is under way. Called under no
    /// lock.
    pub(crate) fn decay_by_hand(&self, now: u64) {
        self.unless_forking(|| {
            self.decay(now);
        });
    }

    fn unless_forking(&self, act: impl FnOnce()) {
        // Hooks may take long, and a fork does not wait for them.
        if self.is_hooked() {
            act();
        } else if let Some(_inside) = GATE.enter() {
            act();
        }
    }

    /// Whether the arena's pages come from hooks.
    #[inline]
    pub(crate) fn is_hooked(&self) -> bool {
        self.hooked.load(Relaxed)
    }

    /// The table of the arena's hooks.
    pub(crate) fn hook_table(&self) -> *mut ExtentHooks {
        self.hooks.table()
    }

    /// Whether the arena has hooks that the calling thread may not call, being inside a hook.
    pub(crate) fn waits_for_hook(&self) -> bool {
        self.is_hooked() && callback::is_in_hook()
    }

    /// Puts the purge of all unused pages off until the calling thread's hook is done.
    pub(in crate::middle) fn put_purge_off(&self) {
        self.is_purge_put_off.store(true, Relaxed);
        purge_gate::note_hooked_due();
    }

    /// Forgets the hooks, because the arena begins another life, without pages.
    pub(in crate::middle) fn forget_hooks(&self) {
        let _forgotten = self.hooks.set(core::ptr::null_mut());
        self.hooked.store(false, Relaxed);
        self.is_purge_put_off.store(false, Relaxed);
    }

    /// The functions that the arena's pages come from.
    pub(in crate::middle) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Sets the table of hooks, and returns the one before. From then on the arena's pages come
    /// from the new hooks.
    pub(in crate::middle) fn set_hooks(&'static self, table: *mut ExtentHooks) -> *mut ExtentHooks {
        let before = self.hooks.set(table);
        let mut pages = self.pages.lock();
        // Under the lock, so that a thread that has found the hooks can ask them.
        self.hooked.store(true, Relaxed);
        pages.allocator.hook(&self.hooks);
        // What growth called for so far would be purged by the hooks, under a lock.
        let _forgotten = pages.allocator.take_growth();
        before
    }

    /// Returns whether a purge was put off, and clears that note.
    pub(in crate::middle) fn take_put_off_purge(&self) -> bool {
        self.is_purge_put_off.swap(false, Relaxed)
    }

    /// Sets the reserve: how many unused pages stay, whatever purges.
    pub(in crate::middle) fn note_reserve(&self, pages: usize) {
        self.reserve.store(pages, Relaxed);
    }

    /// Counts that all blocks of the arena were discarded.
    pub(in crate::middle) fn note_reset(&self) {
        self.resets.fetch_add(1, Relaxed);
    }

    /// Ends what [`Arena::begin_end`] began: the index may be used again.
    pub(in crate::middle) fn complete_end(&self) {
        self.life.complete_end();
    }

    /// Whether the arena has ended, and may be brought back to life.
    pub(in crate::middle) fn is_dead(&self) -> bool {
        self.life.is_dead()
    }

    /// Brings the arena, which has ended, back to life. Its settings are those of an arena that was
    /// just made. Called under the lock of the list.
    pub(in crate::middle) fn revive(&self) {
        self.born.store(os::nanoseconds_of_system(), Relaxed);
        self.life.revive();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::Memory;
    use crate::front::life::thread_begin;
    use crate::ground::callback::Callback;
    use crate::ground::units::PAGE;
    use crate::middle::arenas::{arena_hooks, choose_arena};

    const RUN: usize = 64;

    /// An arena that no other thread knows.
    fn arena() -> &'static Arena {
        choose_arena::create().expect("an arena")
    }

    fn use_and_free(arena: &Arena) {
        let mut pages = arena.pages.lock();
        let run = pages.allocator.allocate(RUN, PAGE, Memory::Any).expect("memory");
        pages.allocator.free(run);
    }

    fn dirty(arena: &Arena) -> usize {
        arena.pages.lock().allocator.counts().dirty
    }

    #[test]
    fn a_purge_leaves_the_reserve() {
        let arena = arena();
        use_and_free(arena);
        assert_eq!(dirty(arena), RUN);
        arena.note_reserve(RUN / 2);
        assert!(arena.has_reserve() && arena.reserved_bytes() == RUN / 2 * PAGE);
        arena.purge_now(0, 0);
        assert_eq!(dirty(arena), RUN / 2);
        arena.forget_reserve();
        arena.purge_now(0, 0);
        assert_eq!((dirty(arena), arena.has_reserve()), (0, false));
    }

    #[test]
    fn pages_go_at_once_only_where_that_is_wanted() {
        let arena = arena();
        use_and_free(arena);
        arena.purge_if_at_once();
        assert_eq!(dirty(arena), RUN);
        arena.note_decay_ms(0);
        arena.purge_if_at_once();
        assert_eq!(dirty(arena), 0);
    }

    #[test]
    fn growth_before_hooks_calls_for_no_purge_by_them() {
        let arena = arena();
        let grow = |length: usize| {
            let mut pages = arena.pages.lock();
            let run = pages.allocator.allocate(length, PAGE, Memory::Any).expect("memory");
            pages.allocator.free(run);
        };
        [1000, 2000, 4100].into_iter().for_each(grow);
        assert!(arena.pages.lock().allocator.take_growth().is_some(), "it counts");
        [9000, 20_000].into_iter().for_each(grow);
        arena_hooks::set(arena, core::ptr::null_mut());
        assert_eq!(arena.pages.lock().allocator.take_growth(), None);
    }

    /// Another thread may set hooks between the look at an arena and the purge under a lock.
    #[test]
    fn a_purge_that_may_not_call_hooks_leaves_an_arena_that_has_them() {
        let arena = arena();
        use_and_free(arena);
        assert!(arena.provider_unless_hooked().is_some());
        arena_hooks::set(arena, core::ptr::null_mut());
        arena.purge_unless_hooked(0, 0);
        arena.decay_unless_hooked(1_000_000);
        assert_eq!(dirty(arena), RUN);
        assert!(arena.provider_unless_hooked().is_none());
        arena.purge_now(0, 0);
        assert_eq!(dirty(arena), 0);
    }

    #[test]
    fn dirty_pages_become_muzzy_and_then_go() {
        let arena = arena();
        arena.pages.lock().allocator.aging().set_millis(true, 1000);
        arena.pages.lock().allocator.aging().set_millis(false, 1000);
        use_and_free(arena);
        let after = |now| {
            arena.decay(now);
            let counts = arena.pages.lock().allocator.counts();
            (counts.dirty, counts.muzzy)
        };
        assert_eq!(after(10_000), (RUN, 0));
        assert_eq!(after(11_500), (0, RUN));
        assert_eq!(after(12_000), (0, RUN));
        assert_eq!(after(13_000), (0, 0));
    }

    #[test]
    fn inside_a_hook_a_purge_is_put_off() {
        // The process has started, so that threads know that they are inside a hook.
        thread_begin::real_cache();
        let arena = arena();
        use_and_free(arena);
        arena_hooks::set(arena, core::ptr::null_mut());
        callback::run(Callback::Hook, || {
            assert!(arena.waits_for_hook());
            arena.purge_beyond(0, 0);
        });
        assert!(!arena.waits_for_hook());
        // A thread of another test may be the one that purges.
        arena_hooks::tick();
        while dirty(arena) + arena.pages.lock().allocator.counts().purging > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn an_arena_ends_when_no_thread_is_bound_to_it_and_lives_again() {
        let arena = arena();
        let ends = arena.life.ends();
        assert!(arena.is_live() && arena.life.bind() && !arena.begin_end());
        arena.life.unbind();
        assert!(arena.begin_end() && !arena.is_live());
        assert!(!arena.life.bind() && !arena.is_dead(), "it has not ended yet");
        arena.complete_end();
        assert_eq!(arena.life.ends(), ends + 1);
        assert!(arena.is_dead());
        arena.revive();
        assert!(arena.is_live() && arena.life.bound() == 0);
    }
}
