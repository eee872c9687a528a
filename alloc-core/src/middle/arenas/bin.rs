//! One size class of one arena: the slabs that no cache owns.
//!
//! They are shared: a cache's first refills of a class come from here under the bin's lock, so that
//! thousands of threads need not own a slab for each class; and a cache that wants a slab adopts
//! one from here before a fresh one is made.

use crate::ground::counters::OwnedCount;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::middle::slabs::remote_free::PendingStack;
use crate::middle::slabs::slab::Slab;
use crate::middle::slabs::slab_links::ListName;
use crate::middle::slabs::slab_list::SlabList;
use crate::middle::slabs::transfer_cache::TransferCache;

/// One class of one arena.
#[repr(align(64))]
pub(crate) struct ArenaBin {
    /// The slabs that no cache owns and that have free blocks. Full ones are in no list: a remote
    /// free brings them back by way of `pending`.
    pub(crate) slabs: RankedMutex<BinSlabs>,
    /// Slabs of this bin with remote frees.
    pub(crate) pending: PendingStack,
    /// Blocks that left by way of the bin, past all caches, and that came back so. Written under
    /// the bin's lock.
    pub(crate) filled: OwnedCount,
    pub(crate) flushed: OwnedCount,
    /// Of the latter, those that their slab's guard has yet to take in; and remote frees that the
    /// bin took in as the guard.
    pub(crate) sent: OwnedCount,
    pub(crate) absorbed: OwnedCount,
}

/// What the bin's lock guards.
pub(crate) struct BinSlabs {
    pub(crate) partial: SlabList,
    /// Blocks that wait for the next thread that asks.
    pub(crate) transfer: TransferCache,
    /// Refills that found the lock free.
    pub(crate) opens: u64,
    /// Slabs that caches took over.
    pub(crate) adopted: u64,
}

impl ArenaBin {
    /// A bin without slabs.
    pub(crate) const fn new() -> ArenaBin {
        ArenaBin {
            slabs: RankedMutex::new(
                LockRank::Bin,
                BinSlabs {
                    partial: SlabList::new(),
                    transfer: TransferCache::new(),
                    opens: 0,
                    adopted: 0,
                },
            ),
            pending: PendingStack::new(),
            filled: OwnedCount::new(),
            flushed: OwnedCount::new(),
            sent: OwnedCount::new(),
            absorbed: OwnedCount::new(),
        }
    }

    /// Whether nobody ever had anything to do with it: walkers pass it by without its lock.
    #[inline]
    pub(crate) fn is_untouched(&self) -> bool {
        self.slabs.counts().taken == 0
    }
}

impl BinSlabs {
    /// A slab to adopt, the fullest end of the list first used.
    pub(crate) fn pop(&mut self) -> Option<&'static Slab> {
        let slab = self.partial.first()?;
        self.partial.remove(slab);
        self.adopted += 1;
        Some(slab)
    }

    /// Files a slab that this bin now guards.
    pub(crate) fn file(&mut self, slab: &'static Slab) {
        if slab.list() == ListName::None && !slab.is_full() {
            self.partial.push_front(slab, ListName::Partial);
        }
    }
}
