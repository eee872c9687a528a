//! Moving a run's memory to other addresses instead of copying it.
//!
//! ```text
//!   begin_move   under the lock: addresses without memory for the longer run, in nobody's list
//!   move_pages   the system call, outside all locks
//!   end_move     under the lock: what came of it
//! ```
//! Moved pages are a mapping of the system's own, and a process may have only so many of those
//! (`vm.max_map_count`). So each move has a number, kept in the runs that it brought; runs of
//! different numbers are never merged (the system could not move them together again), purging one
//! makes an ordinary mapping of it, and with too many such runs about nothing is moved any more.
//!
//! While the system is at work, other threads may be given the addresses that it takes away. Both
//! runs have therefore left the page map before.

use super::dense::{self, DENSE};
use super::extension::JOINED;
use super::extent::{Extent, ExtentState};
use super::huge::{self, ADVISED, PARTLY};
use super::in_hand::InHand;
use super::page_allocator::PageAllocator;
use super::page_map;
use super::page_provider::{Moved, PageProvider};
use crate::ground::os;
use crate::ground::units::PAGE;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};

/// Runs that long are moved to a multiple of this: the system then moves whole tables of pages.
const TABLE: usize = 2 << 20;
/// The part of the system's mappings that moved runs may be.
const PART_OF_MAPPINGS: usize = 8;
/// Mappings that a process may have where the system does not say.
const USUAL_MAPPINGS: usize = 65530;

/// Runs with a number.
static RUNS: AtomicUsize = AtomicUsize::new(0);
static LAST_NUMBER: AtomicU16 = AtomicU16::new(0);

/// Notes that `run` lies in mapping `number`.
pub(super) fn mark(run: &Extent, number: u16) {
    match (is_own(run.mapping()), is_own(number)) {
        (false, true) => drop(RUNS.fetch_add(1, Relaxed)),
        (true, false) => drop(RUNS.fetch_sub(1, Relaxed)),
        _ => {}
    }
    run.set_mapping(number);
}

/// The number of runs whose memory was decommitted by an extent hook.
pub(super) const DECOMMITTED: u16 = u16::MAX - 3;

/// Whether a run with that number is a mapping of its own.
pub(super) fn is_own(number: u16) -> bool {
    number != 0 && number != DENSE
}

/// Whether there may be one more run with a number.
pub(super) fn has_room() -> bool {
    has_room_for(RUNS.load(Relaxed))
}

/// The same, for as many mappings of another kind as there are.
pub(super) fn has_room_for(mappings: usize) -> bool {
    mappings < most_runs()
}

/// Whether there may be one more run with a number that is several mappings, as all of them may be.
pub(super) fn has_room_for_parts(mappings: usize) -> bool {
    has_room_for(RUNS.load(Relaxed).saturating_mul(mappings))
}

/// The next move's number: not 0, nor one of huge pages. Numbers come round again: two runs of
/// equal ones that do touch are merged, and their memory then cannot be moved but is copied.
fn next_number() -> u16 {
    match LAST_NUMBER.fetch_add(1, Relaxed).wrapping_add(1) {
        0 | ADVISED | PARTLY | DENSE | JOINED | DECOMMITTED => 1,
        number => number,
    }
}

/// How many runs with a number there may be. Asks the system once.
fn most_runs() -> usize {
    static MOST: AtomicUsize = AtomicUsize::new(0);
    let known = MOST.load(Relaxed);
    if known != 0 {
        return known;
    }
    let mut buffer = [0; 32];
    let text = os::read_file(c"/proc/sys/vm/max_map_count", &mut buffer);
    let most = text.map_or(USUAL_MAPPINGS, leading_number) / PART_OF_MAPPINGS;
    MOST.store(most.max(1), Relaxed);
    most.max(1)
}

fn leading_number(text: &[u8]) -> usize {
    let digits = text.iter().take_while(|c| c.is_ascii_digit());
    digits.fold(0usize, |n, c| n.saturating_mul(10).saturating_add(usize::from(c - b'0')))
}

