//! A profile with the names of all its frames.

use std::path::Path;

use crate::block_type::Function;
use crate::calls;
use crate::error::Result;
use crate::profile::Profile;
use crate::read::{read_file, read_parts};
use crate::stacks::Stacks;
use crate::symbols::{Frame, Search, Symbols};

/// Stands for a stack without frames.
pub(crate) const NO_STACK: &str = "(no stack)";

/// What is said of a profile with samples of two rates.
const RESET: &str = "the samples were reset (prof.reset) while the file was written: some may be \
    missing, and others count for too much or too little";

/// A profile and its stacks.
pub struct Report {
    profile: Profile,
    symbols: Symbols,
    stacks: Stacks,
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

    /// As [`open`](Report::open), also of a difference of two profiles, which has negative
    /// numbers: then the second report has what was taken away, and the first one what was added.
    ///
    /// # Errors
    ///
    /// As of [`open`](Report::open).
    pub fn open_parts(path: &Path, search: &Search) -> Result<(Report, Option<Report>)> {
        search.check()?;
        let (more, less) = read_parts(path)?;
        Ok((Report::new(more, search), less.map(|less| Report::new(less, search))))
    }

    /// Finds the names of the frames of a profile.
    pub fn new(profile: Profile, search: &Search) -> Report {
        let symbols = Symbols::of(&profile, search);
        let stacks = Stacks::new(&profile, &symbols);
        Report { profile, symbols, stacks }
    }

    /// The profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The frames of a stack, innermost first, with those that were inlined.
    pub fn stack(&self, stack: usize) -> impl DoubleEndedIterator<Item = &Frame> {
        self.stacks.whole(stack).iter().map(|frame| self.symbols.numbered(*frame))
    }

    /// The frames of a stack without what calls `main`, or the function of a thread of Rust.
    pub fn stack_below_main(&self, stack: usize) -> impl DoubleEndedIterator<Item = &Frame> {
        self.stacks.below_main(stack).iter().map(|frame| self.symbols.numbered(*frame))
    }

    /// The frames below `main` without the inner workings of libraries: of functions of standard
    /// libraries that call each other only the one that the program called is left.
    pub fn calls(&self, stack: usize) -> impl DoubleEndedIterator<Item = &Frame> {
        self.stacks.calls(stack).map(|frame| self.symbols.numbered(frame))
    }

    /// The numbers of these, as [`Symbols::numbered`] has them.
    pub(crate) fn numbered_calls(&self, stack: usize) -> impl Iterator<Item = u32> {
        self.stacks.calls(stack)
    }

    /// Whether a stack has all its callers.
    pub(crate) fn is_whole(&self, stack: usize) -> bool {
        calls::is_whole(self.stacks.whole(stack), &self.symbols)
    }

    /// The innermost function of the program in a stack, or the innermost one of all.
    pub fn site(&self, stack: usize) -> Option<&Frame> {
        calls::site(self.stacks.calls(stack), &self.symbols)
    }

    /// The name of a function.
    pub fn function(&self, function: usize) -> &str {
        &self.symbols.functions()[function]
    }

