//! Compares programs or traces: medians, ratios to the group's best peer, missed targets.

use super::launch::Sample;
use crate::chart::{Point, chart};
use crate::figures::{Figure, geometric_mean};
use crate::peers::{OLD, OURS, REFERENCE};
use crate::report::aligned;
use std::fmt::Write;

/// All rounds of one program under one allocator.
pub(crate) struct Series {
    pub(crate) case: &'static str,
    pub(crate) peer: &'static str,
    pub(crate) outcome: Result<Vec<Sample>, String>,
}

/// A quantity that is measured.
#[derive(Clone, Copy)]
struct Metric {
    name: &'static str,
    title: &'static str,
    digits: usize,
    of: fn(&Sample) -> f64,
}

const METRICS: [Metric; 4] = [
    Metric { name: "wall_s", title: "Wall time, s", digits: 3, of: |s| s.wall_s },
    Metric { name: "cpu_s", title: "User and system time, s", digits: 3, of: |s| s.cpu_s },
    Metric {
        name: "peak_rss_kib",
        title: "Peak RSS, MiB",
        digits: 1,
        of: |s| s.peak_rss_kib / 1024.0,
    },
    Metric { name: "faults", title: "Page faults", digits: 0, of: |s| s.faults },
];

/// The peers that lumalloc's memory and faults are compared with. mimalloc asks for huge pages,
/// each of which is one fault and 2 MiB, so its faults are taken without them.
const FAST: [&str; 3] = ["jemalloc", "mimalloc", "snmalloc"];
const FAST_BY_PAGES: [&str; 3] = ["jemalloc", "mimalloc-thp0", "snmalloc"];

/// The results of one command.
pub(crate) struct Comparison<'a> {
    pub(crate) title: &'a str,
    pub(crate) facts: &'a [(String, String)],
    /// Text that stands below the facts.
    pub(crate) notes: &'a str,
    pub(crate) cases: &'a [&'static str],
    pub(crate) series: &'a [Series],
}

