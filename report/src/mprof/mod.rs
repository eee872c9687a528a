//! The four tables of mprof(1).
//!
//! The page is the contract: columns, percentages and thresholds are the original's. Its errors are
//! not kept: percentages that overflow, sizes 1023 and 1024 in the row of larger ones, and types
//! that are missing in that row.

mod percent;
mod options;
mod blocks;
mod bins;
mod leaks;
mod direct;
mod components;
mod graph;
mod entries;

pub use options::{Leaks, Options, Verbosity};

use std::collections::HashSet;
use std::io::{Result, Write};

use crate::block_type::of_functions;
use crate::report::Report;
use bins::Types;
use blocks::Block;

/// Writes the four tables.
///
/// # Errors
///
/// They cannot be written.
pub fn tables(report: &Report, options: &Options, out: &mut dyn Write) -> Result<()> {
    let exact = report.symbols().exact();
    let blocks = blocks::of(report, &exact);
    let total = blocks::total(&blocks);
    let types = types(report, &blocks, report.symbols().types());
    out.write_all(banner(report).as_bytes())?;
    out.write_all(bins::table(&blocks, &types, options.verbosity).as_bytes())?;
    out.write_all(leaks::table(report, &blocks, options).as_bytes())?;
    out.write_all(direct::table(&exact, &blocks, &total).as_bytes())?;
    entries::write(&exact, &blocks, &total, out)
}

/// The types of the program by their sizes, and those that the stacks of blocks name. A mean size
/// tells no type.
fn types(report: &Report, blocks: &[Block], of_program: Vec<(u64, String)>) -> Types {
    let requested: HashSet<u64> =
        report.profile().samples.iter().filter_map(|sample| sample.size).collect();
    let of_program = of_program.into_iter().filter(|(size, _)| requested.contains(size));
    let mut types: Types = of_program.collect();
    let mut seen = HashSet::new();
    for block in blocks.iter().filter(|block| seen.insert((block.stack, block.size))) {
        let named = of_functions(report.functions_of(block.stack));
        types.extend(named.map(|name| (block.size, name)));
    }
    types
}

/// The line above the tables: the depth of the deepest stack, the memory of the monitor, and how
/// the numbers were made. Of the original's letters `c` is missing, the share of a stack that was
/// that of the allocation before: here each stack is found as a whole.
fn banner(report: &Report) -> String {
    let profile = report.profile();
    let depth = profile.stacks.iter().map(Vec::len).max().unwrap_or(0);
    let version = env!("CARGO_PKG_VERSION");
    let memory = memory(report);
    let mut text = format!(
        "--------+----+---+---+--  v{version}  m{depth}  --+--+--  MPROF  --+--+{memory}---+----+\
         --------\n"
    );
    if profile.is_sampled() {
        text += &format!(
            "Sampled, one allocation in {} bytes: all numbers are estimates.\n",
            profile.period
        );
    }
    if profile.samples.iter().any(|sample| sample.size.is_none()) {
        text +=
            "The file has no requested sizes: sizes are those of blocks, the mean of each stack.\n";
    }
    if !profile.has_allocs {
        text += "The file has no freed blocks: allocations are those that are not freed.\n";
    }
    text + "\n\n"
}

