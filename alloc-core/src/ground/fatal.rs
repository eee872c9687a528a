//! Fatal errors, with one function for each.
//!
//! Each function writes one line and aborts, except where a fault ends the process. Nothing here
//! allocates, panics or waits for a lock. Every text has a death test. Words in brackets say what
//! the allocator knew: the block's size, its arena, and the cache that owned its slab. The return
//! addresses of the callers follow. More lines then say in which file each of these lies.

use super::loaded_file;
use super::operator::Operator;
use super::os;
use super::signal::Registers;
use super::text::Line;
use super::trace::{self, TRACE, Trace};
use core::sync::atomic::{AtomicPtr, Ordering};

/// What is known about a bad pointer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place {
    /// Bytes in the block (or run) at or around the pointer.
    pub(crate) size: usize,
    /// The arena that the block belongs to.
    pub(crate) arena: u32,
    /// The cache that owns the block's slab, if one does.
    pub(crate) owner: Option<u32>,
}

type Words = Line<1000>;

fn begin(what: &str, address: usize) -> Words {
    let mut line = Words::new();
    line.text("<lumalloc>: ").text(what).text(" of ").address(address);
    line
}

fn place(line: &mut Words, place: Place) {
    line.text(" (size ").number(place.size as u64);
    line.text(", arena ").number(u64::from(place.arena));
    if let Some(owner) = place.owner {
        line.text(", owner cache ").number(u64::from(owner));
    }
    line.text(")");
}

/// A function that gets the message with which the process ends. It must not wait for a lock.
pub(crate) type Reporter = fn(&[u8]);

static REPORTER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the function that gets the message with which the process ends.
pub(crate) fn set_reporter(reporter: Reporter) {
    REPORTER.store(reporter as *mut (), Ordering::Relaxed);
}

/// Writes the message with which the process ends and the files of the addresses that it names, and
/// calls the reporter, once.
fn report(message: &mut Words, traces: &[Trace]) {
    let length = message.as_bytes().len();
    super::message::write(message.text("\n").as_bytes());
    // Only now, because the system may end a process that reads files.
    let addresses = || traces.iter().flatten().filter(|address| **address != 0);
    for (n, address) in addresses().enumerate() {
        if !addresses().take(n).any(|before| before == address) {
            loaded_file::tell(*address);
        }
    }
    let reporter = REPORTER.swap(core::ptr::null_mut(), Ordering::Relaxed);
    if !reporter.is_null() {
        // SAFETY: only `set_reporter` stores here, and it stores only functions of this type.
        let reporter = unsafe { core::mem::transmute::<*mut (), Reporter>(reporter) };
        reporter(message.as_bytes().get(..length).unwrap_or_default());
    }
}

#[cold]
fn die(line: &mut Words) -> ! {
    die_beside(line, &[])
}

/// As [`die`], with a message that names the addresses of a sample.
fn die_of(line: &mut Words, sample: &Sample) -> ! {
    die_beside(line, &[sample.allocated_from, sample.freed_from])
}

/// As [`die`], with a message that names the addresses of two other traces at most.
fn die_beside(line: &mut Words, others: &[Trace]) -> ! {
    let here = trace::here();
    addresses(line, "; from ", here);
    let mut traces = [here; 3];
    for (to, other) in traces.iter_mut().zip(others) {
        *to = *other;
    }
    report(line, &traces);
    os::abort()
}

/// A block that is free already was freed again. Found when the block is returned to its slab.
#[cold]
#[inline(never)]
pub(crate) fn double_free(address: usize, at: Place) -> ! {
    let mut line = begin("double free", address);
    place(&mut line, at);
    die(&mut line)
}

/// The freed pointer is not memory of this allocator.
#[cold]
#[inline(never)]
pub(crate) fn foreign_free(address: usize) -> ! {
    let mut line = begin("invalid free", address);
    line.text(": not memory of this allocator");
    die(&mut line)
}

/// A block of an arena that was reset or destroyed was freed. Found when the block is returned to
/// its slab.
#[cold]
#[inline(never)]
pub(crate) fn discarded_free(address: usize, arena: u32) -> ! {
    let mut line = begin("invalid free", address);
    line.text(": discarded when arena ").number(u64::from(arena)).text(" was reset or destroyed");
    die(&mut line)
}

/// The freed pointer lies inside a block, not at its beginning.
#[cold]
#[inline(never)]
pub(crate) fn interior_free(address: usize, block: usize, at: Place) -> ! {
    let mut line = begin("invalid free", address);
    line.text(": inside the block ").address(block);
    place(&mut line, at);
    die(&mut line)
}

