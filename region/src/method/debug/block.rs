//! The words around a block of the debugging method.
//!
//! ```text
//!   a block of the method Best
//!   ◀────────────────────────────────────────────────────────────────────────▶
//!   [size, state] [file] [its length, line] [function] [its length, mark] [guard] block [guard]
//!                                                                                 ▲ address
//! ```
//!
//! The guard behind the block reaches to the end. A freed block holds a link to the next one in the
//! place of the function, and zeros.

use crate::marks::{is_known_mark, process_mark};
use crate::noted::is_noted;
use crate::position::{Name, Position};
use crate::words::Words;

/// Bytes before a block.
pub(super) const FRONT: usize = 48;

/// Bytes of the guard before a block, and at least behind it.
pub(super) const GUARD: usize = 8;

/// What a byte of a guard holds.
const GUARD_BYTE: u8 = 0o255;

/// Places of the words, counted back from the block.
const SIZE: usize = 48;
const FILE: usize = 40;
const LINE: usize = 32;
const FUNCTION: usize = 24;
const MARK: usize = 16;

/// The name of no function.
const NOTHING: Name = Name { address: 0, length: 0 };

const FREED: u64 = 1;
const REPORTED: u64 = 2;
const FLAG_BITS: u32 = 2;

/// What the first word before a block says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Front {
    /// What the program asked for.
    pub(super) size: usize,
    pub(super) freed: bool,
    /// Whether a warning was given that a byte outside the block was overwritten.
    pub(super) reported: bool,
}

impl Front {
    /// Reads the word before the block at an address, or returns `None` if it was overwritten.
    pub(super) fn read(words: Words, at: usize) -> Option<Front> {
        let value = words.unseal_apart(at - SIZE)?;
        Some(Front {
            size: (value >> FLAG_BITS) as usize,
            freed: value & FREED != 0,
            reported: value & REPORTED != 0,
        })
    }

    /// Writes the word before the block at an address.
    pub(super) fn write(self, words: Words, at: usize) {
        let flags = u64::from(self.freed) | u64::from(self.reported) << 1;
        words.seal_apart(at - SIZE, (self.size as u64) << FLAG_BITS | flags);
    }
}

/// Makes the word before the block at an address invalid, unless it is: the block is about to
/// change or to go, and if the process ends meanwhile, it has no size.
pub(super) fn erase_front(words: Words, at: usize) {
    if Front::read(words, at).is_some() {
        words.erase(at - SIZE);
    }
}

/// Writes where a block was allocated.
pub(super) fn write_position(words: Words, at: usize, position: Position) {
    // A block that was freed is kept longer than the program's names may be.
    write_parts(words, at, position.noted());
}

/// Writes a position whose names stay. The mark vouches for the other words, which are addresses of
/// names: a program may have written before its block.
fn write_parts(words: Words, at: usize, position: Position) {
    let (file, line, function) = position.parts();
    let line = u64::from(file.length) << 32 | u64::from(line);
    let mark = mark_of(process_mark(), file.address as u64, line, function);
    words.write(at - FILE, file.address as u64);
    words.write(at - LINE, line);
    words.write(at - FUNCTION, function.address as u64);
    words.write(at - MARK, u64::from(function.length) << 32 | u64::from(mark));
}

/// Forgets in which function a block was allocated, to make room for a link.
pub(super) fn forget_function(words: Words, at: usize) {
    let (file, line, _) = position(words, at, false).parts();
    // SAFETY: the parts are those of a position of this process, and no function is one.
    let position = unsafe { Position::from_parts(file, line, NOTHING) };
    write_parts(words, at, position);
}

/// Returns where a block was allocated, if this process allocated it, or one that it was forked
/// from, and nothing was overwritten.
pub(super) fn position(words: Words, at: usize, is_freed: bool) -> Position {
    let (mark, line) = (words.read(at - MARK), words.read(at - LINE));
    let file = Name { address: words.read(at - FILE) as usize, length: (line >> 32) as u32 };
    let function = match is_freed {
        true => NOTHING,
        false => Name { address: words.read(at - FUNCTION) as usize, length: (mark >> 32) as u32 },
    };
    let is_of = |process| mark as u32 == mark_of(process, file.address as u64, line, function);
    // What the process has noted since this one was forked from it, only it has.
    let is_here = |name: Name| name.address == 0 || is_noted(name.address);
    let is_known =
        is_of(process_mark()) || is_known_mark(is_of) && is_here(file) && is_here(function);
    if !is_known {
        return Position::UNKNOWN;
    }
    // SAFETY: the mark says that this process wrote the words, or one that it was forked from.
    unsafe { Position::from_parts(file, line as u32, function) }
}

