//! An arena: a heap shard with its own pages, bins and locks.
//!
//! A slab or large block belongs to the arena whose pages it is made of, whoever frees it. Records
//! of arenas are never unmapped; see [`super::arena_list`] for their making, and
//! [`crate::middle::passes::arena_end`] for the end of those that programs create.

use super::arena_life::Life;
use super::arena_pages::ArenaPages;
use super::bin::ArenaBin;
use super::purge_gate::{self, GATE};
use crate::back::hooked::hooks::{ExtentHooks, Hooks};
use crate::back::metadata;
use crate::back::system::page_provider::PageProvider;
use crate::ground::callback;
use crate::ground::checked::at;
use crate::ground::os;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::units::LG_PAGE;
use crate::middle::slabs::slab::Slab;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// One arena.
pub(crate) struct Arena {
    id: u32,
    /// The program created it: threads that were not sent here never come, and it can be destroyed.
    created: bool,
    /// Whether blocks may be allocated here: see `arena_end`.
    life: Life,
    /// Unused pages go at once: its dirty decay time is 0.
    at_once: AtomicBool,
    /// Unused pages that stay, whatever purges: see `reserve`.
    reserve: AtomicUsize,
    /// The functions that its pages come by, if there are any.
    hooks: Hooks,
    hooked: AtomicBool,
    /// A purge was put off: see `arena_hooks`.
    owes_purge: AtomicBool,
    /// How often its blocks were discarded.
    resets: AtomicU32,
    /// Its pages.
    pub(crate) pages: RankedMutex<ArenaPages>,
    bins: [ArenaBin; CLASSES],
    /// When it was made, or came back to life, in nanoseconds of the monotonic clock.
    pub(crate) born: AtomicU64,
}

