//! Everything about a profile as JSON: totals, notes and samples with their stacks.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value as Json, json};

use crate::profile::{Profile, Sample};
use crate::report::Report;
use crate::symbols::Frame;
use crate::terminal::json_text;
use crate::views::rows::Types;
use crate::views::tally::Tally;
use crate::views::value::Value;

/// Returns the text, with `title` as the name of the file. The members are described in
/// `docs/reading-profiles.md`.
pub fn json(report: &Report, title: &str) -> String {
    json_text(&file(report, title)) + "\n"
}

/// Returns two profiles, `new` and `old`, and the stacks whose live bytes or allocations changed.
/// Changes of what not both files have are null.
pub fn json_difference(new: &Report, old: &Report, titles: [&str; 2]) -> String {
    let is_known = |value: &Value| [new, old].iter().all(|it| value.is_in(it.profile()));
    let mut joined: BTreeMap<Vec<String>, Tally> = BTreeMap::new();
    for (stack, tally) in by_names(new) {
        joined.entry(stack).or_default().add(&tally);
    }
    for (stack, tally) in by_names(old) {
        joined.entry(stack).or_default().subtract(&tally);
    }
    let changes: Vec<Json> = joined
        .into_iter()
        .filter(|(_, tally)| {
            let known = VALUES.iter().map(|(_, value)| value).filter(|value| is_known(value));
            known.into_iter().any(|value| tally.value(*value) != 0)
        })
        .map(|(stack, tally)| {
            let mut change = numbers(&tally, is_known);
            change.insert("functions".to_owned(), json!(stack));
            Json::Object(change)
        })
        .collect();
    let (new, old) = (file(new, titles[0]), file(old, titles[1]));
    json_text(&json!({ "new": new, "old": old, "changes": changes })) + "\n"
}

fn by_names(report: &Report) -> Vec<(Vec<String>, Tally)> {
    let name = |frame: &Frame| report.function(frame.function).to_owned();
    let of = |sample: &Sample| {
        let stack = report.stack_below_main(sample.stack).map(name).collect();
        (stack, Tally::of(sample, report.profile()))
    };
    report.profile().samples.iter().map(of).collect()
}

fn file(report: &Report, title: &str) -> Json {
    let profile = report.profile();
    let types = Types::new(report);
    let mut frames = Frames::default();
    let stacks = (0..profile.stacks.len())
        .map(|stack| report.stack(stack).map(|frame| frames.index(frame)).collect::<Vec<_>>());
    let stacks: Vec<Vec<usize>> = stacks.collect();
    let notes = profile.comments.iter().map(|(name, value)| (name.clone(), json!(value)));
    json!({
        "file": title,
        "period": profile.period,
        "sampled": profile.is_sampled(),
        "has_allocations": profile.has_allocs,
        "time_nanos": profile.time_nanos,
        "notes": notes.collect::<Map<_, _>>(),
        "warnings": report.notes().collect::<Vec<_>>(),
        "total": numbers(&Tally::whole(profile), |value| is_counted(profile, value)),
        "frames": frames.all.iter().map(|it| frame(report, it)).collect::<Vec<_>>(),
        "stacks": stacks,
        "samples": profile.samples.iter().map(|it| sample(report, &types, it)).collect::<Vec<_>>(),
    })
}

/// The different frames of all stacks. Those of one function and line are one.
#[derive(Default)]
struct Frames<'a> {
    of: HashMap<(usize, &'a str, u32), usize>,
    all: Vec<&'a Frame>,
}

impl<'a> Frames<'a> {
    fn index(&mut self, frame: &'a Frame) -> usize {
        let next = self.all.len();
        let key = (frame.function, &*frame.file, frame.line);
        let index = *self.of.entry(key).or_insert(next);
        if index == next {
            self.all.push(frame);
        }
        index
    }
}

fn frame(report: &Report, frame: &Frame) -> Json {
    let file = Some(&*frame.file).filter(|file| !file.is_empty());
    let line = Some(frame.line).filter(|line| *line != 0);
    json!({ "function": report.function(frame.function), "file": file, "line": line })
}

fn sample(report: &Report, types: &Types, sample: &Sample) -> Json {
    let profile = report.profile();
    let mut out = numbers(&Tally::of(sample, profile), |value| is_counted(profile, value));
    out.insert("stack".to_owned(), json!(sample.stack));
    out.insert("type".to_owned(), json!(types.of(report, sample)));
    out.insert("size".to_owned(), json!(sample.size));
    out.insert("arena".to_owned(), json!(sample.arena));
    out.insert("thread".to_owned(), json!(sample.thread));
    out.insert("thread_name".to_owned(), json!(sample.thread_name));
    Json::Object(out)
}

/// The numbers by their names.
const VALUES: [(&str, Value); 4] = [
    ("live_bytes", Value::LiveBytes),
    ("live_blocks", Value::LiveBlocks),
    ("allocated_bytes", Value::AllocatedBytes),
    ("allocations", Value::Allocations),
];

/// Whether a file has a number. Without allocations those of the live blocks stand for them.
fn is_counted(profile: &Profile, value: &Value) -> bool {
    value.is_bytes() || !profile.lacks_blocks
}

