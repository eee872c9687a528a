//! A profile with the names of all its frames.

use std::path::Path;

use crate::block_type::is_library;
use crate::error::Result;
use crate::profile::Profile;
use crate::read::read_file;
use crate::symbols::{Frame, Search, Symbols};

/// Functions that only hand an allocation on. They are left out at the inner end of each stack.
const SHIMS: [&str; 22] = [
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
];
/// What such names begin with.
const SHIM_BEGINS: [&str; 5] = [
    "__rustc::",
    "alloc::alloc::",
    "<alloc::alloc::Global",
    "core::alloc::global::GlobalAlloc::",
    "alloc::boxed::box_new::<",
];
/// The outer end of every stack of a Rust program, or of one of its threads.
const RUST_BEGIN: &str = "__rust_begin_short_backtrace";

/// The functions of C libraries that call `main`.
const MAIN_CALLERS: [&str; 3] =
    ["__libc_start_call_main", "__libc_start_main", "libc_start_main_stage2"];

/// A profile and its stacks.
pub struct Report {
    profile: Profile,
    symbols: Symbols,
    stacks: Vec<Vec<Frame>>,
    calls: Vec<Vec<Frame>>,
}

impl Report {
    /// Reads a profile, and finds the names of its frames.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no profile, or the program that `search` names cannot be
    /// read. Missing names are no error.
    pub fn open(path: &Path, search: &Search) -> Result<Report> {
        search.check()?;
        Ok(Report::new(read_file(path)?, search))
    }

    /// Finds the names of the frames of a profile.
    pub fn new(profile: Profile, search: &Search) -> Report {
        let symbols = Symbols::of(&profile, search);
        let stacks = profile.stacks.iter().map(|stack| frames(stack, &symbols)).collect();
        let mut report = Report { profile, symbols, stacks, calls: Vec::new() };
        report.calls = (0..report.stacks.len()).map(|stack| report.program_calls(stack)).collect();
        report
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The frames of a stack, innermost first, with those that were inlined.
    pub fn stack(&self, stack: usize) -> &[Frame] {
        &self.stacks[stack]
    }

    /// The frames of a stack without what calls `main`, or the function of a thread of Rust.
    pub fn stack_below_main(&self, stack: usize) -> &[Frame] {
        let stack = self.stack(stack);
        let name = |frame: &Frame| self.function(frame.function);
        if let Some(begin) = stack.iter().position(|frame| name(frame).contains(RUST_BEGIN)) {
            let is_call = begin > 1 && name(&stack[begin - 1]).contains("FnOnce");
            return &stack[..if is_call { begin - 1 } else { begin }];
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

    /// The frames below `main` without the inner workings of libraries: of functions of standard
    /// libraries that call each other only the one that the program called is left.
    pub fn calls(&self, stack: usize) -> &[Frame] {
        &self.calls[stack]
    }

    /// The innermost function of the program in a stack, or the innermost one of all.
    pub fn site(&self, stack: usize) -> Option<&Frame> {
        let calls = self.calls(stack);
        let is_own = |frame: &&Frame| !is_library(self.function(frame.function));
        calls.iter().find(is_own).or(calls.first())
    }

    fn program_calls(&self, stack: usize) -> Vec<Frame> {
        let stack = self.stack_below_main(stack);
        let is_library = |frame: &Frame| is_library(self.function(frame.function));
        let is_left = |(place, frame): &(usize, &Frame)| {
            !is_library(frame) || stack.get(place + 1).is_none_or(|caller| !is_library(caller))
        };
        stack.iter().enumerate().filter(is_left).map(|(_, frame)| frame.clone()).collect()
    }

    /// The name of a function.
    pub fn function(&self, function: usize) -> &str {
        &self.symbols.functions()[function]
    }

    /// All functions, files and types.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }
}

fn frames(stack: &[usize], symbols: &Symbols) -> Vec<Frame> {
    let all = stack.iter().flat_map(|location| symbols.location(*location));
    let is_shim = |frame: &&Frame| is_shim(&symbols.functions()[frame.function]);
    let frames: Vec<Frame> = all.clone().skip_while(is_shim).cloned().collect();
    // A stack of nothing else keeps its outermost frame.
    if frames.is_empty() { all.last().cloned().into_iter().collect() } else { frames }
}

/// Whether a function only hands an allocation on.
fn is_shim(name: &str) -> bool {
    SHIMS.contains(&name) || SHIM_BEGINS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;

    fn names<'a>(report: &'a Report, stack: &[Frame]) -> Vec<&'a str> {
        stack.iter().map(|frame| report.function(frame.function)).collect()
    }

    fn report(path: &str) -> Report {
        Report::new(File::default().path(path, 8, 1, 1).read(), &Search::default())
    }

    #[test]
    fn what_hands_an_allocation_on_is_left_out() {
        for (path, expected) in [
            ("main > f > operator new", &["f", "main"][..]),
            (
                "f > alloc::vec::Vec<T>::push > alloc::alloc::alloc > __rust_alloc",
                &["alloc::vec::Vec<T>::push", "f"],
            ),
            ("malloc > f", &["f", "malloc"]),
            ("operator new > malloc", &["operator new"]),
        ] {
            let report = report(path);
            assert_eq!(names(&report, report.stack(0)), expected, "{path}");
        }
    }

    #[test]
    fn the_inner_workings_of_libraries_are_left_out() {
        for (path, calls, site) in [
            (
                "main > f > alloc::vec::Vec<T>::push > alloc::raw_vec::RawVec<T>::grow_one",
                &["alloc::vec::Vec<T>::push", "f", "main"][..],
                "f",
            ),
            ("main > f", &["f", "main"], "f"),
            ("std::rt::a > std::rt::b", &["std::rt::a"], "std::rt::a"),
            (
                "main > f > std::a > std::b > f::{{closure}} > std::c",
                &["std::c", "f::{{closure}}", "std::a", "f", "main"],
                "f::{{closure}}",
            ),
        ] {
            let report = report(path);
            assert_eq!(names(&report, report.calls(0)), calls, "{path}");
            assert_eq!(report.site(0).map(|frame| report.function(frame.function)), Some(site));
        }
    }

    #[test]
    fn stacks_begin_at_main() {
        for (path, expected) in [
            ("_start > main > f", &["f", "main"][..]),
            (
                "main > std::rt::lang_start > std::sys::backtrace::__rust_begin_short_backtrace \
              > core::ops::FnOnce::call_once > x::main > f",
                &["f", "x::main"],
            ),
            ("x+0x30 > __libc_start_main > __libc_start_call_main > x+0x10 > f", &["f", "x+0x10"]),
            ("clone > start_thread > f", &["f", "start_thread", "clone"]),
        ] {
            let report = report(path);
            assert_eq!(names(&report, report.stack_below_main(0)), expected, "{path}");
        }
    }
}
