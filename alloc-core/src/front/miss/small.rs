//! Small blocks that the thread's bin lacks or has no room for, from the slabs and back.

use super::large_blocks;
use super::out_of_memory::no_memory;
use super::retry::with_retry;
use super::{recorded, sampled};
use crate::back::map::page_map;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::thread::Moves;
use crate::front::cache::{current, registry};
use crate::front::life::{background, thread_begin};
use crate::front::modes::block_size::{self, usable};
use crate::front::modes::until_sample::Due;
use crate::front::modes::{fill, guarded, judge};
use crate::front::supply::refill;
use crate::ground::intervals;
use crate::ground::operator::Operator;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_UNIT, SizeClass, size_for_align};
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::choose_arena;
use crate::middle::arenas::home_arena::HomeArena;
use crate::middle::blocks::misuse_report;
use crate::middle::blocks::uncached;
use crate::middle::slabs::slab::Slab;
use crate::profile::sampler;

/// Allocates a small block past all façades. If its canary makes it too large for a slab, the block
/// is a large one. Returns null if there is no memory.
#[inline(never)]
pub(super) fn malloc_any(size: usize, align: usize) -> *mut u8 {
    // Makes the modes known at the first call.
    thread_begin::real_cache();
    let Some(room) = block_size::room(size, align) else { return no_memory(size) };
    if room > MAX_CACHED {
        // With its canary it is too large for a slab.
        return large_blocks::malloc(size, align, false, Operator::Unknown);
    }
    let class = SizeClass::of(room);
    let block = with_retry(size, || small(class, size));
    if block.is_null() {
        return no_memory(size);
    }
    let block = match take_sample(class, block, size, align) {
        Some(sample) => sample,
        None => {
            // SAFETY: a fresh block of the class.
            unsafe { judge::handed_out(block, class, size) };
            sampled::small_exactly(block, size);
            block
        }
    };
    recorded::allocated(block, size);
    block
}

fn small(class: SizeClass, size: usize) -> *mut u8 {
    if let Some(cache) = thread_begin::real_cache().filter(|cache| cache.holds(class)) {
        let block = refill::request(cache, class);
        background::tick();
        if !block.is_null() {
            // A sample may replace the block.
            if let Some(thread) = cache.thread().filter(|_| cache.due.get() == Due::Nothing) {
                thread.got_cached(usable(class));
            }
            return block;
        }
    }
    let block = malloc_uncached(None, class, size);
    background::tick_outside();
    if !block.is_null() {
        intervals::count(class.size());
    }
    block
}

/// Allocates one small block past all caches, for a request of `size` bytes: in this arena and from
/// its own memory, or without one at the home of the calling thread. Returns null if there is no
/// memory.
pub(crate) fn malloc_uncached(
    arena: Option<&'static Arena>,
    class: SizeClass,
    size: usize,
) -> *mut u8 {
    let arena = match arena {
        Some(arena) => Some(arena),
        None => match thread_begin::real_cache() {
            Some(cache) => return malloc_at_home(&cache.owner.home, class, size),
            None => arena_list::by_id(0),
        },
    };
    arena.map_or(core::ptr::null_mut(), |arena| {
        past_caches(arena, class, size, || uncached::allocate(arena, class))
    })
}

/// As [`malloc_uncached`], at a thread's home. The thread may move to another one.
fn malloc_at_home(home: &HomeArena, class: SizeClass, size: usize) -> *mut u8 {
    let arena = choose_arena::at_home(home);
    past_caches(arena, class, size, || {
        let (block, was_taken) = uncached::allocate_at(home, arena, class);
        if was_taken {
            choose_arena::note_meeting(home, arena, registry::CACHES.get() as u32);
        }
        block
    })
}

fn past_caches(
    arena: &'static Arena,
    class: SizeClass,
    size: usize,
    allocate: impl FnOnce() -> *mut u8,
) -> *mut u8 {
    if let Some(sample) = sampled::small_past_bins(arena, class, size) {
        return sample;
    }
    let block = allocate();
    if !block.is_null() {
        current::count_given(usable(class));
    }
    block
}

/// Allocates a small block for a thread without modes. If this returns null, the caller tries
/// [`malloc_any`].
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
    if cache.due.get() != Due::Nothing && !block.is_null() {
        return sample_or(class, block, size, align);
    }
    if let Some(thread) = cache.thread().filter(|_| !block.is_null()) {
        thread.got_cached(class.size());
    }
    block
}

/// Returns a sample in place of a block that was just popped, or the block.
#[cold]
#[inline(never)]
fn sample_or(class: SizeClass, block: *mut u8, size: usize, align: usize) -> *mut u8 {
    take_sample(class, block, size, align).unwrap_or(block)
}

