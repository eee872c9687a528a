//! The `*allocx` family: malloc and free with flags. Source: jemalloc(3), "Non-standard API".

use super::free::free;
use super::growth::free_roomy;
use super::malloc::malloc_aligned;
use super::query::usable_size;
use super::realloc::{fits_in_place, lengthened};
use super::zeroed::malloc_aligned_zeroed;
use crate::back::map::page_map;
use crate::front::cache::current;
use crate::front::life::{background, explicit, thread_begin};
use crate::front::miss::large_blocks;
use crate::front::miss::out_of_memory::no_memory;
use crate::front::miss::retry::with_retry;
use crate::front::miss::small as small_blocks;
use crate::front::miss::{diverted, recorded, sampled};
use crate::front::modes::block_size::{self, Given, usable, usable_of};
use crate::front::modes::judge;
use crate::ground::intervals;
use crate::ground::options;
use crate::ground::os;
use crate::ground::probes;
use crate::ground::size_class::{MAX_CACHED, SizeClass};
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::choose_arena;
use crate::middle::arenas::large;
use crate::middle::blocks::block_arena::arena_of;
use crate::middle::slabs::slab::Slab;
use crate::profile::sampler;

/// How a block is allocated or freed.
#[derive(Clone, Copy, Debug)]
pub struct Flags {
    align: usize,
    zero: bool,
    cache: Cache,
    arena: Option<u32>,
}

/// The cache that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cache {
    /// The thread's cache.
    Own,
    /// No cache.
    None,
    /// The explicit cache with this number.
    Explicit(u32),
}

impl Flags {
    /// Allocates and frees as malloc and free do.
    pub const NONE: Flags = Flags { align: 1, zero: false, cache: Cache::Own, arena: None };

    /// Places the block at a multiple of `align`, a power of two (`MALLOCX_ALIGN`).
    #[must_use]
    pub const fn align(self, align: usize) -> Flags {
        Flags { align, ..self }
    }

    /// Zeroes all usable bytes of the block; after a change of size, the bytes behind the old
    /// usable size (`MALLOCX_ZERO`).
    #[must_use]
    pub const fn zeroed(self) -> Flags {
        Flags { zero: true, ..self }
    }

    /// Bypasses the thread's cache (`MALLOCX_TCACHE_NONE`).
    #[must_use]
    pub const fn uncached(self) -> Flags {
        Flags { cache: Cache::None, ..self }
    }

    /// Uses the cache with this number, of [`tcache`](crate::control::tcache) (`MALLOCX_TCACHE`).
    /// If an arena is given too, blocks are allocated from that arena, bypassing the cache, and are
    /// freed into the cache.
    #[must_use]
    pub const fn tcache(self, id: u32) -> Flags {
        Flags { cache: Cache::Explicit(id), ..self }
    }

    /// Allocates from the arena with this index, bypassing the thread's cache (`MALLOCX_ARENA`).
    #[must_use]
    pub const fn arena(self, index: u32) -> Flags {
        let cache = match self.cache {
            Cache::Own => Cache::None,
            other => other,
        };
        Flags { arena: Some(index), cache, ..self }
    }

    /// Returns the arena to use. `Err` if no arena has that index.
    fn find_arena(self) -> Result<Option<&'static Arena>, ()> {
        match self.arena {
            None => Ok(None),
            Some(index) => {
                thread_begin::real_cache();
                let arena = arena_list::by_id(index).or_else(|| choose_arena::automatic(index));
                arena.filter(|arena| arena.is_live()).map(Some).ok_or(())
            }
        }
    }
}

