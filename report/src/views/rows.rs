//! Samples put together by what they have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use crate::block_type::of_functions;
use crate::profile::Sample;
use crate::report::{NO_STACK, Report};
use crate::symbols::{Frame, Symbols, printable};
use crate::views::tally::Tally;
use crate::views::texts::Texts;
use crate::views::value::Value;

/// What the samples of a row have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// The functions of the whole stack.
    Stack,
    /// The program's function that allocated, and the line.
    Site,
    /// A function anywhere in the stack.
    Function,
    /// The type of the blocks.
    Type,
    /// Their requested size.
    Size,
    /// The thread that allocated them.
    Thread,
    /// The arena that they belong to.
    Arena,
}

impl By {
    /// All of them, in the order in which they are shown.
    pub const ALL: [By; 7] =
        [By::Stack, By::Site, By::Function, By::Type, By::Size, By::Thread, By::Arena];

    /// Whether the profiler knows it of live blocks only.
    pub(crate) fn is_of_live_blocks(self) -> bool {
        matches!(self, By::Thread | By::Arena)
    }
}

/// Samples with something in common.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// What they have in common. A stack has a line for each frame, innermost first.
    pub(crate) lines: Vec<Rc<str>>,
    /// Their sum.
    pub(crate) tally: Tally,
    /// For a function: the sum with all that it called.
    pub(crate) with_callees: Option<Tally>,
}

/// Whether the text of a frame has its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// As `f (a.c:7)`.
    Shown,
    /// Not, so that two builds of a program can be compared.
    Hidden,
}

/// Returns the rows of a view, in no particular order.
pub(crate) fn rows(report: &Report, by: By, lines: Lines) -> Vec<Row> {
    match by {
        By::Function => by_function(report),
        _ => by_key(report, by, lines),
    }
}

/// Sorts rows by decreasing values, without regard to signs.
pub(crate) fn sort(rows: &mut [Row], value: Value) {
    let of = |tally: &Tally| tally.value(value).unsigned_abs();
    rows.sort_by_key(|row| Reverse((of(&row.tally), row.with_callees.as_ref().map_or(0, of))));
}

fn by_key(report: &Report, by: By, lines: Lines) -> Vec<Row> {
    let mut keys = Keys::new(report, by, lines);
    let mut tallies: HashMap<Vec<u32>, Tally> = HashMap::new();
    for sample in &report.profile().samples {
        if let Some(key) = keys.key(sample) {
            tallies.entry(key).or_default().add(&Tally::of(sample, report.profile()));
        }
    }
    let texts = keys.texts.ordered();
    let mut all: Vec<(Vec<u32>, Tally)> = tallies.into_iter().collect();
    all.iter_mut().for_each(|(key, _)| texts.place(key));
    all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let row = |(key, tally): (Vec<u32>, Tally)| Row {
        lines: texts.texts(&key),
        tally,
        with_callees: None,
    };
    all.into_iter().map(row).collect()
}

fn by_function(report: &Report) -> Vec<Row> {
    let mut tallies: BTreeMap<&str, (Tally, Tally)> = BTreeMap::new();
    for sample in &report.profile().samples {
        let tally = Tally::of(sample, report.profile());
        let mut seen = HashSet::new();
        for (place, frame) in report.stack(sample.stack).enumerate() {
            let entry = tallies.entry(report.function(frame.function)).or_default();
            if place == 0 {
                entry.0.add(&tally);
            }
            // A function that calls itself has the blocks once.
            if seen.insert(frame.function) {
                entry.1.add(&tally);
            }
        }
    }
    let row = |(name, (tally, with)): (&str, (Tally, Tally))| Row {
        lines: vec![name.into()],
        tally,
        with_callees: Some(with),
    };
    tallies.into_iter().map(row).collect()
}

/// Makes the text of what samples have in common.
struct Keys<'a> {
    report: &'a Report,
    by: By,
    lines: Lines,
    types: Types,
    texts: Texts,
    /// The numbers of the texts of frames, by the numbers of these.
    of_frames: HashMap<u32, u32>,
}

