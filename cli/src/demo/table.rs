//! The table: a row for each number, a column for each allocator, and a column with their ratio.

use super::format::Unit;
use super::sample::{Sample, Side, median};

const LABEL: usize = 22;
const COLUMN: usize = 13;
const RATIO: usize = 8;
const INDENT: &str = "  ";

const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const RESET: &str = "\x1b[0m";

/// The rounds on each side from which a ratio is coloured. Two equal sides fail to overlap by
/// chance in 2 of 6 orders of two rounds each, but only in 2 of 70 orders of four.
const ENOUGH: usize = 4;

/// Which way a number should go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
    Neither,
}

/// A row: its label, unit, better direction and number. Each group of rows begins with a rule.
struct Row {
    label: &'static str,
    unit: Unit,
    better: Better,
    number: fn(&Sample) -> Option<f64>,
}

const fn row(
    label: &'static str,
    unit: Unit,
    better: Better,
    number: fn(&Sample) -> Option<f64>,
) -> Row {
    Row { label, unit, better, number }
}

fn float(number: Option<u64>) -> Option<f64> {
    number.map(|number| number as f64)
}

const TRAFFIC: &[Row] = &[
    row("requests per second", Unit::Count, Better::Higher, |s| Some(s.rate())),
    row("CPU time per request", Unit::Microseconds, Better::Lower, |s| s.processor_per_request()),
    row("GETs that found", Unit::Part, Better::Neither, |s| Some(s.load.hit_ratio)),
];
const LATENCY: &[Row] = &[
    row("latency p50", Unit::Microseconds, Better::Lower, |s| Some(s.load.p50 as f64)),
    row("latency p99", Unit::Microseconds, Better::Lower, |s| Some(s.load.p99 as f64)),
    row("latency p99.9", Unit::Microseconds, Better::Lower, |s| Some(s.load.p999 as f64)),
    row("latency max", Unit::Microseconds, Better::Lower, |s| Some(s.load.max as f64)),
];
const PROCESS: &[Row] = &[
    row("RSS peak", Unit::Bytes, Better::Lower, |s| float(s.peak())),
    row("RSS at end of load", Unit::Bytes, Better::Lower, |s| float(s.stats.process.rss)),
    row("RSS after idle", Unit::Bytes, Better::Lower, |s| float(s.idle.map(|r| r.now))),
];
const ALLOCATOR: &[Row] = &[
    row("allocated", Unit::Bytes, Better::Neither, |s| float(s.stats.memory.allocated)),
    row("active", Unit::Bytes, Better::Neither, |s| float(s.stats.memory.active)),
    row("resident", Unit::Bytes, Better::Neither, |s| float(s.stats.memory.resident)),
    row("arenas", Unit::Count, Better::Neither, |s| float(s.stats.memory.arenas)),
    row("thread caches", Unit::Count, Better::Neither, |s| float(s.stats.memory.thread_caches)),
    row("remote frees", Unit::Count, Better::Neither, |s| float(s.stats.memory.remote_frees)),
];
const GROUPS: &[&[Row]] = &[TRAFFIC, LATENCY, PROCESS, ALLOCATOR];

/// Everything that the table shows.
pub(crate) struct Table<'a> {
    /// The lines above the table.
    pub(crate) lines: &'a [String],
    /// All rounds of both sides.
    pub(crate) samples: &'a [(Side, Sample)],
    /// Whether to use the terminal's colours.
    pub(crate) colour: bool,
}

