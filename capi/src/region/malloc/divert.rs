//! What the core calls in place of malloc and free.
//!
//! The core finds the table by a symbol that it refers to weakly, because only programs with this
//! library have it.

use super::super::abi::{Vmalloc, resize};
use super::super::kinds;
use super::super::list::Regions;
use super::super::position::vmfileline;
use super::super::vmregion;
use super::{checks, start};
use crate::errno;
use alloc_core::control::diversion::Diversion;
use alloc_core::raw::{self, Flags};
use core::arch::global_asm;
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use lumalloc_region::mode;

static TABLE: Diversion = Diversion { is_wanted, allocate, free, resize, size };

global_asm!(
    ".pushsection .data.rel.ro.lumalloc_diversion,\"aw\",@progbits",
    ".p2align 3",
    ".hidden LUMALLOC_DIVERSION_0_1",
    ".weak LUMALLOC_DIVERSION_0_1",
    ".type LUMALLOC_DIVERSION_0_1,@object",
    ".size LUMALLOC_DIVERSION_0_1,8",
    "LUMALLOC_DIVERSION_0_1: .quad {table}",
    ".popsection",
    table = sym TABLE,
);

/// All blocks are aligned so.
const ALIGN: usize = 16;

fn is_wanted() -> bool {
    vmregion::is_replaced() || start::is_asked_for()
}

/// `vmfileline`, for the next call of malloc or free; nothing is recorded if that call is the
/// heap's, which would leave the record to another call.
///
/// # Safety
/// As for `vmfileline`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vmfilelinemalloc(file: *const c_char, line: c_int, func: *const c_char) {
    if is_wanted() {
        // SAFETY: the caller's promise.
        unsafe { vmfileline(file, line, func) };
    }
}

fn allocate(size: usize, align: usize) -> Option<*mut u8> {
    start::begin();
    let vm = vmregion::diverted_to()?;
    count_call(vm);
    // What is busy is entered by this thread already: the heap serves what a discipline allocates.
    errno::set(0);
    let block = new_block(vm, size, align);
    if block.is_null() && (errno::get() == libc::EBUSY || vm.meth.bit() == mode::POOL) {
        return None;
    }
    Some(block.cast())
}

fn new_block(vm: &Vmalloc, size: usize, align: usize) -> *mut c_void {
    if align <= ALIGN {
        // SAFETY: the handle is open.
        unsafe { (vm.meth.allocf)(vm.address(), size, 0) }
    } else {
        // SAFETY: the handle is open.
        unsafe { (vm.meth.alignf)(vm.address(), size.max(1), align, 0) }
    }
}

fn free(block: *mut u8, is_own: bool) -> bool {
    start::begin();
    let owner = if is_own { traced_heap() } else { owner(block) };
    if start::keeps_all() {
        return owner.is_some() || is_own;
    }
    let Some(vm) = owner.or_else(|| if is_own { None } else { judge() }) else { return false };
    count_call(vm);
    // SAFETY: the handle is open, and the program does not use the block any more.
    let result = unsafe { (vm.meth.freef)(vm.address(), block.cast(), 0) };
    result == 0 || is_told(vm)
}

/// Returns whether a bad address has no other consequence: the region's method or its discipline
/// was told, or the method cannot know.
fn is_told(vm: &Vmalloc) -> bool {
    vm.meth.bit() & (mode::DEBUG | mode::LAST) != 0 || kinds::has_exceptf(vm)
}

fn resize(block: *mut u8, is_own: bool, size: usize, align: usize) -> Option<*mut u8> {
    start::begin();
    let owner = if is_own { traced_heap() } else { owner(block).or_else(judge) };
    if start::keeps_all() && (is_own || owner.is_some()) {
        return copied(owner, block, size, align);
    }
    let vm = owner?;
    count_call(vm);
    if vm.meth.bit() == mode::LAST && !is_block(vm, block) {
        return last(vm, block, size, align);
    }
    if align > ALIGN || vm.meth.bit() == mode::POOL {
        return elsewhere(vm, block, size, align);
    }
    let new = in_region(vm, block, size, resize::COPY | resize::MOVE);
    Some(new).filter(|_| !new.is_null() || is_told(vm) || is_block(vm, block))
}

fn in_region(vm: &Vmalloc, block: *mut u8, size: usize, how: c_int) -> *mut u8 {
    // SAFETY: the handle is open; the program does not use a block any more that moved.
    unsafe { (vm.meth.resizef)(vm.address(), block.cast(), size.max(1), how, 0) }.cast()
}