/// Allocates at least `size` bytes. Returns null if there is no memory or no such arena. If there
/// is no such cache, returns null with `errno` set to EINVAL.
///
/// ```
/// use lumalloc::raw::{self, Flags};
/// let p = raw::allocate(1000, Flags::NONE.align(256).zeroed());
/// assert_eq!(p as usize % 256, 0);
/// // SAFETY: p came from allocate, and is freed once.
/// unsafe { raw::deallocate(p, Flags::NONE) };
/// ```
#[must_use]
#[unsafe(link_section = "lumalloc_entries")]
pub fn allocate(size: usize, flags: Flags) -> *mut u8 {
    if flags.cache == Cache::Own {
        return if flags.zero {
            malloc_aligned_zeroed(size, flags.align)
        } else {
            malloc_aligned(size, flags.align)
        };
    }
    let Ok(arena) = flags.find_arena() else { return no_memory(size) };
    if let Cache::Explicit(id) = flags.cache {
        let room = block_size::room(size, flags.align).filter(|room| *room <= MAX_CACHED);
        let block = match room.filter(|_| arena.is_none()) {
            Some(room) => from_cache(id, room, size, flags.zero),
            None => explicit::exists(id).then_some(core::ptr::null_mut()),
        };
        let Some(block) = block else {
            os::set_errno(libc::EINVAL);
            return core::ptr::null_mut();
        };
        if !block.is_null() {
            probes::allocated(block, size);
            return block;
        }
    }
    // What the cache of a created arena does not have comes from that arena, or from nowhere.
    let arena = match flags.cache {
        Cache::Explicit(id) => arena.or_else(|| explicit::created_home(id)),
        _ => arena,
    };
    let Some(from) = arena.or_else(thread_begin::home) else { return no_memory(size) };
    let block = with_retry(size, || match block_size::room(size, flags.align) {
        Some(room) if room <= MAX_CACHED => small(arena, room, size, flags.zero),
        Some(_) => large(from, size, flags),
        None => core::ptr::null_mut(),
    });
    background::tick_outside();
    probes::allocated(block, size);
    if block.is_null() {
        return no_memory(size);
    }
    intervals::count(size);
    block
}

fn small(arena: Option<&'static Arena>, room: usize, size: usize, zero: bool) -> *mut u8 {
    let class = SizeClass::of(room);
    let block = small_blocks::malloc_uncached(arena, class, size);
    if block.is_null() { block } else { ready(block, class, size, zero) }
}

/// Allocates a small block through an explicit cache. Returns null if the cache does not have it,
/// and `None` if there is no such cache.
fn from_cache(id: u32, room: usize, size: usize, zero: bool) -> Option<*mut u8> {
    let class = SizeClass::of(room);
    if sampler::is_on()
        && let Some(arena) = explicit::home(id)
        && let Some(sample) = sampled::small_past_bins(arena, class, size)
    {
        return Some(ready(sample, class, size, zero));
    }
    let block = explicit::allocate(id, class)?;
    if block.is_null() {
        return Some(block);
    }
    current::count_given(usable(class));
    background::tick();
    intervals::count(class.size());
    Some(ready(block, class, size, zero))
}

/// Makes a fresh block of a class ready for a request of `size` bytes.
fn ready(block: *mut u8, class: SizeClass, size: usize, zero: bool) -> *mut u8 {
    // SAFETY: a fresh block of this class.
    unsafe { judge::handed_out(block, class, size) };
    if zero {
        // SAFETY: the usable bytes of a fresh block of this class.
        unsafe { block.write_bytes(0, usable_of(class, size)) };
    }
    sampled::small_exactly(block, size);
    recorded::allocated(block, size);
    block
}

fn large(arena: &'static Arena, size: usize, flags: Flags) -> *mut u8 {
    let run = block_size::of_large(size).and_then(|bytes| {
        let filled = if flags.zero { 0 } else { size };
        large::allocate(large::From::Arena(arena), bytes, flags.align, filled)
    });
    match run {
        Some(extent) => large_blocks::finish(extent, size, flags.zero),
        None => core::ptr::null_mut(),
    }
}

/// Changes the size of a block, in place or by a move. With `zeroed`, all bytes from the old usable
/// size to the new one are zero. Returns null if there is no memory; the block is then unchanged.
///
/// # Safety
/// `ptr` must be a block of this allocator, and must not be used after success.
#[must_use]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe fn reallocate(ptr: *mut u8, size: usize, flags: Flags) -> *mut u8 {
    if flags.cache == Cache::Own
        && !flags.zero
        && let Some(new) = diverted::resize(ptr, size, flags.align)
    {
        return new;
    }
    let ptr = diverted::sized(ptr, size);
    if ptr.is_null() {
        return ptr;
    }
    // SAFETY: the caller's promise.
    let old = unsafe { usable_size(ptr) };
    let stays = !diverted::holds(ptr)
        && flags.arena.is_none_or(|index| arena_of(ptr as usize) == Some(index));
    // SAFETY: the caller's promise.
    if stays && unsafe { fits_in_place(ptr, old, size, flags.align, flags.zero) } {
        return ptr;
    }
    if stays
        // SAFETY: the caller's promise.
        && let Some(longer) = unsafe { lengthened(ptr, size, flags.align, flags.zero) }
    {
        return longer;
    }
    let new = allocate(size, Flags { zero: false, ..flags });
    if new.is_null() {
        return new;
    }
    // SAFETY: two different blocks, at least this long.
    unsafe { new.copy_from_nonoverlapping(ptr, old.min(size)) };
    if flags.zero {
        // SAFETY: a block of this allocator.
        let bytes = unsafe { usable_size(new) };
        // SAFETY: from the old contents to the end of the new block.
        unsafe { new.wrapping_add(old.min(size)).write_bytes(0, bytes - old.min(size)) };
    }
    // SAFETY: the caller's promise.
    unsafe { deallocate(ptr, flags) };
    new
}

