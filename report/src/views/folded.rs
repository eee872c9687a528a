//! Folded stacks: a line for each stack, outermost function first, as flamegraph.pl and inferno
//! read them.

use std::collections::BTreeMap;

use crate::report::{NO_STACK, Report};
use crate::symbols::Frame;
use crate::views::value::Value;

/// What is shown of each frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The name of the function.
    Functions,
    /// The function, and its place in the source if that is known: `f (src/f.rs:7)`.
    Places,
}

/// Returns the lines `main;f;g 4096`, in the order of the names. Stacks without a value have none.
pub fn folded(report: &Report, value: Value, shown: Shown) -> String {
    let line = |(stack, number)| format!("{stack} {number}\n");
    let sums = stacks(report, value, shown).into_iter();
    sums.filter(|(_, number)| *number != 0).map(line).collect()
}

/// Returns the numbers of [`folded`] by the stack, those of stacks without a value too.
pub fn stacks(report: &Report, value: Value, shown: Shown) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for sample in &report.profile().samples {
        let frames = report.stack_below_main(sample.stack).rev();
        // A semicolon separates the functions.
        let names = frames.map(|frame| shown.name(report, frame).replace(';', ":"));
        let stack = names.collect::<Vec<_>>().join(";");
        let stack = if stack.is_empty() { NO_STACK.to_owned() } else { stack };
        *sums.entry(stack).or_default() += value.of(&sample.counts);
    }
    sums
}

/// Returns the numbers by the functions of the program that allocated, with their places in the
/// source: `f (src/f.rs:7)`.
pub fn sites(report: &Report, value: Value) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for sample in &report.profile().samples {
        let site = report.site(sample.stack).map(|frame| Shown::Places.name(report, frame));
        let site = site.unwrap_or_else(|| NO_STACK.to_owned());
        *sums.entry(site).or_default() += value.of(&sample.counts);
    }
    sums
}

impl Shown {
    fn name(self, report: &Report, frame: &Frame) -> String {
        let name = report.function(frame.function);
        match (self, &*frame.file, frame.line) {
            (Shown::Functions, ..) | (_, "", _) | (_, _, 0) => name.to_owned(),
            (_, file, line) => format!("{name} ({file}:{line})"),
        }
    }
}

/// Returns lines with two numbers, the older one first, as difffolded.pl writes them.
pub fn folded_difference(new: &Report, old: &Report, value: Value) -> String {
    let mut both: BTreeMap<String, [i64; 2]> = BTreeMap::new();
    for (place, report) in [old, new].into_iter().enumerate() {
        for (stack, number) in stacks(report, value, Shown::Functions) {
            both.entry(stack).or_default()[place] = number;
        }
    }
    let both = both.into_iter().filter(|(_, numbers)| *numbers != [0, 0]);
    both.map(|(stack, [before, now])| format!("{stack} {before} {now}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    fn report(file: File) -> Report {
        Report::new(file.read(), &Search::default())
    }

    fn new() -> Report {
        let file = File::default().path("main > f > g", 100, 4, 2).path("main > a;b", 8, 10, 10);
        report(file.path("main > f > g", 8, 1, 1).path("main > quit", 8, 1, 0))
    }

    #[test]
    fn stacks_have_a_line_each() {
        assert_eq!(
            folded(&new(), Value::LiveBytes, Shown::Functions),
            "main;a:b 80\nmain;f;g 208\n"
        );
        let allocations = "main;a:b 10\nmain;f;g 5\nmain;quit 1\n";
        assert_eq!(folded(&new(), Value::Allocations, Shown::Functions), allocations);
        let empty = File::default().stack(&[], &[1, 9, 1, 9], &[]);
        assert_eq!(folded(&report(empty), Value::LiveBlocks, Shown::Functions), "(no stack) 1\n");
    }

    #[test]
    fn places_stand_behind_functions() {
        let mut profile = new().profile().clone();
        let line = &mut profile.locations[0].lines[0];
        let name = line.function.clone();
        (line.file, line.line) = ("src/a;b.rs".into(), 7);
        let report = Report::new(profile, &Search::default());
        let text = folded(&report, Value::LiveBytes, Shown::Places);
        assert!(text.contains(&format!("{name} (src/a:b.rs:7)")), "{text}");
        assert_eq!(text.matches(".rs").count(), text.matches(&*name).count(), "{text}");
    }

    #[test]
    fn sites_are_functions_of_the_program() {
        let file = File::default()
            .path("main > f > alloc::vec::Vec<T>::push > __rust_alloc", 8, 4, 2)
            .path("main > f > alloc::vec::Vec<T>::push > __rust_realloc", 16, 1, 1)
            .path("main > g", 32, 1, 0);
        let found = sites(&report(file), Value::LiveBytes);
        assert_eq!(found, [("f (f.c:2)".into(), 32), ("g (g.c:6)".into(), 0)].into());
        let empty = File::default().stack(&[], &[1, 9, 1, 9], &[]);
        let found = sites(&report(empty), Value::LiveBlocks);
        assert_eq!(found, [("(no stack)".into(), 1)].into());
    }

    #[test]
    fn differences_have_both_numbers() {
        let old = report(File::default().path("main > f > g", 100, 1, 1).path("main > x", 1, 1, 1));
        let text = folded_difference(&new(), &old, Value::LiveBytes);
        assert_eq!(text, "main;a:b 0 80\nmain;f;g 100 208\nmain;x 1 0\n");
    }
}
