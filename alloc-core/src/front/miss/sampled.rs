//! Samples of the heap profiler: blocks whose free is noticed, wherever they are freed.
//!
//! A small sample is a block of its class in a slab that has samples only. The slab lies at low
//! addresses ([`crate::ground::low`]), outside of the class map. So a free without a size takes the
//! slow path. A free that tells the size puts the sample into a bin, where the next pop or flush
//! notices it.
//!
//! Where each allocation is a sample from the start on, façades see each operation, and any block
//! may be a sample, also a guarded one.

use crate::back::map::extent::Extent;
use crate::back::map::page_map;
use crate::front::bins::thread_cache::Kind;
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::cache::real_cache::{RealCache, Thread};
use crate::front::modes::block_size::usable;
use crate::front::modes::{diversion, guarded, judge};
use crate::front::supply::countdown;
use crate::ground::options;
use crate::ground::size_class::{SizeClass, page_class_ceil};
use crate::ground::units::LG_PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::blocks::uncached;
use crate::middle::slabs::slab::Slab;
use crate::profile::live;
use crate::profile::names;
use crate::profile::sampler::{self, Block};

/// Returns whether the calling thread's allocations in an arena are sampled.
fn is_profiled(cache: &RealCache, arena: &Arena) -> bool {
    let is_thread = cache.thread().is_some_and(|thread| thread.is_profiled());
    sampler::is_active() && is_thread && arena.is_profiled()
}

/// Allocates a sample for a request of `size` bytes. `None`: it gets no sample.
pub(super) fn small(
    cache: &'static RealCache,
    arena: &'static Arena,
    class: SizeClass,
    size: usize,
) -> Option<*mut u8> {
    if !is_profiled(cache, arena) {
        return None;
    }
    let block = uncached::allocate_sample(arena, class);
    if block.is_null() {
        sampler::MISSED.add(1);
        return None;
    }
    current::count_given(usable(class));
    note(Some(cache), block.expose_provenance(), size, class.size(), arena.id());
    // SAFETY: a fresh block of the class.
    unsafe { judge::handed_out(block, class, size) };
    Some(block)
}

/// As [`small`], for a request that is served past the bins, which counts its bytes.
pub(crate) fn small_past_bins(
    arena: &'static Arena,
    class: SizeClass,
    size: usize,
) -> Option<*mut u8> {
    let cache = current::real_cache()?;
    if sampler::is_exact() || !countdown::samples_bytes(cache, class.size()) {
        return None;
    }
    small(cache, arena, class, size)
}

/// Makes a small block that is handed out a sample, if each one is.
#[inline(always)]
pub(crate) fn small_exactly(block: *mut u8, size: usize) {
    if sampler::is_exact() {
        note_exactly(block, size);
    }
}

#[inline(never)]
fn note_exactly(block: *mut u8, size: usize) {
    let address = block.expose_provenance();
    // A guarded sample is in no slab: `guarded_exactly`.
    if let Some(slab) = Slab::of(page_map::lookup(address)) {
        note_if_profiled(address, size, slab.class().size(), slab.arena());
    }
}

/// Makes a guarded sample of `size` bytes one of the profiler too, if each block is. It belongs to
/// no arena; that of the thread decides whether it is in profiles.
pub(super) fn guarded_exactly(cache: &RealCache, block: *mut u8, size: usize) {
    let home = cache.owner.home.get();
    if sampler::is_exact() && is_profiled(cache, home) {
        note(Some(cache), block.expose_provenance(), size, size, home.id());
    }
}

/// Makes a block of no bytes that is handed out a sample, if each one is. It belongs to no arena;
/// that of the thread decides whether it is in profiles.
pub(super) fn empty_exactly(block: *mut u8) {
    if sampler::is_exact() {
        let arena = current::real_cache().map_or(0, |cache| cache.owner.home.get().id());
        note_if_profiled(block.expose_provenance(), 0, 0, arena);
    }
}

/// Lets the processor load what [`small_freed`] looks at, while the block's slab is found.
#[inline(always)]
pub(crate) fn small_is_freed_soon(block: *mut u8) {
    if sampler::sees_all() {
        live::prefetch(block.expose_provenance());
    }
}

/// Notes that a small block, a guarded one, or one of no bytes is about to be freed, which is a
/// sample if each one is.
#[inline(always)]
pub(crate) fn small_freed(block: *mut u8) {
    if sampler::sees_all() {
        sampler::note_and_tell_freed(block.expose_provenance());
    }
}

/// Makes a large block a sample if its time has come. `size` bytes were requested.
#[inline]
pub(crate) fn large(extent: &'static Extent, size: usize) {
    if sampler::is_on() {
        large_if_due(extent, size);
    }
}

