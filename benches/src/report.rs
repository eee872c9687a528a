//! The numbers as Markdown tables, which are also printed on the terminal.

mod old;
mod tables;

use crate::cases::{Case, Door};
use crate::peers::REFERENCE;
use crate::results::{CPU, FAULTS, Number, PEAK, Results, WALL, behind, mean, median};
use crate::store::Store;
use crate::targets;
use std::fmt::Write;

fn title(door: Door) -> &'static str {
    match door {
        Door::C => "From C, preloaded",
        Door::Rust => "From Rust, `#[global_allocator]`, LTO",
    }
}

/// The whole report.
pub(crate) fn markdown(results: &Results) -> String {
    let store = &results.ratios;
    let mut text = String::from("# lumalloc beside its peers\n\n");
    for (name, value) in &store.facts {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = write!(
        text,
        "\nMedians of {} rounds, interleaved; peers as they come, with default options. A ratio is \
         taken between runs of one round; after ± half the distance between the quartiles of its \
         rounds. Below 1 is faster or smaller.\n\n\
         ![time and memory, micro](group-a.svg)\n![time and memory, threads](group-b.svg)\n\
         ![time and memory, large](group-c.svg)\n![every workload](heat.svg)\n",
        store.rounds()
    );
    text += &targets::section(results);
    for door in [Door::C, Door::Rust] {
        let cases = behind(store, door);
        if !cases.is_empty() {
            text += &of_door(store, door, &cases);
        }
    }
    if let Some(idle) = &results.idle {
        text += &idle_tables(idle, store);
    }
    if let Some(calls) = &results.calls {
        let heading = "System calls about memory, of one run";
        text += &counts((calls, store), heading, 0, targets::CALLS);
    }
    if let Some(instructions) = &results.instructions {
        let heading = "Instructions of one operation, by callgrind";
        text += &counts((instructions, store), heading, 1, &["instructions"]);
    }
    let stores = [Some(store), results.idle.as_ref(), results.calls.as_ref()];
    text + &failures(stores.into_iter().flatten().chain(&results.instructions))
}

fn of_door(store: &Store, door: Door, cases: &[Case]) -> String {
    let mut text =
        format!("\n## {}\n\n### Geometric means of the ratios to {REFERENCE}\n\n", title(door));
    text += &tables::means(store, cases);
    text += &old::section(store, cases);
    let lacks =
        |case| store.peers(door).iter().any(|p| median(store, case, p.name, WALL).is_none());
    if cases.iter().copied().any(lacks) {
        text += "\n*: without the workloads at which it failed or was not measured.\n";
    }
    text += "\n### Wall time of lumalloc, ns per operation, and its ratios\n\n";
    text += &tables::ours(store, cases);
    let _ = write!(text, "\n### Wall time, ratio to {REFERENCE}\n\n");
    text += &tables::ratios(store, cases, WALL);
    let _ = write!(text, "\n### User and system time of the process, ratio to {REFERENCE}\n\n");
    text += &tables::ratios(store, cases, CPU);
    text += "\n### Peak RSS, MiB\n\n";
    text += &tables::plain(store, cases, |case, peer| {
        Some(format!("{:.1}", median(store, case, peer, PEAK)? / 1024.0))
    });
    text += "\n### Page faults\n\n";
    text += &tables::plain(store, cases, |case, peer| {
        Some(format!("{:.0}", median(store, case, peer, FAULTS)?))
    });
    text
}

/// The facts of a kind of measurement that differ from those of the ratios.
fn other_facts(store: &Store, ratios: &Store) -> String {
    let others = store.facts.iter().filter(|fact| !ratios.facts.contains(fact));
    let lines: String = others.map(|(name, value)| format!("- {name}: {value}\n")).collect();
    if lines.is_empty() { lines } else { format!("\nMeasured apart from the ratios:\n\n{lines}") }
}

fn idle_tables(idle: &Store, ratios: &Store) -> String {
    let mut text = String::from(
        "\n## RSS after 20 seconds of idling, MiB\n\n\
         One run of each. In brackets: when the work was done. Pages given back lazily \
         (`MADV_FREE`) count until the system takes them. *: the mean is without the workloads at \
         which the peer failed.\n",
    );
    text += &other_facts(idle, ratios);
    let halves: [(&str, Number, Number); 2] = [
        ("defaults", &["worked_kib"], &["idle_kib"]),
        (
            "background thread on, where there is one (jemalloc, lumalloc)",
            &["background_worked_kib"],
            &["background_idle_kib"],
        ),
    ];
    for door in [Door::C, Door::Rust] {
        let cases = behind(idle, door);
        for (heading, before, after) in halves {
            if cases.is_empty() {
                continue;
            }
            let _ = write!(text, "\n### {}: {heading}\n\n", title(door));
            text += &tables::plain(idle, &cases, |case, peer| {
                let mib = |number| Some(median(idle, case, peer, number)? / 1024.0);
                Some(format!("{:.1} ({:.1})", mib(after)?, mib(before)?))
            });
            let means = idle.peers(door).into_iter().filter_map(|peer| {
                let mean = mean(idle, &cases, (peer.name, REFERENCE), after)?;
                let is_whole = cases.iter().all(|&c| median(idle, c, peer.name, after).is_some());
                Some(format!("{} {mean:.2}{}", peer.name, if is_whole { "" } else { "*" }))
            });
            let means: Vec<String> = means.collect();
            let _ = writeln!(text, "\nGeometric means, to {REFERENCE}: {}", means.join(", "));
        }
    }
    text
}

/// Tables of counts, one for C and one for Rust. A count is the sum of the columns.
fn counts(
    (store, ratios): (&Store, &Store),
    heading: &str,
    digits: usize,
    number: Number,
) -> String {
    let mut text = format!("\n## {heading}\n{}", other_facts(store, ratios));
    for door in [Door::C, Door::Rust] {
        let cases = behind(store, door);
        if !cases.is_empty() {
            let _ = write!(text, "\n### {}\n\n", title(door));
            text += &tables::plain(store, &cases, |case, peer| {
                Some(format!("{:.digits$}", median(store, case, peer, number)?))
            });
        }
    }
    text
}

fn failures<'a>(stores: impl Iterator<Item = &'a Store>) -> String {
    let mut text = String::new();
    for store in stores {
        for (row, why) in store.failures() {
            let _ = writeln!(text, "- {} {}: {why}", row.case.name(), row.peer.name);
        }
    }
    if text.is_empty() { text } else { format!("\n## Failed\n\n{text}") }
}

/// A Markdown table with padded columns, so that it can be read on a terminal.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        let _ = writeln!(text, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        if number == 0 {
            let rules = widths.iter().map(|&width| "-".repeat(width));
            let _ = writeln!(text, "| {} |", rules.collect::<Vec<_>>().join(" | "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::aligned;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["a", "bcd"], ["ef", "g"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(aligned(&rows), "| a  | bcd |\n| -- | --- |\n| ef | g   |\n");
    }
}