impl Comparison<'_> {
    fn each(&self, case: &str, peer: &str, metric: Metric) -> Option<Vec<f64>> {
        let found = self.series.iter().find(|s| s.case == case && s.peer == peer)?;
        Some(found.outcome.as_ref().ok()?.iter().map(metric.of).collect())
    }

    fn median(&self, case: &str, peer: &str, metric: Metric) -> Option<f64> {
        Some(Figure::of(self.each(case, peer, metric)?)?.median)
    }

    fn ratio(&self, case: &str, peer: &str, to: &str, metric: Metric) -> Option<Figure> {
        Figure::of_ratios(&self.each(case, peer, metric)?, &self.each(case, to, metric)?)
    }

    fn peers(&self) -> Vec<&'static str> {
        let mut peers = Vec::new();
        for series in self.series {
            if !peers.contains(&series.peer) {
                peers.push(series.peer);
            }
        }
        peers
    }

    /// The peer that is best over the whole group, among those that never failed. It is chosen by
    /// ratios within rounds, as what is shown of it.
    fn best(&self, metric: Metric) -> Option<&'static str> {
        let peers = self.peers();
        let theirs: Vec<&str> = peers.into_iter().filter(|peer| !peer.starts_with(OURS)).collect();
        let is_whole =
            |peer: &&&str| self.cases.iter().all(|case| self.median(case, peer, metric).is_some());
        let common = theirs.iter().find(|peer| **peer == REFERENCE).filter(is_whole);
        let common = *common.or_else(|| theirs.iter().find(is_whole))?;
        let means =
            theirs.iter().filter_map(|peer| Some((*peer, self.mean_to(peer, common, metric)?)));
        means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(peer, _)| peer)
    }

    fn mean_to(&self, peer: &str, best: &str, metric: Metric) -> Option<f64> {
        let ratios: Option<Vec<f64>> = self
            .cases
            .iter()
            .map(|case| self.ratio(case, peer, best, metric).map(|ratio| ratio.median))
            .collect();
        geometric_mean(&ratios?)
    }

    /// The number of rounds of the cases, as a number or as a range.
    fn rounds(&self) -> String {
        let counts = self.series.iter().filter_map(|one| Some(one.outcome.as_ref().ok()?.len()));
        let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
        if least == most { most.to_string() } else { format!("{least} to {most}") }
    }

    /// The chart of time against memory over all cases, relative to the reference; `None` if the
    /// reference was not measured.
    pub(crate) fn picture(&self) -> Option<String> {
        let point = |peer: &'static str| {
            let of = |metric| self.mean_to(peer, REFERENCE, metric);
            let (time, memory) = (of(METRICS[0])?, of(METRICS[2])?);
            Some(Point { name: peer, ours: peer.starts_with(OURS), time, memory })
        };
        let points = self.peers().into_iter().filter_map(point).collect();
        chart(&[(self.title.to_owned(), points)])
    }

    /// The whole report; `picture` is the file of its picture.
    pub(crate) fn markdown(&self, picture: Option<&str>) -> String {
        let mut text = format!("# {}\n\n", self.title);
        for (name, value) in self.facts {
            let _ = writeln!(text, "- {name}: {value}");
        }
        let _ = writeln!(
            text,
            "\nMedians of {} rounds, interleaved; everybody's options are the defaults. A ratio is that to the peer that is best over \
             the whole group, in the same round, median (least–most); below 1 is faster or smaller.",
            self.rounds()
        );
        if let Some(file) = picture {
            let _ = writeln!(text, "\n![time and memory]({file})");
        }
        text += self.notes;
        for metric in METRICS {
            self.table(&mut text, metric);
        }
        self.left(&mut text);
        self.beside_old(&mut text);
        text += &self.verdicts();
        text + &self.failures()
    }

    fn table(&self, text: &mut String, metric: Metric) {
        let (peers, best) = (self.peers(), self.best(metric));
        let _ = write!(text, "\n## {}", metric.title);
        let best_named = best.map_or(String::new(), |best| format!(" · ratio to {best}"));
        let _ = writeln!(text, "{best_named}\n");
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(peers.iter().map(|peer| (*peer).to_owned()));
        for case in self.cases {
            let mut row = vec![(*case).to_owned()];
            row.extend(peers.iter().map(|peer| self.cell(case, peer, best, metric)));
            rows.push(row);
        }
        let mut means = vec!["geometric mean".to_owned()];
        for peer in &peers {
            let mean = best.and_then(|best| self.mean_to(peer, best, metric));
            means.push(mean.map_or("–".to_owned(), |mean| format!("**{mean:.3}**")));
        }
        rows.push(means);
        *text += &aligned(&rows);
    }

    fn cell(&self, case: &str, peer: &str, best: Option<&str>, metric: Metric) -> String {
        let Some(median) = self.median(case, peer, metric) else { return "failed".to_owned() };
        let digits = metric.digits;
        let ratio = best.and_then(|best| self.ratio(case, peer, best, metric));
        ratio.map_or_else(
            || format!("{median:.digits$}"),
            |r| format!("{median:.digits$} · {:.2} ({:.2}–{:.2})", r.median, r.least, r.most),
        )
    }

    /// A table of the RSS of servers after their clients are gone.
    fn left(&self, text: &mut String) {
        let peers = self.peers();
        let metric = Metric { of: |s| s.left_rss_kib.unwrap_or(0.0) / 1024.0, ..METRICS[2] };
        let held = |case: &str, peer| self.median(case, peer, metric).filter(|mib| *mib > 0.0);
        let cases = self.cases.iter().filter(|case| peers.iter().any(|p| held(case, p).is_some()));
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(peers.iter().map(|peer| (*peer).to_owned()));
        for case in cases {
            let mut row = vec![(*case).to_owned()];
            row.extend(peers.iter().map(|peer| {
                held(case, peer).map_or("failed".to_owned(), |mib| format!("{mib:.1}"))
            }));
            rows.push(row);
        }
        if rows.len() > 1 {
            *text += "\n## RSS of servers when their clients had gone, MiB\n\n";
            *text += &aligned(&rows);
        }
    }

    /// A table of the ratios to the old build, if that was measured.
    fn beside_old(&self, text: &mut String) {
        if !self.peers().contains(&OLD) {
            return;
        }
        let mut rows = vec![vec![String::new()]];
        rows[0].extend(METRICS.map(|metric| metric.title.to_owned()));
        for case in self.cases {
            let mut row = vec![(*case).to_owned()];
            row.extend(METRICS.map(|metric| {
                self.ratio(case, OURS, OLD, metric).map_or("failed".to_owned(), |r| {
                    format!("{:.2} ({:.2}–{:.2})", r.median, r.least, r.most)
                })
            }));
            rows.push(row);
        }
        let mut means = vec!["geometric mean".to_owned()];
        let mean = |metric| self.mean_to(OURS, OLD, metric);
        means.extend(METRICS.map(|m| mean(m).map_or("–".to_owned(), |m| format!("**{m:.3}**"))));
        rows.push(means);
        *text += "\n## Ratios of this build to the old one\n\n";
        *text += &aligned(&rows);
    }

    /// The targets of lumalloc, and whether they are reached.
    fn verdicts(&self) -> String {
        let mut text = String::new();
        for metric in &METRICS[..2] {
            let Some(best) = self.best(*metric) else { continue };
            let Some(mean) = self.mean_to(OURS, best, *metric) else { continue };
            let verdict = if mean <= 1.0 { "reached" } else { "**missed**" };
            let title = metric.title;
            let _ = writeln!(text, "- {title}: {mean:.3} of {best}'s, at most 1.00: {verdict}");
            for case in self.cases {
                let ratio = self.ratio(case, OURS, best, *metric);
                if let Some(ratio) = ratio.filter(|ratio| ratio.median > 1.10) {
                    let _ = writeln!(
                        text,
                        "- {title}: {case} {:.2} ({:.2}–{:.2}) of {best}'s, at most 1.10: **missed**",
                        ratio.median, ratio.least, ratio.most
                    );
                }
            }
        }
        let over_all = self.mean_to(OURS, "jemalloc", METRICS[2]);
        if let Some(mean) = over_all {
            let verdict = if mean <= 1.0 { "reached" } else { "**missed**" };
            let _ = writeln!(text, "- Peak RSS: {mean:.3} of jemalloc's, at most 1.00: {verdict}");
        }
        self.against_fast(&mut text, METRICS[2], FAST, 1.25);
        self.against_fast(&mut text, METRICS[3], FAST_BY_PAGES, 1.5);
        if text.is_empty() { text } else { format!("\n## Targets for lumalloc\n\n{text}") }
    }

    /// Lists the cases in which lumalloc is above `most` of the lowest fast peer.
    fn against_fast(&self, text: &mut String, metric: Metric, fast: [&str; 3], most: f64) {
        let mut missed = 0;
        for case in self.cases {
            let theirs = fast
                .iter()
                .filter_map(|peer| Some((self.median(case, peer, metric)?, peer)))
                .min_by(|a, b| a.0.total_cmp(&b.0));
            let (Some((least, peer)), Some(ours)) = (theirs, self.median(case, OURS, metric))
            else {
                continue;
            };
            if ours > most * least {
                missed += 1;
                let _ = writeln!(
                    text,
                    "- {}: {case} {:.2} of {peer}'s, at most {most:.2}: **missed**",
                    metric.title,
                    ours / least
                );
            }
        }
        if missed == 0 {
            let title = metric.title;
            let _ =
                writeln!(text, "- {title}: none above {most:.2} of the least fast peer's: reached");
        }
    }

    fn failures(&self) -> String {
        let mut text = String::new();
        for series in self.series {
            if let Err(why) = &series.outcome {
                let _ = writeln!(text, "- {} {}: {why}", series.case, series.peer);
            }
        }
        if text.is_empty() { text } else { format!("\n## Failed\n\n{text}") }
    }

    /// One row per case and peer, every figure with its smallest and largest number.
    pub(crate) fn csv(&self) -> String {
        let mut text: String =
            self.facts.iter().map(|(name, value)| format!("# {name}: {value}\n")).collect();
        text += "case,peer,rounds";
        for metric in METRICS {
            let name = metric.name;
            let _ = write!(text, ",{name},{name}_least,{name}_most");
        }
        text += "\n";
        for series in self.series {
            let Ok(samples) = &series.outcome else { continue };
            let _ = write!(text, "{},{},{}", series.case, series.peer, samples.len());
            for metric in METRICS {
                // The table is in MiB, but the column is in KiB, as its name says.
                let unit = if metric.name == "peak_rss_kib" { 1024.0 } else { 1.0 };
                let figure = Figure::of(samples.iter().map(|s| (metric.of)(s) * unit));
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

#[cfg(test)]
mod tests {
    use super::{Comparison, Sample, Series};

    fn series(case: &'static str, peer: &'static str, seconds: f64, mib: f64) -> Series {
        let sample = Sample {
            wall_s: seconds,
            cpu_s: seconds,
            peak_rss_kib: mib * 1024.0,
            left_rss_kib: None,
            faults: 100.0,
        };
        Series { case, peer, outcome: Ok(vec![sample; 3]) }
    }

    fn markdown(series: &[Series]) -> String {
        let cases = ["a", "b"];
        Comparison { title: "T", facts: &[], notes: "", cases: &cases, series }
            .markdown(Some("t.svg"))
    }

    #[test]
    fn the_best_peer_is_that_of_the_whole_group() {
        let text = markdown(&[
            series("a", "lumalloc", 3.0, 10.0),
            series("b", "lumalloc", 1.0, 10.0),
            series("a", "jemalloc", 2.0, 10.0),
            series("b", "jemalloc", 2.0, 10.0),
            series("a", "glibc", 1.0, 30.0),
            series("b", "glibc", 9.0, 30.0),
        ]);
        assert!(text.contains("## Wall time, s · ratio to jemalloc"));
        assert!(text.contains("\n![time and memory](t.svg)\n"));
        assert!(text.contains("| a              | 3.000 · 1.50 (1.50–1.50)"));
        assert!(text.contains("- Wall time, s: 0.866 of jemalloc's, at most 1.00: reached"));
        assert!(text.contains("a 1.50 (1.50–1.50) of jemalloc's, at most 1.10: **missed**"));
        assert!(
            text.contains("- Peak RSS, MiB: none above 1.25 of the least fast peer's: reached")
        );
    }

    #[test]
    fn an_old_build_gets_a_table_of_its_own() {
        let mut all = vec![
            series("a", "lumalloc", 3.0, 10.0),
            series("b", "lumalloc", 1.0, 10.0),
            series("a", "jemalloc", 2.0, 10.0),
            series("b", "jemalloc", 2.0, 10.0),
        ];
        assert!(!markdown(&all).contains("old one"));
        all.extend([series("a", "lumalloc-old", 2.0, 20.0), series("b", "lumalloc-old", 0.5, 5.0)]);
        let text = markdown(&all);
        assert!(text.contains("## Ratios of this build to the old one"), "{text}");
        let row =
            "| a              | 1.50 (1.50–1.50) | 1.50 (1.50–1.50)        | 0.50 (0.50–0.50)";
        assert!(text.contains(row), "{text}");
        let means = "| geometric mean | **1.732**        | **1.732**               | **1.000**";
        assert!(text.contains(means), "{text}");
        assert!(text.contains("a 1.50 (1.50–1.50) of jemalloc's"), "an old build is no peer");
    }

    #[test]
    fn the_picture_has_who_ran_every_case() {
        let all = [
            series("a", "lumalloc", 1.0, 10.0),
            series("b", "lumalloc", 1.0, 10.0),
            series("a", "mimalloc", 2.0, 10.0),
            series("b", "mimalloc", 2.0, 10.0),
            series("a", "glibc", 1.0, 30.0),
        ];
        let cases = ["a", "b"];
        let of = |series| Comparison { title: "T", facts: &[], notes: "", cases: &cases, series };
        let picture = of(&all).picture().unwrap();
        assert!(picture.contains(">lumalloc<") && !picture.contains(">glibc<"));
        assert!(of(&all[..2]).picture().is_none(), "nothing to compare with");
    }

    #[test]
    fn a_peer_that_failed_is_not_the_best_and_says_why() {
        let mut all = [
            series("a", "lumalloc", 1.0, 30.0),
            series("b", "lumalloc", 1.0, 10.0),
            series("a", "jemalloc", 2.0, 10.0),
            series("b", "jemalloc", 2.0, 10.0),
            series("a", "tcmalloc", 1.0, 10.0),
            series("b", "tcmalloc", 1.0, 10.0),
        ];
        all[5].outcome = Err("ended with status 139".to_owned());
        let text = markdown(&all);
        assert!(text.contains("ratio to jemalloc") && !text.contains("ratio to tcmalloc"));
        assert!(text.contains("## Failed\n\n- b tcmalloc: ended with status 139\n"));
        assert!(text.contains("- Peak RSS, MiB: a 3.00 of jemalloc's, at most 1.25: **missed**"));
    }
}
