//! Trace lines. Source: vmalloc(3), `vmtrace`.

use super::abi::Vmalloc;
use super::own_file::OwnFile;
use crate::variables::write_to;
use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering};
use lumalloc_region::raw::Line;
use lumalloc_region::{Position, mode};

/// Where lines are written to. Negative: nowhere.
static DESCRIPTOR: AtomicI32 = AtomicI32::new(-1);

/// The file of an option.
static OWN: OwnFile = OwnFile::none();

/// Whether lines have the time and the thread: 1 or 0.
static TIMED: AtomicI32 = AtomicI32::new(0);

/// What a call did.
#[derive(Clone, Copy, Default)]
pub(super) struct Record {
    /// The address of the block before, or 0.
    pub(super) old: usize,
    /// The address of the block after, or 0.
    pub(super) new: usize,
    pub(super) size: usize,
    /// The alignment that was asked for, or 0.
    pub(super) align: usize,
}

/// `vmtrace`: sets the descriptor that trace lines are written to, and returns the previous one, at
/// first -1. A negative one ends tracing.
#[unsafe(no_mangle)]
pub extern "C" fn vmtrace(fd: c_int) -> c_int {
    OWN.give(fd);
    DESCRIPTOR.swap(fd.max(-1), Ordering::Relaxed)
}

/// As [`vmtrace`], for a file that the library opened.
pub(super) fn set_own(fd: c_int) {
    OWN.note(fd);
    DESCRIPTOR.store(fd, Ordering::Relaxed);
}

/// `vmtracetimed`: sets whether trace lines have a further field with the time and the thread, and
/// returns whether they had it, at first 0.
#[unsafe(no_mangle)]
pub extern "C" fn vmtracetimed(on: c_int) -> c_int {
    TIMED.swap(c_int::from(on != 0), Ordering::Relaxed)
}

/// Returns whether there is a descriptor to write to.
pub(super) fn has_descriptor() -> bool {
    DESCRIPTOR.load(Ordering::Relaxed) >= 0
}

/// Writes the line of a call, if there is a descriptor.
#[cold]
pub(super) fn write(vm: &Vmalloc, record: Record, position: Position) {
    write_line(vm, record, letter(vm.meth.bit()), position);
}

/// Writes the line of a block that is in use.
pub(super) fn write_busy(vm: &Vmalloc, new: usize, size: usize) {
    write_line(vm, Record { new, size, ..Record::default() }, b"u", Position::UNKNOWN);
}

fn write_line(vm: &Vmalloc, record: Record, letter: &[u8], position: Position) {
    let descriptor = DESCRIPTOR.load(Ordering::Relaxed);
    if descriptor < 0 || OWN.is_lost(descriptor) {
        return;
    }
    let mut line = Line::new();
    line.hex(record.old).text(b":").hex(record.new);
    line.text(b":").decimal(record.size).text(b":").decimal(record.align);
    line.text(b":").hex(vm.address().addr()).text(b":").text(letter).text(b":");
    add_position(&mut line, position);
    if TIMED.load(Ordering::Relaxed) != 0 {
        add_time(&mut line);
    }
    line.text(b"\n");
    write_to(descriptor, line.get());
}

/// Adds the field that is there only if a position is known.
fn add_position(line: &mut Line, position: Position) {
    let file = position.file_and_line();
    let function = position.function();
    if let Some((file, number)) = file {
        line.text(b"file=").end_of(file).text(b",line=").decimal(number);
    }
    if let Some(function) = function {
        let comma: &[u8] = if file.is_some() { b"," } else { b"" };
        line.text(comma).text(b"func=").end_of(function);
    }
    if file.is_some() || function.is_some() {
        line.text(b":");
    }
}

/// Adds the field with seconds since 1970 and the system's number of the thread.
fn add_time(line: &mut Line) {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the time is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) };
    // SAFETY: gettid has no requirements.
    let thread = unsafe { libc::gettid() };
    let number = |number: i64| usize::try_from(number).unwrap_or(0);
    // Nine digits behind the point: those of the number with a one before them.
    let mut fraction = Line::new();
    fraction.decimal(number(now.tv_nsec) + 1_000_000_000);
    line.text(b"time=").decimal(number(now.tv_sec)).text(b".");
    line.text(fraction.get().get(1..).unwrap_or_default());
    line.text(b",tid=").decimal(number(thread.into())).text(b":");
}

fn letter(method: u32) -> &'static [u8] {
    match method {
        mode::BEST => b"b",
        mode::LAST => b"l",
        mode::DEBUG => b"d",
        mode::PROFILE => b"s",
        _ => b"p",
    }
}
