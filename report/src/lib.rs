//! Reads the heap profiles of the allocator and shows them.
//!
//! Nothing here runs in the profiled process. A profile is a file with counts of allocations and
//! their stacks as bare addresses; names and lines come from the program and its libraries.
//!
//! Reading order: [`profile`] (what a file says), [`read_file`] (pprof and heap_v2), [`symbols`]
//! (names), [`Report`] (both together); then what is made of it: [`mprof`], [`views`] and
//! [`flame_graph`]. [`events`] are the recordings of the heap monitor.
#![forbid(unsafe_code)]

#[cfg(test)]
mod testing;
mod error;
pub mod input_file;
mod program_file;
mod path_text;
pub mod terminal;
pub mod profile;
mod ranges;
mod variance;
mod pools;
mod calibration;
mod read;
mod delta;
mod library_names;
pub mod symbols;
mod lines;
mod block_type;
mod rtti;
mod calls;
mod stacks;
mod report;
pub mod mprof;
pub mod views;
pub mod events;
mod flame;

pub use delta::{NoDifference, difference};
pub use error::{Error, Result};
pub use flame::flame_graph;
pub use lines::with_lines;
pub use read::{is_profile, read, read_file};
pub use report::Report;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::{File, gzip};
    use crate::symbols::Search;
    use proptest::prelude::*;

    /// Makes everything that can be made of a profile.
    fn everything(report: &Report) -> usize {
        let value = views::Value::LiveBytes;
        let options = views::Options::default();
        let verbose =
            mprof::Options { verbosity: mprof::Verbosity::Verbose, leaks: Default::default() };
        mprof::tables(report, &verbose, &mut std::io::sink()).expect("a sink takes all");
        [
            views::overview(report, "x", &options),
            views::difference(report, report, ["x", "x"], &options),
            views::folded(report, value, views::Shown::Functions),
            views::folded_difference(report, report, value),
            views::dhat(report, "x", value),
            views::json(report, "x"),
            views::json_difference(report, report, ["x", "x"]),
            flame_graph(report, "x", value),
        ]
        .iter()
        .map(String::len)
        .sum()
    }

    fn names() -> impl Strategy<Value = String> {
        proptest::collection::vec("main|[f-j]|std::x|<[T]>::y|operator new", 1..12)
            .prop_map(|names| names.join(" > "))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn no_profile_makes_a_report_panic(
            paths in proptest::collection::vec(
                (names(), 0i64..1 << 40, 0i64..1 << 20, any::<bool>()), 0..8
            ),
            period in prop_oneof![Just(1i64), 1i64..1 << 40],
            class in (0i64..1 << 20, 0i64..1 << 50, 0i64..1 << 50)
        ) {
            let (size, live, allocations) = class;
            let mut file = File::default()
                .comment("prof.since_start=1")
                .comment(&format!("class.{size}={live} {allocations}"));
            for (path, size, blocks, is_live) in paths {
                file = file.path(&path, size, blocks, if is_live { blocks } else { 0 });
            }
            file.profile.period = period;
            everything(&Report::new(file.read(), &Search::default()));
        }

        #[test]
        fn no_large_number_makes_a_report_panic(
            path in names(), numbers in proptest::collection::vec(any::<i64>(), 4),
            size in proptest::option::of(any::<i64>())
        ) {
            let mut file = File::default().path(&path, 1, 1, 1);
            file.profile.sample[0].value = numbers;
            match size {
                Some(size) => file.profile.sample[0].label[0].num = size,
                None => file.profile.sample[0].label.clear(),
            }
            if let Ok(profile) = read::read(&gzip(&file.encode())) {
                everything(&Report::new(profile, &Search::default()));
            }
        }
    }
}