    /// The functions of a stack, innermost first, with those that were inlined.
    pub(crate) fn functions_of(&self, stack: usize) -> impl Iterator<Item = Function<'_>> {
        self.stack(stack).map(|frame| self.symbols.function(frame.function))
    }

    /// What the user should know: that the samples were reset, and what [`Symbols::notes`] says.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        let reset = self.profile.was_reset_meanwhile().then_some(RESET);
        reset.into_iter().chain(self.symbols.notes().iter().map(String::as_str))
    }

    /// All functions, files and types.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;

    fn names<'a>(report: &'a Report, stack: impl Iterator<Item = &'a Frame>) -> Vec<&'a str> {
        stack.map(|frame| report.function(frame.function)).collect()
    }

    fn report(path: &str) -> Report {
        Report::new(File::default().path(path, 8, 1, 1).read(), &Search::default())
    }

    #[test]
    fn a_reset_while_the_file_was_written_is_told() {
        let notes = |after: u64| {
            let text = format!(
                "heap_v2/1\n  t*: 1: 8 [0: 0]\n# prof.resets=2\n@ 0x5\n  t*: 1: 8 [0: 0]\n\
                 # prof.resets.after={after}\n\nMAPPED_LIBRARIES:\n"
            );
            let profile = crate::read::read(text.as_bytes()).expect("a profile");
            let report = Report::new(profile, &Search::default());
            report.notes().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(notes(2), [""; 0]);
        let note = "the samples were reset (prof.reset) while the file was written: some may be \
                    missing, and others count for too much or too little";
        assert_eq!(notes(4), [note]);
    }

    #[test]
    fn what_hands_an_allocation_on_is_left_out() {
        for (path, expected) in [
            ("main > f > operator new", &["f", "main"][..]),
            (
                "f > alloc::vec::Vec<T>::push > alloc::alloc::alloc > __rust_alloc",
                &["alloc::vec::Vec<T>::push", "f"],
            ),
            (
                "f > __rust_alloc > lumalloc::front::calls::malloc::alloc_rounded::{{closure}}",
                &["f"],
            ),
            ("malloc > f", &["f", "malloc"]),
            (
                "f > __rust_alloc > <lumalloc_exporter::survival::Patient as \
                 core::alloc::global::GlobalAlloc>::alloc > lumalloc_exporter::survival::ask",
                &["f"],
            ),
            ("operator new > malloc", &["operator new"]),
            // jemalloc's profiler.
            ("main > f > libjemalloc.so.2+0xa262f > libjemalloc.so.2+0x1", &["f", "main"]),
            (
                "main > f > malloc > imalloc > imalloc_body > prof_alloc_prep > prof_backtrace_impl",
                &["f", "main"],
            ),
            ("main > f > _rjem_malloc > _rjem_je_prof_backtrace", &["f", "main"]),
        ] {
            let report = report(path);
            assert_eq!(names(&report, report.stack(0)), expected, "{path}");
        }
    }

    #[test]
    fn a_function_that_gcc_split_is_one() {
        for (path, expected) in [
            ("main > f > f.part.0", &["f", "main"][..]),
            ("main > f > f.part.0.isra.0 > malloc", &["f", "main"]),
            ("main > _Z1fl > _Z1fl.part.0", &["f", "main"]),
            ("main > f > f.part.0 > f > f.part.0", &["f", "f", "main"]),
            // Heads that were inlined have no frames.
            ("main > f.part.0 > f.part.0", &["f", "f", "main"]),
            ("main > f > f", &["f", "f", "main"]),
            ("main > g > f.part.0", &["f", "g", "main"]),
            ("main > _Z1fi > _Z1fl.part.0", &["f", "f", "main"]),
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
            // A namespace of C++ that has the name of a crate.
            (
                "main > _ZN4core5Cache4fillEv > std::a > std::b",
                &["std::a", "core::Cache::fill", "main"],
                "core::Cache::fill",
            ),
        ] {
            let report = report(path);
            assert_eq!(names(&report, report.calls(0)), calls, "{path}");
            assert_eq!(report.site(0).map(|frame| report.function(frame.function)), Some(site));
        }
    }

    #[test]
    fn a_stack_without_a_known_root_may_have_been_cut() {
        for path in [
            "main > f",
            "x::main > f",
            "_start > __libc_start_main > __libc_start_call_main > x+0x10 > f",
            "__libc_start_call_main > x+0x10 > f",
            "clone3 > start_thread > f",
            "start_thread > f",
            "_start > call_init > f",
            "std::sys::backtrace::__rust_begin_short_backtrace<fn(), ()> > x::f > g",
            "std::sys::backtrace::__rust_begin_short_backtrace<fn(), ()>",
        ] {
            assert!(report(path).is_whole(0), "{path}");
        }
        for path in ["f", "f > std::a > std::b", "x+0x10 > f", "qsort > f", "domain > f"] {
            assert!(!report(path).is_whole(0), "{path}");
        }
        let bare =
            Report::new(File::default().stack(&[], &[1, 8, 1, 8], &[]).read(), &Search::default());
        assert!(!bare.is_whole(0), "nothing is known");
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
            (
                "std::sys::backtrace::__rust_begin_short_backtrace<fn(), ()> > \
                 core::ops::function::call_once<fn(), ()> > x::main > f",
                &["f", "x::main"],
            ),
            ("x+0x30 > __libc_start_main > __libc_start_call_main > x+0x10 > f", &["f", "x+0x10"]),
            (
                "x+0x30 > __libc_start_main > __libc_start_main > __libc_start_call_main > \
                 lumalloc_exporter::start_main::before_main > x+0x10 > f",
                &["f", "x+0x10"],
            ),
            ("clone > start_thread > f", &["f", "start_thread", "clone"]),
        ] {
            let report = report(path);
            assert_eq!(names(&report, report.stack_below_main(0)), expected, "{path}");
        }
    }
}