#[cold]
#[inline(never)]
fn large_if_due(extent: &'static Extent, size: usize) {
    let Some(cache) = current::real_cache() else {
        if sampler::is_exact() {
            note_if_profiled(extent.base(), size, extent.bytes(), extent.arena());
        }
        return;
    };
    let arena = arena_list::by_id(extent.arena());
    if countdown::samples_bytes(cache, extent.bytes())
        && arena.is_some_and(|arena| is_profiled(cache, arena))
    {
        note(Some(cache), extent.base(), size, extent.bytes(), extent.arena());
    }
}

/// Makes a block a sample if allocations of its arena are in profiles, and those of the arena from
/// which the thread allocates: its cache may hold a block of another one.
fn note_if_profiled(address: usize, requested: usize, usable: usize, arena: u32) {
    let Some(its) = arena_list::by_id(arena) else { return };
    let cache = current::real_cache();
    let is_due = match cache {
        Some(cache) => cache.owner.home.get().is_profiled() && is_profiled(cache, its),
        None => is_profiled_without_cache(its),
    };
    if is_due {
        note(cache, address, requested, usable, arena);
    }
}

/// As [`is_profiled`], where the thread has no cache: the last destructors of a thread allocate
/// so. What functions of the program allocate that the allocator calls is in no profile.
fn is_profiled_without_cache(arena: &Arena) -> bool {
    tls::current().kind() == Kind::Uncached
        && sampler::is_active()
        && sampler::samples_new_threads()
        && arena.is_profiled()
}

/// Notes a sample. Without a cache, the thread has the number 0 and no name of its own.
fn note(cache: Option<&RealCache>, address: usize, requested: usize, usable: usize, arena: u32) {
    let own = |thread: &Thread| (thread.number(), thread.name());
    let (thread, name) = cache.and_then(RealCache::thread).map(own).unwrap_or_default();
    let name = names::of_thread(name);
    sampler::note_allocated(Block { address, requested, usable, arena, thread, name });
}

/// Whether each `realloc` is a free and an allocation. Else it is none where the block stays in its
/// place and class, as in the counts of size classes. Source: mprof(1), which counts requests.
fn counts_requests() -> bool {
    options::current().mprof && sampler::is_exact()
}

/// Notes that a small block, which may be a sample, serves a request of another size from now on.
pub(crate) fn small_resized(block: *mut u8, size: usize, slab: &Slab) {
    if !slab.is_for_samples() && !sampler::sees_all() {
        return;
    }
    let (address, usable) = (block.expose_provenance(), slab.class().size());
    if counts_requests() {
        sampler::note_and_tell_freed(address);
        note_if_profiled(address, size, usable, slab.arena());
    } else {
        sampler::note_resized(address, size, usable);
    }
}

/// Returns the class of a small block that only the profiler keeps from the fast paths, so that it
/// grows as it does without.
pub(crate) fn growing_class(block: *mut u8) -> Option<SizeClass> {
    let options = options::current();
    if !sampler::is_on() || options.hardened || options.mprof || diversion::is_on() {
        return None;
    }
    let slab = Slab::of(page_map::lookup(block.expose_provenance()))?;
    (slab.is_for_samples() || sampler::is_exact()).then(|| slab.class())
}

/// Notes that a small block, to which one that [`growing_class`] knows has grown, is for a request
/// of `size` bytes. It may be a guarded sample.
pub(crate) fn small_requested(block: *mut u8, size: usize) {
    let address = block.expose_provenance();
    if let Some(slab) = Slab::of(page_map::lookup(address)) {
        small_resized(block, size, slab);
    } else if let Some(usable) = guarded::usable_size(address) {
        sampler::note_resized(address, size, usable);
    }
}

/// Notes that the memory of a large block is about to be moved elsewhere. Returns where its sample
/// is kept meanwhile, if it is one, for [`move_ends`].
pub(crate) fn move_begins(address: usize) -> Option<usize> {
    sampler::is_on().then(|| sampler::begin_move(address)).flatten()
}

/// Notes the end of what [`move_begins`] began. `is_moved`: the block is free.
pub(crate) fn move_ends(sample: Option<usize>, is_moved: bool) {
    if let Some(sample) = sample {
        sampler::end_move(sample, is_moved);
    }
}

/// Notes that a large block, which may be a sample, had `old` bytes and serves a request of `size`
/// bytes from now on.
pub(crate) fn large_resized(extent: &'static Extent, old: usize, size: usize) {
    if !sampler::is_on() {
        return;
    }
    let stays = page_class_ceil(old >> LG_PAGE) == page_class_ceil(extent.pages());
    if stays && !counts_requests() {
        return sampler::note_resized(extent.base(), size, extent.bytes());
    }
    sampler::note_and_tell_freed(extent.base());
    large_if_due(extent, size);
}

/// Notes that a large block, which may be a sample, is freed.
#[inline]
pub(crate) fn large_freed(address: usize) {
    if sampler::is_on() {
        sampler::note_and_tell_freed(address);
    }
}
