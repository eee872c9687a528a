//! The slow path of free, for a block that the fast path could not put into its bin.
//!
//! The fast paths pass the cache that they have read, and the class map's entry, so that neither is
//! looked up twice. The order of the tests is: the hardened tier alone ([`sealed`]), a thread that
//! only counts ([`counted`]), a screened bin, a thread without modes ([`small::free_plain`]), a
//! façade ([`watched`]), and all other cases.

use super::{counted, diverted, large_blocks, recorded, sampled, sealed, small, watched};
use crate::back::map::{class_map, page_map};
use crate::front::bins::thread_cache::ThreadCache;
use crate::front::bins::tls;
use crate::front::cache::current;
use crate::front::cache::emptying;
use crate::front::cache::real_cache::RealCache;
use crate::front::life::background;
use crate::front::modes::block_size::Given;
use crate::front::modes::{guarded, judge, operators};
use crate::front::supply::layouts;
use crate::ground::operator::Operator;
use crate::ground::options;
use crate::ground::size_class::BIN_BYTES;
use crate::ground::size_class::OFFSET_UNIT;
use crate::middle::blocks::{empty_blocks, misuse_report};
use crate::middle::slabs::slab::Slab;
use crate::profile::backtrace;

/// Frees a block after the fast path could not. `cache` is the calling thread's cache, and `units`
/// is the offset of the block's bin in the class map, or 0. Does nothing if `block` is null.
///
/// # Safety
/// `block` must be null or a block of this allocator (other pointers are noticed and end the
/// process).
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe fn known(block: *mut u8, units: usize, cache: &'static ThreadCache) {
    // SAFETY: the caller's promise.
    unsafe { free_known(block, units, cache, Operator::Unknown) };
}

/// As [`known`], by an operator.
///
/// # Safety
/// As [`known`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe fn known_by(
    block: *mut u8,
    units: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) {
    // SAFETY: the caller's promise.
    unsafe { free_known(block, units, cache, operator) };
}

#[inline(always)]
unsafe fn free_known(
    block: *mut u8,
    units: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) {
    // Before the hardened tier, which takes every block of the class map.
    if diverted::free(block) {
        return;
    }
    // SAFETY: the caller's promise.
    if !unsafe { sealed::free(cache, block, units, operator) }
        && !counted::free(cache, block, units)
    {
        operators::check(block, operator);
        // SAFETY: the caller's promise.
        unsafe { free_overflown(block, units, cache) };
        backtrace::keep_frame();
    }
}

/// The end of [`known`] without the hardened tier. It is out of line, so that frees of the hardened
/// tier do not save its registers.
///
/// # Safety
/// As [`known`].
#[cold]
#[inline(never)]
unsafe fn free_overflown(block: *mut u8, units: usize, cache: &'static ThreadCache) {
    let is_done = cache.bin_at(units * OFFSET_UNIT).put(block)
        || RealCache::plain(cache).is_some_and(|real| small::free_plain(real, block, units));
    if !is_done {
        // Not `unknown`, which would ask a second time whether the call is diverted.
        // SAFETY: the caller's promise.
        unsafe { free_watched(block, None) };
    }
}

/// As [`known`], but for a block that the class map does not know.
///
/// # Safety
/// As [`known`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe fn unknown(block: *mut u8, operator: Operator) {
    if !diverted::free(block) {
        operators::check(block, operator);
        // SAFETY: the caller's promise.
        unsafe { free_watched(block, None) };
        backtrace::keep_frame();
    }
}

/// As [`known`], but for a block that was asked for with this size and alignment.
///
/// # Safety
/// As [`known`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe fn sized(block: *mut u8, size: usize, align: usize, cache: &'static ThreadCache) {
    // SAFETY: the caller's promise.
    unsafe { free_sized(block, size, align, cache, Operator::Unknown) };
}

/// As [`sized`], by an operator.
///
/// # Safety
/// As [`known`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe fn sized_by(
    block: *mut u8,
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) {
    // SAFETY: the caller's promise.
    unsafe { free_sized(block, size, align, cache, operator) };
}