impl Table<'_> {
    /// Returns the text, ready to print.
    pub(crate) fn render(&self) -> String {
        let mut text = String::from("\n");
        for line in self.lines {
            text += &format!("{INDENT}{line}\n");
        }
        let header = format!(
            "{:LABEL$}{:>COLUMN$}{:>COLUMN$}{:>RATIO$}",
            "",
            Side::Lumalloc.name(),
            Side::System.name(),
            "ratio"
        );
        text += &format!("\n{INDENT}{}\n", self.paint(BOLD, &header));
        for group in GROUPS {
            let rule = "─".repeat(LABEL + 2 * COLUMN + RATIO);
            text += &format!("{INDENT}{}\n", self.paint(DIM, &rule));
            for row in *group {
                text += &self.row(row);
            }
        }
        text + &format!("\n{INDENT}{}\n\n", self.paint(DIM, &self.notes()))
    }

    /// Returns how to read the table, and how far to trust it.
    fn notes(&self) -> String {
        let mut notes = String::from(
            "ratio = lumalloc / system: above 1 is better for requests, below 1 for\n  \
             CPU time, latency and RSS; – is what the system does not tell",
        );
        let spreads = [Side::Lumalloc, Side::System].map(|side| spread(&self.rates(side)));
        if let Some(spread) = spreads.into_iter().flatten().reduce(f64::max) {
            notes += &format!(
                "\n  rounds on one allocator differ by up to {:.0} % in requests per second:\n  \
                 ratios closer to 1 than that may be the machine's noise",
                spread * 100.0
            );
        }
        notes
    }

    fn rates(&self, side: Side) -> Vec<f64> {
        self.numbers(&TRAFFIC[0], side)
    }

    fn row(&self, row: &Row) -> String {
        let [all_ours, all_theirs] =
            [Side::Lumalloc, Side::System].map(|side| self.numbers(row, side));
        let [ours, theirs] = [&all_ours, &all_theirs].map(|all| median(all.clone()));
        let show = |number: Option<f64>| number.map_or("–".into(), |n| row.unit.show(n));
        let ratio = match (ours, theirs) {
            (Some(ours), Some(theirs)) if theirs > 0.0 => {
                let text = format!("{:>RATIO$.2}", ours / theirs);
                self.paint(verdict(row.better, &all_ours, &all_theirs), &text)
            }
            _ => format!("{:>RATIO$}", "–"),
        };
        let label = row.label;
        let (ours, theirs) = (show(ours), show(theirs));
        format!("{INDENT}{label:LABEL$}{ours:>COLUMN$}{theirs:>COLUMN$}{ratio}\n")
    }

    /// Returns the number of a row in each round of a side.
    fn numbers(&self, row: &Row, side: Side) -> Vec<f64> {
        let samples = self.samples.iter().filter(|(of, _)| *of == side);
        samples.filter_map(|(_, sample)| (row.number)(sample)).collect()
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour && !colour.is_empty() {
            format!("{colour}{text}{RESET}")
        } else {
            text.to_owned()
        }
    }
}

/// Returns the least and the largest of two numbers or more. One round says nothing about chance.
fn range(numbers: &[f64]) -> Option<(f64, f64)> {
    let least = numbers.iter().copied().reduce(f64::min)?;
    let largest = numbers.iter().copied().reduce(f64::max)?;
    (numbers.len() > 1).then_some((least, largest))
}

/// Returns how far the rounds lie apart, as a part of their median.
fn spread(numbers: &[f64]) -> Option<f64> {
    let (least, largest) = range(numbers)?;
    Some((largest - least) / median(numbers.to_vec())?)
}