/// Frees a small block whose bin had no room, for a thread without modes. `units` is from the class
/// map. Returns `false` if nothing was done.
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

/// Frees a block of a slab: into its bin, or past all caches.
pub(super) fn free(slab: &'static Slab, block: *mut u8) {
    let class = slab.class();
    let cache = thread_begin::real_cache_to_free().filter(|cache| cache.holds(class));
    if let Some(cache) = cache.filter(|_| !slab.is_for_samples()) {
        if !cache.bin(class).put(block) {
            overflow(cache, class, block);
        }
        return;
    }
    free_uncached(slab, block.expose_provenance());
}

/// Frees a block that a façade has checked and whose real bin is full.
#[cold]
#[inline(never)]
pub(super) fn push_missed(block: *mut u8) {
    if let Some(slab) = Slab::of(page_map::lookup(block as usize)) {
        free(slab, block);
    }
    background::tick_outside();
}

/// Frees one block of a slab past all caches.
pub(crate) fn free_uncached(slab: &'static Slab, address: usize) {
    // Read first, because afterwards the slab may get another owner and class.
    let class = slab.class();
    if slab.is_for_samples() {
        sampler::note_and_tell_freed(address);
    }
    let Some(slot) = class.slot_at(address - slab.base()) else {
        misuse_report::interior(slab, address)
    };
    if let Some(arena) = arena_list::by_id(slab.arena()) {
        uncached::free(arena, slab, slot, address);
    }
    current::count_freed(usable(class));
}

/// Replaces a block that was just popped by a sample, if one is due, and caches the block again.
/// Returns `None` if the request keeps the block.
fn take_sample(class: SizeClass, block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let cache = current::real_cache()?;
    let sample = match cache.due.replace(Due::Nothing) {
        Due::Nothing => return None,
        // What is discarded with a created arena is not told one by one.
        Due::Guarded if cache.owner.home.get().is_created() => None,
        Due::Guarded => guarded_sample(cache, class, size, align),
        Due::Profiled => sampled::small(cache, cache.owner.home.get(), class, size),
    };
    let Some(sample) = sample else {
        let thread = cache.thread().filter(|_| cache.holds(class));
        thread.into_iter().for_each(|thread| thread.got_cached(usable(class)));
        return None;
    };
    if !cache.bin(class).put(block) {
        // Collection has dropped the array meanwhile.
        push_missed(block);
    }
    // A sample is not counted as a request of the class.
    cache.cold(class).armed.add(1u64.wrapping_neg());
    Some(sample)
}

fn guarded_sample(
    cache: &RealCache,
    class: SizeClass,
    size: usize,
    align: usize,
) -> Option<*mut u8> {
    let sample = guarded::allocate(class, size, align)?;
    current::count_given(size);
    sampled::guarded_exactly(cache, sample, size);
    // SAFETY: a fresh block of that size.
    unsafe { fill::allocated(sample, size) };
    Some(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::cache::registry::tests::{end, new_cache};
    use crate::middle::arenas::choose_arena;

    #[test]
    fn a_block_past_all_caches_comes_from_its_arena_and_goes_back_to_it() {
        let arena = choose_arena::create().expect("an arena");
        let class = SizeClass::of(320);
        let bin = arena.bin(class);
        let [one, two] = [(); 2].map(|()| malloc_uncached(Some(arena), class, 320));
        assert!(!one.is_null() && one != two);
        let slab = Slab::of(page_map::lookup(one as usize)).expect("a slab");
        assert_eq!((slab.arena(), slab.used(), bin.filled.get()), (arena.id(), 2, 2));
        free_uncached(slab, one as usize);
        assert_eq!((slab.used(), bin.flushed.get()), (1, 1));
        assert_eq!(malloc_uncached(Some(arena), class, 320), one, "the lowest free block");
        free_uncached(slab, one as usize);
        free_uncached(slab, two as usize);
    }

    #[test]
    fn only_what_the_cache_holds_takes_the_plain_way() {
        let cache = new_cache();
        cache.largest.set(1024);
        for (size, align) in [(1025, 1), (MAX_CACHED + 1, 1), (8, 4096), (usize::MAX, 8)] {
            assert!(malloc_plain(cache, size, align).is_null(), "{size} {align}");
        }
        let class = SizeClass::of(1024);
        let block = malloc_plain(cache, 1000, 8);
        assert!(!block.is_null());
        let units = |class: SizeClass| class.bin() * (BIN_BYTES / OFFSET_UNIT);
        let level = cache.bin(class).level();
        assert!(free_plain(cache, block, units(class)));
        assert_eq!(cache.bin(class).level(), level + 1);
        // The class of a larger block, and the trap bin.
        assert!(!free_plain(cache, block, units(SizeClass::of(2048))));
        assert!(!free_plain(cache, block, 0));
        end(cache);
    }
}
