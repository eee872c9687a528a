//! One size class of one arena: the slabs that no cache owns.
//!
//! Caches share these slabs. A cache's first refills of a class come from here under the bin's
//! lock, so thousands of threads need not own a slab for each class. A cache that wants a slab
//! adopts one from here before a fresh one is made.

use super::entries::Entries;
#[cfg(feature = "checks")]
use crate::back::map::page_map;
use crate::ground::counters::OwnedCount;
#[cfg(feature = "checks")]
use crate::ground::holds::holds;
#[cfg(feature = "checks")]
use crate::ground::size_class::SizeClass;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::middle::handed_out::Untold;
#[cfg(feature = "checks")]
use crate::middle::slabs::remote_free::Guard;
use crate::middle::slabs::remote_free::PendingStack;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_links::ListName;
use crate::middle::slabs::slab_list::SlabList;
use crate::middle::slabs::transfer_cache::TransferCache;

/// One class of one arena.
#[repr(align(64))]
pub(crate) struct ArenaBin {
    /// The slabs that no cache owns and that have free blocks. Full ones are in no list; a remote
    /// free brings them back through `pending`.
    pub(crate) slabs: RankedMutex<BinSlabs>,
    /// Slabs of this bin with remote frees.
    pub(crate) pending: PendingStack,
    /// Blocks that left through the bin, past all caches (`filled`), and that came back so
    /// (`flushed`). Written under the bin's lock.
    pub(crate) filled: OwnedCount,
    pub(crate) flushed: OwnedCount,
    /// `sent`: of the flushed blocks, those that their slab's guard has yet to take in. `absorbed`:
    /// remote frees that the bin took in as the guard.
    pub(crate) sent: OwnedCount,
    pub(crate) absorbed: OwnedCount,
}

/// What the bin's lock guards.
pub(crate) struct BinSlabs {
    pub(crate) partial: SlabList,
    /// The slabs whose blocks are samples, and that have free blocks.
    pub(crate) samples: SlabList,
    /// Blocks that wait for the next request.
    pub(crate) transfer: TransferCache,
    /// Refills of threads that chose this arena.
    pub(crate) entries: Entries,
    /// Slabs that caches took over.
    pub(crate) adopted: u64,
    /// What left through the bin past all caches, less what came back so.
    pub(crate) untold: Untold,
}

impl ArenaBin {
    /// A bin without slabs.
    pub(crate) const fn new() -> ArenaBin {
        ArenaBin {
            slabs: RankedMutex::new(
                LockRank::Bin,
                BinSlabs {
                    partial: SlabList::new(),
                    samples: SlabList::new(),
                    transfer: TransferCache::new(),
                    entries: Entries::new(),
                    adopted: 0,
                    untold: Untold::of_owner(),
                },
            ),
            pending: PendingStack::new(),
            filled: OwnedCount::new(),
            flushed: OwnedCount::new(),
            sent: OwnedCount::new(),
            absorbed: OwnedCount::new(),
        }
    }

    /// Whether no thread ever took the bin's lock. Walkers skip such a bin without its lock.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        self.slabs.counts().taken == 0
    }
}

impl BinSlabs {
    /// Checks the slabs of a class of an arena, under the bin's lock.
    #[cfg(feature = "checks")]
    pub(in crate::middle) fn check(&self, arena: u32, class: SizeClass) {
        let of_bin = |slab: &Slab| {
            let guard = slab.remote.guard();
            guard == Some(Guard::Bin) && slab.arena() == arena && slab.class() == class
        };
        for (list, for_samples) in [(&self.partial, false), (&self.samples, true)] {
            list.check(|slab| {
                holds(of_bin(slab) && slab.list() == ListName::Partial && !slab.is_full());
                holds(slab.is_for_samples() == for_samples);
            });
        }
        self.transfer.check(|block| {
            let slab = Slab::of(page_map::lookup(block.expose_provenance()));
            holds(slab.is_some_and(of_bin));
        });
    }

    /// Takes out a slab to be adopted: the first of the list, where the fullest ones are.
    pub(crate) fn pop(&mut self) -> Option<&'static Slab> {
        let slab = self.partial.first()?;
        self.partial.remove(slab);
        self.adopted += 1;
        Some(slab)
    }

    /// Files a slab that this bin now guards.
    pub(crate) fn file(&mut self, slab: &'static Slab) {
        if slab.list() == ListName::None && !slab.is_full() {
            self.list_of(slab).push_front(slab, ListName::Partial);
        }
    }

    /// Returns the list in which a slab is while it has free blocks.
    #[inline]
    pub(in crate::middle) fn list_of(&mut self, slab: &Slab) -> &mut SlabList {
        if slab.is_for_samples() { &mut self.samples } else { &mut self.partial }
    }

    /// Returns a slab in a list of which no block is in use, if there is one.
    pub(in crate::middle) fn find_unused(&self) -> Option<&'static Slab> {
        self.partial.find_unused().or_else(|| self.samples.find_unused())
    }

    /// Takes all slabs out of their lists.
    pub(in crate::middle) fn strike_all(&mut self) {
        for list in [&mut self.partial, &mut self.samples] {
            list.remove_if(|_| true);
        }
    }
}
