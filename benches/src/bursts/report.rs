//! The table of a measurement, the targets, and the numbers of all rounds.

use super::round::{BURSTS, QUIET, Run};
use super::ways::{DEFAULTS, NO_PURGING, Way};
use crate::figures::{Figure, quantile};
use crate::report::aligned;
use std::fmt::Write;

/// The seconds after a burst that have a column.
const AFTER: [f64; 4] = [0.0, 1.0, 5.0, QUIET];
/// What may be resident after the quiet time: so much of what is allocated, and so many MiB more.
const MOST: (f64, f64) = (1.1, 8.0);

/// All rounds of one way.
pub(crate) struct Series<'a> {
    pub(super) way: Way<'a>,
    pub(crate) outcome: Result<Vec<Run>, String>,
}

/// A number of a run.
type Number = fn(&Run) -> Option<f64>;

const ALLOCATED: Number = |run| Some(run.last.allocated);
const LEFT: Number = |run| run.rss(BURSTS - 1, QUIET);
/// Noise of a ratio with which nothing is said.
const MOST_NOISE: f64 = 0.25;
const NEARLY_ALL: Number = |run| Some(quantile(&run.last.latencies, 0.999));

/// The columns: a title, the digits behind the point, and the number.
const COLUMNS: [(&str, usize, Number); 10] = [
    ("RSS after it", 1, |run| run.rss(BURSTS - 1, AFTER[0])),
    ("1 s", 1, |run| run.rss(BURSTS - 1, AFTER[1])),
    ("5 s", 1, |run| run.rss(BURSTS - 1, AFTER[2])),
    ("15 s", 1, LEFT),
    ("allocated", 1, ALLOCATED),
    ("peak RSS", 1, |run| Some(run.last.usage.peak_rss_kib / 1024.0)),
    ("CPU time, s", 2, |run| Some(run.last.usage.cpu_s)),
    ("p50, ms", 1, |run| Some(quantile(&run.last.latencies, 0.5))),
    ("p99, ms", 1, |run| Some(quantile(&run.last.latencies, 0.99))),
    ("p99.9, ms", 1, NEARLY_ALL),
];

impl<'a> Series<'a> {
    pub(crate) fn new(way: Way<'a>) -> Self {
        Self { way, outcome: Ok(Vec::new()) }
    }

    /// Adds a round. The first failure stays.
    pub(crate) fn add(&mut self, run: Result<Run, String>) {
        match (&mut self.outcome, run) {
            (Ok(runs), Ok(run)) => runs.push(run),
            (Ok(_), Err(why)) => self.outcome = Err(why),
            (Err(_), _) => {}
        }
    }

    pub(super) fn runs(&self) -> &[Run] {
        self.outcome.as_deref().unwrap_or_default()
    }

    /// The median over the rounds.
    pub(super) fn median(&self, number: impl Fn(&Run) -> Option<f64>) -> Option<f64> {
        Some(Figure::of(self.runs().iter().filter_map(number))?.median)
    }

    /// The least of the rounds. Other load on the machine only adds to it.
    fn least(&self, number: Number) -> Option<f64> {
        Some(Figure::of(self.runs().iter().filter_map(number))?.least)
    }
}

/// The whole report. `picture` is the file of its picture.
pub(super) fn markdown(
    series: &[Series],
    facts: &[(String, String)],
    picture: Option<&str>,
) -> String {
    let rounds = series.iter().map(|one| one.runs().len()).max().unwrap_or(0);
    let mut text = format!(
        "# A service with bursts\n\nThree bursts of events, and {QUIET} quiet seconds after each. \
         Medians of {rounds} rounds, MiB after the last burst; what is\nmeasured: \
         [docs/bursts.md](../docs/bursts.md).\n\n"
    );
    if let Some(file) = picture {
        let _ = write!(text, "![RSS over time]({file})\n\n");
    }
    for (name, value) in facts {
        let _ = writeln!(text, "- {name}: {value}");
    }
    let _ = write!(text, "\n## After the last burst\n\n{}", table(series));
    let _ = write!(text, "\n## Targets\n\n{}", targets(series));
    for one in series {
        if let Err(why) = &one.outcome {
            let _ = writeln!(text, "\n{} failed: {why}", one.way.name);
        }
    }
    text
}

