//! Fatal errors, with one function for each.
//!
//! Each function writes one line and aborts, except where a fault ends the process. Nothing here
//! allocates, panics or waits for a lock. Every text has a death test. Words in brackets say what
//! the allocator knew: the block's size, its arena, and the cache that owned its slab. The return
//! addresses of the callers follow. More lines then say in which file each of these lies, and one
//! that the calls may be later than the mistake, where that is so.

use super::loaded_file;
use super::operator::Operator;
use super::os;
use super::text::Line;
use super::trace::{self, Trace};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

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

/// A message.
pub(super) type Words = Line<1000>;

/// Begins a message about an address.
pub(super) fn begin(what: &str, address: usize) -> Words {
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

static ENDING: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets the function that is called before the process ends by SIGABRT, for which the program may
/// have a handler. It must not wait for a lock.
pub(crate) fn set_ending(ending: fn()) {
    ENDING.store(ending as *mut (), Ordering::Relaxed);
}

/// Ends the process by SIGABRT.
fn abort() -> ! {
    let ending = ENDING.load(Ordering::Relaxed);
    if !ending.is_null() {
        // SAFETY: only `set_ending` stores here, and it stores only functions of this type.
        let ending = unsafe { core::mem::transmute::<*mut (), fn()>(ending) };
        ending();
    }
    os::abort()
}

/// Blocks of up to so many bytes are looked at some time after they were freed.
static SEEN_LATE: AtomicUsize = AtomicUsize::new(0);
const MAY_BE_OLDER: &str = "<lumalloc>: the mistake may be older than these calls, because small \
                            blocks are looked at some time after their free; hardened:true looks \
                            at once\n";

/// Sets up to how many bytes blocks are looked at some time after they were freed.
pub(crate) fn set_seen_late(bytes: usize) {
    SEEN_LATE.store(bytes, Ordering::Relaxed);
}

/// Writes the message with which the process ends and the files of the addresses that it names, and
/// calls the reporter, once. `behind` is written last.
pub(super) fn report(message: &mut Words, traces: &[Trace], behind: &str) {
    let length = message.as_bytes().len();
    super::message::write(message.text("\n").as_bytes());
    // Only now, because the system may end a process that reads files.
    let addresses = || traces.iter().flatten().filter(|address| **address != 0);
    for (n, address) in addresses().enumerate() {
        if !addresses().take(n).any(|before| before == address) {
            loaded_file::tell(*address);
        }
    }
    if !behind.is_empty() {
        super::message::write(behind.as_bytes());
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
    die_beside(line, &[], "")
}

/// As [`die`], for a freed block, or one inside which the freed pointer lies.
fn die_of_free(line: &mut Words, at: Place) -> ! {
    let is_seen_late = (1..=SEEN_LATE.load(Ordering::Relaxed)).contains(&at.size);
    die_beside(line, &[], if is_seen_late { MAY_BE_OLDER } else { "" })
}

/// As [`die`], with a message that names the addresses of two other traces at most.
pub(super) fn die_beside(line: &mut Words, others: &[Trace], behind: &str) -> ! {
    let here = trace::here();
    addresses(line, "; from ", here);
    let mut traces = [here; 3];
    for (to, other) in traces.iter_mut().zip(others) {
        *to = *other;
    }
    report(line, &traces, behind);
    abort()
}

/// A block that is free already was freed again. Found when the block is returned to its slab.
#[cold]
#[inline(never)]
pub(crate) fn double_free(address: usize, at: Place) -> ! {
    let mut line = begin("double free", address);
    place(&mut line, at);
    die_of_free(&mut line, at)
}

/// A large block that is free already was freed again. Its run may be merged with others, so its
/// size is not known.
#[cold]
#[inline(never)]
pub(crate) fn double_free_of_pages(address: usize, arena: u32) -> ! {
    let mut line = begin("double free", address);
    line.text(" (arena ").number(u64::from(arena)).text(")");
    die(&mut line)
}

/// The freed pointer lies in pages that are not in use, and no large block began there.
#[cold]
#[inline(never)]
pub(crate) fn unused_free(address: usize, arena: u32) -> ! {
    die(&mut about_unused("invalid free", address, arena))
}

fn about_unused(what: &str, address: usize, arena: u32) -> Words {
    let mut line = begin(what, address);
    line.text(": in unused memory (arena ").number(u64::from(arena));
    line.text("), freed before or never a block");
    line
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
    die(&mut about_discarded("invalid free", address, arena))
}

fn about_discarded(what: &str, address: usize, arena: u32) -> Words {
    let mut line = begin(what, address);
    line.text(": discarded when arena ").number(u64::from(arena)).text(" was reset or destroyed");
    line
}

/// The freed pointer lies inside a block, not at its beginning.
#[cold]
#[inline(never)]
pub(crate) fn interior_free(address: usize, block: usize, at: Place) -> ! {
    die_of_free(&mut about_interior("invalid free", address, block, at), at)
}

fn about_interior(what: &str, address: usize, block: usize, at: Place) -> Words {
    let mut line = begin(what, address);
    line.text(": inside the block ").address(block);
    place(&mut line, at);
    line
}

/// A sized free gave a size of another class than the block's.
#[cold]
#[inline(never)]
pub(crate) fn wrong_size(address: usize, given: usize, at: Place) -> ! {
    let mut line = begin("sized free", address);
    line.text(" with size ").number(given as u64).text(", which is not its own");
    place(&mut line, at);
    die_of_free(&mut line, at)
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

/// A query (usable size, realloc) got a pointer that lies inside a block.
#[cold]
#[inline(never)]
pub(crate) fn interior_query(address: usize, block: usize, at: Place) -> ! {
    die(&mut about_interior("invalid query", address, block, at))
}

/// A query (usable size, realloc) got a pointer into pages that are not in use.
#[cold]
#[inline(never)]
pub(crate) fn unused_query(address: usize, arena: u32) -> ! {
    die(&mut about_unused("invalid query", address, arena))
}

/// A query (usable size, realloc) got a block of an arena that was reset or destroyed.
#[cold]
#[inline(never)]
pub(crate) fn discarded_query(address: usize, arena: u32) -> ! {
    die(&mut about_discarded("invalid query", address, arena))
}

/// A query (usable size, realloc) got a large block that is free.
#[cold]
#[inline(never)]
pub(crate) fn freed_query(address: usize, arena: u32) -> ! {
    let mut line = begin("use after free", address);
    line.text(": realloc or a query of a freed block (arena ").number(u64::from(arena)).text(")");
    die(&mut line)
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
    abort()
}

/// There was a warning, and by `abort:true` that is fatal. The warning itself was written before.
#[cold]
#[inline(never)]
pub(crate) fn warning() -> ! {
    super::message::write(b"<lumalloc>: Abort (abort:true) on a warning (see above).\n");
    abort()
}

/// Appends return addresses.
pub(super) fn addresses(line: &mut Words, before: &str, trace: Trace) {
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
