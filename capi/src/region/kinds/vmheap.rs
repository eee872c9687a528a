//! `Vmheap`: the heap of malloc as a region. It is always open, and threads need not take turns.

use super::super::abi::{Vmalloc, Vmethod, event, resize};
use super::super::disciplines::{SYSTEM, Source};
use super::super::trace::Record;
use super::kind::{Caller, Failure, Kind, Span, pointer};
use super::regions::measure;
use alloc_core::control::diversion::past;
use alloc_core::raw::{self, Flags};
use alloc_core::{control, observe};
use core::ffi::{c_int, c_long, c_ushort, c_void};
use core::ptr;
use core::sync::atomic::AtomicPtr;
use lumalloc_region::raw::{Entry, Head};
use lumalloc_region::{Stat, mode};

/// All blocks are aligned so.
const ALIGN: usize = 16;

/// How many blocks are tried for an alignment that is no power of two.
const TRIES: usize = 4096;

pub(super) static KIND: Kind = Kind {
    method: Vmethod {
        allocf: alloc,
        resizef: resize,
        freef: free,
        addrf: offset,
        sizef: size,
        compactf: compact,
        alignf: align,
        meth: mode::BEST as c_ushort,
    },
    open: |_, _| None,
    close: |_| false,
    clear: |_| false,
    stat: |_, _| Some(stat()),
    segment: |_, address| segment_around(address),
    segments: |_, _, after, into| segments(after, into),
    has_block: |_, _, address| {
        observe::block_around(address).is_some_and(|block| block.address == address)
    },
    compact: |_, _| {
        give_back();
        true
    },
    blocks: |_, see| {
        observe::for_each_block(None, |block| see(block.address, block.usable));
        true
    },
    value: |_, _, _| None,
    check: |_, _, _| Some(Some(0)),
};

/// Holds flags and a lock that is never taken.
static HEAD: Head = Head::without_memory(mode::BEST | mode::SHARE);

static HANDLE: Vmalloc =
    Vmalloc::new(KIND.method, SYSTEM.get(), (&raw const HEAD).cast_mut().cast());

/// `Vmheap`: the region that is always open.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the name of vmalloc(3)")]
pub static Vmheap: AtomicPtr<Vmalloc> = AtomicPtr::new(first_address());

/// Returns whether a handle is that of the region that is always open.
pub(in super::super) fn is_heap(vm: &Vmalloc) -> bool {
    ptr::eq(vm, &HANDLE)
}

/// Returns the address of the handle of the region that is always open.
pub(in super::super) const fn first_address() -> *mut Vmalloc {
    (&raw const HANDLE).cast_mut()
}

/// Returns the handle that the list of regions begins with.
pub(in super::super) fn first() -> &'static Vmalloc {
    &HANDLE
}

/// Returns the block that `attempt` allocates, as long as it fails and the discipline wants so.
fn with_memory(caller: &Caller<'_>, size: usize, attempt: impl Fn() -> *mut u8) -> *mut u8 {
    let mut asks_once = false;
    loop {
        let block = attempt();
        if !block.is_null() || asks_once {
            return block;
        }
        // SAFETY: handle and discipline exist for ever.
        let source = unsafe { Source::new(caller.vm.address(), caller.vm.disc()) };
        match source.announce(event::NOMEM, ptr::without_provenance_mut(size)) {
            Some(1..) => {}
            Some(0) => asks_once = true,
            _ => return block,
        }
    }
}

/// Runs a call of the heap. While it is traced threads take turns, so that the lines stand in the
/// order of the calls.
fn in_turn<T>(call: impl FnOnce() -> T) -> T {
    let has_entered = HEAD.mode() & mode::TRACE != 0 && HEAD.lock().enter(Entry::Shared);
    let result = call();
    if has_entered {
        HEAD.lock().leave(Entry::Shared);
    }
    result
}

/// Returns the block that `attempt` allocates, as [`with_memory`] does, and traces the call.
fn traced(caller: &Caller<'_>, record: Record, attempt: impl Fn() -> *mut u8) -> *mut u8 {
    with_memory(caller, record.size, || {
        in_turn(|| {
            let block = past(&attempt);
            if !block.is_null() {
                caller.trace(Record { new: block.expose_provenance(), ..record });
            }
            block
        })
    })
}

