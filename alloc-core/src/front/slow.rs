//! What the fast paths call when they cannot: misses, façades, large blocks, no memory.

use super::background;
use super::fill;
use super::guarded::{self, countdown};
use super::modes::{self, Given};
use super::refill;
use super::registry::{self, RealCache};
use super::retry;
use super::thread::{self, Moves};
use super::thread_cache::{self, Kind};
use super::thread_life;
use crate::back::contents;
use crate::back::extent::{Extent, ExtentState};
use crate::back::page_map;
use crate::ground::counters::SharedCount;
use crate::ground::fatal;
use crate::ground::fill_mode;
use crate::ground::options;
use crate::ground::os;
use crate::ground::size_class::{BIN_BYTES, MAX_CACHED, OFFSET_UNIT, SizeClass, size_for_align};
use crate::ground::stats_interval;
use crate::ground::units::LG_PAGE;
use crate::middle::arena::Arena;
use crate::middle::arena_list;
use crate::middle::choose_arena;
use crate::middle::home::Home;
use crate::middle::slab::Slab;
use crate::middle::{large, last_words, run_cache};

/// As [`missed::malloc_small`](super::missed::malloc_small), past all façades.
#[inline(never)]
pub(crate) fn malloc_missed(size: usize, align: usize) -> *mut u8 {
    // Even as the very first call it knows the modes.
    real_cache();
    let Some(room) = modes::room(size, align) else { return no_memory(size) };
    if room > MAX_CACHED {
        // Beside its canary there is no room for it in a slab.
        return malloc_large(size, align, false);
    }
    let class = SizeClass::of(room);
    let block = retry::with_retry(|| small(class));
    if block.is_null() {
        return no_memory(size);
    }
    if let Some(sample) = countdown::take(class, block, size, align) {
        return sample;
    }
    // SAFETY: a fresh block of the class.
    unsafe { modes::handed_out(block, class) };
    block
}