/// The numbers and their errors; null where they are not known.
fn numbers(tally: &Tally, is_known: impl Fn(&Value) -> bool) -> Map<String, Json> {
    let mut out = Map::new();
    for (name, value) in VALUES {
        let known = is_known(&value).then(|| (tally.value(value), tally.error(value)));
        let (number, error) = known.unzip();
        out.insert(name.to_owned(), json!(number));
        out.insert(format!("{name}_error"), json!(error));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    fn report(file: File) -> Report {
        Report::new(file.read(), &Search::default())
    }

    fn parsed(text: &str) -> Json {
        serde_json::from_str(text).expect("JSON")
    }

    #[test]
    fn everything_is_there() {
        let file = File::default()
            .comment("pid=7")
            .path("main > f", 100, 4, 2)
            .stack(&[0x99], &[0, 0, 1, 64], &[("bytes", 50), ("thread", 3), ("arena", 2)])
            .text_label("thread_name", "worker");
        let json = parsed(&json(&report(file), "x.pb.gz"));
        assert_eq!(
            (&json["file"], &json["period"], &json["sampled"]),
            (&json!("x.pb.gz"), &json!(1), &json!(false))
        );
        assert_eq!(json["notes"], json!({ "pid": "7" }));
        assert_eq!(json["total"]["live_bytes"], json!(264));
        assert_eq!(json["stacks"], json!([[0, 1], [2]]));
        let main = json!({ "function": "main", "file": "main.c", "line": 1 });
        let unknown = json!({ "function": "0x99", "file": null, "line": null });
        assert_eq!((&json["frames"][1], &json["frames"][2]), (&main, &unknown));
        let sample = &json["samples"][1];
        assert_eq!(
            (&sample["stack"], &sample["size"], &sample["thread_name"]),
            (&json!(1), &json!(50), &json!("worker"))
        );
        assert_eq!(
            (&sample["thread"], &sample["arena"], &sample["live_blocks"]),
            (&json!(3), &json!(2), &json!(1))
        );
        assert_eq!(sample["live_bytes_error"], json!(0.0));
    }

    #[test]
    fn numbers_of_blocks_are_null_in_a_file_of_bytes_alone() {
        let mut profile = report(File::default().path("main > f", 100, 4, 2)).profile().clone();
        (profile.lacks_blocks, profile.has_allocs) = (true, false);
        let report = Report::new(profile, &Search::default());
        let one = parsed(&json(&report, "x"));
        for numbers in [&one["total"], &one["samples"][0]] {
            assert_eq!(numbers["live_bytes"], json!(200));
            for name in ["live_blocks", "live_blocks_error", "allocations", "allocations_error"] {
                assert_eq!(numbers[name], Json::Null, "{name}");
            }
        }
        let old = self::report(File::default().path("main > f", 100, 4, 1));
        let change = &parsed(&json_difference(&report, &old, ["n", "o"]))["changes"][0];
        assert_eq!((&change["live_bytes"], &change["live_blocks"]), (&json!(100), &Json::Null));
    }

    #[test]
    fn changes_are_by_functions() {
        let old = report(File::default().path("main > f", 100, 4, 1).path("main > g", 1, 1, 1));
        let new = report(File::default().path("main > f", 100, 4, 2).path("main > g", 1, 1, 1));
        let json = parsed(&json_difference(&new, &old, ["n", "o"]));
        let changes = json["changes"].as_array().expect("changes");
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0]["functions"], json!(["f", "main"]));
        assert_eq!(
            (&changes[0]["live_bytes"], &changes[0]["live_blocks"]),
            (&json!(100), &json!(1))
        );
        assert_eq!((&json["new"]["file"], &json["old"]["file"]), (&json!("n"), &json!("o")));
    }

    #[test]
    fn changes_of_allocations_are_null_unless_both_files_count_them() {
        let file = |g: i64| File::default().path("main > f", 100, 9, 2).path("main > g", 8, g, 1);
        let without = |file: File| {
            let mut profile = report(file).profile().clone();
            profile.has_allocs = false;
            Report::new(profile, &Search::default())
        };
        let of = |new: &Report, old: &Report| {
            let json = parsed(&json_difference(new, old, ["n", "o"]));
            json["changes"].as_array().expect("changes").clone()
        };
        let (with, more) = (report(file(9)), file(5).path("main > f", 100, 4, 1));
        let changes = of(&report(file(9).path("main > f", 100, 4, 1)), &report(file(5)));
        let numbers = |at: usize| (&changes[at]["allocations"], &changes[at]["live_blocks"]);
        assert_eq!(numbers(0), (&json!(4), &json!(1)));
        assert_eq!(numbers(1), (&json!(4), &json!(0)));
        let more = without(more);
        for (new, old, blocks) in [(&more, &with, 1), (&with, &more, -1)] {
            let changes = of(new, old);
            assert_eq!(changes.len(), 1, "{changes:?}");
            assert_eq!(changes[0]["live_blocks"], json!(blocks));
            for name in ["allocations", "allocated_bytes", "allocations_error"] {
                assert_eq!(changes[0][name], Json::Null, "{name}");
            }
        }
    }
}
