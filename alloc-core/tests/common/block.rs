//! Blocks whose contents identify them.

use super::random::mix;

/// Up to this length every byte is written and checked. Of longer blocks the ends are, and a word
/// in each page or, in very long blocks, in each 4096th part.
const WHOLE: usize = 64 << 10;
const PAGE: usize = 4096;

/// A block as the test knows it. Its holder may read and write `length` bytes.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) address: usize,
    pub(crate) length: usize,
    /// The seed of the contents.
    pub(crate) id: u64,
}

impl Block {
    /// Fills a new block. Returns `None` for null.
    pub(crate) fn filled(ptr: *mut u8, length: usize, id: u64) -> Option<Block> {
        if ptr.is_null() {
            return None;
        }
        let block = Block { address: ptr.expose_provenance(), length, id };
        block.fill();
        Some(block)
    }

    /// The first byte of the block.
    pub(crate) fn ptr(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address)
    }

    /// Writes the contents of the block.
    pub(crate) fn fill(&self) {
        // SAFETY: the block is the holder's, this long.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.length) };
        for range in ranges(self.length) {
            write(&mut bytes[range.clone()], range.start, self.id);
        }
    }

    /// Panics unless the first `length` bytes are as they were written.
    #[track_caller]
    pub(crate) fn check(&self, length: usize) {
        let length = length.min(self.length);
        // SAFETY: the block is the holder's, this long.
        let bytes = unsafe { std::slice::from_raw_parts(self.ptr(), length) };
        // The ranges of the whole block, because bytes that were not written are not checked.
        for range in ranges(self.length).filter(|range| range.start < length) {
            let range = range.start..range.end.min(length);
            if let Some(at) = differs(&bytes[range.clone()], range.start, self.id) {
                panic!("byte {at} of {self:?} is {:#x}", bytes[at]);
            }
        }
    }
}

/// The parts of a block that are written and checked. Each begins at a multiple of 8.
fn ranges(length: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let whole = length <= WHOLE;
    let last = if whole { length } else { (length - PAGE) & !7 };
    let first = if whole { length } else { PAGE };
    let step = PAGE.max(length / 4096) & !7;
    let between = (first..last).step_by(step).map(|at| at..at + 8);
    let end = (!whole).then_some(last..length);
    std::iter::once(0..first).chain(between).chain(end)
}

fn word(at: usize, id: u64) -> [u8; 8] {
    mix(id ^ (at as u64) << 20).to_le_bytes()
}

fn write(bytes: &mut [u8], begin: usize, id: u64) {
    for (index, chunk) in bytes.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&word(begin + index * 8, id)[..chunk.len()]);
    }
}

fn differs(bytes: &[u8], begin: usize, id: u64) -> Option<usize> {
    let mut chunks = bytes.chunks(8).enumerate();
    let (index, chunk) =
        chunks.find(|(index, chunk)| **chunk != word(begin + index * 8, id)[..chunk.len()])?;
    let expected = word(begin + index * 8, id);
    let inside = chunk.iter().zip(expected).position(|(is, was)| *is != was)?;
    Some(begin + index * 8 + inside)
}

/// Panics unless all bytes are zero.
///
/// # Safety
/// `ptr` is a block of `length` bytes.
#[track_caller]
pub(crate) unsafe fn assert_zero(ptr: *const u8, length: usize) {
    // SAFETY: the caller's promise.
    let bytes = unsafe { std::slice::from_raw_parts(ptr, length) };
    for (index, page) in bytes.chunks(PAGE).enumerate() {
        if page != &[0u8; PAGE][..page.len()] {
            let at = page.iter().position(|byte| *byte != 0).unwrap_or(0);
            panic!("byte {} of {length} is {:#x}, not zero", index * PAGE + at, page[at]);
        }
    }
}

/// Runs `f`, which must succeed without touching `errno`.
#[track_caller]
pub(crate) fn keeps_errno<T>(f: impl FnOnce() -> T) -> T {
    set_errno(77);
    let result = f();
    assert_eq!(errno(), 77, "success changed errno");
    result
}

/// The calling thread's `errno`.
pub(crate) fn errno() -> i32 {
    // SAFETY: the call returns a valid pointer.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid, and the `errno` is this thread's.
    unsafe { *place }
}

/// Sets the calling thread's `errno`.
pub(crate) fn set_errno(value: i32) {
    // SAFETY: the call returns a valid pointer.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid, and the `errno` is this thread's.
    unsafe { *place = value };
}