/// A sized free gave a size of another class than the block's.
#[cold]
#[inline(never)]
pub(crate) fn wrong_size(address: usize, given: usize, at: Place) -> ! {
    let mut line = begin("sized free", address);
    line.text(" with size ").number(given as u64).text(", which is not its own");
    place(&mut line, at);
    die(&mut line)
}

/// `delete[]` got what `new` made, or `delete` what `new[]` made.
#[cold]
#[inline(never)]
pub(crate) fn wrong_operator(address: usize, freed_by: Operator, at: Place) -> ! {
    let (freed_by, made_by) = match freed_by {
        Operator::Array => ("delete[]", "new"),
        Operator::Single | Operator::Unknown => ("delete", "new[]"),
    };
    let mut line = begin(freed_by, address);
    line.text(", which ").text(made_by).text(" made");
    place(&mut line, at);
    die(&mut line)
}

/// The slack behind the requested bytes of a block was overwritten, or a canary that tells how many
/// were requested. Found when the block is freed.
#[cold]
#[inline(never)]
pub(crate) fn overflow(address: usize, usable: usize, at: Place) -> ! {
    overflow_behind("", address, usable, at)
}

/// As [`overflow`], if it is not known how many of the usable bytes were requested.
#[cold]
#[inline(never)]
pub(crate) fn overflow_somewhere(address: usize, usable: usize, at: Place) -> ! {
    overflow_behind("at most ", address, usable, at)
}

fn overflow_behind(at_most: &str, address: usize, usable: usize, at: Place) -> ! {
    let mut line = begin("buffer overflow", address);
    line.text(": the canary behind its ").text(at_most).number(usable as u64);
    line.text(" bytes was overwritten");
    place(&mut line, at);
    die(&mut line)
}

/// The canary between two blocks was overwritten. Found when the second one is freed.
#[cold]
#[inline(never)]
pub(crate) fn overwritten_between(before: usize, block: usize, at: Place) -> ! {
    let mut line = begin("buffer underflow", block);
    line.text(", or overflow of ").address(before);
    line.text(": the canary between them was overwritten");
    place(&mut line, at);
    die(&mut line)
}

/// A free block was written to. Found when it is handed out, or when the process exits.
#[cold]
#[inline(never)]
pub(crate) fn write_after_free(address: usize, block: usize, at: Place) -> ! {
    let mut line = begin("write after free", address);
    line.text(": inside the free block ").address(block);
    place(&mut line, at);
    die(&mut line)
}

/// A slab of an arena that is reset or destroyed is PENDING (it has remote frees), but lies on no
/// pending stack.
#[cold]
#[inline(never)]
pub(crate) fn lost_slab(base: usize, at: Place) -> ! {
    let mut line = begin("internal error: lost slab", base);
    line.text(": PENDING, and on no stack");
    place(&mut line, at);
    die(&mut line)
}

/// A structure contradicts itself, as a check at a line of this file found.
#[cfg(all(feature = "checks", not(test)))]
#[cold]
#[inline(never)]
pub(crate) fn contradiction(file: &str, number: u32) -> ! {
    die(&mut about_contradiction(file, number))
}

#[cfg(any(feature = "checks", test))]
fn about_contradiction(file: &str, number: u32) -> Words {
    let mut line = Words::new();
    line.text("<lumalloc>: internal error: a structure contradicts itself at ").text(file);
    line.text(":").number(u64::from(number));
    line
}

/// A query (usable size, realloc) got a pointer that is not a block.
#[cold]
#[inline(never)]
pub(crate) fn foreign_query(address: usize) -> ! {
    let mut line = begin("invalid query", address);
    line.text(": not a block of this allocator");
    die(&mut line)
}

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

fn guarded(line: &mut Words, sample: &Sample) {
    line.text("the guarded block ").address(sample.block);
    line.text(" (size ").number(sample.size as u64);
    line.text("), allocated by thread ").number(sample.allocated_by as u64);
    addresses(line, " from ", sample.allocated_from);
    if let Some(thread) = sample.freed_by {
        line.text(", freed by thread ").number(thread as u64);
        addresses(line, " from ", sample.freed_from);
    }
}

fn touched(what: &str, address: usize) -> Words {
    let mut line = Words::new();
    line.text("<lumalloc>: ").text(what).text(" at ").address(address).text(": ");
    line
}

fn end_of_fault(mut line: Words, sample: &Sample, by: &Registers) {
    guarded(&mut line, sample);
    line.text("; by ").address(by.instruction);
    let callers = trace::at(by);
    addresses(&mut line, " ", callers);
    let mut touch = [0; TRACE];
    touch[0] = by.instruction;
    report(&mut line, &[sample.allocated_from, sample.freed_from, touch, callers]);
}

