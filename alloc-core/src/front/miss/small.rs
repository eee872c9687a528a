//! Small blocks that no bin of the thread's cache has, or has room for: from the slabs, and back.

use super::large_blocks;
use super::out_of_memory::no_memory;
use super::retry::with_retry;
use crate::back::map::page_map;
use crate::front::cache::current;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::thread::Moves;
use crate::front::life::{background, thread_begin};
use crate::front::modes::block_size::{self, usable};
use crate::front::modes::{fill, guarded, judge};
use crate::front::supply::refill;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_UNIT, SizeClass, size_for_align};
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::choose_arena;
use crate::middle::blocks::last_words;
use crate::middle::blocks::uncached;
use crate::middle::slabs::slab::Slab;

/// A small block, past all façades; a large one where beside its canary no slab has room for it.
/// Null: no memory.
#[inline(never)]
pub(super) fn malloc_any(size: usize, align: usize) -> *mut u8 {
    // Even as the very first call it knows the modes.
    thread_begin::real_cache();
    let Some(room) = block_size::room(size, align) else { return no_memory(size) };
    if room > MAX_CACHED {
        // Beside its canary there is no room for it in a slab.
        return large_blocks::malloc(size, align, false);
    }
    let class = SizeClass::of(room);
    let block = with_retry(|| small(class));
    if block.is_null() {
        return no_memory(size);
    }
    if let Some(sample) = take_sample(class, block, size, align) {
        return sample;
    }
    // SAFETY: a fresh block of the class.
    unsafe { judge::handed_out(block, class) };
    block
}

fn small(class: SizeClass) -> *mut u8 {
    if let Some(cache) = thread_begin::real_cache().filter(|cache| cache.holds(class)) {
        let block = refill::request(cache, class);
        background::tick();
        if !block.is_null() {
            // A sample may take its place.
            if let Some(thread) = cache.thread().filter(|_| !cache.sample_due.get()) {
                thread.got_cached(usable(class));
            }
            return block;
        }
    }
    let block =
        thread_begin::home().map_or(core::ptr::null_mut(), |arena| malloc_uncached(arena, class));
    background::tick_outside();
    block
}

/// One small block past all caches. Null: no memory.
pub(crate) fn malloc_uncached(arena: &'static Arena, class: SizeClass) -> *mut u8 {
    let (block, was_taken) = uncached::allocate(arena, class);
    if was_taken && let Some(cache) = current::real_cache() {
        choose_arena::note_meeting(&cache.owner.home, arena);
    }
    if !block.is_null() {
        current::count_given(usable(class));
    }
    block
}

/// A small block for a thread without modes. Null: try [`malloc_any`], which does what may help.
#[inline]
pub(super) fn malloc_plain(cache: &'static RealCache, size: usize, align: usize) -> *mut u8 {
    let class = match size_for_align(size, align) {
        Some(rounded) if rounded <= MAX_CACHED => SizeClass::of(rounded),
        _ => return core::ptr::null_mut(),
    };
    if !cache.holds(class) {
        return core::ptr::null_mut();
    }
    let block = refill::request(cache, class);
    background::tick();
    if let Some(thread) = cache.thread().filter(|_| !block.is_null()) {
        thread.got_cached(class.size());
    }
    block
}

/// Takes a small block that its bin has no room for from a thread without modes; `units` is what
/// the class map says. `false`: nothing was done.
#[inline]
pub(super) fn free_plain(cache: &'static RealCache, block: *mut u8, units: usize) -> bool {
    let Some(class) = SizeClass::from_bin(units / (BIN_BYTES / OFFSET_UNIT)) else { return false };
    let holds = cache.holds(class);
    if holds {
        overflow(cache, class, block);
        background::tick();
    }
    holds
}

fn overflow(cache: &'static RealCache, class: SizeClass, block: *mut u8) {
    refill::overflow(cache, class, block);
    if let Some(thread) = cache.thread().filter(|thread| thread.moves() == Moves::Slowly) {
        thread.refresh();
    }
}

/// Takes a block of a slab back: into its bin, or past all caches.
pub(super) fn free(slab: &'static Slab, block: *mut u8) {
    let class = slab.class();
    if let Some(cache) = thread_begin::real_cache().filter(|cache| cache.holds(class)) {
        if !cache.bin(class).put(block) {
            overflow(cache, class, block);
        }
        return;
    }
    free_uncached(slab, block.expose_provenance());
}

/// Takes a block that a façade has judged, and that its real bin does not take.
#[cold]
#[inline(never)]
pub(super) fn push_missed(block: *mut u8) {
    if let Some(slab) = Slab::of(page_map::lookup(block as usize)) {
        free(slab, block);
    }
    background::tick_outside();
}

/// Takes one block of a slab back past all caches.
pub(crate) fn free_uncached(slab: &'static Slab, address: usize) {
    // Once the block is home its slab may become another's, of another class.
    let class = slab.class();
    let Some(slot) = class.slot_at(address - slab.base()) else {
        last_words::interior(slab, address)
    };
    if let Some(arena) = arena_list::by_id(slab.arena()) {
        uncached::free(arena, slab, slot, address);
    }
    current::count_freed(usable(class));
}

/// A sample in place of a block that was just popped, if the request is to get one; the block is
/// cached again. `None`: the block it is.
fn take_sample(class: SizeClass, block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let cache = current::real_cache()?;
    if !cache.sample_due.replace(false) {
        return None;
    }
    let Some(sample) = guarded::allocate(class, size, align) else {
        let thread = cache.thread().filter(|_| cache.holds(class));
        thread.into_iter().for_each(|thread| thread.got_cached(usable(class)));
        return None;
    };
    if !cache.bin(class).put(block) {
        // Collection came by meanwhile and dropped the array.
        push_missed(block);
    }
    // A sample is no request of the class.
    cache.cold(class).armed.add(1u64.wrapping_neg());
    current::count_given(size);
    // SAFETY: a fresh block of that size.
    unsafe { fill::allocated(sample, size) };
    Some(sample)
}
