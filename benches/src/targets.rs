//! The targets of lumalloc, and whether they are reached.

use crate::cases::{Case, Door};
use crate::peers::{HARDENED, OURS, REFERENCE};
use crate::results::{
    CPU, FAULTS, GROUPS, Number, PEAK, Results, WALL, behind, best, best_of_all, mean, median,
    ratio,
};
use crate::store::Store;
use std::fmt::Write;

/// Geometric mean of the ratio of time to mimalloc v3, over a group.
const TO_REFERENCE: f64 = 0.92;
/// Ratio of the time of one workload to that of its best peer.
const TO_BEST: f64 = 1.10;
/// Geometric means of the ratio of time, with the option `hardened`, to mimalloc v3's plain build:
/// over group a, and over each other group.
const HARDENED_MICRO: f64 = 1.15;
const HARDENED_OTHERS: f64 = 1.0;
/// Ratio of the peak RSS of one workload to the smallest of [`FAST`].
const TO_SMALLEST: f64 = 1.25;
/// Ratio of faults and calls to the fewest of [`FAST`]. Fewer than [`STORM`] more are ignored.
const TO_FEWEST: f64 = 1.5;
const STORM: f64 = 1000.0;
/// The fast peers, with default options.
const FAST: [&str; 3] = ["jemalloc", "mimalloc", "snmalloc"];

/// The system calls for purges and mappings.
pub(crate) const CALLS: Number =
    &["mmap", "munmap", "mremap", "mprotect", "madvise", "process_madvise", "brk"];

/// The lines of the section, and how many targets were reached and missed.
#[derive(Default)]
struct Verdicts {
    text: String,
    reached: usize,
    missed: usize,
}

impl Verdicts {
    fn line(&mut self, what: &str, value: f64, limit: f64, note: &str) {
        let verdict = if value <= limit { "reached" } else { "**missed**" };
        let _ = writeln!(self.text, "- {what}: {value:.2}, at most {limit:.2}: {verdict}{note}");
        if value <= limit {
            self.reached += 1;
        } else {
            self.missed += 1;
        }
    }

    /// One line for all workloads. The target is reached if `misses`, those above their limit, is
    /// empty.
    fn all(&mut self, what: &str, count: usize, misses: &[String]) {
        if misses.is_empty() {
            let _ = writeln!(self.text, "- {what}: reached in all {count}");
            self.reached += 1;
        } else {
            let list = misses.join("; ");
            let _ =
                writeln!(self.text, "- {what}: **missed** in {} of {count}: {list}", misses.len());
            self.missed += 1;
        }
    }
}

/// The section of the report; empty if lumalloc was not measured.
pub(crate) fn section(results: &Results) -> String {
    let mut verdicts = Verdicts::default();
    for door in [Door::C, Door::Rust] {
        let cases = behind(&results.ratios, door);
        let ours = results.ratios.peers(door).iter().any(|peer| peer.name == OURS);
        if cases.is_empty() || !ours {
            continue;
        }
        let _ = writeln!(
            verdicts.text,
            "\n### {}\n",
            if door == Door::C { "From C" } else { "From Rust" }
        );
        groups(&mut verdicts, &results.ratios, &cases);
        single(&mut verdicts, &results.ratios, &cases);
        memory(&mut verdicts, &results.ratios, &cases);
        if let Some(idle) = &results.idle {
            idling(&mut verdicts, idle, door);
        }
        storms(&mut verdicts, &results.ratios, &cases, ("page faults", FAULTS));
        if let Some(calls) = &results.calls {
            let cases = behind(calls, door);
            let number: Number = &["madvise", "process_madvise"];
            storms(&mut verdicts, calls, &cases, ("madvise calls", number));
        }
        pairs(&mut verdicts, &results.ratios, &cases);
    }
    if verdicts.text.is_empty() {
        return String::new();
    }
    let (reached, missed) = (verdicts.reached, verdicts.missed);
    format!("\n## Targets for lumalloc: {reached} reached, {missed} missed\n{}", verdicts.text)
}

