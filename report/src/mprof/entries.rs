//! The fourth table: the call graph, an entry for each function and each cycle.

use std::fmt::Write as _;
use std::io::{Result, Write};

use super::blocks::{Block, Sized};
use super::graph::{Entry, Graph, Relative, Vertex};
use super::percent::{BySize, breakdown, in_parentheses, right, rounded};
use crate::symbols::Exact;

const HEADER: &str = "
         self               |      /ances |      /ances |  called/total       ancestors
index  + desc     self (%)  |   size-func |   frac      |  called/recur   name [index]
                            |      \\desc  |      \\desc  |  called/total       descendents
";
const RULER: &str = "-------------------------------s--m--l--x----s--m--l--x----------";
/// The fraction of a function itself.
const NO_FRACTION: &str = " -----------";

/// Writes the table, an entry at a time: it may be large.
pub(super) fn write(
    exact: &Exact,
    blocks: &[Block],
    total: &Sized,
    out: &mut dyn Write,
) -> Result<()> {
    let graph = Graph::new(blocks);
    let printer = Printer { exact, graph: &graph, all: total.cell.bytes };
    write!(out, "\x0c\n\n{}\n{RULER}\n\n", HEADER.trim_start_matches('\n'))?;
    for vertex in graph.vertices() {
        let entry = graph.entry(*vertex);
        if let Vertex::Cycle(cycle) = vertex {
            out.write_all(printer.cycle(&entry, cycle).as_bytes())?;
        }
        out.write_all(printer.entry(&entry).as_bytes())?;
    }
    Ok(())
}

struct Printer<'a> {
    exact: &'a Exact,
    graph: &'a Graph,
    /// The bytes of the whole program.
    all: i64,
}

/// The fields of a row. Those that are not set are blank.
#[derive(Default)]
struct Row {
    index: String,
    share: String,
    bytes: String,
    percent: String,
    size: String,
    fraction: String,
    calls: String,
    of: String,
    name: String,
}

impl Row {
    /// Adds the line to a text.
    fn add_to(&self, text: &mut String) {
        let begin = text.len();
        let bytes = match self.share.is_empty() {
            true => &self.bytes,
            false => &right(&self.bytes, 9),
        };
        // The name does not touch a wide number.
        let gap = if self.of.len() > 8 { " " } else { "" };
        // A text takes all that is written.
        let _ = write!(
            text,
            "{:<5}{:>7}{bytes:>9} {:<5} |{:<12} |{:<12} |{:>8}{:<9}{gap}{}",
            self.index,
            self.share,
            self.percent,
            self.size,
            self.fraction,
            self.calls,
            self.of,
            self.name
        );
        text.truncate(begin + text[begin..].trim_end().len());
        text.push('\n');
    }
}

impl Printer<'_> {
    /// The functions of a cycle.
    fn cycle(&self, entry: &Entry, cycle: &usize) -> String {
        let mut whole = self.itself(entry);
        whole.name += " as a whole";
        let mut text = String::new();
        whole.add_to(&mut text);
        for function in self.graph.members(*cycle) {
            let own = self.graph.own(*function);
            let (bytes, all) = (own.cell.bytes, entry.own.cell.bytes);
            let row = Row {
                bytes: bytes.to_string(),
                percent: if bytes == 0 { String::new() } else { in_parentheses(bytes, all) },
                size: breakdown(&own.bytes, bytes),
                fraction: breakdown(&own.bytes, all),
                name: self.function("    ", *function),
                ..Row::default()
            };
            row.add_to(&mut text);
        }
        text + &end()
    }

    fn entry(&self, entry: &Entry) -> String {
        let mut text = String::new();
        let (ancestors, descendants) = (&entry.ancestors, &entry.descendants);
        let (above, below) = (sum(ancestors).0, sum(descendants).0);
        text += &all_of(ancestors);
        ancestors.iter().for_each(|relative| self.relative(relative, above).add_to(&mut text));
        self.itself(entry).add_to(&mut text);
        descendants.iter().for_each(|relative| self.relative(relative, below).add_to(&mut text));
        text += &all_of(descendants);
        text + &end()
    }

    /// The row of a function or a cycle itself.
    fn itself(&self, entry: &Entry) -> Row {
        let (name, is_member) = match entry.vertex {
            Vertex::Function(function) => {
                (self.function("", function), self.graph.cycle_of(function).is_some())
            }
            Vertex::Cycle(cycle) => {
                (format!("<cycle {}> [{}]", cycle + 1, self.graph.index(entry.vertex)), false)
            }
        };
        let own = entry.own.cell.bytes;
        Row {
            index: format!("[{}]", self.graph.index(entry.vertex)),
            share: rounded(entry.bytes, self.all),
            bytes: own.to_string(),
            percent: if is_member { String::new() } else { in_parentheses(own, entry.bytes) },
            size: breakdown(&entry.own.bytes, own),
            fraction: NO_FRACTION.to_owned(),
            calls: entry.called.to_string(),
            of: match entry.recursive {
                0 => String::new(),
                calls => format!("+{calls}"),
            },
            name,
        }
    }

    /// The row of a caller or a callee; `all` are the bytes of all callers, or all callees.
    fn relative(&self, relative: &Relative, all: i64) -> Row {
        let name = self.function("    ", relative.function);
        let calls = relative.calls.to_string();
        let Some(sized) = relative.sized else {
            return Row { calls, name, ..Row::default() };
        };
        Row {
            bytes: sized.cell.bytes.to_string(),
            percent: in_parentheses(sized.cell.bytes, all),
            size: breakdown(&sized.bytes, sized.cell.bytes),
            fraction: breakdown(&sized.bytes, all),
            calls,
            of: format!("/{}", relative.total),
            name,
            ..Row::default()
        }
    }

    /// The name of a function with its index.
    fn function(&self, indent: &str, function: usize) -> String {
        let name = &self.exact.names()[function];
        let index = self.graph.index(Vertex::Function(function));
        match self.graph.cycle_of(function) {
            Some(cycle) => format!("{indent}{name} [{index}] in <cycle {}>", cycle + 1),
            None => format!("{indent}{name} [{index}]"),
        }
    }
}

/// The bytes of all relatives, and these by size.
fn sum(relatives: &[Relative]) -> (i64, BySize) {
    let mut all = Sized::default();
    relatives.iter().filter_map(|it| it.sized.as_ref()).for_each(|sized| all.add(sized));
    (all.cell.bytes, all.bytes)
}

/// The row of all relatives together, if there are several.
fn all_of(relatives: &[Relative]) -> String {
    let with_bytes = relatives.iter().filter(|relative| relative.sized.is_some());
    if with_bytes.count() < 2 {
        return String::new();
    }
    let (bytes, by_size) = sum(relatives);
    let size = breakdown(&by_size, bytes);
    let (share, bytes) = ("all".to_owned(), bytes.to_string());
    let mut text = String::new();
    Row { share, bytes, size, ..Row::default() }.add_to(&mut text);
    text
}

fn end() -> String {
    format!("\n{RULER}\n\n")
}