/// Memory behind a guarded sample was accessed. The fault itself ends the process.
#[cold]
pub(crate) fn guarded_overflow(address: usize, sample: &Sample, by: &Registers) {
    let mut line = touched("buffer overflow", address);
    let behind = address.saturating_sub(sample.block + sample.size);
    line.number(behind as u64).text(" bytes behind the end of ");
    end_of_fault(line, sample, by);
}

/// Memory before a guarded sample was accessed. The fault itself ends the process.
#[cold]
pub(crate) fn guarded_underflow(address: usize, sample: &Sample, by: &Registers) {
    let mut line = touched("buffer underflow", address);
    let before = sample.block.saturating_sub(address);
    line.number(before as u64).text(" bytes before ");
    end_of_fault(line, sample, by);
}

/// A freed guarded sample was accessed. The fault itself ends the process.
#[cold]
pub(crate) fn guarded_use_after_free(address: usize, sample: &Sample, by: &Registers) {
    let line = touched("use after free", address);
    end_of_fault(line, sample, by);
}

/// A guarded sample was freed again.
#[cold]
#[inline(never)]
pub(crate) fn guarded_double_free(sample: &Sample) -> ! {
    let mut line = begin("double free", sample.block);
    guarded(line.text(": "), sample);
    die_of(&mut line, sample)
}

/// A pointer into a guarded sample was freed.
#[cold]
#[inline(never)]
pub(crate) fn guarded_invalid_free(address: usize, sample: &Sample) -> ! {
    let mut line = begin("invalid free", address);
    guarded(line.text(": inside "), sample);
    die_of(&mut line, sample)
}

/// Memory between a guarded sample and the guard behind it was written. Found when the sample is
/// freed.
#[cold]
#[inline(never)]
pub(crate) fn guarded_overflow_found(address: usize, sample: &Sample) -> ! {
    let mut line = touched("buffer overflow", address);
    let behind = address.saturating_sub(sample.block + sample.size);
    guarded(line.number(behind as u64).text(" bytes behind the end of "), sample);
    die_of(line.text("; found when it was freed"), sample)
}

/// Memory between a guarded sample and the guard before it was written. Found when the sample is
/// freed.
#[cold]
#[inline(never)]
pub(crate) fn guarded_underflow_found(address: usize, sample: &Sample) -> ! {
    let mut line = touched("buffer underflow", address);
    let before = sample.block.saturating_sub(address);
    guarded(line.number(before as u64).text(" bytes before "), sample);
    die_of(line.text("; found when it was freed"), sample)
}

/// A sized free of a guarded sample gave a size of another class than the sample's.
#[cold]
#[inline(never)]
pub(crate) fn guarded_wrong_size(given: usize, sample: &Sample) -> ! {
    let mut line = begin("sized free", sample.block);
    line.text(" with size ").number(given as u64).text(", which is not its own: ");
    guarded(&mut line, sample);
    die_of(&mut line, sample)
}

/// There is no memory, and by `xmalloc:true` that is fatal.
#[cold]
#[inline(never)]
pub(crate) fn out_of_memory(size: usize) -> ! {
    let mut line = Words::new();
    line.text("<lumalloc>: out of memory: ").number(size as u64).text(" bytes (xmalloc:true)");
    die(&mut line)
}

/// An option was bad, and by `abort_conf:true` that is fatal. The option itself was reported
/// before.
#[cold]
#[inline(never)]
pub(crate) fn bad_option() -> ! {
    let text = b"<lumalloc>: Abort (abort_conf:true) on invalid conf value (see above).\n";
    super::message::write(text);
    os::abort()
}

/// There was a warning, and by `abort:true` that is fatal. The warning itself was written before.
#[cold]
#[inline(never)]
pub(crate) fn warning() -> ! {
    super::message::write(b"<lumalloc>: Abort (abort:true) on a warning (see above).\n");
    os::abort()
}

/// Appends return addresses.
fn addresses(line: &mut Words, before: &str, trace: Trace) {
    let mut before = before;
    for address in trace.into_iter().take_while(|address| *address != 0) {
        line.text(before).address(address);
        before = " ";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other texts have death tests. Nothing outside can make a structure contradict itself.
    #[test]
    fn a_contradiction_names_the_place_of_the_check() {
        let expected =
            "<lumalloc>: internal error: a structure contradicts itself at src/slab.rs:7";
        assert_eq!(about_contradiction("src/slab.rs", 7).as_bytes(), expected.as_bytes());
    }
}