fn table(series: &[Series]) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend(COLUMNS.iter().map(|column| column.0.to_owned()));
    rows[0].push("least p99.9".to_owned());
    for one in series {
        let mut row = vec![one.way.name.clone()];
        let text = |number: Option<f64>, digits: usize| {
            number.map_or("failed".to_owned(), |n| format!("{n:.digits$}"))
        };
        row.extend(COLUMNS.iter().map(|&(_, digits, of)| text(one.median(of), digits)));
        row.push(text(one.least(NEARLY_ALL), 1));
        rows.push(row);
    }
    aligned(&rows)
}

fn targets(series: &[Series]) -> String {
    let rows = [bounded(series), lowest(series), unhurt(series)];
    let head = ["target", "wanted", "measured", ""].map(str::to_owned).to_vec();
    aligned(&std::iter::once(head).chain(rows.into_iter().flatten()).collect::<Vec<_>>())
}

fn of<'s>(series: &'s [Series<'s>], name: &str) -> Option<&'s Series<'s>> {
    series.iter().find(|one| one.way.name == name)
}

fn verdict(what: &str, (wanted, measured): (String, String), is_met: bool) -> Vec<String> {
    let word = if is_met { "met" } else { "**missed**" };
    vec![what.to_owned(), wanted, measured, word.to_owned()]
}

/// Is little more resident than allocated?
fn bounded(series: &[Series]) -> Option<Vec<String>> {
    let ours = of(series, DEFAULTS)?;
    let (left, bound) = (ours.median(LEFT)?, MOST.0 * ours.median(ALLOCATED)? + MOST.1);
    let what = format!("RSS {QUIET} s later: {} of what is allocated, and {} MiB", MOST.0, MOST.1);
    let numbers = (format!("at most {bound:.1} MiB"), format!("{left:.1} MiB"));
    Some(verdict(&what, numbers, left <= bound))
}

/// Is less resident than with any peer at its default options?
fn lowest(series: &[Series]) -> Option<Vec<String>> {
    let left = of(series, DEFAULTS)?.median(LEFT)?;
    let peers = series.iter().filter(|one| one.way.is_default && !one.way.is_ours);
    let lefts = peers.filter_map(|one| Some((one.way.name.as_str(), one.median(LEFT)?)));
    let (name, least) = lefts.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let what = format!("RSS {QUIET} s later: the lowest, default options for all");
    let numbers = (format!("at most {least:.1} MiB ({name})"), format!("{left:.1} MiB"));
    Some(verdict(&what, numbers, left <= least))
}

/// Do events take no longer than without purging? A ratio that the noise does not tell from 1 is
/// no longer, unless the noise is so large that nothing can be said.
fn unhurt(series: &[Series]) -> Option<Vec<String>> {
    let each = |name| -> Option<Vec<f64>> {
        Some(of(series, name)?.runs().iter().filter_map(NEARLY_ALL).collect())
    };
    let least = |name| of(series, name)?.least(NEARLY_ALL);
    let ratio = Figure::of_ratios(&each(DEFAULTS)?, &each(NO_PURGING)?)?;
    let measured = format!(
        "{:.2} ±{:.2}; the least of the rounds {:.1} and {:.1} ms",
        ratio.median,
        ratio.noise,
        least(DEFAULTS)?,
        least(NO_PURGING)?
    );
    let what = "p99.9 of events, to that without purging, within rounds";
    let is_met = ratio.median - ratio.noise <= 1.0;
    let mut row = verdict(what, ("at most 1.00, but for the noise".to_owned(), measured), is_met);
    if ratio.noise > MOST_NOISE {
        row[3] = "too noisy to tell".to_owned();
    }
    Some(row)
}

