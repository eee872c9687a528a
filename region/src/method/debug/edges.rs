//! The words around a block in use: when they are written, so that a process may end at any moment.
//!
//! A block that has a size has guards at the end of its memory. While its memory changes it has no
//! size, and whoever finds such a block after the process has ended makes both anew.

use super::super::best::Best;
use super::super::{Method, Resize, clear};
use super::block::{self, FRONT, Front, GUARD};
use super::{Debug, alert, each_block, look, with_best};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::position::Position;
use crate::warning::Moment;
use crate::words::{Words, in_order};

/// Writes the guards around a block whose memory ends at `end`, and then its size.
pub(super) fn write_edges(words: Words, at: usize, size: usize, end: usize) {
    block::write_guards(at, size, end);
    in_order();
    Front { size, freed: false, reported: false }.write(words, at);
}

/// Writes the words around blocks that a process was making or resizing when it ended. Such a block
/// is as long as its memory. Nobody can tell it from one whose size was overwritten.
pub(super) fn finish_all<D: Discipline>(call: &Call<'_, Debug, D>) {
    let words = call.words();
    for (at, found) in each_block(call).filter(|(_, found)| found.front.is_none()) {
        if let Some(size) = found.end.checked_sub(at + GUARD) {
            block::write_position(words, at, Position::UNKNOWN);
            write_edges(words, at, size, found.end);
        }
    }
}

/// Resizes a block where it lies, if it can be. Returns whether it was.
pub(super) fn in_place<D: Discipline>(
    call: &mut Call<'_, Debug, D>,
    at: usize,
    old: usize,
    size: usize,
    how: Resize,
) -> bool {
    let Some(longer) = size.checked_add(FRONT + GUARD) else { return false };
    let (words, start) = (call.words(), at - FRONT);
    let front = Front::read(words, at);
    block::erase_front(words, at);
    in_order();
    let resized = with_best(call, |best| Best::resize(best, start, longer, Resize::STAY));
    let usable = look(call, |best| Best::size(best, start)).filter(|_| resized.is_ok());
    let Some(usable) = usable else {
        if let Some(front) = front {
            front.write(words, at);
        }
        return false;
    };
    write_edges(words, at, size, start + usable);
    if how.zero && size > old {
        clear(at + old, size - old);
    }
    alert(call, at, size, Moment::Resized);
    true
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::State;
    use super::super::retired::release_freed;
    use super::*;
    use crate::data::Data;
    use crate::method::call::Form;
    use crate::method::stepping::{Buffer, after_each_change, map};
    use core::ptr::NonNull;

    fn data(memory: usize) -> NonNull<Data<State>> {
        NonNull::new(core::ptr::with_exposed_provenance_mut(memory)).unwrap()
    }

    /// Fills a block, so that no guard stands where memory of it is used again.
    fn fill(block: usize, size: usize) -> usize {
        let block_start = core::ptr::with_exposed_provenance_mut::<u8>(block);
        // SAFETY: the block is the test's, and has so many bytes.
        unsafe { block_start.write_bytes(7, size) };
        block
    }

    /// What the child does: all that makes or changes blocks where others were.
    fn work(memory: usize) {
        let mut discipline = Buffer(memory);
        // SAFETY: the region was opened by the parent.
        let mut call = unsafe { Call::<Debug, Buffer>::new(data(memory), &mut discipline) };
        let call = &mut call;
        for size in [300, 40, 700] {
            let block = fill(Debug::alloc(call, size).unwrap(), size);
            let other = fill(Debug::alloc(call, 100).unwrap(), 100);
            // Shorter and longer where it lies, and elsewhere.
            let block = Debug::resize(call, block, size / 2, Resize::STAY).unwrap();
            let block = Debug::resize(call, block, size, Resize::MOVE).unwrap();
            let block = Debug::resize(call, fill(block, size), 1200, Resize::MOVE).unwrap();
            assert!(Debug::free(call, block).is_ok());
            release_freed(call, |_| true);
            let block = fill(Debug::align(call, 500, 64).unwrap(), 500);
            assert!(Debug::free(call, other).is_ok() && Debug::free(call, block).is_ok());
            Debug::compact(call);
        }
    }

    #[test]
    fn nobody_reports_a_block_that_a_process_left_half_made() {
        let memory = map();
        let mut discipline = Buffer(memory);
        Call::<Debug, Buffer>::open(&mut discipline, Form::default()).unwrap();
        let changes = after_each_change(memory, work, |copy, change| {
            let mut discipline = Buffer(copy);
            // SAFETY: the copy is that of a region, and nobody else has it.
            let mut call = unsafe { Call::<Debug, Buffer>::new(data(copy), &mut discipline) };
            call.recover();
            assert_eq!(Debug::check(&mut call), Some(0), "after change {change}");
        });
        assert!(changes > 500, "{changes}");
    }
}
