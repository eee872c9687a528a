//! Reports of words between blocks that the program has overwritten.

use crate::line::Line;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The region that was reported last. Damage makes many calls fail, and one message says enough.
static REPORTED: AtomicUsize = AtomicUsize::new(0);

/// Writes a message that a word of a region's bookkeeping was overwritten, once for each region in
/// a row.
#[cold]
#[inline(never)]
pub(crate) fn report(region: usize, at: usize) {
    if REPORTED.swap(region, Ordering::Relaxed) == region {
        return;
    }
    let mut line = Line::new();
    line.text(b"<lumalloc>: region ").hex(region);
    line.text(b": the word at ").hex(at);
    line.text(b" between two blocks was overwritten; free memory near it is not used again\n");
    lumalloc::message::write(line.get());
}

/// Says that a process ended in a region, which was made whole again.
pub(crate) fn ended(region: usize) {
    let mut line = Line::new();
    line.text(b"<lumalloc>: region ").hex(region);
    line.text(b": a process ended in a call of it; what is free was found anew\n");
    lumalloc::message::write(line.get());
}

/// Says that a process ended in a region whose method cannot make it whole, once for each region in
/// a row.
pub(crate) fn lost(region: usize) {
    if REPORTED.swap(region, Ordering::Relaxed) == region {
        return;
    }
    let mut line = Line::new();
    line.text(b"<lumalloc>: region ").hex(region);
    line.text(b": a process ended in a call of it; it can only be cleared or closed now\n");
    lumalloc::message::write(line.get());
}