impl Keys<'_> {
    fn new(report: &Report, by: By, lines: Lines) -> Keys<'_> {
        let types = if by == By::Type { Types::new(report) } else { Types::default() };
        let (texts, of_frames) = (Texts::default(), HashMap::new());
        Keys { report, by, lines, types, texts, of_frames }
    }

    fn frame(&self, frame: &Frame) -> String {
        match self.lines {
            Lines::Shown => place(self.report.symbols(), frame),
            Lines::Hidden => self.report.function(frame.function).to_owned(),
        }
    }

    /// The numbers of the texts of a stack.
    fn stack(&mut self, stack: usize) -> Vec<u32> {
        let report = self.report;
        let mut all = Vec::new();
        for frame in report.numbered_calls(stack) {
            let known = self.of_frames.get(&frame).copied();
            all.push(known.unwrap_or_else(|| {
                let text = self.frame(report.symbols().numbered(frame));
                let number = self.texts.number(text);
                self.of_frames.insert(frame, number);
                number
            }));
        }
        if all.is_empty() {
            all.push(self.texts.number(NO_STACK.to_owned()));
        }
        all
    }

    /// The numbers of the texts that a sample has in common with others. `None` if it has no part
    /// in the view.
    fn key(&mut self, sample: &Sample) -> Option<Vec<u32>> {
        let report = self.report;
        let one = match self.by {
            By::Stack => return Some(self.stack(sample.stack)),
            By::Site => report.site(sample.stack).map_or(NO_STACK.to_owned(), |it| self.frame(it)),
            By::Function => return None,
            By::Type => self.types.of(report, sample),
            By::Size => match sample.size {
                Some(1) => "1 byte".to_owned(),
                Some(size) => format!("{size} bytes"),
                None if report.profile().lacks_blocks => return None,
                None => format!("{} bytes on average", sample.mean_size()),
            },
            By::Thread => thread(sample)?,
            By::Arena => format!("arena {}", sample.arena?),
        };
        Some(vec![self.texts.number(one)])
    }
}

/// The function of a frame with its line, if that is known.
pub(crate) fn place(symbols: &Symbols, frame: &Frame) -> String {
    let function = &symbols.functions()[frame.function];
    let file = frame.file.rsplit('/').next().unwrap_or("");
    match (file, frame.line) {
        ("", _) => function.clone(),
        (file, 0) => format!("{function} ({file})"),
        (file, line) => format!("{function} ({file}:{line})"),
    }
}

/// The thread of a sample.
fn thread(sample: &Sample) -> Option<String> {
    let number = sample.thread?;
    match &sample.thread_name {
        Some(name) => Some(format!("thread {number} ({})", printable(name.clone()))),
        None => Some(format!("thread {number}")),
    }
}

/// The types of blocks.
#[derive(Default)]
pub(crate) struct Types {
    /// Those that stacks name.
    by_stack: Vec<Option<String>>,
    /// Those of the program, by their size.
    by_size: BTreeMap<u64, Vec<String>>,
}

impl Types {
    /// Finds the types of all stacks.
    pub(crate) fn new(report: &Report) -> Types {
        let stacks = 0..report.profile().stacks.len();
        let of = |stack| of_functions(report.functions_of(stack));
        let mut by_size: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (size, name) in report.symbols().types() {
            by_size.entry(size).or_default().push(name);
        }
        Types { by_stack: stacks.map(of).collect(), by_size }
    }

    /// The type of the blocks of a sample: the one that the stack names, or the structures of
    /// exactly the requested size.
    pub(crate) fn of(&self, report: &Report, sample: &Sample) -> String {
        if let Some(name) = self.by_stack.get(sample.stack).and_then(Option::as_ref) {
            return name.clone();
        }
        let is_own = is_of_program(report, sample);
        let names = sample.size.filter(|_| is_own).and_then(|size| self.by_size.get(&size));
        match names.map(Vec::as_slice) {
            None | Some([]) => "(not known)".to_owned(),
            Some([name]) => name.clone(),
            Some([first, second]) => format!("{first} or {second}"),
            Some([first, rest @ ..]) => format!("{first} or {} others", rest.len()),
        }
    }
}