/// Returns a new block, or NULL with `errno`. What it has beyond `size` bytes is zero, so that
/// `VM_RSZERO` has to clear nothing but new memory.
fn finish(caller: &Caller<'_>, block: *mut u8, record: Record) -> *mut c_void {
    if block.is_null() {
        caller.fail(Failure::NoMemory, 0);
        return ptr::null_mut();
    }
    // SAFETY: the block is new.
    unsafe { clear_behind(block, record.size) };
    let new = block.expose_provenance();
    caller.tell(if record.old == 0 { event::ALLOC } else { event::RESIZE }, new);
    pointer(new)
}

/// Clears what a block has behind its first bytes.
///
/// # Safety
/// The block is the caller's, and has so many bytes.
unsafe fn clear_behind(block: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    let usable = unsafe { raw::usable_size(block) };
    // SAFETY: the block has so many bytes.
    unsafe { block.wrapping_add(bytes).write_bytes(0, usable.saturating_sub(bytes)) };
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn alloc(vm: *mut Vmalloc, size: usize, local: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return ptr::null_mut() };
    let record = Record { size, ..Record::default() };
    finish(&caller, traced(&caller, record, || raw::malloc_aligned(size, ALIGN)), record)
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn align(
    vm: *mut Vmalloc,
    size: usize,
    align: usize,
    local: c_int,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return ptr::null_mut() };
    if size == 0 || align == 0 {
        caller.fail(Failure::Invalid, 0);
        return ptr::null_mut();
    }
    let record = Record { size, align, ..Record::default() };
    let block = traced(&caller, record, || {
        if align.is_power_of_two() {
            raw::malloc_aligned(size, align.max(ALIGN))
        } else {
            at_multiple(size, align)
        }
    });
    finish(&caller, block, record)
}

