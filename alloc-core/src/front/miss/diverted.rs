//! Calls that are diverted to another heap. The slow paths come here first.

use super::out_of_memory::no_memory;
use super::recorded;
use crate::front::cache::switch;
use crate::front::life::thread_begin;
use crate::front::modes::block_size;
use crate::front::modes::diversion::{self, Diversion};
use crate::ground::callback::{self, Callback};
use crate::ground::warning;
use core::sync::atomic::{AtomicBool, Ordering};

/// Allocates a block, unless the allocator is to serve the request. Returns `Some` of null if there
/// is no memory.
#[inline]
pub(crate) fn malloc(size: usize, align: usize) -> Option<*mut u8> {
    let offer = diversion::offer()?;
    if !diversion::is_on() && !(offer.is_wanted)() && !diversion::is_unknown(offer) {
        return None;
    }
    allocate(size, align)
}

#[cold]
#[inline(never)]
fn allocate(size: usize, align: usize) -> Option<*mut u8> {
    let offer = offer_in_force()?;
    let block = callback::run(Callback::Diversion, || (offer.allocate)(size, align))?;
    note_allocated(block, size);
    Some(if block.is_null() { no_memory(size) } else { block })
}

/// Records a block, unless the allocator did so: the table may allocate through it.
fn note_allocated(block: *mut u8, size: usize) {
    if block_size::of_block(block).is_none() {
        recorded::allocated(block, size);
    }
}

/// Returns the table if this call is to be diverted. What the table's own functions allocate is
/// not.
fn offer_in_force() -> Option<&'static Diversion> {
    // Makes the start, which looks for a table.
    let is_outside = is_outside();
    let offer = diversion::offer()?;
    let is_on = || diversion::is_on() || ((offer.is_wanted)() && turn_on());
    (is_outside && is_on()).then_some(offer)
}

/// Returns whether the calling thread is outside of the table's functions. This may be its first
/// call.
fn is_outside() -> bool {
    thread_begin::real_cache();
    callback::is_outside()
}

/// Leads all threads to the slow paths for good.
fn turn_on() -> bool {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    let done = switch::divert();
    if !done && !IS_TOLD.swap(true, Ordering::Relaxed) {
        warning::warn(REFUSED);
    }
    done
}

const REFUSED: &[u8] = b"<lumalloc>: malloc goes on with its own heap: \
    there is no memory to lead it to another one, or the system refuses membarrier\n";

/// As [`malloc`], but the first `size` bytes read zero.
pub(crate) fn malloc_zeroed(size: usize, align: usize) -> Option<*mut u8> {
    let block = malloc(size, align)?;
    if !block.is_null() {
        // SAFETY: a fresh block of that size.
        unsafe { block.write_bytes(0, size) };
    }
    Some(block)
}

/// Frees a block, unless the allocator is to free it.
#[inline]
pub(crate) fn free(block: *mut u8) -> bool {
    diversion::is_on() && !block.is_null() && give_back(block)
}

#[cold]
#[inline(never)]
fn give_back(block: *mut u8) -> bool {
    let Some(offer) = diversion::offer() else { return false };
    let is_own = block_size::of_block(block).is_some();
    if is_own && !is_outside() {
        return false;
    }
    // The allocator records what it frees itself.
    if !is_own {
        recorded::freed(block);
    }
    callback::run(Callback::Diversion, || (offer.free)(block, is_own))
}

/// Resizes a block, unless the allocator is to do it. Returns `Some` of null, and changes nothing,
/// if there is no memory.
#[inline]
pub(crate) fn resize(block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    if diversion::is_on() { change_size(block, size, align) } else { None }
}

#[cold]
#[inline(never)]
fn change_size(block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let offer = diversion::offer()?;
    let is_own = block_size::of_block(block).is_some();
    if is_own && !is_outside() {
        return None;
    }
    let resize = || (offer.resize)(block, is_own, size, align);
    let new = callback::run(Callback::Diversion, resize)?;
    if !new.is_null() {
        if !is_own {
            recorded::freed(block);
        }
        note_allocated(new, size);
    }
    Some(if new.is_null() { no_memory(size) } else { new })
}

/// Returns a block with the contents of a block, and of a known size. It is another one, of `size`
/// bytes, if the heap that has the block does not know its size, and tells 0. The block is not used
/// after then. Returns null if there is no memory.
#[inline]
pub(crate) fn sized(block: *mut u8, size: usize) -> *mut u8 {
    if !holds(block) || self::size(block) != Some(0) {
        return block;
    }
    change_size(block, size, 1).unwrap_or(block)
}

/// Returns whether a block is not the allocator's own.
pub(crate) fn holds(block: *mut u8) -> bool {
    diversion::is_on() && block_size::of_block(block).is_none()
}

/// Returns the size of a block that is not the allocator's own.
pub(crate) fn size(block: *mut u8) -> Option<usize> {
    let offer = diversion::offer().filter(|_| diversion::is_on())?;
    callback::run(Callback::Diversion, || (offer.size)(block))
}
