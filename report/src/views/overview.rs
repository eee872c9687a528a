//! The text of `lumalloc heap`: the totals, and a table for each view.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::profile::{Profile, Sample};
use crate::report::Report;
use crate::views::format::{Bytes, count_change, percent};
use crate::views::rows::{By, Lines, Row, rows, sort};
use crate::views::table::Table;
use crate::views::tally::{Tally, known};
use crate::views::totals::text as totals_text;
use crate::views::value::Value;

/// A stack has at most so many lines.
const FRAMES: usize = 12;
/// And a line so many characters.
const NAME: usize = 120;

/// What is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The views.
    pub by: Vec<By>,
    /// What rows are sorted by.
    pub value: Value,
    /// The most rows of a view.
    pub top: usize,
    /// How bytes are written.
    pub bytes: Bytes,
}

impl Default for Options {
    fn default() -> Options {
        let (value, bytes) = (Value::default(), Bytes::default());
        Options { by: By::ALL.to_vec(), value, top: 10, bytes }
    }
}

/// Returns the totals and the views of a profile.
pub fn overview(report: &Report, title: &str, options: &Options) -> String {
    let mut text = totals_text(report, title, options.bytes);
    for by in &options.by {
        let mut rows = rows(report, *by, Lines::Shown);
        sort(&mut rows, options.value);
        let columns = Columns::new(&[report], *by, options);
        text += &columns.view(rows, Tally::whole(report.profile()), None);
    }
    text
}

/// Returns what changed between two profiles, by the names of functions.
pub fn difference(new: &Report, old: &Report, titles: [&str; 2], options: &Options) -> String {
    let mut text = totals_text(new, titles[0], options.bytes);
    text += &totals_text(old, &format!("compared with {}", titles[1]), options.bytes);
    for by in &options.by {
        if let Some(why) = cannot_be_compared(*by, [new, old]) {
            let value = options.value.name();
            text += &format!("\n{} by change of {value}: {why}\n", name(*by));
            continue;
        }
        let mut joined: BTreeMap<Vec<Rc<str>>, [Option<Row>; 2]> = BTreeMap::new();
        for (place, report) in [new, old].into_iter().enumerate() {
            for row in rows(report, *by, Lines::Hidden) {
                let lines = row.lines.clone();
                joined.entry(lines).or_default()[place] = Some(row);
            }
        }
        let mut before = BTreeMap::new();
        let mut rows = Vec::new();
        for (lines, [now, past]) in joined {
            let past = past.unwrap_or_else(|| empty(&lines, *by));
            let mut row = now.unwrap_or_else(|| empty(&lines, *by));
            row.tally.subtract(&past.tally);
            if let (Some(with), Some(past)) = (&mut row.with_callees, &past.with_callees) {
                with.subtract(past);
            }
            before.insert(lines, past.tally);
            rows.push(row);
        }
        sort(&mut rows, options.value);
        let mut total_change = Tally::whole(new.profile());
        total_change.subtract(&Tally::whole(old.profile()));
        let columns = Columns::new(&[new, old], *by, options);
        text += &columns.view(rows, total_change, Some(&before));
    }
    text
}

/// Says why a view has no differences, if it is so. What only one of the profiles tells would all
/// be a change, and rows cannot be joined by mean sizes.
fn cannot_be_compared(by: By, reports: [&Report; 2]) -> Option<&'static str> {
    let (is_told, why): (fn(&Sample) -> bool, _) = match by {
        By::Type => (|it| it.size.is_some(), "only one of the files has sizes, which tell types"),
        By::Size => (|it| it.size.is_some(), "only one of the files has sizes"),
        By::Thread => (|it| it.thread.is_some(), "only one of the files has threads"),
        By::Arena => (|it| it.arena.is_some(), "only one of the files has arenas"),
        By::Stack | By::Site | By::Function => return None,
    };
    let [new, old] = reports.map(|report| &report.profile().samples);
    let [is_new, is_old] = [new, old].map(|samples| samples.iter().any(is_told));
    let have_samples = [new, old].map(|samples| !samples.is_empty());
    match (by, is_new, is_old) {
        (By::Size, false, false) if have_samples != [false; 2] => Some("the files have no sizes"),
        _ => (is_new != is_old && have_samples == [true; 2]).then_some(why),
    }
}

