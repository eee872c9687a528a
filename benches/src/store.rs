//! The results, run by run, and their form as CSV. A command can read the results of an earlier
//! one, so that a long measurement can be made in pieces.

use crate::cases::{self, Case, Door};
use crate::machine;
use crate::peers::{self, PEERS, Peer};
use std::fmt::Write;

/// One run of one case on one peer.
#[derive(Clone)]
pub(crate) struct Row {
    pub(crate) case: Case,
    pub(crate) peer: &'static Peer,
    pub(crate) round: usize,
    /// A number for each column, or why the run failed.
    pub(crate) outcome: Result<Vec<f64>, String>,
}

/// All runs of one kind of measurement.
#[derive(Clone)]
pub(crate) struct Store {
    columns: &'static [&'static str],
    /// The machine and versions that it was measured with.
    pub(crate) facts: Vec<(String, String)>,
    rows: Vec<Row>,
}

impl Store {
    /// A store without runs.
    pub(crate) fn new(columns: &'static [&'static str], facts: Vec<(String, String)>) -> Self {
        Self { columns, facts, rows: Vec::new() }
    }

    /// Adds a run.
    pub(crate) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Whether this peer failed in this case.
    pub(crate) fn failed(&self, case: Case, peer: &str) -> bool {
        self.of(case, peer).any(|row| row.outcome.is_err())
    }

    /// All failed runs, with the reasons.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&Row, &str)> {
        self.rows.iter().filter_map(|row| row.outcome.as_ref().err().map(|why| (row, why.as_str())))
    }

    fn of(&self, case: Case, peer: &str) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| row.peer.name == peer && row.case == case)
    }

    /// The sum of some columns for every round in order; `None` if a run failed.
    pub(crate) fn sums(&self, case: Case, peer: &str, columns: &[&str]) -> Option<Vec<f64>> {
        let at: Option<Vec<usize>> =
            columns.iter().map(|name| self.columns.iter().position(|c| c == name)).collect();
        let at = at?;
        let sum = |row: &Row| -> Option<f64> {
            let numbers = row.outcome.as_ref().ok()?;
            Some(at.iter().map(|&i| numbers[i]).sum())
        };
        let sums: Option<Vec<f64>> = self.of(case, peer).map(sum).collect();
        sums.filter(|sums| !sums.is_empty())
    }

    /// The cases that have runs, in the order of the tables.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let all = cases::chosen(&[]).unwrap_or_default();
        all.into_iter().filter(|case| self.rows.iter().any(|row| row.case == *case)).collect()
    }

    /// The peers that have runs for C or for Rust, in the order of the tables.
    pub(crate) fn peers(&self, door: Door) -> Vec<&'static Peer> {
        let ran = |peer: &Peer| {
            self.rows.iter().any(|row| row.case.door == door && row.peer.name == peer.name)
        };
        PEERS.iter().filter(|peer| ran(peer)).collect()
    }

    /// The peers that have runs of a kind of program here, and are not among these.
    pub(crate) fn peers_beside(&self, door: Door, others: &[&'static Peer]) -> Vec<&'static str> {
        let is_missing = |peer: &&'static Peer| others.iter().all(|other| other.name != peer.name);
        self.peers(door).into_iter().filter(is_missing).map(|peer| peer.name).collect()
    }

    /// The largest number of rounds of any case.
    pub(crate) fn rounds(&self) -> usize {
        self.rows.iter().map(|row| row.round).max().unwrap_or(0)
    }

    /// These runs with newer ones in place of old ones. A case that was measured again is replaced
    /// as a whole, because ratios are taken within one measurement. Facts of the earlier ones stay
    /// where they differ.
    pub(crate) fn with(mut self, newer: Self) -> Self {
        self.rows.retain(|row| newer.rows.iter().all(|other| other.case != row.case));
        self.rows.extend(newer.rows);
        let facts = machine::merged(newer.facts, self.facts);
        Self { columns: self.columns, facts, rows: self.rows }
    }

    /// The facts, then one line per run.
    pub(crate) fn csv(&self) -> String {
        let mut text: String =
            self.facts.iter().map(|(name, value)| format!("# {name}: {value}\n")).collect();
        let _ = writeln!(text, "door,workload,group,peer,round,{},failed", self.columns.join(","));
        for row in &self.rows {
            let workload = row.case.workload;
            let (door, name, group) = (row.case.door.name(), workload.name, workload.group);
            let _ = write!(text, "{door},{name},{group},{},{}", row.peer.name, row.round);
            let _ = match &row.outcome {
                Ok(numbers) => {
                    numbers.iter().for_each(|number| _ = write!(text, ",{number}"));
                    writeln!(text, ",")
                }
                Err(why) => {
                    let empty = ",".repeat(self.columns.len());
                    writeln!(text, "{empty},{}", why.replace([',', '\n'], ";"))
                }
            };
        }
        text
    }

    /// Reads the text of [`Store::csv`]. Cases and peers that no longer exist are left out.
    pub(crate) fn read(text: &str, columns: &'static [&'static str]) -> Result<Self, String> {
        let fact = |line: &str| -> Option<(String, String)> {
            let (name, value) = line.strip_prefix("# ")?.split_once(": ")?;
            Some((name.to_owned(), value.to_owned()))
        };
        let mut store = Self::new(columns, text.lines().filter_map(fact).collect());
        let mut lines = text.lines().skip_while(|line| line.starts_with("# "));
        let expected = format!("door,workload,group,peer,round,{},failed", columns.join(","));
        if lines.next() != Some(&expected) {
            return Err("other columns than this version writes: measure again".to_owned());
        }
        for line in lines {
            let cells: Vec<&str> = line.split(',').collect();
            let [door, workload, _, peer, round, numbers @ .., failed] = cells.as_slice() else {
                return Err(format!("not a line of results: {line}"));
            };
            let found = cases::chosen(&[format!("{door}/{workload}")]);
            let (Ok(found), Ok(peer)) = (found, peers::by_name(peer)) else { continue };
            let numbers: Result<Vec<f64>, _> = numbers.iter().map(|n| n.parse::<f64>()).collect();
            let outcome = numbers.map_err(|_| (*failed).to_owned());
            let round = round.parse().map_err(|_| format!("not a round: {line}"))?;
            store.push(Row { case: found[0], peer, round, outcome });
        }
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Store};
    use crate::cases::Door;
    use crate::{cases, peers};

    const COLUMNS: &[&str] = &["one", "two"];

    fn row(case: &str, peer: &str, outcome: Result<Vec<f64>, String>) -> Row {
        let case = cases::chosen(&[case.to_owned()]).unwrap()[0];
        Row { case, peer: peers::by_name(peer).unwrap(), round: 1, outcome }
    }

    fn sample() -> Store {
        let mut store = Store::new(COLUMNS, vec![("kernel".to_owned(), "6".to_owned())]);
        store.push(row("c/pair", "glibc", Ok(vec![1.5, 2.0])));
        store.push(row("c/pair", "jemalloc", Err("it died, badly".to_owned())));
        store
    }

    #[test]
    fn what_is_written_is_read_again() {
        let read = Store::read(&sample().csv(), COLUMNS).unwrap();
        assert_eq!(read.csv(), sample().csv().replace("died,", "died;"));
        let case = read.cases()[0];
        assert_eq!(read.sums(case, "glibc", &["one", "two"]), Some(vec![3.5]));
        assert_eq!(read.sums(case, "jemalloc", &["one"]), None);
        assert_eq!(read.failures().next().unwrap().1, "it died; badly");
        assert!(Store::read(&sample().csv(), &["one"]).is_err());
    }

    #[test]
    fn a_case_measured_again_is_replaced_whole() {
        let mut newer = Store::new(COLUMNS, vec![("kernel".to_owned(), "7".to_owned())]);
        newer.push(row("c/pair", "snmalloc", Ok(vec![4.0, 4.0])));
        let both = sample().with(newer);
        let case = both.cases()[0];
        assert_eq!(both.sums(case, "glibc", &["one"]), None);
        assert_eq!(both.sums(case, "snmalloc", &["two"]), Some(vec![4.0]));
        let kernels: Vec<&str> = both.facts.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(kernels, ["7", "6"]);
    }

    #[test]
    fn peers_that_would_be_missing_are_named() {
        let others = [peers::by_name("glibc").unwrap()];
        assert_eq!(sample().peers_beside(Door::C, &others), ["jemalloc"]);
        assert_eq!(sample().peers_beside(Door::Rust, &others), [""; 0]);
    }
}