fn groups(verdicts: &mut Verdicts, store: &Store, cases: &[Case]) {
    for (group, name) in GROUPS {
        let of_group: Vec<Case> =
            cases.iter().copied().filter(|case| case.workload.group == group).collect();
        if let Some(value) = mean(store, &of_group, (OURS, REFERENCE), WALL) {
            let what = format!("group {group} ({name}), time to {REFERENCE}");
            verdicts.line(&what, value, TO_REFERENCE, "");
        }
        let best = best_of_all(store, &of_group, WALL);
        let to_best = best.and_then(|best| mean(store, &of_group, (OURS, best), WALL));
        if let (Some(best), Some(value)) = (best, to_best) {
            let what = format!("group {group} ({name}), time to the best peer, {best}");
            verdicts.line(&what, value, 1.0, "");
        }
        if let Some(value) = mean(store, &of_group, (HARDENED, REFERENCE), WALL) {
            let what = format!("group {group} ({name}), hardened, time to {REFERENCE}");
            let limit = if group == 'a' { HARDENED_MICRO } else { HARDENED_OTHERS };
            let measured = |&&case: &&Case| median(store, case, HARDENED, WALL).is_some();
            let (some, all) = (of_group.iter().filter(measured).count(), of_group.len());
            let note = if some < all { format!(" (in {some} of {all})") } else { String::new() };
            verdicts.line(&what, value, limit, &note);
        }
    }
}

fn single(verdicts: &mut Verdicts, store: &Store, cases: &[Case]) {
    let mut misses: Vec<(f64, String)> = Vec::new();
    for &case in cases {
        let Some(best) = best(store, case, WALL) else { continue };
        let Some(figure) = ratio(store, case, (OURS, best), WALL) else { continue };
        if figure.median > TO_BEST {
            let (value, noise) = (figure.median, figure.noise);
            let name = case.workload.name;
            misses.push((value, format!("{name} {value:.2} ±{noise:.2} of {best}")));
        }
    }
    misses.sort_by(|one, other| other.0.total_cmp(&one.0));
    let misses: Vec<String> = misses.into_iter().map(|(_, text)| text).collect();
    let what = format!("no workload above {TO_BEST:.2} of its best peer's time");
    verdicts.all(&what, cases.len(), &misses);
}

fn memory(verdicts: &mut Verdicts, store: &Store, cases: &[Case]) {
    if let Some(value) = mean(store, cases, (OURS, "jemalloc"), PEAK) {
        verdicts.line("peak RSS over all, to jemalloc", value, 1.0, "");
    }
    let misses: Vec<String> = cases
        .iter()
        .filter_map(|&case| {
            let ours = median(store, case, OURS, PEAK)?;
            let (least, who) = least_of_fast(store, case, PEAK)?;
            (ours > TO_SMALLEST * least).then(|| {
                let (name, mib) = (case.workload.name, 1.0 / 1024.0);
                format!("{name} {:.1} MiB, {who} {:.1}", ours * mib, least * mib)
            })
        })
        .collect();
    let what =
        format!("peak RSS of no workload above {TO_SMALLEST:.2} of the smallest fast peer's");
    verdicts.all(&what, cases.len(), &misses);
}

fn least_of_fast(store: &Store, case: Case, number: Number) -> Option<(f64, &'static str)> {
    let medians =
        FAST.into_iter().filter_map(|peer| Some((median(store, case, peer, number)?, peer)));
    medians.min_by(|one, other| one.0.total_cmp(&other.0))
}

/// The RSS after idling with a background thread, compared with the peer that has the lowest
/// geometric mean.
fn idling(verdicts: &mut Verdicts, idle: &Store, door: Door) {
    let cases = behind(idle, door);
    let number: Number = &["background_idle_kib"];
    let best = best_of_all(idle, &cases, number);
    let value = best.and_then(|best| mean(idle, &cases, (OURS, best), number));
    if let (Some(best), Some(value)) = (best, value) {
        let what = format!("RSS after idling, background thread on, to the lowest peer, {best}");
        verdicts.line(&what, value, 1.0, "");
    }
}

