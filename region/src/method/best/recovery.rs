//! Making the state of a region anew from the headers of its blocks, after a process ended in it.
//!
//! At any time the headers lead from each block to the next. What else the process was changing is
//! unknown: lists, tree, the marks after free blocks, the end of a segment that grew.

use super::Best;
use super::block::{Block, HEADER, SMALLEST, pieces};
use super::state::{State, mark_end};
use crate::discipline::Discipline;
use crate::method::call::Call;
use crate::segments::Segment;
use crate::words::Words;

/// Makes lists and tree of a region anew. Blocks that the program has stay as they are, and all
/// others are free.
pub(super) fn recover<D: Discipline>(call: &mut Call<'_, Best, D>) {
    let words = call.words();
    call.state().begin(words);
    for segment in call.segments() {
        recover_segment(call.state(), words, segment);
    }
}

fn recover_segment(state: &State, words: Words, segment: &Segment) {
    let (mut at, end) = (segment.first(), segment.end());
    let mut run = FreeRun { start: None };
    while at < end {
        let room = end - at;
        at = match Block::read(words, at) {
            Some(block) if block.is_used() && (SMALLEST..=room).contains(&block.size()) => {
                let is_after_free = run.finish(state, words, at);
                block.after(is_after_free).write(words, at);
                at + block.size()
            }
            Some(block) if !block.is_used() && block.size() >= SMALLEST => {
                run.add(at);
                // The segment was made shorter: what lay behind its end was free.
                at + block.size().min(room)
            }
            // The end of the segment before it grew.
            Some(block) if block.size() == 0 => {
                if room < SMALLEST && run.start.is_none() {
                    break;
                }
                run.add(at);
                end
            }
            _ => {
                // What lies behind is not used again, but its blocks can be freed.
                crate::damage::report(words.address(0), at - HEADER);
                run.finish(state, words, at);
                return;
            }
        };
    }
    let is_after_free = run.finish(state, words, at);
    mark_end(words, at, is_after_free);
}

/// Blocks side by side of which none is the program's.
struct FreeRun {
    start: Option<usize>,
}

impl FreeRun {
    fn add(&mut self, at: usize) {
        self.start.get_or_insert(at);
    }

    /// Makes one free block of the run, which ends here, or several if it is longer than a block
    /// can be. Returns whether there is one.
    fn finish(&mut self, state: &State, words: Words, end: usize) -> bool {
        let Some(start) = self.start.take() else { return false };
        // The process may end here too, so the last piece comes first.
        for (at, size) in pieces(start, end).rev() {
            state.add_free(words, at, Block::free(size).after(at != start));
        }
        true
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::tests::check;
    use super::*;
    use crate::data::Data;
    use crate::method::call::Form;
    use crate::method::stepping::{Buffer, ROOM, after_each_change, map};
    use crate::method::{Method, Resize};
    use core::ptr::NonNull;
    use core::sync::atomic::{AtomicUsize, Ordering};

    const BLOCKS: usize = 24;

    /// What the child had done when it ended: the blocks that it had, and the one that it was about
    /// to free or resize, or 1 while it clears the region.
    #[repr(C)]
    struct Said {
        blocks: [AtomicUsize; BLOCKS],
        leaves: AtomicUsize,
    }

    fn said<'a>(memory: usize) -> &'a Said {
        // SAFETY: the memory is mapped until the test ends, and any bytes are a value.
        unsafe { &*core::ptr::with_exposed_provenance::<Said>(memory + ROOM) }
    }

    fn data(memory: usize) -> NonNull<Data<State>> {
        NonNull::new(core::ptr::with_exposed_provenance_mut(memory)).unwrap()
    }

    /// What the child does: all that a region can do, without memory of its own.
    fn work(memory: usize) {
        let mut discipline = Buffer(memory);
        // SAFETY: the region was opened by the parent.
        let mut call = unsafe { Call::<Best, Buffer>::new(data(memory), &mut discipline) };
        let said = said(memory);
        let mut number = 12345usize;
        for round in 0..150 {
            number = number.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let slot = &said.blocks[(number >> 33) % BLOCKS];
            let size = [24, 40, 700, 24, 100, 1500][(number >> 40) % 6];
            let old = slot.load(Ordering::Relaxed);
            if round % 40 == 39 {
                Best::compact(&mut call);
            }
            if old == 0 {
                let new = match number >> 50 & 3 {
                    0 => Best::align(&mut call, size, 64),
                    _ => Best::alloc(&mut call, size),
                };
                slot.store(new.unwrap() - memory, Ordering::SeqCst);
                continue;
            }
            said.leaves.store(old, Ordering::SeqCst);
            let new = match number >> 50 & 1 {
                0 => Best::free(&mut call, memory + old).map(|_| memory).unwrap(),
                _ => Best::resize(&mut call, memory + old, size, Resize::MOVE).unwrap(),
            };
            slot.store(new - memory, Ordering::SeqCst);
            said.leaves.store(0, Ordering::SeqCst);
        }
        said.leaves.store(1, Ordering::SeqCst);
        call.clear();
        said.blocks.iter().for_each(|slot| slot.store(0, Ordering::SeqCst));
        said.leaves.store(0, Ordering::SeqCst);
    }

    #[test]
    fn a_region_is_whole_again_wherever_a_process_ended() {
        let memory = map();
        let mut discipline = Buffer(memory);
        Call::<Best, Buffer>::open(&mut discipline, Form::default()).unwrap();
        let changes = after_each_change(memory, work, |copy, _| {
            let mut discipline = Buffer(copy);
            // SAFETY: the copy is that of a region, and nobody else has it.
            let mut call = unsafe { Call::<Best, Buffer>::new(data(copy), &mut discipline) };
            call.recover();
            let blocks = check(&call);
            let said = said(copy);
            let leaves = said.leaves.load(Ordering::Relaxed);
            let used = blocks.values().filter(|block| block.is_used()).count();
            let mut kept = 0;
            for slot in &said.blocks {
                let block = slot.load(Ordering::Relaxed);
                if block != 0 && block != leaves && leaves != 1 {
                    assert!(blocks.get(&(copy + block)).is_some_and(|block| block.is_used()));
                    kept += 1;
                }
            }
            // A call in which the process ended has taken two blocks at most.
            assert!(leaves == 1 || (kept..=kept + 2).contains(&used), "{kept}, {used}");
            let more = Best::alloc(&mut call, 200).unwrap();
            check(&call);
            assert!(Best::free(&mut call, more).is_ok());
        });
        assert!(changes > 1000, "{changes}");
    }
}
