//! Allocations and frees, as the heap monitor records them and functions of the program are told
//! of them. The façades of all threads lead here meanwhile.
//!
//! Blocks of arenas that heap profiles leave out are not recorded either. It is the block's arena
//! that decides, not the thread's, so that the free of a block is recorded if its allocation was.
//! Functions are told of all blocks.

use crate::back::map::extent::Extent;
use crate::back::map::page_map::{self, Entry};
use crate::front::cache::current;
use crate::front::modes::watch;
use crate::ground::os;
use crate::middle::arenas::arena_list;
use crate::middle::blocks::block_arena;
use crate::middle::slabs::slab::Slab;
use crate::profile::event::{self, What};
use crate::profile::{hooks, recorder};

/// Returns whether allocations and frees are recorded or told.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    watch::is_on() && (recorder::is_on() || hooks::see_all())
}

/// Records that a block was allocated for a request of `size` bytes. Does nothing for null.
#[inline(always)]
pub(crate) fn allocated(block: *mut u8, size: usize) {
    if is_on() {
        note_allocated(block, size);
    }
}

#[cold]
#[inline(never)]
fn note_allocated(block: *mut u8, size: usize) {
    if !block.is_null() {
        let address = block.expose_provenance();
        note(address, What::Allocated { size });
        hooks::tell_allocated(address, size);
    }
}

/// Records that a block is about to be freed. The address may also be one that is no block.
#[inline(always)]
pub(crate) fn freed(block: *mut u8) {
    if is_on() {
        note_freed(block);
    }
}

#[cold]
#[inline(never)]
fn note_freed(block: *mut u8) {
    let address = block.expose_provenance();
    note(address, What::Freed { first: first_word(address) });
    hooks::tell_freed(address);
}

/// Returns what a block begins with, by which the type of an object can be found.
fn first_word(address: usize) -> usize {
    let entry = page_map::lookup(address);
    let Some(size) = size_of_block(entry, address) else { return event::NO_POINTER };
    let words: *const usize = core::ptr::with_exposed_provenance(address);
    // SAFETY: the address is that of a block, which has this word.
    let first = unsafe { words.read() };
    let second = words.wrapping_add(1);
    // SAFETY: the block has this word too.
    let second = if size < 16 { 0 } else { unsafe { second.read() } };
    event::first_word([first, second], size)
}

fn size_of_block(entry: Entry, address: usize) -> Option<usize> {
    match Slab::of(entry) {
        Some(slab) => {
            let class = slab.class();
            class.slot_at(address.wrapping_sub(slab.base())).map(|_| class.size())
        }
        None => entry.extent().filter(|run| run.is_block_at(address)).map(Extent::bytes),
    }
}

/// Records that a block is resized in place, to serve a request of `size` bytes.
pub(crate) fn resized(block: *mut u8, size: usize) {
    if is_on() {
        note_freed(block);
        note_allocated(block, size);
    }
}

/// A block that may be moved.
pub(crate) struct Moving {
    address: usize,
    first: usize,
    time: u64,
    is_left_out: bool,
}

impl Moving {
    /// Looks at a block that may be moved. `None`: nothing is recorded.
    pub(crate) fn begin(block: *mut u8) -> Option<Moving> {
        if !is_on() {
            return None;
        }
        let address = block.expose_provenance();
        let (first, is_left_out) = (first_word(address), is_left_out(address));
        Some(Moving { address, first, time: os::nanoseconds(), is_left_out })
    }

    /// Records that the block was moved, to serve a request of `size` bytes. Its old place was free
    /// before this call, so another thread may have got it.
    pub(crate) fn end(self, new: *mut u8, size: usize) {
        // The page map no longer knows the block.
        if !self.is_left_out {
            put(self.address, What::Freed { first: self.first }, Some(self.time));
        }
        hooks::tell_freed(self.address);
        note_allocated(new, size);
    }
}

/// Returns whether a block lies in an arena that heap profiles leave out.
fn is_left_out(address: usize) -> bool {
    let arena = block_arena::arena_of(address).and_then(arena_list::by_id);
    arena.is_some_and(|arena| !arena.is_profiled())
}

fn note(address: usize, what: What) {
    if recorder::is_on() && !is_left_out(address) {
        put(address, what, None);
    }
}

fn put(address: usize, what: What, time: Option<u64>) {
    if !recorder::is_on() {
        return;
    }
    let own = current::thread().and_then(|thread| thread.events());
    recorder::note(own, address, what, time);
}
