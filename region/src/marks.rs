//! Marks of processes: what one wrote to memory that others have too is known by its mark.

use crate::owner;
use crate::random::random;
use core::sync::atomic::{AtomicU32, Ordering};

/// Marks of this process, and of those that it was forked from, the nearest first. Of others before
/// these nothing is known.
static MARKS: [AtomicU32; 8] = [const { AtomicU32::new(0) }; 8];

/// Returns a number that is not 0 and that other processes do not have, except those that were
/// forked from this one. Positions in the region's memory are used only by the process that wrote
/// them, and by these.
pub(crate) fn process_mark() -> u32 {
    let [own, ..] = &MARKS;
    let mark = own.load(Ordering::Relaxed);
    if mark != 0 {
        return mark;
    }
    // A child knows by this that it is one.
    owner::noted();
    match own.compare_exchange(0, new_mark(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => own.load(Ordering::Relaxed),
        Err(other) => other,
    }
}

/// Returns whether what has a mark was written by this process, or by one that it was forked from.
pub(crate) fn is_known_mark(is_it: impl Fn(u32) -> bool) -> bool {
    process_mark();
    let marks = MARKS.iter().map(|mark| mark.load(Ordering::Relaxed));
    marks.take_while(|mark| *mark != 0).any(is_it)
}

/// Notes which process this is. A child of a fork calls it, because it is another one.
pub fn note_process() {
    if owner::note() {
        take_another_mark();
    }
}

/// Takes another mark in the child of a fork, which knows what its parent has written. The parent
/// does not know what the child writes: its addresses may be those of other things there.
fn take_another_mark() {
    let (mut mark, mut next) = (new_mark(), MARKS.iter());
    while mark != 0
        && let Some(place) = next.next()
    {
        mark = place.swap(mark, Ordering::Relaxed);
    }
}

fn new_mark() -> u32 {
    random((&raw const MARKS).addr()) as u32 | 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_of_a_process_stays() {
        assert_ne!(process_mark(), 0);
        assert_eq!(process_mark(), process_mark());
    }
}