/// Tries to resize a block in place to `size + extra` bytes, or else to `size`. One that has so
/// many bytes, or some between the two, is never made shorter, and only a large one is made longer.
/// Returns the block's real size afterwards, whether it changed or not.
///
/// # Safety
/// `ptr` must be a block of this allocator.
#[must_use]
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe fn resize_in_place(ptr: *mut u8, size: usize, extra: usize, flags: Flags) -> usize {
    // SAFETY: the caller's promise.
    let old = unsafe { usable_size(ptr) };
    let most = size.saturating_add(extra);
    if diverted::holds(ptr) {
        return old;
    }
    let room = block_size::most_in_place(ptr);
    if old >= size && old <= most {
        if old < most && old > MAX_CACHED && room.is_none() {
            // SAFETY: the caller's promise.
            let _grown = unsafe { fits_in_place(ptr, old, most, flags.align, flags.zero) };
        }
        // SAFETY: the caller's promise.
        return unsafe { usable_size(ptr) };
    }
    let most = room.map_or(most, |room| most.min(room.max(size)));
    if room.is_some() || (old > MAX_CACHED && size > MAX_CACHED) {
        // SAFETY: the caller's promise.
        let _grown = unsafe { fits_in_place(ptr, old, most, flags.align, flags.zero) }
            // SAFETY: the caller's promise.
            || unsafe { fits_in_place(ptr, old, size, flags.align, flags.zero) };
    }
    // SAFETY: the caller's promise.
    unsafe { usable_size(ptr) }
}

/// Frees a block.
///
/// # Safety
/// `ptr` must be a block of this allocator, and must not be used afterwards.
#[unsafe(link_section = "lumalloc_entries")]
pub unsafe fn deallocate(ptr: *mut u8, flags: Flags) {
    if flags.cache != Cache::Own {
        if diverted::free(ptr) {
            return;
        }
        let entry = page_map::lookup(ptr as usize);
        if let Some(slab) = Slab::of(entry) {
            recorded::freed(ptr);
            sampled::small_freed(ptr);
            probes::freed(ptr);
            // SAFETY: the slab was found by the address; the caller's promise.
            unsafe { judge::taken_back(slab, ptr) };
            // Samples go to their slabs, where their end is noticed.
            if let Cache::Explicit(id) = flags.cache
                && !slab.is_for_samples()
                && explicit::free(id, slab.class(), ptr)
            {
                current::count_freed(usable(slab.class()));
                return background::tick();
            }
            small_blocks::free_uncached(slab, ptr.expose_provenance());
            return background::tick_outside();
        }
        if let Some(extent) = entry.extent() {
            recorded::freed(ptr);
            probes::freed(ptr);
            large_blocks::free_uncached(extent, ptr.expose_provenance());
            return background::tick_outside();
        }
    }
    // SAFETY: the caller's promise.
    unsafe { free(ptr) };
}

/// Frees a block whose size is known.
///
/// # Safety
/// As [`deallocate`]. `size` must be the size that was asked for, or any size from there to the
/// usable size. `flags` must have the alignment that was asked for, unless `size` is what
/// [`usable_size`] returns.
pub unsafe fn deallocate_sized(ptr: *mut u8, size: usize, flags: Flags) {
    if flags.cache == Cache::Own {
        // SAFETY: the caller's promise.
        unsafe { free_roomy(ptr, size, flags.align) };
    } else {
        let (given, address) = (Given { size, align: flags.align, or_less: true }, ptr as usize);
        // By default `realloc` leaves blocks of another class than the size's.
        judge::check_roomy(address, given);
        if options::current().hardened {
            // SAFETY: a block in use, by the caller's promise.
            unsafe { judge::check_size(page_map::lookup(address), address, given) };
        }
        // SAFETY: the caller's promise.
        unsafe { deallocate(ptr, flags) };
    }
}
