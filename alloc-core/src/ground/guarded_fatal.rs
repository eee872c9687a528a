//! Fatal errors about guarded samples, as [`super::fatal`]. The messages name who allocated and
//! freed the sample, too.

use super::fatal::{Words, addresses, begin, die_beside, report};
use super::signal::Registers;
use super::trace::{self, TRACE, Trace};

/// What is known about a guarded sample.
#[derive(Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) block: usize,
    pub(crate) size: usize,
    /// The threads that allocated and freed the sample (`None`: not freed), and their return
    /// addresses.
    pub(crate) allocated_by: usize,
    pub(crate) allocated_from: Trace,
    pub(crate) freed_by: Option<usize>,
    pub(crate) freed_from: Trace,
}

/// Appends what is known about a sample.
fn name(line: &mut Words, sample: &Sample) {
    line.text("the guarded block ").address(sample.block);
    line.text(" (size ").number(sample.size as u64);
    line.text("), allocated by thread ").number(sample.allocated_by as u64);
    addresses(line, " from ", sample.allocated_from);
    if let Some(thread) = sample.freed_by {
        line.text(", freed by thread ").number(thread as u64);
        addresses(line, " from ", sample.freed_from);
    }
}

/// Ends the process with a message that names the addresses of a sample.
fn die_of(line: &mut Words, sample: &Sample) -> ! {
    die_beside(line, &[sample.allocated_from, sample.freed_from], "")
}

fn touched(what: &str, address: usize) -> Words {
    let mut line = Words::new();
    line.text("<lumalloc>: ").text(what).text(" at ").address(address).text(": ");
    line
}

fn end_of_fault(mut line: Words, sample: &Sample, by: &Registers) {
    name(&mut line, sample);
    line.text("; by ").address(by.instruction);
    let callers = trace::at(by);
    addresses(&mut line, " ", callers);
    let mut touch = [0; TRACE];
    touch[0] = by.instruction;
    report(&mut line, &[sample.allocated_from, sample.freed_from, touch, callers], "");
}

/// Memory behind a guarded sample was accessed. The fault itself ends the process.
#[cold]
pub(crate) fn overflow(address: usize, sample: &Sample, by: &Registers) {
    let mut line = touched("buffer overflow", address);
    let behind = address.saturating_sub(sample.block + sample.size);
    line.number(behind as u64).text(" bytes behind the end of ");
    end_of_fault(line, sample, by);
}

/// Memory before a guarded sample was accessed. The fault itself ends the process.
#[cold]
pub(crate) fn underflow(address: usize, sample: &Sample, by: &Registers) {
    let mut line = touched("buffer underflow", address);
    let before = sample.block.saturating_sub(address);
    line.number(before as u64).text(" bytes before ");
    end_of_fault(line, sample, by);
}

/// A freed guarded sample was accessed. The fault itself ends the process.
#[cold]
pub(crate) fn use_after_free(address: usize, sample: &Sample, by: &Registers) {
    let line = touched("use after free", address);
    end_of_fault(line, sample, by);
}

/// A guarded sample was freed again.
#[cold]
#[inline(never)]
pub(crate) fn double_free(sample: &Sample) -> ! {
    let mut line = begin("double free", sample.block);
    name(line.text(": "), sample);
    die_of(&mut line, sample)
}

/// A query (usable size, realloc) got a guarded sample that is free.
#[cold]
#[inline(never)]
pub(crate) fn freed_query(address: usize, sample: &Sample) -> ! {
    let mut line = begin("use after free", address);
    name(line.text(": realloc or a query of "), sample);
    die_of(&mut line, sample)
}

/// A pointer into a guarded sample was freed.
#[cold]
#[inline(never)]
pub(crate) fn invalid_free(address: usize, sample: &Sample) -> ! {
    let mut line = begin("invalid free", address);
    name(line.text(": inside "), sample);
    die_of(&mut line, sample)
}

/// Memory between a guarded sample and the guard behind it was written. Found when the sample is
/// freed.
#[cold]
#[inline(never)]
pub(crate) fn overflow_found(address: usize, sample: &Sample) -> ! {
    let mut line = touched("buffer overflow", address);
    let behind = address.saturating_sub(sample.block + sample.size);
    name(line.number(behind as u64).text(" bytes behind the end of "), sample);
    die_of(line.text("; found when it was freed"), sample)
}

/// Memory between a guarded sample and the guard before it was written. Found when the sample is
/// freed.
#[cold]
#[inline(never)]
pub(crate) fn underflow_found(address: usize, sample: &Sample) -> ! {
    let mut line = touched("buffer underflow", address);
    let before = sample.block.saturating_sub(address);
    name(line.number(before as u64).text(" bytes before "), sample);
    die_of(line.text("; found when it was freed"), sample)
}

/// A sized free of a guarded sample gave a size of another class than the sample's.
#[cold]
#[inline(never)]
pub(crate) fn wrong_size(given: usize, sample: &Sample) -> ! {
    let mut line = begin("sized free", sample.block);
    line.text(" with size ").number(given as u64).text(", which is not its own: ");
    name(&mut line, sample);
    die_of(&mut line, sample)
}