/// The kilobytes that the monitor took in the program, if the profile notes them: for stacks,
/// functions, counts and blocks. The program needs none for functions, which are found in the
/// program's file.
fn memory(report: &Report) -> String {
    let kilobytes = |name| {
        let bytes: u64 = report.profile().comment(name)?.parse().ok()?;
        Some(bytes.div_ceil(1024))
    };
    let stacks = kilobytes("prof.memory.stacks");
    let counts = kilobytes("prof.memory.counts");
    let blocks = kilobytes("prof.memory.samples");
    match (stacks, counts, blocks) {
        (Some(s), Some(d), Some(l)) => format!("--  s{s}  f0  d{d}  l{l}  --+"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    /// A program whose expressions are parsed by functions that call each other.
    fn parser() -> File {
        File::default()
            .path("main > parse > expr > term > expr > new_node", 48, 100, 100)
            .path("main > parse > expr > term > intern", 17, 100, 0)
            .path("main > parse > expr > term", 24, 100, 50)
            .path("main > grow > grow > table", 9557, 3, 3)
            .path("main > log", 8, 7, 0)
            .path("main > log", 430, 8, 1)
            .path("_start > main", 1024, 1, 1)
    }

    fn tables_of(file: &File, options: Options) -> String {
        let mut text = Vec::new();
        let report = Report::new(file.read(), &Search::default());
        tables(&report, &options, &mut text).expect("memory takes all");
        String::from_utf8(text).expect("text")
    }

    fn options(verbosity: Verbosity, leaks: Leaks) -> Options {
        Options { verbosity, leaks }
    }

    #[test]
    fn the_four_tables_are_those_of_the_page() {
        let file = parser()
            .comment("prof.memory.stacks=40000")
            .comment("prof.memory.counts=1024")
            .comment("prof.memory.samples=1");
        let text = tables_of(&file, Options::default());
        crate::testing::assert_golden("mprof.txt", &text);
    }

    #[test]
    fn an_output_that_fails_is_an_error() {
        let report = Report::new(parser().read(), &Search::default());
        let whole = tables_of(&parser(), Options::default()).len();
        for room in [0, whole / 2, whole - 1] {
            let mut short = vec![0; room];
            let written = tables(&report, &Options::default(), &mut &mut short[..]);
            let error = written.expect_err("it is full");
            assert_eq!(error.kind(), std::io::ErrorKind::WriteZero);
        }
    }

    #[test]
    fn a_profile_without_allocations_has_tables() {
        crate::testing::assert_golden(
            "mprof-empty.txt",
            &tables_of(&File::default(), Options::default()),
        );
    }

    #[test]
    fn verbosity_chooses_the_rows_of_the_first_two_tables() {
        let file = File::default()
            .path("main > a", 101, 1, 1)
            .path("main > b", 16, 1, 1)
            .path("main > c", 32, 10, 9)
            .path("main > d", 64, 1000, 1000);
        let rows = |verbosity| {
            let text = tables_of(&file, options(verbosity, Leaks::ByName));
            let rows =
                ["101", "16", "32", "64"].map(|size| text.contains(&format!("\n{size:>11} ")));
            let paths =
                ["a", "b", "c", "d"].map(|name| text.contains(&format!("|| > main > {name}\n")));
            (rows, paths, text.contains("\n other bins "))
        };
        let all = ([true; 4], [true; 4], false);
        assert_eq!(rows(Verbosity::Verbose), all);
        let normal = ([true, false, true, true], [false, false, false, true], true);
        assert_eq!(rows(Verbosity::Normal), normal);
        let terse = ([false, false, false, true], [false, false, false, true], true);
        assert_eq!(rows(Verbosity::Terse), terse);
    }

    #[test]
    fn leaks_are_hidden_by_their_share_of_the_bytes() {
        let file = File::default()
            .path("main > a", 8, 980, 980)
            .path("main > b", 8, 12, 12)
            .path("main > c", 8, 6, 6)
            .path("main > d", 8, 4, 4);
        let shown = |file: &File, verbosity| {
            let text = tables_of(file, options(verbosity, Leaks::ByName));
            ["a", "b", "c", "d"].map(|name| text.contains(&format!("|| > main > {name}\n")))
        };
        assert_eq!(shown(&file, Verbosity::Verbose), [true, true, true, true]);
        assert_eq!(shown(&file, Verbosity::Normal), [true, true, true, false]);
        assert_eq!(shown(&file, Verbosity::Terse), [true, true, false, false]);
        // What is kept is part of a large traffic.
        let file = File::default()
            .path("main > a", 8, 1_000_000, 983)
            .path("main > b", 8, 11, 11)
            .path("main > c", 8, 6, 6)
            .path("main > d", 8, 4, 4);
        assert_eq!(shown(&file, Verbosity::Normal), [true, true, true, false]);
        assert_eq!(shown(&file, Verbosity::Terse), [true, true, false, false]);
    }

    #[test]
    fn offsets_keep_calls_of_one_function_apart() {
        let file = File::default().stack(&[0x1010], &[1, 8, 1, 8], &[("bytes", 8)]);
        let text = tables_of(&file, options(Verbosity::Normal, Leaks::WithOffsets));
        assert!(text.contains("   ...> 0x1010+0\n"), "{text}");
        let text = tables_of(&file, options(Verbosity::Normal, Leaks::None));
        assert!(!text.contains("Memory Leaks"), "{text}");
    }

    #[test]
    fn numbers_that_are_too_wide_do_not_touch() {
        let file = File::default().path("main > f", 1 << 40, 1_000_000, 1_000_000);
        let text = tables_of(&file, Options::default()).replace('\n', " \n ");
        let number = (1_000_000u64 << 40).to_string();
        assert_eq!(text.matches(&number).count(), text.matches(&format!(" {number} ")).count());
        assert!(
            text.contains("     > 1024   1000000 1099511627776000000 (**)         0 "),
            "{text}"
        );
    }

    #[test]
    fn a_wide_number_of_recursive_calls_does_not_touch_the_name() {
        let file = File::default().path("main > f > f", 1, 123_456_789, 0);
        let text = tables_of(&file, Options::default());
        assert!(text.contains("+123456789 f ["), "{text}");
    }

    #[test]
    fn a_chain_is_whole_if_it_begins_where_a_thread_does() {
        let whole = |path: &str| {
            let file = File::default().path(path, 8, 1, 1);
            tables_of(&file, Options::default()).contains("   || > ")
        };
        assert!(whole("main > a > b > c > d") && whole("app::main > a > b > c > d"));
        assert!(whole("clone3 > start_thread > a > b > c") && whole("main > a"));
        for path in ["a", "a > b > c > d", "a > b > c > d > e"] {
            assert!(!whole(path), "{path}: callers may have been cut off");
        }
        assert!(!whole("clone3 > start_thread > a > b > c > d"));
        assert!(!whole("main > a > b > c > d > e"));
    }

    #[test]
    fn overloaded_functions_are_no_cycle_and_no_recursion() {
        let file = File::default()
            .path("main > _Z4walkP1A > children > _Z4walkP1B", 16, 2, 2)
            .path("main > _Z4walkP1A > _Z4walkP1B", 32, 1, 1);
        let text = tables_of(&file, Options::default());
        assert!(!text.contains("cycle"), "{text}");
        for row in ["walk(A*) [", "walk(B*) [", " walk(B*)\n", "|| > main > walk > walk\n"] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }

    /// A mean size may be that of a structure by chance.
    #[test]
    fn only_requested_sizes_tell_types() {
        let types = |file: &File| {
            let report = Report::new(file.read(), &Search::default());
            let blocks = blocks::of(&report, &report.symbols().exact());
            super::types(&report, &blocks, vec![(810, "widget".to_owned()), (8, "x".to_owned())])
        };
        let mut file = File::default().path("main > f", 810, 1, 1);
        assert_eq!(types(&file), Types::from([(810, "widget".to_owned())]));
        file.profile.sample[0].label.clear();
        assert_eq!(types(&file), Types::new());
    }

    #[test]
    fn what_the_numbers_are_is_said() {
        let mut file = File::default().path("main > f", 8, 1, 1);
        file.profile.period = 524_288;
        file.profile.sample[0].label.clear();
        file.profile.sample_type.drain(..2);
        file.profile.sample[0].value.drain(..2);
        let text = tables_of(&file, Options::default());
        let lines: Vec<&str> = text.lines().skip(1).take(4).collect();
        assert_eq!(
            lines,
            [
                "Sampled, one allocation in 524288 bytes: all numbers are estimates.",
                "The file has no requested sizes: sizes are those of blocks, the mean of each stack.",
                "The file has no freed blocks: allocations are those that are not freed.",
                "",
            ]
        );
    }
}
