//! Canaries: the last 8 bytes of a small block belong to the allocator.
//!
//! ```text
//!   in use    │ requested bytes …   │ slack     │ seal(address), slack's length, operator │
//!   free      │ zeroes                          │ !seal(address)                          │
//! ```
//! The word is written when a block is handed out and checked when it is freed. If it is neither
//! a seal nor the broken seal, the block overflowed; a broken seal is a second free. A correct
//! program cannot fail the check, because the word and the slack before it are none of its usable
//! bytes: those are the requested ones. The seal is a secret mixed with the address, so that one
//! block's seal does not reveal another's. Large blocks have another one: see [`large_canary`].
//!
//! [`large_canary`]: super::large_canary

use super::slack;
use crate::back::map::page_map;
use crate::ground::fatal;
use crate::ground::fill_mode;
use crate::ground::operator::Operator;
use crate::ground::os;
use crate::ground::seen::address_seen;
use crate::ground::size_class::{SizeClass, size_for_align};
use crate::middle::blocks::misuse_report;
use crate::middle::slabs::slab::Slab;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes of the canary at the end of each small block.
pub(crate) const BYTES: usize = 8;

static SECRET: AtomicU64 = AtomicU64::new(0);

/// Draws the secret, which is odd. Called once, before the first block.
pub(crate) fn prepare() {
    SECRET.store(os::random() | 1, Relaxed);
}

/// Returns what a request needs with its canary, rounded so that its class is a multiple of
/// `align`: [`size_for_align`] with a canary.
#[inline(always)]
pub(crate) const fn room(size: usize, align: usize) -> Option<usize> {
    size_for_align(if size == 0 { 1 } else { size }.saturating_add(BYTES), align)
}

/// Returns the secret, for callers that keep a copy.
pub(crate) fn secret() -> u64 {
    SECRET.load(Relaxed)
}

/// Returns the value of the last word of a block in use that has no slack. It is odd, because the
/// secret is odd and no block's address is, so that the zero byte at a string's end never matches
/// it.
#[inline(always)]
pub(crate) fn seal_by(secret: u64, address: usize) -> u64 {
    secret ^ address as u64
}

#[inline(always)]
pub(super) fn seal_of(address: usize) -> u64 {
    seal_by(SECRET.load(Relaxed), address)
}

#[inline(always)]
fn word_of(block: *mut u8, class: SizeClass) -> *mut u64 {
    block.wrapping_add(class.size() - BYTES).cast()
}

fn filling() -> u64 {
    slack::filling(SECRET.load(Relaxed))
}

/// Returns the slack of a block of a class that serves a request of `size` bytes.
fn slack_of(class: SizeClass, size: usize) -> usize {
    (class.size() - BYTES).saturating_sub(size.max(1))
}

/// Seals a block that serves a request of `size` bytes.
///
/// # Safety
/// `block` must be a block of that class that belongs to the caller.
#[inline(always)]
pub(crate) unsafe fn seal(block: *mut u8, class: SizeClass, size: usize) {
    let (word, slack) = (word_of(block, class), slack_of(class, size));
    // SAFETY: the caller's block. All classes but the first are multiples of 16, and no request is
    // so small that it gets the first class.
    unsafe { slack::fill_exactly(word.cast(), slack, filling()) };
    // SAFETY: its last word.
    unsafe { word.write(slack::canary(seal_of(block as usize), slack)) };
}

/// Breaks the seal of a freed block. Returns its class and the size that was requested. Ends the
/// process if the address is no block, or the block is free already or overrun. `bin` is the bin of
/// the slab's class from the page map, so that the check need not wait for the slab's record.
///
/// # Safety
/// The address must lie in the slab.
#[inline(always)]
pub(crate) unsafe fn unseal(slab: &Slab, bin: usize, block: *mut u8) -> (SizeClass, usize) {
    let class = SizeClass::from_bin(bin).unwrap_or(slab.class());
    // SAFETY: the caller's promise.
    let size = unsafe { checked(slab, class, block) };
    look_before(slab, block);
    // SAFETY: the last word of a block of the slab, as was just checked.
    unsafe { word_of(block, class).write(!seal_of(block as usize)) };
    (class, size)
}

/// Lets a block serve a request of `size` bytes from now on. Ends the process as [`unseal`] does.
///
/// # Safety
/// The address must lie in the slab, and the class must be large enough for the request.
pub(crate) unsafe fn reseal(slab: &Slab, block: *mut u8, size: usize) {
    let class = slab.class();
    // SAFETY: the caller's promise.
    unsafe { checked(slab, class, block) };
    // SAFETY: a block in use of that class, as was just checked.
    unsafe { seal(block, class, size) };
}