fn empty(lines: &[Rc<str>], by: By) -> Row {
    let with_callees = (by == By::Function).then(Tally::default);
    Row { lines: lines.to_vec(), tally: Tally::default(), with_callees }
}

/// The tallies of the older profile, by the lines of their rows.
type Before = BTreeMap<Vec<Rc<str>>, Tally>;

/// The columns of one view.
struct Columns<'a> {
    by: By,
    options: &'a Options,
    is_sampled: bool,
    /// Whether it is known how many samples there are.
    has_samples: bool,
    /// The other numbers, after the one that rows are sorted by.
    others: Vec<Value>,
}

impl<'a> Columns<'a> {
    fn new(reports: &[&Report], by: By, options: &'a Options) -> Columns<'a> {
        let all_have = |is: fn(&Profile) -> bool| reports.iter().all(|it| is(it.profile()));
        let is_shown = |value: &Value| {
            *value != options.value
                && (value.is_live() || !by.is_of_live_blocks())
                && reports.iter().all(|it| value.is_in(it.profile()))
        };
        let all = [Value::LiveBytes, Value::LiveBlocks, Value::AllocatedBytes, Value::Allocations];
        let others = all.into_iter().filter(is_shown).collect();
        let is_sampled = !all_have(|it| !it.is_sampled());
        let has_samples = is_sampled && all_have(|it| !it.lacks_blocks && !it.lacks_sizes());
        Columns { by, options, is_sampled, has_samples, others }
    }

    /// The title and the table.
    fn view(&self, rows: Vec<Row>, total: Tally, before: Option<&Before>) -> String {
        let value = self.options.value;
        let has_value = |row: &Row| {
            let with = row.with_callees.as_ref().map_or(0, |with| with.value(value));
            row.tally.value(value) != 0 || with != 0
        };
        let is_known = !rows.is_empty();
        let rows: Vec<Row> = rows.into_iter().filter(has_value).collect();
        let changes = if before.is_some() { "change of " } else { "" };
        let title = format!("\n{} by {changes}{}", name(self.by), value.name());
        if rows.is_empty() {
            return format!("{title}: {}\n", nothing(self.by, value, before.is_some(), is_known));
        }
        let mut table = Table::new(self.header(before.is_some()));
        for row in rows.iter().take(self.options.top) {
            let mut cells = vec![self.text(&row.tally, value, before.is_some())];
            if self.is_sampled {
                let error = known(row.tally.error(value));
                cells.push(error.map_or("?".to_owned(), |error| self.number(error, value)));
            }
            let past = |before: &Before| before.get(&row.lines).map_or(0, |past| past.value(value));
            match before.map(past) {
                None => cells.push(percent(row.tally.value(value), total.value(value))),
                Some(past) => {
                    cells.push(self.number(past + row.tally.value(value), value));
                    cells.push(self.number(past, value));
                }
            }
            let with = row.with_callees.iter();
            cells.extend(with.map(|with| self.text(with, value, before.is_some())));
            let others = self.others.iter();
            cells.extend(others.map(|other| self.text(&row.tally, *other, before.is_some())));
            if self.has_samples {
                cells.push(row.tally.samples(value).to_string());
            }
            table.row(cells, frames(&row.lines));
        }
        let rest = rows.len().saturating_sub(self.options.top);
        let more = if rest == 0 { String::new() } else { format!("  and {rest} more\n") };
        format!("{title}\n{}{more}", table.text())
    }

    fn header(&self, is_change: bool) -> Vec<String> {
        let mut header = vec![self.options.value.name().to_owned()];
        if self.is_sampled {
            header.push("±".to_owned());
        }
        if is_change {
            header.extend(["now".to_owned(), "before".to_owned()]);
        } else {
            header.push("%".to_owned());
        }
        if self.by == By::Function {
            header.push("with callees".to_owned());
        }
        header.extend(self.others.iter().map(|other| other.name().to_owned()));
        if self.has_samples {
            header.push("samples".to_owned());
        }
        header
    }

    fn number(&self, number: i64, value: Value) -> String {
        if value.is_bytes() { self.options.bytes.text(number) } else { number.to_string() }
    }

    fn text(&self, tally: &Tally, value: Value, is_change: bool) -> String {
        let number = tally.value(value);
        match (is_change, value.is_bytes()) {
            (false, _) => self.number(number, value),
            (true, true) => self.options.bytes.change(number),
            (true, false) => count_change(number),
        }
    }
}

/// A name, of which the end is left out if it is very long: of types with many arguments.
fn cut(line: &str) -> String {
    match line.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// The lines of a stack, at most [`FRAMES`].
pub(crate) fn frames(lines: &[impl AsRef<str>]) -> Vec<String> {
    let first = lines.iter().take(FRAMES);
    let mut out: Vec<String> = first.map(|line| cut(line.as_ref())).collect();
    match lines.len().saturating_sub(FRAMES) {
        0 => {}
        1 => out.push("and 1 more caller".to_owned()),
        rest => out.push(format!("and {rest} more callers")),
    }
    out
}

fn name(by: By) -> &'static str {
    match by {
        By::Stack => "Stacks",
        By::Site => "Sites",
        By::Function => "Functions",
        By::Type => "Types",
        By::Size => "Sizes",
        By::Thread => "Threads",
        By::Arena => "Arenas",
    }
}

/// Why a view has no rows. `is_known`: it has some, whose numbers are 0.
fn nothing(by: By, value: Value, is_change: bool, is_known: bool) -> &'static str {
    match (by, is_change) {
        _ if by.is_of_live_blocks() && !value.is_live() => "known of live blocks only",
        (_, true) => "no change",
        _ if is_known => "none",
        (By::Size, _) => "the file has no sizes",
        (By::Thread, _) => "the file has no threads",
        (By::Arena, _) => "the file has no arenas",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;
    use crate::testing::assert_golden;

    /// What the file does not have is not shown as 0.
    #[test]
    fn a_file_of_bytes_alone_has_no_columns_of_blocks() {
        let mut profile = File::default().stack(&[0x99], &[0, 0, 0, 4096], &[]).read();
        profile.samples[0].counts.allocs = 0;
        (profile.lacks_blocks, profile.has_allocs) = (true, false);
        let shown = |profile: &Profile| {
            let report = Report::new(profile.clone(), &Search::default());
            let options = Options { by: vec![By::Site, By::Size], ..Options::default() };
            overview(&report, "x", &options)
        };
        let views = "
Sites by live bytes
  live bytes       %
    4.00 KiB  100.0%  0x99

Sizes by live bytes: the file has no sizes
";
        assert!(shown(&profile).ends_with(views), "{}", shown(&profile));
        profile.period = 1024;
        let header = "\n  live bytes         ±       %\n    4.00 KiB  2.00 KiB  100.0%  0x99\n";
        assert!(shown(&profile).contains(header), "{}", shown(&profile));
    }

    fn file(live: i64) -> File {
        File::default()
            .comment("lumalloc=0.1.0")
            .comment("pid=7")
            .comment("stats.allocated=5000000")
            .comment("stats.active=6000000")
            .comment("stats.resident=9000000")
            .comment("prof.samples.taken=40")
            .comment("prof.samples.missed=0")
            .comment("prof.since_start=1")
            .path("main > run > alloc::raw_vec::RawVec<x::Widget>::grow_one", 4096, 1500, live)
            .path("main > run > read", 100, 9000, 20)
            .path("main > quit", 8, 1, 0)
            .stack(&[0x99], &[0, 0, 3, 192], &[("bytes", 64), ("thread", 1), ("arena", 0)])
            .text_label("thread_name", "worker")
    }

    fn report(file: File) -> Report {
        Report::new(file.read(), &Search::default())
    }

    #[test]
    fn counted_profiles_have_all_views() {
        let text = overview(&report(file(1000)), "a.pb.gz", &Options::default());
        assert_golden("heap.txt", &text);
    }

    #[test]
    fn estimates_have_errors() {
        let mut sampled = file(1000);
        sampled.profile.period = 65536;
        let by = vec![By::Stack, By::Function, By::Thread];
        let options = Options { by, value: Value::Allocations, ..Options::default() };
        let text = overview(&report(sampled), "a.pb.gz", &options);
        assert_golden("heap-sampled.txt", &text);
    }

    #[test]
    fn rows_beyond_the_top_are_counted() {
        let by = vec![By::Size];
        let options = Options { by, top: 1, bytes: Bytes::AllDigits, ..Options::default() };
        let text = overview(&report(file(1000)), "a", &options);
        let (_, table) = text.split_once("\nSizes").expect("the table");
        assert!(
            table.contains(" 4096000 ") && table.ends_with("4096 bytes\n  and 2 more\n"),
            "{table}"
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        let ever = Options { value: Value::Allocations, ..Options::default() };
        let text = overview(&report(file(1000)), "a", &ever);
        let line = "\nArenas by allocations: known of live blocks only\n";
        assert!(text.contains(line), "{text}");
        let text = overview(&report(File::default()), "a", &Options::default());
        for line in [
            "\nStacks by live bytes: none\n",
            "\nThreads by live bytes: the file has no threads\n",
            "\nArenas by live bytes: the file has no arenas\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn sizes_and_threads_of_freed_blocks_are_not_missing() {
        let labels = [("bytes", 64), ("thread", 1), ("arena", 0)];
        let freed = File::default().stack(&[0x99], &[3, 192, 0, 0], &labels);
        let by = vec![By::Size, By::Thread, By::Arena];
        let options = Options { by, ..Options::default() };
        let text = overview(&report(freed), "a", &options);
        let views = "
Sizes by live bytes: none

Threads by live bytes: none

Arenas by live bytes: none
";
        assert!(text.ends_with(views), "{text}");
    }

    #[test]
    fn blocks_without_a_stack_have_a_row() {
        let text = "heap_v2/1\n@ 0x0\n t*: 3: 300 [0: 0]\nMAPPED_LIBRARIES:\n";
        let profile = crate::read::read(text.as_bytes()).expect("a profile");
        let options = Options { by: vec![By::Stack], ..Options::default() };
        let text = overview(&Report::new(profile, &Search::default()), "a", &options);
        assert!(text.ends_with("       300 B  100.0%            3  (no stack)\n"), "{text}");
    }

    #[test]
    fn changes_are_by_names() {
        let (new, old) = (report(file(1000)), report(file(400)));
        let text = difference(&new, &old, ["new", "old"], &Options::default());
        assert_golden("heap-diff.txt", &text);
        let text = difference(&new, &new, ["new", "new"], &Options::default());
        assert_eq!(text.matches(": no change\n").count(), 7, "{text}");
    }

    /// A file of heap_v2, which counts allocations or does not.
    fn heap_v2(period: u64, live: u64, allocations: u64) -> Report {
        let of = |blocks: u64| format!("{blocks}: {}", blocks * 100);
        heap_v2_of(period, &format!("{} [{}]", of(live), of(allocations)))
    }

    /// A file of heap_v2 with one stack of these numbers.
    fn heap_v2_of(period: u64, numbers: &str) -> Report {
        let line = format!("t*: {numbers}");
        let text = format!("heap_v2/{period}\n@ 0x99\n {line}\nMAPPED_LIBRARIES:\n");
        Report::new(crate::read::read(text.as_bytes()).expect("a profile"), &Search::default())
    }

    /// As a difference of heap_v2 and pprof.
    #[test]
    fn what_only_one_file_tells_is_no_change() {
        let file = |labels: &[(&str, i64)]| {
            report(File::default().stack(&[0x99], &[3, 192, 3, 192], labels))
        };
        let whole = file(&[("bytes", 64), ("thread", 1), ("arena", 2)]);
        let bare = file(&[]);
        let text = difference(&whole, &bare, ["new", "old"], &Options::default());
        for line in [
            "Types by change of live bytes: only one of the files has sizes, which tell types\n",
            "Sizes by change of live bytes: only one of the files has sizes\n",
            "Threads by change of live bytes: only one of the files has threads\n",
            "Arenas by change of live bytes: only one of the files has arenas\n",
            "Stacks by change of live bytes: no change\n",
        ] {
            assert!(text.contains(&format!("\n{line}")), "{line} in {text}");
        }
        let text = difference(&whole, &whole, ["new", "old"], &Options::default());
        assert!(!text.contains("only one of the files"), "{text}");
    }

    #[test]
    fn mean_sizes_are_shown_and_not_compared() {
        // One sample of 640 KiB, which stands for 1.4 blocks.
        let [old, new] =
            ["1: 655360 [0: 0]", "2: 1310720 [0: 0]"].map(|numbers| heap_v2_of(1 << 19, numbers));
        let options = Options { by: vec![By::Size], ..Options::default() };
        for report in [&old, &new] {
            let text = overview(report, "a", &options);
            assert!(text.ends_with("  655360 bytes on average\n"), "{text}");
        }
        let text = difference(&new, &old, ["new", "old"], &options);
        let line = "\nSizes by change of live bytes: the files have no sizes\n";
        assert!(text.ends_with(line), "{text}");
        let none = report(File::default());
        let text = difference(&none, &none, ["new", "old"], &options);
        assert!(text.ends_with("\nSizes by change of live bytes: no change\n"), "{text}");
    }

    #[test]
    fn changes_of_allocations_are_shown_if_both_files_count_them() {
        let (with, without) = (heap_v2(1, 5, 90), heap_v2(1, 3, 0));
        let table = |new: &Report, old: &Report, by: By| {
            let options = Options { by: vec![by], ..Options::default() };
            let text = difference(new, old, ["new", "old"], &options);
            let (_, table) = text.split_once("\nS").expect("a table");
            table.lines().nth(1).expect("the heading").to_owned()
        };
        for by in [By::Stack, By::Site] {
            assert!(table(&with, &with_more(), by).ends_with("allocations"));
            for (new, old) in [(&with, &without), (&without, &with), (&without, &heap_v2(1, 9, 0))]
            {
                let heading = table(new, old, by);
                assert!(heading.ends_with("live blocks"), "{heading}");
            }
        }
        // One of them has errors.
        for (new, old) in [(&with, &heap_v2(1000, 3, 4)), (&heap_v2(1000, 3, 4), &with)] {
            let heading = table(new, old, By::Stack);
            assert!(heading.contains('±') && !heading.contains("samples"), "{heading}");
        }
    }

    fn with_more() -> Report {
        heap_v2(1, 6, 95)
    }

    #[test]
    fn names_of_threads_and_notes_do_not_control_the_terminal() {
        let file = File::default()
            .comment("lumalloc=0.1\x1b[2J")
            .comment("pid=7\x1b")
            .stack(&[0x99], &[0, 0, 3, 192], &[("bytes", 64), ("thread", 1)])
            .text_label("thread_name", "a\x1b]0;b\n\u{202e}");
        let text = overview(&report(file), "a", &Options::default());
        for shown in [
            "lumalloc 0.1\u{fffd}[2J, process 7\u{fffd}:",
            "thread 1 (a\u{fffd}]0;b\u{fffd}\u{fffd})\n",
        ] {
            assert!(text.contains(shown), "{text}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(cut(&"ä".repeat(120)), "ä".repeat(120));
        assert_eq!(cut(&"ä".repeat(121)), format!("{}…", "ä".repeat(120)));
    }

    #[test]
    fn deep_stacks_are_cut() {
        let lines = |count: usize| vec![String::new(); count];
        assert_eq!(frames(&lines(12)).len(), 12);
        assert_eq!(frames(&lines(13))[12], "and 1 more caller");
        assert_eq!(frames(&lines(15))[12], "and 3 more callers");
    }
}
