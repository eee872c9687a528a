//! Large blocks: from the thread's kept runs or its arena's pages, and back.

use super::out_of_memory::no_memory;
use super::retry::with_retry;
use super::{diverted, recorded, sampled};
use crate::back::map::extent::Extent;
use crate::back::runs::access;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::{current, registry};
use crate::front::life::{background, thread_begin};
use crate::front::modes::{block_size, fill, judge, operators, watch};
use crate::ground::fill_mode;
use crate::ground::intervals;
use crate::ground::operator::Operator;
use crate::ground::options;
use crate::ground::probes;
use crate::ground::size_class::MAX_CACHED;
use crate::ground::units::LG_PAGE;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::choose_arena;
use crate::middle::arenas::home_arena::HomeArena;
use crate::middle::arenas::large;
use crate::middle::blocks::misuse_report;
use crate::middle::owners::run_cache;
use crate::profile::backtrace;

/// Allocates a large block at a multiple of `align`, its size rounded to a class. Returns null if
/// there is no memory or the size is too large.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn malloc(size: usize, align: usize, zero: bool, operator: Operator) -> *mut u8 {
    let block = diverted(size, align, zero)
        .unwrap_or_else(|| malloc_run(block_size::of_large(size), size, align, zero));
    // SAFETY: a fresh block whose operator is not noted, or null.
    unsafe { operators::note(block, operator) };
    backtrace::keep_frame();
    probes::allocated(block, size);
    block
}

/// As [`malloc`], but for a block that has grown, and may grow again.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn malloc_grown(size: usize, align: usize) -> *mut u8 {
    let block = diverted(size, align, false)
        .or_else(|| roomy(size, align))
        .unwrap_or_else(|| malloc_run(large::usable(size), size, align, false));
    backtrace::keep_frame();
    probes::allocated(block, size);
    block
}

/// As [`malloc`], but rounds to whole pages only, for callers that never ask for the usable size.
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) fn malloc_pages(size: usize, align: usize, zero: bool) -> *mut u8 {
    let block = diverted(size, align, zero)
        .unwrap_or_else(|| malloc_run(large::whole_pages(size), size, align, zero));
    probes::allocated_by_layout(block, size);
    backtrace::keep_frame();
    block
}

#[inline]
fn diverted(size: usize, align: usize, zero: bool) -> Option<*mut u8> {
    if zero { diverted::malloc_zeroed(size, align) } else { diverted::malloc(size, align) }
}

fn malloc_run(bytes: Option<usize>, size: usize, align: usize, zero: bool) -> *mut u8 {
    // Nothing that is given back helps with an alignment of which there is no address.
    let Some(bytes) = bytes.filter(|_| align <= large::LONGEST) else { return no_memory(size) };
    let block = with_retry(bytes, || match large_run(bytes, align, if zero { 0 } else { size }) {
        Some(extent) => finish(extent, size, zero),
        None => core::ptr::null_mut(),
    });
    background::tick_outside();
    if block.is_null() {
        return no_memory(size);
    }
    intervals::count(bytes);
    block
}

/// Allocates a block where it can grow in place. Returns `None` if there is no such place.
fn roomy(size: usize, align: usize) -> Option<*mut u8> {
    let bytes = large::usable(size)?;
    let home = &thread_begin::real_cache()?.owner.home;
    let block = finish(large::allocate_roomy(home, bytes, align)?, size, false);
    background::tick_outside();
    intervals::count(bytes);
    Some(block)
}

/// Makes a fresh large block ready for a request of `size` bytes, zeroed if `zero`, and returns its
/// address.
pub(crate) fn finish(extent: &'static Extent, size: usize, zero: bool) -> *mut u8 {
    current::count_given(extent.bytes());
    extent.note.set_operator(Operator::Unknown);
    sampled::large(extent, size);
    if zero || fill_mode::current().zero {
        large::make_zero(extent);
    } else {
        large::make_ready(extent, size);
        fill::large_allocated(extent, 0);
    }
    if watch::is_on() {
        // SAFETY: a fresh block, which the caller is about to hand out, of at least this length.
        unsafe { judge::large_handed_out(extent, size) };
        recorded::allocated(extent.base_ptr(), size);
    }
    extent.base_ptr()
}