/// Returns green for better and red for worse. Returns no colour unless there are enough rounds and
/// every round of one side beats every round of the other. On a busy machine runs of the same
/// allocator differ widely.
fn verdict(better: Better, ours: &[f64], theirs: &[f64]) -> &'static str {
    if ours.len().min(theirs.len()) < ENOUGH {
        return "";
    }
    let (Some(ours), Some(theirs)) = (range(ours), range(theirs)) else { return "" };
    let (above, below) = (ours.0 > theirs.1, ours.1 < theirs.0);
    match better {
        Better::Higher if above => GREEN,
        Better::Higher if below => RED,
        Better::Lower if below => GREEN,
        Better::Lower if above => RED,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::sample::examples::sample;
    use crate::service::stats::MemoryStats;

    fn render(colour: bool) -> String {
        let ours = MemoryStats {
            allocated: Some(30 << 20),
            active: Some(32 << 20),
            resident: Some(40 << 20),
            arenas: Some(1),
            thread_caches: Some(3),
            remote_frees: Some(12_345),
            ..MemoryStats::default()
        };
        let theirs =
            MemoryStats { allocated: Some(30 << 20), active: None, ..MemoryStats::default() };
        let samples = [
            (Side::Lumalloc, sample(80_000, 50, ours.clone())),
            (Side::Lumalloc, sample(100_000, 60, ours.clone())),
            (Side::Lumalloc, sample(80_000, 50, ours.clone())),
            (Side::Lumalloc, sample(100_000, 60, ours)),
            (Side::System, sample(60_000, 105, theirs.clone())),
            (Side::System, sample(68_000, 115, theirs.clone())),
            (Side::System, sample(60_000, 105, theirs.clone())),
            (Side::System, sample(68_000, 115, theirs)),
        ];
        Table { lines: &["what it is".into()], samples: &samples, colour }.render()
    }

    #[test]
    fn rows_show_medians_and_ratios() {
        let text = render(false);
        let words = |label: &str| {
            let line = text.lines().find(|line| line.trim_start().starts_with(label)).unwrap();
            line.trim_start()[label.len()..].split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("requests per second"), "45,000 32,000 1.41");
        assert_eq!(words("CPU time per request"), "11.2 µs 15.7 µs 0.72");
        assert_eq!(words("latency p99.9"), "12.3 ms 12.3 ms 1.00");
        assert_eq!(words("RSS peak"), "65.0 MiB 120.0 MiB 0.54");
        assert_eq!(words("active"), "32.0 MiB – –");
        assert_eq!(words("remote frees"), "12,345 – –");
    }

    #[test]
    fn columns_line_up() {
        let text = render(false);
        let lines: Vec<_> = text.lines().skip(3).take_while(|line| !line.is_empty()).collect();
        assert_eq!(lines.len(), 1 + 4 + 16);
        let width = INDENT.len() + LABEL + 2 * COLUMN + RATIO;
        assert!(lines.iter().all(|line| line.chars().count() == width), "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
    }

    #[test]
    fn colours_say_better_and_worse_and_add_nothing_else() {
        let coloured = render(true);
        assert!(coloured.contains("\x1b[32m    1.41\x1b[0m"), "{coloured:?}");
        let mut plain = coloured;
        for code in [BOLD, DIM, GREEN, RED, RESET] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, render(false));
    }

    #[test]
    fn verdicts_need_rounds_that_do_not_overlap() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        assert_eq!(verdict(Better::Higher, &high, &low), GREEN);
        assert_eq!(verdict(Better::Higher, &low, &high), RED);
        assert_eq!(verdict(Better::Lower, &low, &high), GREEN);
        assert_eq!(verdict(Better::Lower, &high, &low), RED);
        assert_eq!(verdict(Better::Higher, &[3.0, 9.0, 9.0, 9.0], &low), "");
        assert_eq!(verdict(Better::Higher, &high[..3], &low), "");
        assert_eq!(verdict(Better::Neither, &high, &low), "");
    }

    #[test]
    fn the_notes_tell_the_spread() {
        let how = "  ratio = lumalloc / system: above 1 is better for requests, below 1 for
  CPU time, latency and RSS; – is what the system does not tell";
        let far = "
  rounds on one allocator differ by up to 22 % in requests per second:
  ratios closer to 1 than that may be the machine's noise";
        let text = render(false);
        assert!(text.ends_with(&format!("\n\n{how}{far}\n\n")), "{text}");
        let one = [(Side::Lumalloc, sample(1, 1, MemoryStats::default()))];
        let text = Table { lines: &[], samples: &one, colour: false }.render();
        assert!(text.ends_with(&format!("\n\n{how}\n\n")), "one round has no spread: {text}");
        assert_eq!(spread(&[7.0]), None);
    }
}
