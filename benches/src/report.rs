//! The numbers as tables: Markdown, which the terminal shows too, and CSV.

use crate::cases::{Case, Door};
use crate::figures::{Figure, geometric_mean};
use crate::measure::{Sample, Series};
use crate::peers::{PEERS, REFERENCE};
use std::fmt::Write;

/// The results of one command.
pub(crate) struct Report<'a> {
    pub(crate) facts: &'a [(String, String)],
    pub(crate) rounds: usize,
    pub(crate) cases: &'a [Case],
    pub(crate) series: &'a [Series],
}

impl Report<'_> {
    fn of(&self, case: Case, peer: &str) -> Option<&Series> {
        self.series.iter().find(|s| s.peer == peer && s.case.name() == case.name())
    }

    fn ratio(&self, case: Case, peer: &str, number: fn(&Sample) -> f64) -> Option<Figure> {
        let ours = self.of(case, peer)?.each(number);
        let theirs = self.of(case, REFERENCE)?.each(number);
        // A series that failed half-way has no rounds that could be compared.
        Figure::of_ratios(&ours, &theirs).filter(|_| ours.len() == theirs.len())
    }

    /// The whole report.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from("# lumalloc beside its peers\n\n");
        for (name, value) in self.facts {
            text += &format!("- {name}: {value}\n");
        }
        text += &format!(
            "\nMedians of {} rounds, interleaved. A ratio is that to mimalloc v3 in the same round, \
             median (least–most); below 1 is faster or smaller.\n",
            self.rounds
        );
        for door in [Door::C, Door::Rust] {
            let cases: Vec<Case> = self.cases.iter().copied().filter(|c| c.door == door).collect();
            if !cases.is_empty() {
                self.door(&mut text, door, &cases);
            }
        }
        text += &self.verdicts();
        text += &self.failures();
        text
    }

    fn door(&self, text: &mut String, door: Door, cases: &[Case]) {
        let title = match door {
            Door::C => "From C, preloaded",
            Door::Rust => "From Rust, `#[global_allocator]`, LTO",
        };
        let peers: Vec<&str> = PEERS
            .iter()
            .map(|peer| peer.name)
            .filter(|name| cases.iter().any(|&case| self.of(case, name).is_some()))
            .collect();
        *text += &format!("\n## {title}\n\n### Wall time, ns per operation · ratio\n\n");
        *text += &self.timed(cases, &peers, |s| s.wall_ns);
        *text += &self.means(cases, &peers);
        *text += "\n### User and system time of the process, ns per operation · ratio\n\n";
        *text += &self.timed(cases, &peers, |s| s.cpu_ns);
        *text += "\n### Peak RSS, MiB\n\n";
        *text += &self.plain(cases, &peers, 1, |s| s.peak_rss_kib / 1024.0);
        *text += "\n### Page faults\n\n";
        *text += &self.plain(cases, &peers, 0, |s| s.faults);
    }

    fn timed(&self, cases: &[Case], peers: &[&str], number: fn(&Sample) -> f64) -> String {
        self.table(cases, peers, |case, peer| {
            let median = Figure::of(self.of(case, peer)?.each(number))?.median;
            let Figure { median: ratio, least, most } = self.ratio(case, peer, number)?;
            Some(format!("{median:.2} · **{ratio:.2}** ({least:.2}–{most:.2})"))
        })
    }

    fn plain(
        &self,
        cases: &[Case],
        peers: &[&str],
        digits: usize,
        number: fn(&Sample) -> f64,
    ) -> String {
        self.table(cases, peers, |case, peer| {
            Some(format!("{:.digits$}", Figure::of(self.of(case, peer)?.each(number))?.median))
        })
    }

    fn table(
        &self,
        cases: &[Case],
        peers: &[&str],
        cell: impl Fn(Case, &str) -> Option<String>,
    ) -> String {
        let mut rows = vec![vec!["workload".to_owned()]];
        rows[0].extend(peers.iter().map(|peer| (*peer).to_owned()));
        for &case in cases {
            let mut row = vec![case.workload.name.to_owned()];
            for peer in peers {
                let failed = self.of(case, peer).is_some_and(|series| series.outcome.is_err());
                let empty = if failed { "failed" } else { "–" };
                row.push(cell(case, peer).unwrap_or_else(|| empty.to_owned()));
            }
            rows.push(row);
        }
        aligned(&rows)
    }

    /// Geometric means of the ratios, group by group.
    fn means(&self, cases: &[Case], peers: &[&str]) -> String {
        let mut text = String::from("\nGeometric means of the ratios:");
        for (group, title) in [('a', "micro"), ('b', "threads"), ('c', "large")] {
            let of_group: Vec<Case> =
                cases.iter().copied().filter(|c| c.workload.group == group).collect();
            let means = peers.iter().filter_map(|peer| {
                let ratios: Option<Vec<f64>> = of_group
                    .iter()
                    .map(|&case| self.ratio(case, peer, |s| s.wall_ns).map(|r| r.median))
                    .collect();
                Some(format!("{peer} {:.2}", geometric_mean(&ratios?)?))
            });
            let means: Vec<String> = means.collect();
            if !means.is_empty() {
                let _ = write!(text, "\n- {title}: {}", means.join(", "));
            }
        }
        text + "\n"
    }

    /// What was to be reached, and whether it was.
    fn verdicts(&self) -> String {
        let mut text = String::new();
        for &case in self.cases {
            let (Some(target), Some(wall), Some(cpu)) = (
                case.target(),
                self.ratio(case, "lumalloc", |s| s.wall_ns),
                self.ratio(case, "lumalloc", |s| s.cpu_ns),
            ) else {
                continue;
            };
            let verdict = if wall.median <= target { "reached" } else { "**missed**" };
            let _ = writeln!(
                text,
                "- {}: {:.2} ({:.2}–{:.2}), at most {target:.2}: {verdict}; user and system time {:.2}",
                case.name(),
                wall.median,
                wall.least,
                wall.most,
                cpu.median
            );
        }
        if text.is_empty() { text } else { format!("\n## Targets for lumalloc\n\n{text}") }
    }

    fn failures(&self) -> String {
        let mut text = String::new();
        for series in self.series {
            if let Err(why) = &series.outcome {
                let _ = writeln!(text, "- {} {}: {why}", series.case.name(), series.peer);
            }
        }
        if text.is_empty() { text } else { format!("\n## Failed\n\n{text}") }
    }

    /// One row per case and peer, every figure with its least and most.
    pub(crate) fn csv(&self) -> String {
        let mut text: String =
            self.facts.iter().map(|(name, value)| format!("# {name}: {value}\n")).collect();
        text += "door,workload,group,peer,rounds";
        for name in ["wall_ns", "wall_ratio", "cpu_ns", "cpu_ratio", "peak_rss_kib", "page_faults"]
        {
            let _ = write!(text, ",{name},{name}_least,{name}_most");
        }
        text += "\n";
        for series in self.series {
            let case = series.case;
            let _ = write!(
                text,
                "{},{},{},{},{}",
                case.door.name(),
                case.workload.name,
                case.workload.group,
                series.peer,
                series.each(|s| s.wall_ns).len()
            );
            let figures = [
                Figure::of(series.each(|s| s.wall_ns)),
                self.ratio(case, series.peer, |s| s.wall_ns),
                Figure::of(series.each(|s| s.cpu_ns)),
                self.ratio(case, series.peer, |s| s.cpu_ns),
                Figure::of(series.each(|s| s.peak_rss_kib)),
                Figure::of(series.each(|s| s.faults)),
            ];
            for figure in figures {
                text += &figure.map_or_else(
                    || ",,,".to_owned(),
                    |f| format!(",{:.4},{:.4},{:.4}", f.median, f.least, f.most),
                );
            }
            text += "\n";
        }
        text
    }
}

/// A Markdown table with its columns padded, so that it can be read on a terminal.
fn aligned(rows: &[Vec<String>]) -> String {
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