/// As [`look_before`], for a caller that does not know the slab.
#[cold]
#[inline(never)]
pub(crate) fn find_and_look_before(block: *mut u8) {
    if let Some(slab) = Slab::of(page_map::lookup(block.expose_provenance())) {
        look_before(slab, block);
    }
}

/// Ends the process if the word before a block, the last one of the block before it, was
/// overwritten. Says nothing of slabs whose pages did not read zero, because there the block before
/// may never have been in use.
fn look_before(slab: &Slab, block: *mut u8) {
    let address = block as usize;
    let size = slab.class().size();
    if address < slab.base() + size || size <= BYTES || !slab.fresh.were_zero() {
        return;
    }
    let before = address - size;
    // SAFETY: a word of the slab.
    let word = unsafe { address_seen(block.wrapping_sub(BYTES).cast()) } as u64;
    // A thread that hands the block before out may fill the slack up to its end first.
    if !slack::may_be_last(seal_of(before), word) && word != filling() {
        fatal::overwritten_between(before, address, slab.place());
    }
}

/// Returns the size that was requested of a block in use. Ends the process if the address is no
/// block, or the block is free or overrun.
///
/// # Safety
/// The address must lie in the slab, which is of that class.
#[inline(always)]
unsafe fn checked(slab: &Slab, class: SizeClass, block: *mut u8) -> usize {
    // The word of an address between blocks may lie behind the slab.
    if class.slot_at((block as usize).wrapping_sub(slab.base())).is_none() {
        misuse_report::interior(slab, block as usize);
    }
    // SAFETY: a block of the slab.
    match unsafe { state(block, class) } {
        State::InUse(size) => size,
        other => misused(slab, block as usize, other),
    }
}

/// Returns the size that was requested of a block of a class. `None`: it is free, or its canary was
/// overwritten. The block may be another thread's.
///
/// # Safety
/// `block` must be a block of a slab of that class, which stays.
pub(crate) unsafe fn requested(block: *const u8, class: SizeClass) -> Option<usize> {
    // SAFETY: the caller's promise.
    unsafe { noted(block, class) }.map(|(size, _)| size)
}

/// Returns whether a block of a class was freed, and is not in use since. The block may be another
/// thread's.
///
/// # Safety
/// As [`requested`].
pub(crate) unsafe fn is_free(block: *const u8, class: SizeClass) -> bool {
    // SAFETY: the last word of the block. It may be out of date.
    let word = unsafe { address_seen(word_of(block.cast_mut(), class).cast()) } as u64;
    word == !seal_of(block as usize)
}

/// Returns the operator that allocated a block of a class. It is unknown if the block is free, or
/// its canary was overwritten. The block may be another thread's.
///
/// # Safety
/// As [`requested`].
pub(crate) unsafe fn operator(block: *const u8, class: SizeClass) -> Operator {
    // SAFETY: the caller's promise.
    unsafe { noted(block, class) }.map_or(Operator::Unknown, |(_, operator)| operator)
}

/// Returns the size that was requested of a block and the operator that allocated it.
///
/// # Safety
/// As [`requested`].
unsafe fn noted(block: *const u8, class: SizeClass) -> Option<(usize, Operator)> {
    let room = class.size().saturating_sub(BYTES);
    // SAFETY: the last word of the block. It may be out of date.
    let word = unsafe { address_seen(word_of(block.cast_mut(), class).cast()) } as u64;
    let (slack, operator) = slack::told_of_any(seal_of(block as usize), word);
    (slack < room).then(|| (room - slack, operator))
}

/// Notes the operator that allocated a block. Does nothing if the block has no canary.
///
/// # Safety
/// `block` must be a block in use of that class, which belongs to the caller, and whose operator is
/// not noted.
pub(crate) unsafe fn note_operator(block: *mut u8, class: SizeClass, operator: Operator) {
    // SAFETY: the caller's promise.
    if unsafe { requested(block, class) }.is_some() {
        let word = word_of(block, class);
        // SAFETY: the last word of the caller's block, which is aligned in all classes with room.
        let word = unsafe { &mut *word };
        *word ^= slack::mark(operator);
    }
}

/// What the last word of a block says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The seal and the slack are intact. So many bytes were requested.
    InUse(usize),
    /// The seal is broken.
    Free,
    /// There was no seal yet, or zeroes were written over it.
    Zero,
    /// The seal is intact, and the slack is not. So many bytes were requested.
    Overrun(usize),
    /// The word is none of these.
    Overwritten,
}

