//! The functions that only glibc has: `malloc_trim`, `mallinfo`, `mallopt`, `malloc_stats`,
//! `malloc_info`.
//!
//! Programs that call these must not reach glibc's own heap, which this library leaves empty.
use crate::errno;
use crate::mallctl::malloc_stats_print;
use alloc_core::control;
use alloc_core::observe::{self, Totals};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use lumalloc_namespace::writer::Writer;

/// `malloc_trim(3)`: gives back all unused pages, including those in the calling thread's cache.
/// `pad`, the slack to keep at the end of glibc's heap, is ignored.
///
/// Returns 1 when fewer pages are resident afterwards, otherwise 0.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    let before = observe::totals().resident;
    control::flush_thread_cache();
    control::purge(control::ARENAS_ALL);
    c_int::from(observe::totals().resident < before)
}

/// Bytes that the allocator holds outside of the program's blocks: free parts of slabs, thread
/// caches, dirty pages.
fn unused(totals: &Totals) -> usize {
    totals.active.saturating_sub(totals.allocated).saturating_add(totals.dirty)
}

/// `mallinfo2(3)`, in bytes: `arena` mapped, `ordblks` arenas open, `uordblks` in the program's
/// blocks, `fordblks` held outside of them, `keepcost` what `malloc_trim` could give back at once.
/// The other fields count things that do not exist here and are 0.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> libc::mallinfo2 {
    let totals = observe::totals();
    libc::mallinfo2 {
        arena: totals.mapped,
        ordblks: totals.arenas_open as usize,
        smblks: 0,
        hblks: 0,
        hblkhd: 0,
        usmblks: 0,
        fsmblks: 0,
        uordblks: totals.allocated,
        fordblks: unused(&totals),
        keepcost: totals.dirty,
    }
}

/// `mallinfo(3)`: [`mallinfo2`] in `int`s. Larger numbers read `INT_MAX`.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> libc::mallinfo {
    let wide = mallinfo2();
    let int = |value: usize| c_int::try_from(value).unwrap_or(c_int::MAX);
    libc::mallinfo {
        arena: int(wide.arena),
        ordblks: int(wide.ordblks),
        smblks: int(wide.smblks),
        hblks: int(wide.hblks),
        hblkhd: int(wide.hblkhd),
        usmblks: int(wide.usmblks),
        fsmblks: int(wide.fsmblks),
        uordblks: int(wide.uordblks),
        fordblks: int(wide.fordblks),
        keepcost: int(wide.keepcost),
    }
}

/// `mallopt(3)`: returns 1 for every parameter that glibc or System V knows (`M_MXFAST` 1 to
/// `M_KEEP` 4, `M_TRIM_THRESHOLD` -1 to `M_ARENA_MAX` -8), otherwise 0. No parameter has an effect,
/// because `MALLOC_CONF` and `mallctl` configure this library.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(parameter: c_int, _value: c_int) -> c_int {
    c_int::from(matches!(parameter, 1..=4 | -8..=-1))
}

/// `malloc_stats(3)`: writes the totals to standard error, or through `malloc_message`.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    // SAFETY: the callback may be NULL, and the options are a C string.
    unsafe { malloc_stats_print(None, ptr::null_mut(), c"gmdablxe".as_ptr()) };
}

/// `malloc_info(3)`: writes the totals as XML in glibc's format, as one heap.
///
/// Errors: -1 and `EINVAL` when `options` is not 0; -1 when writing to the stream fails, which sets
/// `errno`.
///
/// # Safety
/// `stream` must be an open output stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 || stream.is_null() {
        errno::set(libc::EINVAL);
        return -1;
    }
    let mut output = Output { stream, failed: false };
    // SAFETY: `put` takes an Output, which outlives the writer.
    let mut writer = unsafe { Writer::new(put, (&raw mut output).cast()) };
    write_xml(&mut writer, &observe::totals());
    drop(writer);
    if output.failed { -1 } else { 0 }
}

/// A stream, and whether writing to it failed.
struct Output {
    stream: *mut libc::FILE,
    failed: bool,
}

/// Writes a piece of text to an [`Output`].
unsafe extern "C" fn put(output: *mut c_void, text: *const c_char) {
    // SAFETY: `malloc_info` passes an Output that nothing else uses meanwhile.
    let output = unsafe { &mut *output.cast::<Output>() };
    // SAFETY: the caller of malloc_info vouches for the stream; the writer's text is
    // NUL-terminated.
    output.failed |= unsafe { libc::fputs(text, output.stream) } == libc::EOF;
}

/// Writes the XML of `malloc_info`. glibc's "max" values are the current ones here, because no
/// maximum is kept.
fn write_xml(writer: &mut Writer, totals: &Totals) {
    writer.text("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n</sizes>\n");
    write_heap(writer, totals);
    writer.text("</heap>\n");
    write_heap(writer, totals);
    writer.text("</malloc>\n");
}

/// Writes the lines that stand in each heap and again at the end.
fn write_heap(writer: &mut Writer, totals: &Totals) {
    let lines = [
        ("<total type=\"fast\" count=\"0\" size=\"", 0),
        ("<total type=\"rest\" count=\"0\" size=\"", unused(totals)),
        ("<total type=\"mmap\" count=\"0\" size=\"", 0),
        ("<system type=\"current\" size=\"", totals.mapped),
        ("<system type=\"max\" size=\"", totals.mapped),
        ("<aspace type=\"total\" size=\"", totals.mapped.saturating_add(totals.retained)),
        ("<aspace type=\"mprotect\" size=\"", totals.mapped),
    ];
    for (start, size) in lines {
        writer.text(start);
        writer.number(size as u64);
        writer.text("\"/>\n");
    }
}
