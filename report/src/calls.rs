//! Which frames of a stack are shown: without those that hand an allocation on, without what calls
//! `main`, and without the inner workings of libraries.

use crate::block_type::is_library;
use crate::library_names::RUST_BEGIN;
use crate::symbols::{Frame, Symbols};

/// Functions that only hand an allocation or a deletion on. They are left out at the inner end of
/// each stack.
const SHIMS: [&str; 42] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "valloc",
    "pvalloc",
    "operator new",
    "operator new[]",
    "exchange_malloc",
    "box_new",
    "alloc::boxed::box_new",
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rdl_realloc",
    "<&A as core::alloc::Allocator>::allocate",
    "<&alloc::alloc::Global as core::alloc::Allocator>::allocate",
    "mallocx",
    "rallocx",
    "xallocx",
    "free",
    "cfree",
    "free_sized",
    "free_aligned_sized",
    "dallocx",
    "sdallocx",
    "operator delete",
    "operator delete[]",
    "__rust_dealloc",
    "__rdl_dealloc",
    "<&A as core::alloc::Allocator>::deallocate",
    "<&alloc::alloc::Global as core::alloc::Allocator>::deallocate",
    // Within jemalloc.
    "imalloc",
    "imalloc_body",
    "irallocx_prof",
    "irallocx_prof_sample",
    "do_rallocx",
];
/// What such names begin with.
const SHIM_BEGINS: [&str; 25] = [
    "__rustc::",
    "alloc::alloc::",
    "<alloc::alloc::Global",
    "core::alloc::global::GlobalAlloc::",
    // Rust's default allocator, where link-time optimisation inlines it.
    "<std::alloc::System as core::alloc::global::GlobalAlloc>::",
    "std::sys::alloc::",
    "std::sys::pal::unix::alloc::",
    "alloc::boxed::box_new::<",
    // What is inlined of lumalloc into a Rust program.
    "lumalloc::front::",
    "<lumalloc::front::",
    // The allocator of the exporter's shared object.
    "lumalloc_exporter::survival::",
    "<lumalloc_exporter::survival::",
    // jemalloc, whose stacks begin in it: a library without symbols, one of a Rust program, and
    // its own functions.
    "libjemalloc.so",
    "_rjem_",
    "je_malloc",
    "je_calloc",
    "je_realloc",
    "je_rallocx",
    "je_aligned_alloc",
    "je_posix_memalign",
    "je_memalign",
    "je_valloc",
    "je_prof_",
    "prof_backtrace",
    "prof_alloc_prep",
];
/// The file with the allocator of the exporter's shared object.
const EXPORTER_MEMORY: &str = "/exporter-so/src/survival.rs";
/// The functions of C libraries that call `main`, and the exporter's.
const MAIN_CALLERS: [&str; 4] = [
    "__libc_start_call_main",
    "__libc_start_main",
    "libc_start_main_stage2",
    "lumalloc_exporter::start_main::before_main",
];
/// Functions that nothing calls: of a program, of a thread, of a coroutine.
const ROOTS: [&str; 10] = [
    "_start",
    "_start_c",
    "_dl_start_user",
    "__libc_start_main",
    "start_thread",
    "clone",
    "__clone",
    "clone3",
    "__clone3",
    "__start_context",
];

/// The numbers of the frames of a stack, innermost first, with those that were inlined. What hands
/// an allocation or a deletion on is left out, and so is the head of a function that GCC split: its
/// rest has the same name.
pub(crate) fn frames(stack: &[usize], symbols: &Symbols) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    let mut inner: Option<&Frame> = None;
    for number in stack.iter().flat_map(|location| symbols.numbers(*location)) {
        let frame = symbols.numbered(number);
        let called = inner.replace(frame);
        if !called.is_some_and(|called| symbols.is_head(frame, called)) {
            all.push(number);
        }
    }
    let is_shim = |frame: &u32| {
        is_shim(name(*frame, symbols)) || is_of_lumalloc(&symbols.numbered(*frame).file)
    };
    // A stack of nothing else keeps its outermost frame.
    let outermost = all.len().saturating_sub(1);
    let begin = all.iter().position(|frame| !is_shim(frame)).unwrap_or(outermost);
    all.split_off(begin)
}