/// Whether the program's own code allocated the blocks. The structures of the program say nothing
/// about those of a library.
fn is_of_program(report: &Report, sample: &Sample) -> bool {
    let stack = &report.profile().stacks[sample.stack];
    let innermost = stack.first().map(|location| &report.profile().locations[*location]);
    let mapping = innermost.and_then(|location| location.mapping);
    mapping.is_none_or(|mapping| report.symbols().is_program(mapping))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::testing::File;
    use crate::symbols::Search;

    fn report() -> Report {
        let file = File::default()
            .path("main > f > g", 100, 4, 2)
            .path("main > f > g", 8, 10, 10)
            .path("main > g > f > g", 8, 1, 1)
            .stack(&[0x99], &[0, 0, 1, 50], &[("bytes", 1), ("thread", 3), ("arena", 2)])
            .text_label("thread_name", "worker")
            .stack(&[0x99], &[0, 0, 2, 70], &[("thread", 4), ("arena", 2)]);
        Report::new(file.read(), &Search::default())
    }

    fn live(by: By) -> Vec<(String, i64)> {
        let mut rows = rows(&report(), by, Lines::Shown);
        sort(&mut rows, Value::LiveBytes);
        rows.iter().map(|row| (row.lines.join(" < "), row.tally.counts.live_bytes)).collect()
    }

    fn owned<const N: usize>(rows: [(&str, i64); N]) -> Vec<(String, i64)> {
        rows.map(|(name, bytes)| (name.to_owned(), bytes)).to_vec()
    }

    #[test]
    fn samples_of_equal_names_are_added() {
        let stack = "g (g.c:3) < f (f.c:2) < main (main.c:1)";
        let other = "g (g.c:3) < f (f.c:2) < g (g.c:3) < main (main.c:1)";
        assert_eq!(live(By::Stack), owned([(stack, 280), ("0x99", 120), (other, 8)]));
        assert_eq!(live(By::Site), owned([("g (g.c:3)", 288), ("0x99", 120)]));
        let sizes =
            [("100 bytes", 200), ("8 bytes", 88), ("35 bytes on average", 70), ("1 byte", 50)];
        assert_eq!(live(By::Size), owned(sizes));
        assert_eq!(live(By::Thread), owned([("thread 4", 70), ("thread 3 (worker)", 50)]));
        assert_eq!(live(By::Arena), owned([("arena 2", 120)]));
        assert_eq!(live(By::Type), owned([("(not known)", 408)]));
    }

    #[test]
    fn a_function_has_each_block_once() {
        let mut rows = rows(&report(), By::Function, Lines::Hidden);
        sort(&mut rows, Value::LiveBlocks);
        let of = |row: &Row| {
            let with = row.with_callees.as_ref().map(|with| with.counts.live);
            (row.lines[0].to_string(), row.tally.counts.live, with)
        };
        let found: Vec<_> = rows.iter().map(of).collect();
        let expected = [("g", 13, 13), ("0x99", 3, 3), ("f", 0, 13), ("main", 0, 13)];
        assert_eq!(found, expected.map(|(name, own, with)| (name.to_owned(), own, Some(with))));
    }

    #[test]
    fn lines_are_left_out_for_comparisons() {
        let rows = rows(&report(), By::Site, Lines::Hidden);
        assert!(rows.iter().any(|row| *row.lines[0] == *"g"), "{rows:?}");
    }

    #[test]
    fn types_are_those_of_the_stack() {
        let file = File::default().path(
            "main > alloc::vec::Vec<x::Widget>::push > alloc::raw_vec::RawVec<x::Widget>::grow",
            64,
            1,
            1,
        );
        let report = Report::new(file.read(), &Search::default());
        assert_eq!(&*rows(&report, By::Type, Lines::Shown)[0].lines[0], "Vec<x::Widget>");
    }

    #[test]
    fn structures_of_the_requested_size_are_named() {
        let names = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let types = Types { by_stack: vec![None], by_size: BTreeMap::from([(100, names)]) };
            let report =
                Report::new(File::default().path("main", 100, 1, 1).read(), &Search::default());
            types.of(&report, &report.profile().samples[0])
        };
        assert_eq!(names(&["a"]), "a");
        assert_eq!(names(&["a", "b"]), "a or b");
        assert_eq!(names(&["a", "b", "c"]), "a or 2 others");
        assert_eq!(names(&[]), "(not known)");
    }
}
