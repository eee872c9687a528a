//! How full the slab of a block is, and the slabs of its class. Source: jemalloc(3) 5.3,
//! `experimental.utilization.*`.

use crate::back::map::page_map;
use crate::front::cache::registry;
use crate::ground::size_class::SizeClass;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_list;
use crate::middle::blocks::slab_hold;
use crate::middle::slabs::slab::Slab;

/// The slab of a block, or the large block. All zero for a pointer that is not a block of this
/// allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilization {
    /// Free blocks in the slab. Blocks in thread caches do not count as free.
    pub nfree: usize,
    /// Blocks in the slab, or 1 for a large block.
    pub nregs: usize,
    /// Bytes of the slab, or of the large block.
    pub size: usize,
}

/// The slabs of a block's class in its arena. All zero for a large block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BinUtilization {
    /// The address of the slab that the arena's bin takes blocks from next, or 0 if there is none.
    pub slabcur: usize,
    /// Free blocks in all slabs of the class.
    pub nfree: usize,
    /// Blocks in all slabs of the class.
    pub nregs: usize,
}

/// Returns how full the slab around an address is.
///
/// ```
/// let block = lumalloc::raw::malloc(100);
/// let around = lumalloc::observe::utilization(block);
/// assert_eq!((around.nregs, around.size), (585, 64 << 10));
/// assert!(around.nfree < 585);
/// // SAFETY: a live block, used no more.
/// unsafe { lumalloc::raw::free(block) };
/// let nothing = lumalloc::observe::utilization(std::ptr::null());
/// assert_eq!(nothing, Default::default());
/// ```
#[must_use]
pub fn utilization(block: *const u8) -> Utilization {
    let entry = page_map::lookup(block as usize);
    if Slab::of(entry).is_some() {
        let page = block as usize & !(PAGE - 1);
        let Some(held) = slab_hold::hold(page, entry) else { return Utilization::default() };
        let nregs = held.slab.class().slots();
        return Utilization { nfree: nregs - held.in_use(), nregs, size: held.bytes() };
    }
    match entry.extent().filter(|run| run.is_block_at(block as usize)) {
        Some(run) => Utilization { nfree: 0, nregs: 1, size: run.bytes() },
        None => Utilization::default(),
    }
}

/// Returns how full the slabs of a block's class are, in the block's arena.
#[must_use]
pub fn bin_utilization(block: *const u8) -> BinUtilization {
    let Some(slab) = Slab::of(page_map::lookup(block as usize)) else {
        return BinUtilization::default();
    };
    let (class, id) = (slab.class(), slab.arena());
    let Some(arena) = arena_list::by_id(id) else { return BinUtilization::default() };
    let (mut out, mut home) = cached_accounts(class, id);
    let slabcur = {
        let bin = arena.bin(class);
        let slabs = bin.slabs.lock();
        out += bin.filled.get();
        home += bin.flushed.get();
        slabs.partial.first().map_or(0, Slab::base)
    };
    let slabs = arena.pages.lock().slabs.of(class);
    let nregs = slabs.made.saturating_sub(slabs.gone) as usize * class.slots();
    let used = out.saturating_sub(home) as usize;
    BinUtilization { slabcur, nfree: nregs.saturating_sub(used), nregs }
}

/// Returns how many blocks of an arena caches got from slabs, and how many they returned, since the
/// start.
fn cached_accounts(class: SizeClass, arena: u32) -> (u64, u64) {
    let (mut out, mut home) = (0, 0);
    for cache in registry::all() {
        let _state = cache.owner.state.lock();
        let accounts = cache.owner.ledger.accounts(class.index());
        for account in accounts.filter(|account| account.arena() == arena) {
            out += account.filled.get();
            home += account.flushed.get();
        }
    }
    (out, home)
}