/// Returns what the last word of a block says, and the slack before it.
///
/// # Safety
/// `block` must be a block of that class, in use or free, which no other thread writes to.
#[inline(always)]
pub(super) unsafe fn state(block: *mut u8, class: SizeClass) -> State {
    let (word, seal) = (word_of(block, class), seal_of(block as usize));
    let room = class.size().saturating_sub(BYTES);
    // SAFETY: the last word of the block.
    let found = unsafe { word.read_unaligned() };
    let (slack, _) = slack::told_of_any(seal, found);
    if slack < room {
        // SAFETY: the caller's promise. The slack is in the block, which is longer than the word.
        let is_intact = unsafe { slack::is_intact(word.cast(), slack, filling()) };
        return if is_intact { State::InUse(room - slack) } else { State::Overrun(room - slack) };
    }
    match found {
        found if found == !seal => State::Free,
        0 => State::Zero,
        _ => State::Overwritten,
    }
}

/// Ends the process if the bytes of a free block that were zeroed do not read zero. Blocks that
/// were filled with junk are not looked at, nor those of slabs whose pages did not read zero.
///
/// # Safety
/// `block` must be a free block of the slab, which no other thread writes to.
pub(super) unsafe fn check_zero(slab: &Slab, block: *mut u8) {
    // SAFETY: the caller's promise.
    if let Some(offset) = unsafe { first_written_of(slab, block) } {
        let address = block as usize;
        fatal::write_after_free(address + offset, address, slab.place());
    }
}

/// As [`check_zero`], but returns the index of the first byte that does not read zero.
///
/// # Safety
/// As [`check_zero`].
pub(super) unsafe fn first_written_of(slab: &Slab, block: *mut u8) -> Option<usize> {
    let size = slab.class().size();
    if size <= BYTES || fill_mode::was_junk() || !slab.fresh.were_zero() {
        return None;
    }
    // SAFETY: bytes of the block before its last word.
    first_written(unsafe { core::slice::from_raw_parts(block, size - BYTES) })
}

/// Returns the index of the first byte that is not zero. Looks at a line of them at a time, because
/// a sweep looks at every free block.
fn first_written(bytes: &[u8]) -> Option<usize> {
    const LINE: usize = 64;
    let is_written = |line: &[u8]| line.iter().fold(0, |all, byte| all | byte) != 0;
    let (before, line) = bytes.chunks(LINE).enumerate().find(|(_, line)| is_written(line))?;
    line.iter().position(|byte| *byte != 0).map(|at| before * LINE + at)
}

/// Ends the process if a block that was about to be handed out was written to after its free.
#[cold]
#[inline(never)]
pub(crate) fn report_written(block: *mut u8) {
    if let Some(slab) = Slab::of(page_map::lookup(block.expose_provenance())) {
        // SAFETY: the caller has just taken the free block of the slab.
        unsafe { check_zero(slab, block) };
    }
}

/// Ends the process because a block's canary, or the slack before it, was overwritten.
pub(super) fn report_overwritten(slab: &Slab, address: usize, state: State) -> ! {
    match state {
        State::Overrun(size) => fatal::overflow(address, size, slab.place()),
        _ => fatal::overflow_somewhere(address, slab.class().size() - BYTES, slab.place()),
    }
}

/// Ends the process because a block that is freed or resized is not in use, or is overrun.
#[cold]
#[inline(never)]
fn misused(slab: &Slab, address: usize, state: State) -> ! {
    if state == State::Free || misuse_report::looks_free(slab, address) {
        fatal::double_free(address, slab.place());
    }
    report_overwritten(slab, address, state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_has_a_canary_and_keeps_the_alignment() {
        assert_eq!(room(0, 1), Some(9));
        assert_eq!(room(56, 1), Some(64));
        assert_eq!(room(56, 64), Some(64));
        assert_eq!(room(57, 64), Some(128));
        assert_eq!(room(usize::MAX, 4096), None);
        for size in 0..3000 {
            for lg in 0..8 {
                let class = SizeClass::of(room(size, 1 << lg).unwrap());
                assert!(class.size() >= size + BYTES && class.size().is_multiple_of(1 << lg));
                assert!(class.size().is_multiple_of(16), "the word is aligned");
            }
        }
    }

    #[test]
    fn seals_are_odd_and_their_breaks_even() {
        prepare();
        for address in (0x1000..0x9000).step_by(16) {
            assert_eq!((seal_of(address) & 1, !seal_of(address) & 1), (1, 0));
            assert_ne!(seal_of(address), seal_of(address + 16));
        }
    }
}