fn large_run(bytes: usize, align: usize, filled: usize) -> Option<&'static Extent> {
    match thread_begin::real_cache() {
        Some(cache) => {
            let home = cache.owner.home.get().id();
            let kept = if keeps(cache, bytes, home) {
                cache.owner.take_run(bytes >> LG_PAGE, align)
            } else {
                None
            };
            kept.or_else(|| {
                large::allocate(large::From::Home(&cache.owner.home), bytes, align, filled)
            })
        }
        None => {
            let home = HomeArena::new(arena_list::by_id(0)?);
            large::allocate(large::From::Home(&home), bytes, align, filled)
        }
    }
}

/// Returns whether a thread keeps large blocks of this length and arena. It keeps none if its cache
/// is smaller than by default, if unused memory is to be given back at once, or if the program
/// chose the arena.
fn keeps(cache: &RealCache, bytes: usize, arena: u32) -> bool {
    run_cache::is_kept(bytes)
        && cache.largest.get() >= MAX_CACHED
        && options::current().dirty_decay_ms != 0
        && choose_arena::is_automatic(arena)
}

/// Frees a large block: the thread keeps it, or its arena gets it. In the hardened tier a thread
/// keeps none that its arena would close.
pub(super) fn free(extent: &'static Extent) {
    let cache = current::real_cache();
    current::count_freed(extent.bytes());
    sampled::large_freed(extent.base());
    let keeps = |cache: &&RealCache| keeps(cache, extent.bytes(), extent.arena());
    if let Some(cache) = cache.filter(|cache| keeps(cache) && !access::is_to_be_closed(extent)) {
        match cache.owner.keep_run(extent, run_cache::share(registry::CACHES.get())) {
            Ok(true) => return,
            Ok(false) => {}
            // Another thread is freeing it at this moment.
            Err(()) => misuse_report::invalid(extent.base(), None),
        }
    }
    large::free(extent);
}

/// Frees a large block past all caches. Any other address ends the process.
pub(crate) fn free_uncached(extent: &'static Extent, address: usize) {
    if !extent.is_block_at(address) {
        misuse_report::invalid(address, None);
    }
    current::count_freed(extent.bytes());
    sampled::large_freed(address);
    // SAFETY: the caller's block, which is in use.
    large::free(unsafe { judge::large_taken_back(extent) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::map::page_map;
    use crate::ground::units::PAGE;

    const BLOCK: usize = 64 << 10;

    fn c_block(size: usize) -> *mut u8 {
        malloc(size, PAGE, false, Operator::Unknown)
    }

    fn run_of(block: *mut u8) -> &'static Extent {
        page_map::lookup(block.expose_provenance()).extent().expect("a run")
    }

    #[test]
    fn a_block_is_as_long_as_its_class_or_whole_pages() {
        let size = 5 * BLOCK + 1;
        let (class, pages) = (c_block(size), malloc_pages(size, PAGE, true));
        assert_eq!((run_of(class).bytes(), run_of(pages).bytes()), (6 * BLOCK, 5 * BLOCK + PAGE));
        // SAFETY: the block is this long, and reads zero.
        let zeroed = unsafe { core::slice::from_raw_parts(pages, size) };
        assert!(zeroed.iter().all(|byte| *byte == 0));
        for block in [class, pages] {
            free_uncached(run_of(block), block.expose_provenance());
        }
        assert!(c_block(usize::MAX).is_null());
    }

    #[test]
    fn a_thread_keeps_a_block_once_it_asked_for_several() {
        let blocks = [(); 4].map(|()| c_block(BLOCK));
        free(run_of(blocks[3]));
        assert_eq!(c_block(BLOCK), blocks[3], "the newest is the next");
        let cache = thread_begin::real_cache().expect("a cache");
        let created = choose_arena::create().expect("an arena").id();
        assert!(keeps(cache, BLOCK, 0) && !keeps(cache, BLOCK, created));
        assert!(!keeps(cache, PAGE, 0) && !keeps(cache, 1 << 20, 0));
        blocks.into_iter().for_each(|block| free(run_of(block)));
    }
}