/// Returns a block at a multiple of a number that is no power of two: sizes that differ lie at
/// different places, and one of them is a multiple.
fn at_multiple(size: usize, align: usize) -> *mut u8 {
    let twos = 1 << align.trailing_zeros();
    // A chain of the blocks that were tried, linked through their first words.
    let mut tried: *mut *mut u8 = ptr::null_mut();
    let mut found = ptr::null_mut();
    for attempt in 0..TRIES {
        let longer = size.saturating_add(attempt % 64 * ALIGN).max(size_of::<*mut u8>());
        let block = raw::malloc_aligned(longer, ALIGN.max(twos));
        if block.is_null() || block.addr().is_multiple_of(align) {
            found = block;
            break;
        }
        let link = block.cast::<*mut u8>();
        // SAFETY: the block is long enough for a pointer, and aligned.
        unsafe { link.write(tried.cast()) };
        tried = link;
    }
    while !tried.is_null() {
        // SAFETY: the block holds the link that was written.
        let before = unsafe { tried.read() };
        // SAFETY: the block is nobody else's.
        unsafe { raw::free(tried.cast()) };
        tried = before.cast();
    }
    found
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn free(vm: *mut Vmalloc, address: *mut c_void, local: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return -1 };
    if address.is_null() {
        return 0;
    }
    let old = address.expose_provenance();
    if raw::block_size(address.cast()).is_none() {
        caller.fail(Failure::BadAddress, old);
        return -1;
    }
    // SAFETY: a block of the heap begins there, which the program frees now.
    let size = unsafe { raw::usable_size(address.cast()) };
    in_turn(|| {
        // SAFETY: a block of the heap begins there, and the program does not use it any more.
        past(|| unsafe { raw::free(address.cast()) });
        caller.trace(Record { old, size, ..Record::default() });
    });
    caller.tell(event::FREE, old);
    0
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn resize(
    vm: *mut Vmalloc,
    address: *mut c_void,
    size: usize,
    how: c_int,
    local: c_int,
) -> *mut c_void {
    if address.is_null() {
        // SAFETY: the caller's promise.
        let new = unsafe { alloc(vm, size, local) };
        if how & resize::ZERO != 0 && !new.is_null() {
            // SAFETY: the block is new, and so long.
            unsafe { new.write_bytes(0, size) };
        }
        return new;
    }
    if size == 0 {
        // SAFETY: the caller's promise.
        unsafe { free(vm, address, local) };
        return ptr::null_mut();
    }
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return ptr::null_mut() };
    let old = address.expose_provenance();
    let block = address.cast::<u8>();
    if raw::block_size(block).is_none() {
        caller.fail(Failure::BadAddress, old);
        return ptr::null_mut();
    }
    // What was asked for is not known of blocks of malloc, and others have zeros behind it.
    // SAFETY: a block of the heap begins there, which is the program's.
    let before = unsafe { raw::usable_size(block) };
    let record = Record { old, size, ..Record::default() };
    // SAFETY: a block of the heap begins there.
    let longer = || unsafe { raw::resize_in_place(block, size, 0, Flags::NONE) };
    let new = traced(&caller, record, || {
        if longer() >= size {
            block
        } else if how & (resize::COPY | resize::MOVE) != 0 {
            // SAFETY: as above; the old block is not used after it moved.
            unsafe { raw::realloc_aligned(block, size, ALIGN) }
        } else {
            ptr::null_mut()
        }
    });
    if how & resize::ZERO != 0 && !new.is_null() && size > before {
        // SAFETY: the block is so long now.
        unsafe { new.wrapping_add(before).write_bytes(0, size - before) };
    }
    finish(&caller, new, record)
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn offset(vm: *mut Vmalloc, address: *mut c_void, _local: c_int) -> c_long {
    let around = observe::block_around(address.addr());
    // SAFETY: the caller's promise.
    unsafe { measure(vm, |_| Some(address.addr() - around?.address)) }
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn size(vm: *mut Vmalloc, address: *mut c_void, _local: c_int) -> c_long {
    let around = observe::block_around(address.addr());
    let is_block = around.is_some_and(|block| block.address == address.addr());
    // SAFETY: a block in use of the heap, which is the program's.
    let usable = is_block.then(|| unsafe { raw::usable_size(address.cast()) });
    // SAFETY: the caller's promise.
    unsafe { measure(vm, |_| usable) }
}

/// # Safety
/// As for [`Caller::new`].
unsafe extern "C" fn compact(vm: *mut Vmalloc, local: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let Some(caller) = (unsafe { Caller::new(vm, local) }) else { return -1 };
    give_back();
    caller.trace(Record::default());
    0
}

/// Gives all unused memory of malloc back.
fn give_back() {
    control::flush_thread_cache();
    control::purge(control::ARENAS_ALL);
}

/// Counts all blocks of the heap.
fn stat() -> Stat {
    let mut stat = Stat::default();
    observe::for_each_block(None, |block| {
        stat.busy += 1;
        stat.busy_bytes += block.usable;
        stat.busy_largest = stat.busy_largest.max(block.usable);
    });
    // All blocks that there is room for, and the memory that is cut into none.
    let (mut blocks, mut bytes) = (0, 0);
    for run in observe::heap_map().filter(|run| run.arena.is_some()) {
        let (room, size) = if run.blocks == 0 { (1, run.bytes) } else { (run.blocks, run.block) };
        blocks += room;
        bytes += room * size;
        if run.used < room {
            stat.free_largest = stat.free_largest.max(size);
        }
    }
    stat.free = blocks.saturating_sub(stat.busy);
    stat.free_bytes = bytes.saturating_sub(stat.busy_bytes);
    observe::for_each_segment(|_, bytes| {
        stat.segments += 1;
        stat.extent += bytes;
    });
    stat
}

fn segment_around(address: usize) -> Option<usize> {
    let mut found = None;
    observe::for_each_segment(|start, bytes| {
        if address.wrapping_sub(start) < bytes {
            found = Some(start);
        }
    });
    found
}

/// Copies segments by address, after the first ones.
fn segments(after: usize, into: &mut [Span]) -> usize {
    let mut seen = 0usize;
    observe::for_each_segment(|start, bytes| {
        if let Some(place) = seen.checked_sub(after).and_then(|at| into.get_mut(at)) {
            *place = (start, bytes);
        }
        seen += 1;
    });
    seen.saturating_sub(after).min(into.len())
}