fn storms(verdicts: &mut Verdicts, store: &Store, cases: &[Case], (name, number): (&str, Number)) {
    let misses: Vec<String> = cases
        .iter()
        .filter_map(|&case| {
            let ours = median(store, case, OURS, number)?;
            let (least, who) = least_of_fast(store, case, number)?;
            (ours > TO_FEWEST * least && ours > least + STORM)
                .then(|| format!("{} {ours:.0}, {who} {least:.0}", case.workload.name))
        })
        .collect();
    let what = format!("{name} within {TO_FEWEST:.1} of the fast peer with the fewest");
    verdicts.all(&what, cases.len(), &misses);
}

/// The ratios to the reference for the workloads that have a target of their own.
fn pairs(verdicts: &mut Verdicts, store: &Store, cases: &[Case]) {
    for &case in cases {
        let (Some(target), Some(wall), Some(cpu)) = (
            case.target(),
            ratio(store, case, (OURS, REFERENCE), WALL),
            ratio(store, case, (OURS, REFERENCE), CPU),
        ) else {
            continue;
        };
        let what = format!("{} to {REFERENCE}", case.name());
        let note = format!("; ±{:.2}, user and system time {:.2}", wall.noise, cpu.median);
        verdicts.line(&what, wall.median, target, &note);
    }
}

#[cfg(test)]
mod tests {
    use super::section;
    use crate::cases;
    use crate::measure::Kind;
    use crate::peers;
    use crate::results::Results;
    use crate::store::{Row, Store};

    /// Results with runs of one case: for each peer time, peak RSS and faults.
    fn results(peers: &[(&str, f64, f64, f64)]) -> Results {
        let mut ratios = Store::new(Kind::Ratios.columns(), Vec::new());
        let case = cases::chosen(&["c/larson".to_owned()]).unwrap()[0];
        for &(name, time, rss, faults) in peers {
            let peer = peers::by_name(name).unwrap();
            let outcome = Ok(vec![time, time, 0.0, rss, faults]);
            ratios.push(Row { case, peer, round: 1, outcome });
        }
        Results { ratios, idle: None, calls: None, instructions: None }
    }

    #[test]
    fn what_is_reached_and_what_is_missed() {
        let text = section(&results(&[
            ("lumalloc", 9.0, 1300.0, 4000.0),
            ("lumalloc-hardened", 9.8, 1300.0, 4000.0),
            ("mimalloc", 10.0, 5000.0, 100.0),
            ("jemalloc", 12.0, 1000.0, 3000.0),
            ("tcmalloc", 7.5, 1000.0, 3000.0),
        ]));
        for line in [
            "group b (threads), time to mimalloc: 0.90, at most 0.92: reached",
            "group b (threads), time to the best peer, tcmalloc: 1.20, at most 1.00: **missed**",
            "group b (threads), hardened, time to mimalloc: 0.98, at most 1.00: reached",
            "best peer's time: **missed** in 1 of 1: larson 1.20 ±0.00 of tcmalloc",
            "peak RSS over all, to jemalloc: 1.30, at most 1.00: **missed**",
            "smallest fast peer's: **missed** in 1 of 1: larson 1.3 MiB, jemalloc 1.0",
            "page faults within 1.5 of the fast peer with the fewest: **missed** in 1 of 1: larson",
        ] {
            assert!(text.contains(line), "no line {line:?} in:\n{text}");
        }
        assert!(text.contains("2 reached, 5 missed"), "{text}");
    }

    #[test]
    fn a_few_faults_more_are_no_storm() {
        let text = section(&results(&[
            ("lumalloc", 1.0, 10.0, 900.0),
            ("mimalloc", 2.0, 10.0, 100.0),
            ("jemalloc", 2.0, 10.0, 800.0),
        ]));
        assert!(text.contains("with the fewest: reached in all 1"), "{text}");
        assert!(text.contains("0 missed"), "{text}");
    }
}