/// A row for each burst of each process.
pub(super) fn csv(series: &[Series]) -> String {
    let mut text = "way,round,burst,duration_ms,burst_allocated_mib,rss_mib,rss_1s_mib,\
                    rss_5s_mib,rss_15s_mib,last_allocated_mib,peak_mib,cpu_s,p50_ms,p99_ms,\
                    p999_ms\n"
        .to_owned();
    for one in series {
        for (round, run) in one.runs().iter().enumerate() {
            for (burst, (_, said)) in run.bursts.iter().enumerate() {
                let _ = write!(text, "\"{}\",{},{}", one.way.name, round + 1, burst + 1);
                let _ = write!(text, ",{:.0},{:.2}", said.millis, said.allocated);
                let rss = AFTER.map(|after| run.rss(burst, after).unwrap_or(0.0));
                let whole = COLUMNS[AFTER.len()..].iter().map(|column| column.2(run));
                let numbers = rss.into_iter().chain(whole.map(|number| number.unwrap_or(0.0)));
                for number in numbers {
                    let _ = write!(text, ",{number:.2}");
                }
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::process::{Last, Said};
    use super::super::watch::Curve;
    use super::*;
    use crate::programs::launch::read_usage;

    /// A series with one round: RSS of 40 MiB in bursts, and `left` from 2 s after them.
    pub(in super::super) fn series(name: &str, left: f64, latency: f64) -> Series<'static> {
        let said = Said { millis: 900.0, allocated: 6.0 };
        let (mut bursts, mut samples) = (Vec::new(), Vec::new());
        for burst in 0..BURSTS {
            let end = 20.0 * burst as f64 + 2.0;
            bursts.push((end, said));
            samples.extend([(end - 0.5, 40.0), (end + 2.0, left)]);
        }
        let usage = read_usage("0 1500000 500000 49152 70 2", 0.0).unwrap();
        let last = Last { allocated: 5.0, latencies: vec![1.0, latency], usage };
        let mut series = Series::new(Way::named(name));
        series.add(Ok(Run { curve: Curve(samples), bursts, last }));
        series
    }

    fn row(text: &str, start: &str) -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(&format!("| {start}"))).unwrap();
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    }

    #[test]
    fn targets_that_are_met_and_missed() {
        let verdicts = |ours: (f64, f64), peer: f64| -> Vec<String> {
            let all = [
                series(DEFAULTS, ours.0, ours.1),
                series(NO_PURGING, 1.0, 10.0),
                series("jemalloc, background_thread:true", 2.0, 10.0),
                series("glibc", peer, 10.0),
            ];
            let text = targets(&all);
            text.lines().skip(2).map(|line| line.split('|').nth(4).unwrap().trim().into()).collect()
        };
        assert_eq!(verdicts((13.4, 10.0), 13.5), ["met", "met", "met"]);
        assert_eq!(verdicts((13.6, 11.0), 13.5), ["**missed**"; 3]);
    }

    #[test]
    fn nothing_is_said_of_a_noisy_ratio() {
        let mut all = [series(DEFAULTS, 1.0, 10.0), series(NO_PURGING, 1.0, 10.0)];
        for latency in [40.0, 80.0] {
            let other = series(DEFAULTS, 1.0, latency).outcome.unwrap();
            all[0].add(Ok(other[0].clone()));
            let same = all[1].runs()[0].clone();
            all[1].add(Ok(same));
        }
        let row = unhurt(&all).unwrap();
        assert_eq!(row[3], "too noisy to tell", "{row:?}");
        assert!(row[2].ends_with("the least of the rounds 10.0 and 10.0 ms"), "{row:?}");
    }

    #[test]
    fn the_table_shows_the_last_burst() {
        let text = markdown(&[series("glibc", 30.0, 3.0)], &[], None);
        let cells = row(&text, "glibc");
        assert_eq!(cells[2..9], ["40.0", "40.0", "30.0", "30.0", "5.0", "48.0", "2.00"], "{text}");
        assert_eq!(cells[9], "2.0");
    }

    #[test]
    fn a_picture_is_shown_if_there_is_one() {
        let all = [series("glibc", 30.0, 3.0)];
        assert!(markdown(&all, &[], Some("a.svg")).contains("![RSS over time](a.svg)"));
        assert!(!markdown(&all, &[], None).contains("!["));
    }

    #[test]
    fn each_burst_has_a_row_and_a_failure_its_reason() {
        let mut all = [series("glibc", 30.0, 3.0), series("rpmalloc", 20.0, 3.0)];
        all[1].add(Err("ended with status 139".to_owned()));
        let text = csv(&all);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + BURSTS, "{text}");
        let columns = |line: &str| line.split(',').count();
        assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{text}");
        let text = markdown(&all, &[], None);
        assert!(text.contains("rpmalloc failed: ended with status 139"), "{text}");
        assert_eq!(row(&text, "rpmalloc")[2], "failed");
    }
}
