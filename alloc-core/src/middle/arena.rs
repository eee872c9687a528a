//! An arena: a heap shard with its own pages, bins and locks.
//!
//! A slab or large block belongs to the arena whose pages it is made of, whoever frees it. Records
//! of arenas are never unmapped; see [`super::arena_list`] for their making, and
//! [`super::arena_end`] for the end of those that programs create.

use super::arena_counts::{LargeCounts, SlabCounts};
use super::arena_life::Life;
use super::arena_name::Name;
use super::bin::ArenaBin;
use super::purge_gate::{self, GATE};
use super::remote_free::Guard;
use super::slab::{RECORD_CLASSES, Slab, lg_words};
use crate::back::extent::Extent;
use crate::back::hooks::Hooks;
use crate::back::metadata::{self, Pool};
use crate::back::page_allocator::{Memory, PageAllocator};
use crate::back::page_map::{self, Entry};
use crate::back::page_provider::PageProvider;
use crate::back::purge_batch::Batch;
use crate::back::untouched;
use crate::ground::checked::at;
use crate::ground::os;
use crate::ground::size_class::{CLASSES, SizeClass};
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

/// One arena.
pub(crate) struct Arena {
    id: u32,
    /// The program created it: threads that were not sent here never come, and it can be destroyed.
    pub(super) created: bool,
    /// Whether blocks may be allocated here: see `arena_end`.
    pub(super) life: Life,
    /// Unused pages go at once: its dirty decay time is 0.
    pub(super) at_once: AtomicBool,
    /// Unused pages that stay, whatever purges: see `reserve`.
    pub(super) reserve: AtomicUsize,
    /// The functions that its pages come by, if there are any.
    pub(super) hooks: Hooks,
    pub(super) hooked: AtomicBool,
    /// A purge was put off: see `arena_hooks`.
    pub(super) owes_purge: AtomicBool,
    /// How often its blocks were discarded.
    pub(super) resets: AtomicU32,
    /// Its pages.
    pub(crate) pages: RankedMutex<ArenaPages>,
    bins: [ArenaBin; CLASSES],
    /// When it was made, or came back to life, in nanoseconds of the monotonic clock.
    pub(crate) born: AtomicU64,
}

/// What the lock of an arena's pages guards.
pub(crate) struct ArenaPages {
    /// Runs of pages.
    pub(crate) allocator: PageAllocator,
    /// Records of slabs that wait for their next use, by length.
    records: [Pool<Slab>; RECORD_CLASSES],
    /// Large blocks.
    pub(crate) large: LargeCounts,
    /// Slabs.
    pub(crate) slabs: SlabCounts,
    /// Entries that found the lock free.
    pub(crate) opens: u64,
    /// What people call it.
    pub(crate) name: Name,
}

impl ArenaPages {
    /// A run for a large block.
    pub(crate) fn allocate_large(
        &mut self,
        pages: usize,
        align: usize,
        memory: Memory,
    ) -> Option<&'static Extent> {
        let extent = self.allocator.allocate(pages, align, memory)?;
        self.large.add(extent.pages());
        Some(extent)
    }

    /// Takes the run of a large block back.
    pub(crate) fn free_large(&mut self, extent: &'static Extent) {
        self.large.remove(extent.pages());
        self.allocator.free(extent);
    }

    /// The same, to be purged now.
    pub(crate) fn free_large_into_batch(&mut self, extent: &'static Extent) -> Batch {
        self.large.remove(extent.pages());
        self.allocator.free_into_batch(extent)
    }
}

impl Arena {
    /// A record for the arena with an index. Under the lock of the list.
    pub(super) fn new_at(
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
            pages: RankedMutex::new(
                LockRank::Pages,
                ArenaPages {
                    allocator: PageAllocator::new(id, provider),
                    records: [const { Pool::new() }; RECORD_CLASSES],
                    large: LargeCounts::new(),
                    slabs: SlabCounts::new(),
                    opens: 0,
                    name: Name::of_arena(id, created),
                },
            ),
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

    /// A fresh slab, all blocks free, in the hands of `guard`. The caller holds the pages' lock.
    pub(crate) fn new_slab(
        pages: &mut ArenaPages,
        class: SizeClass,
        guard: Guard,
        memory: Memory,
    ) -> Option<&'static Slab> {
        let lg = lg_words(class);
        let record = match pages.records.get_mut(lg).and_then(Pool::take) {
            Some(record) => record,
            None => {
                let record = Slab::new_record(lg)?;
                pages.slabs.record_bytes += Slab::record_bytes(lg);
                record
            }
        };
        let slab_pages = usize::from(class.row().slab_pages);
        let may_be_huge = memory == Memory::Any && untouched::may_be_huge(slab_pages);
        let memory = memory.filled_if(may_be_huge);
        let run = pages.allocator.allocate(slab_pages, class.slab_align(), memory);
        let Some(extent) = run else {
            if let Some(pool) = pages.records.get_mut(lg) {
                pool.put(record);
            }
            return None;
        };
        record.prepare(extent, class);
        record.fresh.begin(extent);
        page_map::set_all(extent, record.entry());
        record.remote.birth(guard);
        pages.slabs.add(class);
        Some(record)
    }

    /// Takes back the pages of a slab that its guard has just released.
    pub(crate) fn take_back(&self, slab: &'static Slab) {
        let Some(extent) = slab.extent() else { return };
        slab.fresh.end_at(0);
        slab.holes.clear(self.id());
        let mut pages = self.pages.lock();
        page_map::set_all(extent, Entry::NONE);
        page_map::set_ends(extent);
        pages.allocator.free(extent);
        pages.slabs.remove(slab.class());
        if let Some(pool) = pages.records.get_mut(slab.lg_words()) {
            pool.put(slab);
        }
        drop(pages);
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
}