impl PageAllocator {
    /// Addresses without memory for a move of `run` to `pages` pages at a multiple of `align`.
    /// `None`: there are none, or enough runs have been moved. The caller owns `run`.
    pub(crate) fn begin_move(
        &mut self,
        run: &'static Extent,
        pages: usize,
        align: usize,
    ) -> Option<&'static Extent> {
        // These may lie in several mappings of the system's.
        if !has_room() || matches!(run.mapping(), DENSE | JOINED) {
            return None;
        }
        if !self.admits(pages.saturating_sub(run.pages())) {
            return None;
        }
        self.spares.keep()?;
        let table = if run.bytes() >= TABLE { TABLE } else { PAGE };
        let new = self.take_addresses(pages, align.max(table))?.release(ExtentState::Active);
        self.counts.active += pages;
        page_map::clear_ends(run);
        page_map::clear_ends(new);
        Some(new)
    }

    /// Files what came of a move. `true`: the block is `new`, and `run` is free; else `new` is.
    pub(crate) fn end_move(
        &mut self,
        run: &'static Extent,
        new: &'static Extent,
        moved: Moved,
    ) -> bool {
        let done = matches!(moved, Moved::Here | Moved::Away);
        let (kept, left) = if done { (new, run) } else { (run, new) };
        page_map::set_ends(kept);
        let left = InHand::hold(left, ExtentState::Retained);
        self.counts.active -= left.pages();
        if done {
            mark(run, 0);
            mark(new, next_number());
            new.zeroed.set(false);
        }
        match moved {
            Moved::Here | Moved::Refused => {
                left.zeroed.set(left.zeroed.get() || done);
                page_map::set_ends(left.run());
                self.file(left, ExtentState::Retained);
            }
            Moved::Away | Moved::Lost => self.forget(left),
        }
        done
    }

    /// Strikes a run off the books: its addresses are not ours any more. It has left the page map.
    pub(super) fn forget(&mut self, run: InHand) {
        dense::forget_lost_chunks(&run);
        self.counts.mapped -= run.pages();
        page_map::uncover(run.bytes());
        self.spares.put(run.set_aside());
    }
}

/// Moves the memory of `run` to `new`. Outside all locks, between the two halves.
pub(crate) fn move_pages(
    provider: &dyn PageProvider,
    run: &'static Extent,
    new: &'static Extent,
) -> Moved {
    let (Some(from), Some(to)) = (NonNull::new(run.base_ptr()), NonNull::new(new.base_ptr()))
    else {
        return Moved::Refused;
    };
    // The system moves one mapping at a time.
    huge::back_room(provider, run);
    // SAFETY: both runs are the caller's, and the memory under `new` is nobody's.
    let moved = unsafe { provider.move_pages(from, run.bytes(), to, new.bytes()) };
    if moved == Moved::Here {
        huge::advise_new(provider, from, run.bytes());
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::page_allocator::Memory;
    use crate::back::provider::mmap::Mmap;

    #[test]
    fn the_system_s_limit_is_read_as_it_is_written() {
        assert_eq!(leading_number(b"65530\n"), 65530);
        assert_eq!(leading_number(b""), 0);
        assert_eq!(leading_number(b"99999999999999999999999"), usize::MAX);
        assert!(most_runs() >= 1 && most_runs() < usize::MAX);
    }

    #[test]
    fn a_block_with_huge_pages_under_its_beginning_is_moved_whole() {
        let mut pages = PageAllocator::for_test(&Mmap);
        let (long, begun) = (5 * huge::HUGE / PAGE, 4 * huge::HUGE);
        // The room is touched at last, after it was asked for, or never.
        for is_asked_for in [true, false] {
            let run = pages.allocate(long, huge::HUGE, Memory::Any).unwrap();
            huge::back(&Mmap, run, begun);
            if run.mapping() != PARTLY {
                return;
            }
            let write = |at: usize| {
                // SAFETY: the run is ours.
                unsafe { run.base_ptr().wrapping_add(at).write(7) };
            };
            write(begun - 1);
            if is_asked_for {
                huge::back_room(&Mmap, run);
                assert_eq!(run.mapping(), ADVISED);
                write(begun);
            }
            let new = pages.begin_move(run, long + 1, PAGE).unwrap();
            let moved = move_pages(&Mmap, run, new);
            // Another test may map something where it was before that is ours again.
            assert!(matches!(moved, Moved::Here | Moved::Away), "{moved:?}");
            assert!(pages.end_move(run, new, moved));
            let read = |at: usize| {
                // SAFETY: the run is ours.
                unsafe { new.base_ptr().wrapping_add(at).read() }
            };
            assert_eq!((read(begun - 1), read(begun)), (7, if is_asked_for { 7 } else { 0 }));
            pages.check();
        }
    }

    #[test]
    fn runs_are_counted_by_their_numbers() {
        let run = Extent::new(0);
        // Other tests count too: only that it moves, and by whom.
        for (number, expected) in [(0, 0), (7, 7), (9, 9), (DENSE, DENSE), (0, 0)] {
            mark(&run, number);
            assert_eq!(run.mapping(), expected);
        }
        for _ in 0..=u16::MAX {
            let number = next_number();
            assert!(is_own(number) && ![ADVISED, PARTLY, JOINED].contains(&number));
        }
    }
}