/// Returns a number of the words of a position, which processes without the mark do not know.
fn mark_of(process: u32, file: u64, line: u64, function: Name) -> u32 {
    /// An odd number without structure: the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let parts = [file, line, function.address as u64, function.length.into()];
    let add = |mark: u64, part: u64| (mark ^ part).wrapping_mul(FACTOR).rotate_left(32);
    parts.into_iter().fold(process.into(), add) as u32
}

/// Returns the place of the link of a freed block.
pub(super) fn link(at: usize) -> usize {
    at - FUNCTION
}

/// Writes the guards around a block whose memory ends at `end`.
pub(super) fn write_guards(at: usize, size: usize, end: usize) {
    bytes_mut(at - GUARD, GUARD).fill(GUARD_BYTE);
    bytes_mut(at + size, end.saturating_sub(at + size)).fill(GUARD_BYTE);
}

/// Returns how many bytes behind the start of a block the first overwritten byte of its guards
/// lies, which is negative before the block, or `None` if they are as they were.
pub(super) fn overwritten(at: usize, size: usize, end: usize) -> Option<isize> {
    let bad = |start: usize, length: usize| {
        bytes(start, length).iter().position(|byte| *byte != GUARD_BYTE)
    };
    if let Some(place) = bad(at - GUARD, GUARD) {
        return Some(place.cast_signed() - GUARD.cast_signed());
    }
    bad(at + size, end.saturating_sub(at + size)).map(|place| (size + place).cast_signed())
}

/// Fills a freed block with zeros.
pub(super) fn wipe(at: usize, size: usize) {
    bytes_mut(at, size).fill(0);
}

/// Returns the first byte of a freed block that was written, if any.
pub(super) fn written(at: usize, size: usize) -> Option<isize> {
    let place = bytes(at, size).iter().position(|byte| *byte != 0)?;
    Some(place.cast_signed())
}

fn bytes<'a>(start: usize, length: usize) -> &'a [u8] {
    let start = core::ptr::with_exposed_provenance(start);
    // SAFETY: callers pass a part of a block of the region, which no other thread writes meanwhile:
    // guards are not the program's, and freed blocks are not used.
    unsafe { core::slice::from_raw_parts(start, length) }
}

fn bytes_mut<'a>(start: usize, length: usize) -> &'a mut [u8] {
    let start = core::ptr::with_exposed_provenance_mut(start);
    // SAFETY: as in `bytes`.
    unsafe { core::slice::from_raw_parts_mut(start, length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_at(words: Words, at: usize) -> Option<usize> {
        position(words, at, false).file_and_line().map(|(_, line)| line)
    }

    #[test]
    fn a_child_knows_the_positions_of_its_parent_and_the_parent_none_of_its_child() {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        let anywhere = core::ptr::null_mut();
        // SAFETY: the mapping is new.
        let memory = unsafe { libc::mmap(anywhere, 4096, protection, flags, -1, 0) };
        assert_ne!(memory, libc::MAP_FAILED);
        let base = memory.expose_provenance();
        // SAFETY: the memory is this test's, and one process uses it at a time.
        let words = unsafe { Words::new(base, 7) };
        let [of_parent, of_child] = [base + 512, base + 1024];
        write_position(words, of_parent, Position::new(b"parent.c", 1, b""));
        // SAFETY: the child calls little but the functions here.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            crate::marks::note_process();
            write_position(words, of_child, Position::new(b"child.c", 2, b""));
            let lines = [of_parent, of_child].map(|at| line_at(words, at));
            // SAFETY: the child ends.
            unsafe { libc::_exit(i32::from(lines != [Some(1), Some(2)])) };
        }
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert_eq!([of_parent, of_child].map(|at| line_at(words, at)), [Some(1), None]);
        // SAFETY: nothing uses the mapping any more.
        assert_eq!(unsafe { libc::munmap(memory, 4096) }, 0);
    }
}