/// A small block for a thread without modes. Null: try [`malloc_missed`], which does what may help.
#[inline]
pub(crate) fn malloc_plain(cache: &'static RealCache, size: usize, align: usize) -> *mut u8 {
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
pub(crate) fn free_plain(cache: &'static RealCache, block: *mut u8, units: usize) -> bool {
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

/// A large block at a multiple of `align`, its size rounded to a class. Null: no memory, or more
/// than there can be.
#[cold]
#[inline(never)]
pub(crate) fn malloc_large(size: usize, align: usize, zero: bool) -> *mut u8 {
    malloc_run(large::usable(size), size, align, zero)
}

/// As [`malloc_large`], of whole pages and no more: for callers who never ask for the usable size.
#[cold]
#[inline(never)]
pub(crate) fn malloc_pages(size: usize, align: usize, zero: bool) -> *mut u8 {
    malloc_run(large::whole_pages(size), size, align, zero)
}

fn malloc_run(bytes: Option<usize>, size: usize, align: usize, zero: bool) -> *mut u8 {
    let Some(bytes) = bytes else { return no_memory(size) };
    let block = retry::with_retry(|| match large_run(bytes, align, if zero { 0 } else { size }) {
        Some(extent) => finish_large(extent, size, zero),
        None => core::ptr::null_mut(),
    });
    tick();
    stats_interval::count(bytes);
    if block.is_null() { no_memory(size) } else { block }
}

/// Zeroes a fresh large block for a request of `size` bytes if asked, and answers its address.
pub(crate) fn finish_large(extent: &'static Extent, size: usize, zero: bool) -> *mut u8 {
    count_given(extent.bytes());
    if zero || fill_mode::current().zero {
        large::make_zero(extent);
    } else {
        large::make_ready(extent, size);
        fill::large_allocated(extent, 0);
    }
    extent.base_ptr()
}

/// Takes a block back past all façades. Null is nothing to do.
///
/// # Safety
/// As [`missed::free_known`](super::missed::free_known).
#[inline(never)]
pub(crate) unsafe fn free_missed(block: *mut u8, given: Option<Given>) {
    if block.is_null() {
        return;
    }
    let address = block.expose_provenance();
    let entry = page_map::lookup(address);
    if let Some(given) = given {
        modes::check_size(entry, address, given);
    }
    if guarded::holds(address) {
        count_freed(guarded::usable_size(address).unwrap_or(0));
        return guarded::free(address);
    }
    if let Some(slab) = Slab::of(entry) {
        // SAFETY: the slab was found by the address; the caller's promise.
        unsafe { modes::taken_back(slab, block) };
        free_small(slab, block);
    } else {
        match entry.extent() {
            Some(extent) if is_block(extent, address) => free_large(contents::junked(extent)),
            _ => last_words::invalid(address, None),
        }
    }
    tick();
}

/// Takes a block that a façade has judged, and that its real bin does not take.
#[cold]
#[inline(never)]
pub(crate) fn push_missed(block: *mut u8) {
    if let Some(slab) = Slab::of(page_map::lookup(block as usize)) {
        free_small(slab, block);
    }
    tick();
}

/// Whether a run is in use and begins at an address.
pub(crate) fn is_block(extent: &Extent, address: usize) -> bool {
    extent.state.get() == ExtentState::Active && extent.base() == address
}

/// The arena that a block belongs to.
pub(crate) fn arena_of(address: usize) -> Option<u32> {
    let entry = page_map::lookup(address);
    match Slab::of(entry) {
        Some(slab) => Some(slab.arena()),
        None => entry.extent().filter(|extent| is_block(extent, address)).map(Extent::arena),
    }
}

/// Takes a large block back: the thread keeps it, or its arena gets it.
fn free_large(extent: &'static Extent) {
    let cache = thread_cache::current().as_real();
    count_freed(extent.bytes());
    if let Some(cache) = cache.filter(|cache| keeps(cache, extent.bytes(), extent.arena())) {
        match cache.owner.keep_run(extent, run_cache::share(registry::ALIVE.get())) {
            Ok(true) => return,
            Ok(false) => {}
            // Another thread frees it at this moment.
            Err(()) => last_words::invalid(extent.base(), None),
        }
    }
    large::free(extent);
}

/// Takes a large block back past all caches.
pub(crate) fn free_large_uncached(extent: &'static Extent, address: usize) {
    if !is_block(extent, address) {
        last_words::invalid(address, None);
    }
    count_freed(extent.bytes());
    large::free(contents::junked(extent));
}

/// Counts what the calling thread frees past its bins.
pub(crate) fn count_freed(bytes: usize) {
    if let Some(thread) = thread::current() {
        thread.freed_past(bytes);
    }
}

/// Counts what it is given past its bins.
pub(crate) fn count_given(bytes: usize) {
    if let Some(thread) = thread::current() {
        thread.got_past(bytes);
    }
}

/// Whether threads keep large blocks of this length and arena: not with smaller caches than by
/// default, not where unused memory is to go at once, and not those of arenas that the program
/// chose.
fn keeps(cache: &RealCache, bytes: usize, arena: u32) -> bool {
    run_cache::is_kept(bytes)
        && cache.largest.get() >= MAX_CACHED
        && options::current().dirty_decay_ms != 0
        && choose_arena::is_automatic(arena)
}

fn small(class: SizeClass) -> *mut u8 {
    if let Some(cache) = real_cache().filter(|cache| cache.holds(class)) {
        let block = refill::request(cache, class);
        background::tick();
        if !block.is_null() {
            // A sample may take its place.
            if let Some(thread) = cache.thread().filter(|_| !cache.sample_due.get()) {
                thread.got_cached(modes::usable(class));
            }
            return block;
        }
    }
    let block = home().map_or(core::ptr::null_mut(), |arena| small_uncached(arena, class));
    tick();
    block
}

/// One small block past all caches. Null: no memory.
pub(crate) fn small_uncached(arena: &'static Arena, class: SizeClass) -> *mut u8 {
    let (block, was_taken) = arena.allocate_uncached(class);
    if was_taken && let Some(cache) = thread_cache::current().as_real() {
        choose_arena::note_meeting(&cache.owner.home, arena);
    }
    if !block.is_null() {
        count_given(modes::usable(class));
    }
    block
}

fn free_small(slab: &'static Slab, block: *mut u8) {
    let class = slab.class();
    if let Some(cache) = real_cache().filter(|cache| cache.holds(class)) {
        if !cache.bin(class).put(block) {
            overflow(cache, class, block);
        }
        return;
    }
    free_uncached(slab, block.expose_provenance());
}

/// Takes one block of a slab back past all caches.
pub(crate) fn free_uncached(slab: &'static Slab, address: usize) {
    // Once the block is home its slab may become another's, of another class.
    let class = slab.class();
    let Some(slot) = class.slot_at(address - slab.base()) else {
        last_words::interior(slab, address)
    };
    if let Some(arena) = arena_list::by_id(slab.arena()) {
        arena.free_uncached(slab, slot, address);
    }
    count_freed(modes::usable(class));
}

/// The calling thread's real cache, made now if this is its first call.
pub(crate) fn real_cache() -> Option<&'static RealCache> {
    if thread_cache::current().kind() == Kind::Empty {
        thread_life::begin();
    }
    thread_cache::current().as_real()
}

/// The arena for what goes past the caches. `None` before the start.
pub(crate) fn home() -> Option<&'static Arena> {
    match real_cache() {
        Some(cache) => Some(choose_arena::at_home(&cache.owner.home)),
        None => arena_list::by_id(0),
    }
}

fn large_run(bytes: usize, align: usize, filled: usize) -> Option<&'static Extent> {
    match real_cache() {
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
            let home = Home::new(arena_list::by_id(0)?);
            large::allocate(large::From::Home(&home), bytes, align, filled)
        }
    }
}

/// What every way past the caches ends with: runs the decay pass if it is due, unless this thread
/// is inside the allocator already.
pub(crate) fn tick() {
    if matches!(thread_cache::current().kind(), Kind::Real | Kind::Mode | Kind::Uncached) {
        background::tick();
    }
}

/// How often that was the answer.
pub(crate) static OUT_OF_MEMORY: SharedCount = SharedCount::new();

/// The answer where there is no memory: null and ENOMEM, or death under `xmalloc`.
#[cold]
pub(crate) fn no_memory(size: usize) -> *mut u8 {
    // Even as the very first call it knows the options.
    real_cache();
    if options::current().xmalloc {
        fatal::out_of_memory(size);
    }
    OUT_OF_MEMORY.add(1);
    os::set_errno(libc::ENOMEM);
    core::ptr::null_mut()
}