#[inline(always)]
unsafe fn free_sized(
    block: *mut u8,
    size: usize,
    align: usize,
    cache: &'static ThreadCache,
    operator: Operator,
) {
    let given = Given { size, align, or_less: false };
    let is_done = diverted::free(block)
        // SAFETY: the caller's promise.
        || unsafe { sealed::free_sized(cache, block, given, operator) }
        || (layouts::trust_none() && put_known_as(cache, block, given))
        || count_known_as(cache, block, given);
    if !is_done {
        operators::check(block, operator);
        // SAFETY: the caller's promise.
        unsafe { free_given(block, size, align) };
        backtrace::keep_frame();
    }
}

/// As [`sized`], but for a block that may also be of the class after that of its size. Any other
/// class ends the process.
///
/// # Safety
/// As [`known`].
#[cold]
#[inline(never)]
#[unsafe(link_section = "lumalloc_entries")]
pub(crate) unsafe fn roomy(block: *mut u8, size: usize, align: usize, cache: &'static ThreadCache) {
    if diverted::free(block) {
        return;
    }
    let given = Given { size, align, or_less: true };
    if count_known_as(cache, block, given) {
        return;
    }
    judge::check_roomy(block as usize, given);
    // SAFETY: the caller's promise.
    let is_done = unsafe { sealed::free_sized(cache, block, given, Operator::Unknown) }
        || put_known(cache, block);
    if !is_done {
        // The hardened tier has no such blocks. Elsewhere the size was checked above.
        let given = options::current().hardened.then_some(given);
        // SAFETY: the caller's promise.
        unsafe { free_watched(block, given) };
        backtrace::keep_frame();
    }
}

/// Puts a block into the bin that the class map gives, if it gives one, also behind a façade that
/// only counts. No sample is in the class map.
#[inline]
fn put_known(cache: &'static ThreadCache, block: *mut u8) -> bool {
    class_map::bin_units(block).is_some_and(|units| {
        cache.bin_at(units * OFFSET_UNIT).put(block) || counted::free(cache, block, units)
    })
}

/// As [`put_known`], if the block is of the class that the size and the alignment tell.
#[inline]
fn put_known_as(cache: &'static ThreadCache, block: *mut u8, given: Given) -> bool {
    let offset = given.bin() * BIN_BYTES;
    class_map::bin_offset(block) == Some(offset) && cache.bin_at(offset).put(block)
}

/// Frees a block of a thread whose operations are only counted, if it is of the class that the size
/// and the alignment tell.
#[inline]
fn count_known_as(cache: &'static ThreadCache, block: *mut u8, given: Given) -> bool {
    cache.cells().is_some()
        && class_map::bin_units(block).is_some_and(|units| {
            units * OFFSET_UNIT == given.bin() * BIN_BYTES && counted::free(cache, block, units)
        })
}

#[inline(never)]
unsafe fn free_given(block: *mut u8, size: usize, align: usize) {
    // SAFETY: the caller's promise.
    unsafe { free_watched(block, Some(Given { size, align, or_less: false })) };
}

#[inline]
unsafe fn free_watched(block: *mut u8, given: Option<Given>) {
    // SAFETY: the caller's promise.
    if !unsafe { watched::free(emptying::awake(tls::current()), block, given) } {
        // SAFETY: the caller's promise.
        unsafe { free_any(block, given) };
    }
}

/// Frees a block past all façades. Does nothing if `block` is null.
///
/// # Safety
/// As [`known`].
#[inline(never)]
unsafe fn free_any(block: *mut u8, given: Option<Given>) {
    if block.is_null() {
        return;
    }
    recorded::freed(block);
    let address = block.expose_provenance();
    if empty_blocks::holds(address) {
        sampled::small_freed(block);
        return empty_blocks::free(address);
    }
    let entry = page_map::lookup(address);
    if let Some(given) = given {
        // SAFETY: a block in use, by the caller's promise.
        unsafe { judge::check_size(entry, address, given) };
    }
    if guarded::holds(address) {
        sampled::small_freed(block);
        current::count_freed(guarded::usable_size(address).unwrap_or(0));
        return guarded::free(address);
    }
    if let Some(slab) = Slab::of(entry) {
        sampled::small_freed(block);
        // SAFETY: the slab was found by the address; the caller's promise.
        unsafe { judge::taken_back(slab, block) };
        small::free(slab, block);
    } else {
        match entry.extent() {
            Some(extent) if extent.is_block_at(address) => {
                // SAFETY: the caller's block, which is in use.
                large_blocks::free(unsafe { judge::large_taken_back(extent) })
            }
            _ => misuse_report::invalid(address, None),
        }
    }
    background::tick_outside();
}