impl Arena {
    /// A record for the arena with an index. Under the lock of the list.
    pub(in crate::middle) fn new_at(
        id: u32,
        created: bool,
        provider: &'static dyn PageProvider,
    ) -> Option<&'static Arena> {
        let memory = metadata::allocate(size_of::<Arena>(), align_of::<Arena>().max(64))?;
        let arena = Arena {
            id,
            created,
            life: Life::new(),
            at_once: AtomicBool::new(false),
            reserve: AtomicUsize::new(0),
            hooks: Hooks::new(id),
            hooked: AtomicBool::new(false),
            owes_purge: AtomicBool::new(false),
            resets: AtomicU32::new(0),
            pages: RankedMutex::new(LockRank::Pages, ArenaPages::new(id, created, provider)),
            bins: [const { ArenaBin::new() }; CLASSES],
            born: AtomicU64::new(os::nanoseconds()),
        };
        let place = memory.cast::<Arena>();
        // SAFETY: fresh memory of the right size and alignment.
        unsafe { place.write(arena) };
        // SAFETY: just written, and never unmapped.
        Some(unsafe { place.as_ref() })
    }

    /// Its index.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Where its pages come from.
    pub(crate) fn provider(&self) -> &'static dyn PageProvider {
        self.pages.lock().allocator.source().provider()
    }

    /// The bin of a class.
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
        self.pages.lock().take_back(slab, extent);
        self.purge_if_at_once();
    }

    /// Ages unused pages to `now` (milliseconds) and purges what is due. Answers when it should
    /// come again; `None`: there is nothing to wait for.
    pub(crate) fn decay(&self, now: u64) -> Option<u64> {
        if self.waits_for_hook() {
            return Some(now);
        }
        let (dirty, muzzy) = {
            let Some(mut pages) = self.pages.try_lock() else { return Some(now) };
            if !pages.allocator.is_decay_due(now) {
                return pages.allocator.next_decay();
            }
            pages.allocator.advance(now)
        };
        self.purge_beyond(dirty, muzzy);
        match self.pages.try_lock() {
            Some(pages) => pages.allocator.next_decay(),
            None => Some(now),
        }
    }

    /// Whether it has unused pages with memory that decay is to give back, as far as a look at a
    /// lock that may be taken tells.
    pub(crate) fn has_aging_pages(&self) -> bool {
        self.pages.try_lock().is_some_and(|pages| pages.allocator.next_decay().is_some())
    }

    /// With a decay time of 0, what was just freed is purged at once.
    pub(crate) fn purge_if_at_once(&self) {
        if self.purges_at_once() && self.is_hooked() {
            // Locks may be held.
            purge_gate::note_hooked_due();
        } else if self.purges_at_once() {
            // Closed while a fork is under way: the next one purges these pages too.
            if let Some(_inside) = GATE.enter() {
                self.purge_beyond(0, 0);
            }
        }
    }

    /// Purges unused pages until no more than these are left; inside an extent hook, all of them
    /// when it is done.
    pub(crate) fn purge_beyond(&self, dirty: usize, muzzy: usize) {
        if self.waits_for_hook() {
            self.put_purge_off();
        } else {
            self.purge_now(dirty, muzzy);
        }
    }

    /// Whether the program created it, by `arenas.create`.
    #[inline]
    pub(crate) fn is_created(&self) -> bool {
        self.created
    }

    /// Whether blocks may be allocated here: it has not been destroyed.
    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.life.is_live()
    }

    /// Whether blocks of it were ever discarded.
    pub(crate) fn was_reset(&self) -> bool {
        self.resets.load(Relaxed) > 0
    }

    /// Notes one more thread that is bound to it. `false`: it has been destroyed.
    pub(crate) fn bind(&self) -> bool {
        self.life.bind()
    }

    /// Notes one thread less.
    pub(crate) fn unbind(&self) {
        self.life.unbind();
    }

    /// How many threads are bound to it.
    pub(crate) fn bound(&self) -> u32 {
        self.life.bound()
    }

    /// How often an arena of this index was destroyed.
    pub(crate) fn ends(&self) -> u32 {
        self.life.ends()
    }

    /// Begins the end of a created arena: from now on nobody allocates here. `false`: threads are
    /// bound to it, or it lives no more.
    pub(crate) fn begin_end(&self) -> bool {
        self.life.begin_end()
    }

    /// Bytes of unused pages that stay.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.reserve.load(Relaxed) << LG_PAGE
    }

    /// Whether any stay.
    pub(crate) fn has_reserve(&self) -> bool {
        self.reserve.load(Relaxed) != 0
    }

    /// The pages are like others from now on.
    pub(in crate::middle) fn forget_reserve(&self) {
        self.reserve.store(0, Relaxed);
    }

    /// Purges unused pages until no more than these are left, or than the reserve, wherever it is
    /// called.
    pub(in crate::middle) fn purge_now(&self, dirty: usize, muzzy: usize) {
        let dirty = dirty.max(self.reserve.load(Relaxed));
        loop {
            let Some(batch) = self.pages.lock().allocator.take_batch(dirty, muzzy) else { return };
            batch.purge();
            if !self.pages.lock().allocator.file_batch(batch) {
                return;
            }
        }
    }

    /// Whether its unused pages go at once.
    #[inline]
    pub(crate) fn purges_at_once(&self) -> bool {
        self.at_once.load(Relaxed)
    }

    /// Notes whether its unused pages go at once.
    pub(in crate::middle) fn set_purges_at_once(&self, at_once: bool) {
        self.at_once.store(at_once, Relaxed);
    }

    /// Purges unused pages until no more than these are left, unless a fork is under way: the next
    /// pass purges these pages too. Under no lock.
    pub(in crate::middle) fn purge_by_hand(&self, dirty: usize, muzzy: usize) {
        // Hooks may take their time, and a fork does not wait for them.
        if self.is_hooked() {
            self.purge_beyond(dirty, muzzy);
        } else if let Some(_inside) = GATE.enter() {
            self.purge_beyond(dirty, muzzy);
        }
    }

    /// Whether its pages come by hooks.
    #[inline]
    pub(crate) fn is_hooked(&self) -> bool {
        self.hooked.load(Relaxed)
    }

    /// The table of its hooks.
    pub(crate) fn hook_table(&self) -> *mut ExtentHooks {
        self.hooks.table()
    }

    /// Whether its pages come by hooks, and the calling thread may not call any by the way.
    pub(crate) fn waits_for_hook(&self) -> bool {
        self.is_hooked() && callback::is_in_hook()
    }

    /// Has its unused pages purged when the hook that runs in the calling thread is done.
    pub(in crate::middle) fn put_purge_off(&self) {
        self.owes_purge.store(true, Relaxed);
        purge_gate::note_hooked_due();
    }

    /// Forgets the hooks: another life begins, without pages.
    pub(in crate::middle) fn forget_hooks(&self) {
        self.hooks.set(core::ptr::null_mut());
        self.hooked.store(false, Relaxed);
        self.owes_purge.store(false, Relaxed);
    }

    /// The functions that its pages come by.
    pub(in crate::middle) fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// Sets the table of its hooks, and returns the one before. From then on its pages come by
    /// them.
    pub(in crate::middle) fn set_hooks(&'static self, table: *mut ExtentHooks) -> *mut ExtentHooks {
        let before = self.hooks.table();
        self.hooks.set(table);
        self.pages.lock().allocator.hook(&self.hooks);
        self.hooked.store(true, Relaxed);
        before
    }

    /// Whether a purge was put off. It is not from now on.
    pub(in crate::middle) fn take_owed_purge(&self) -> bool {
        self.owes_purge.swap(false, Relaxed)
    }

    /// Notes how many unused pages stay, whatever purges.
    pub(in crate::middle) fn note_reserve(&self, pages: usize) {
        self.reserve.store(pages, Relaxed);
    }

    /// Notes that all its blocks were discarded.
    pub(in crate::middle) fn note_reset(&self) {
        self.resets.fetch_add(1, Relaxed);
    }

    /// Ends what [`Arena::begin_end`] began: the index may be used again.
    pub(in crate::middle) fn complete_end(&self) {
        self.life.complete_end();
    }

    /// Whether it has ended: then it lives again, as if just made. Under the lock of the list.
    pub(in crate::middle) fn revive(&self) -> bool {
        let is_dead = self.life.is_dead();
        if is_dead {
            // Nobody else changes what is dead.
            self.born.store(os::nanoseconds(), Relaxed);
            self.life.revive();
        }
        is_dead
    }
}