/// The frames without what calls `main`, or the function of a thread of Rust.
pub(crate) fn below_main<'a>(stack: &'a [u32], symbols: &Symbols) -> &'a [u32] {
    let name = |frame: &u32| name(*frame, symbols);
    if let Some(begin) = stack.iter().position(|frame| name(frame).contains(RUST_BEGIN)) {
        let is_call = begin > 1
            && ["FnOnce", "function::call_once<"]
                .iter()
                .any(|call| name(&stack[begin - 1]).contains(call));
        // The compiler may have inlined all of the program into this function.
        return &stack[..if is_call { begin - 1 } else { begin.max(1) }];
    }
    if let Some(main) = stack.iter().rposition(|frame| name(frame) == "main") {
        return &stack[..=main];
    }
    // A program without symbols has a `main` all the same.
    match stack.iter().position(|frame| MAIN_CALLERS.contains(&name(frame))) {
        Some(caller) if caller > 0 => &stack[..caller],
        _ => stack,
    }
}

/// Whether a stack has all its callers. Others were cut, because they were too deep, or because the
/// way to a caller was not known.
pub(crate) fn is_whole(stack: &[u32], symbols: &Symbols) -> bool {
    let Some(last) = stack.last() else { return false };
    let root = name(*last, symbols);
    let is_main = root == "main" || root.ends_with("::main");
    // The C library and the loader have no symbols for those of their own roots.
    let is_bare = symbols.numbered(*last).of_system && root.contains("+0x");
    is_main
        || is_bare
        || ROOTS.contains(&root)
        || root.contains(RUST_BEGIN)
        || below_main(stack, symbols).len() < stack.len()
}

/// The places of the frames below `main` without the inner workings of libraries: of functions of
/// standard libraries that call each other only the one that the program called is left.
pub(crate) fn program_calls(below_main: &[u32], symbols: &Symbols) -> impl Iterator<Item = usize> {
    let is_library = |frame: &u32| is_of_library(symbols.numbered(*frame), symbols);
    let is_left = move |place: &usize| {
        let caller = below_main.get(place + 1);
        !is_library(&below_main[*place]) || caller.is_none_or(|caller| !is_library(caller))
    };
    (0..below_main.len()).filter(is_left)
}

/// The innermost function of the program among such calls, or the innermost one of all.
pub(crate) fn site(mut calls: impl Iterator<Item = u32>, symbols: &Symbols) -> Option<&Frame> {
    let is_program = |frame: &&Frame| !is_of_library(frame, symbols);
    let innermost = symbols.numbered(calls.next()?);
    let mut callers = calls.map(|frame| symbols.numbered(frame));
    let found = if is_program(&innermost) { None } else { callers.find(is_program) };
    found.or(Some(innermost))
}

/// Whether a function is one of a standard library, of Rust, C++ or C.
fn is_of_library(frame: &Frame, symbols: &Symbols) -> bool {
    frame.of_system || is_library(symbols.function(frame.function))
}

fn name(frame: u32, symbols: &Symbols) -> &str {
    &symbols.functions()[symbols.numbered(frame).function]
}

/// Whether a file is of the part of lumalloc that serves calls, or of the exporter's allocator.
/// Debug information that has lines only does not say where an inlined function belongs.
fn is_of_lumalloc(file: &str) -> bool {
    let mut parts = file.split("/src/front/");
    let package = parts.next().and_then(|path| path.rsplit('/').next()).unwrap_or("");
    let serves = package == "alloc-core" || package.starts_with("lumalloc");
    parts.next().is_some() && serves || file.ends_with(EXPORTER_MEMORY)
}

/// Whether a function only hands an allocation or a deletion on.
fn is_shim(name: &str) -> bool {
    SHIMS.contains(&name) || SHIM_BEGINS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::is_of_lumalloc;

    #[test]
    fn files_of_the_allocator_are_known() {
        assert!(is_of_lumalloc("/x/alloc-core/src/front/calls/malloc.rs"));
        assert!(is_of_lumalloc("/home/me/.cargo/registry/src/a/lumalloc-0.1.0/src/front/life.rs"));
        assert!(is_of_lumalloc("/x/exporter-so/src/survival.rs"));
        let others = ["/x/exporter-so/src/start.rs", "survival.rs", "malloc.rs", ""];
        for other in ["/x/lumalloc/src/main.rs", "/x/web/src/front/page.rs"].iter().chain(&others) {
            assert!(!is_of_lumalloc(other), "{other}");
        }
    }
}