/// Moves a block of the method that knows the size of its last block alone: the copy is the last
/// one. What lies behind the block counts as its own, and what is new is zero.
fn last(vm: &Vmalloc, block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let copy = in_region(vm, block, size, resize::COPY | resize::MOVE | resize::ZERO);
    if copy.is_null() || align <= ALIGN { Some(copy) } else { elsewhere(vm, copy, size, align) }
}

/// Moves a block of a region to a new block, of the region if it can be.
fn elsewhere(vm: &Vmalloc, block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let new = copy(size_in(vm, block)?, block, size, align);
    if !new.is_null() {
        // SAFETY: the handle is open, and the program does not use the block any more.
        unsafe { (vm.meth.freef)(vm.address(), block.cast(), 0) };
    }
    Some(new)
}

/// Resizes a block where it lies, or copies it to a new one and leaves it as it is. It is a block
/// of the region, or of the heap for `None`.
fn copied(vm: Option<&Vmalloc>, block: *mut u8, size: usize, align: usize) -> Option<*mut u8> {
    let is_aligned = block.addr().is_multiple_of(align.max(1));
    let Some(vm) = vm else {
        // SAFETY: a block of the heap, which the program has.
        let old = unsafe { raw::usable_size(block) };
        // SAFETY: as above.
        let longer = || unsafe { raw::resize_in_place(block, size, 0, Flags::NONE) };
        let stays = is_aligned && (size <= old || longer() >= size);
        return Some(if stays { block } else { copy(old, block, size, align) });
    };
    count_call(vm);
    if vm.meth.bit() == mode::LAST && !is_block(vm, block) {
        return last(vm, block, size, align);
    }
    if is_aligned && !in_region(vm, block, size, 0).is_null() {
        return Some(block);
    }
    match size_in(vm, block) {
        Some(old) => Some(copy(old, block, size, align)),
        None => is_told(vm).then_some(ptr::null_mut()),
    }
}

/// Copies a block of `old` bytes to a new one, of the region of malloc if it can be. Returns NULL
/// if there is no memory.
fn copy(old: usize, block: *mut u8, size: usize, align: usize) -> *mut u8 {
    let new = allocate(size, align).unwrap_or_else(|| raw::malloc_aligned(size, align));
    if !new.is_null() {
        // SAFETY: two different blocks, at least this long.
        unsafe { new.copy_from_nonoverlapping(block, old.min(size)) };
    }
    new
}

/// Returns the size of a block, if the region knows it.
fn size_in(vm: &Vmalloc, block: *mut u8) -> Option<usize> {
    // SAFETY: the handle is open.
    usize::try_from(unsafe { (vm.meth.sizef)(vm.address(), block.cast(), 0) }).ok()
}

fn is_block(vm: &Vmalloc, block: *mut u8) -> bool {
    size_in(vm, block).is_some()
}

fn size(block: *mut u8) -> Option<usize> {
    let vm = owner(block)?;
    // The method that frees the last block alone does not know the sizes of others.
    size_in(vm, block).or((vm.meth.bit() == mode::LAST).then_some(0))
}

fn count_call(vm: &Vmalloc) {
    vmregion::count_call(vm);
    checks::count_call(vm);
}

fn traced_heap() -> Option<&'static Vmalloc> {
    vmregion::diverted_to().filter(|vm| kinds::is_heap(vm))
}

/// Returns the region that is asked about an address that lies in none: it tells whom it has to
/// tell.
fn judge() -> Option<&'static Vmalloc> {
    vmregion::diverted_to().filter(|vm| !kinds::is_heap(vm))
}

/// Returns the region of malloc in whose segments an address lies.
fn owner(block: *mut u8) -> Option<&'static Vmalloc> {
    let address = block.expose_provenance();
    let has_it = |vm: &&Vmalloc| (kinds::of(vm).segment)(vm, address).is_some();
    let now = vmregion::current();
    if !kinds::is_heap(now) && has_it(&now) {
        return Some(now);
    }
    let regions = Regions::hold();
    let is_of_malloc = |vm: &&Vmalloc| vm.head().is_of_malloc();
    let found = regions.each().filter(is_of_malloc).find(has_it)?;
    // SAFETY: the program keeps a region open as long as it uses a block of it.
    unsafe { ptr::from_ref(found).as_ref() }
}
