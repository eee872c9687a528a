//! Keeps rounds of earlier commands, so that a long measurement can be made in pieces (`--merge`).

use super::launch::Sample;
use super::report::Series;
use crate::machine;
use crate::peers;
use crate::report::aligned;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// What is known of a case besides its rounds: a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) case: &'static str,
    pub(crate) cells: Vec<String>,
}

/// What was measured: rounds, a note for each case, and the machine and versions.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) series: Vec<Series>,
    pub(crate) notes: Vec<Note>,
    pub(crate) facts: Vec<(String, String)>,
}

/// What a report shows.
pub(crate) struct Kept {
    pub(crate) cases: Vec<&'static str>,
    pub(crate) series: Vec<Series>,
    pub(crate) facts: Vec<(String, String)>,
    notes: Vec<Note>,
}

impl Kept {
    /// The notes as a table.
    pub(crate) fn table(&self, head: &[&str]) -> String {
        let mut rows = vec![head.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>()];
        for note in &self.notes {
            rows.push([note.case.to_owned()].into_iter().chain(note.cells.clone()).collect());
        }
        aligned(&rows)
    }
}

/// What was measured now, together with other cases in the file if `is_merged`. The file then holds
/// all of them. A case that was measured again is replaced with all its peers, because ratios are
/// taken within one measurement. `known` is every case, in the order of the report.
pub(crate) fn merged(
    file: &Path,
    is_merged: bool,
    known: &[&'static str],
    measured: Measured,
) -> Result<Kept, String> {
    let Measured { mut series, mut notes, mut facts } = measured;
    if is_merged && file.exists() {
        let text = fs::read_to_string(file).map_err(|error| format!("earlier rounds: {error}"))?;
        let earlier = read(&text, known);
        let is_old = |case: &str| series.iter().all(|one| one.case != case);
        let others: Vec<Series> =
            earlier.series.into_iter().filter(|one| is_old(one.case)).collect();
        let is_old = |note: &Note| notes.iter().all(|other| other.case != note.case);
        let other_notes: Vec<Note> = earlier.notes.into_iter().filter(is_old).collect();
        if !others.is_empty() {
            facts = machine::merged(facts, earlier.facts);
        }
        series.extend(others);
        notes.extend(other_notes);
    }
    let place = |case: &str| known.iter().position(|other| *other == case);
    series.sort_by_key(|one| place(one.case));
    notes.sort_by_key(|note| place(note.case));
    let mut cases: Vec<&'static str> = series.iter().map(|one| one.case).collect();
    cases.dedup();
    let text = written(&series, &notes, &facts);
    fs::write(file, text).map_err(|error| format!("the rounds: {error}"))?;
    Ok(Kept { cases, series, facts, notes })
}

fn written(series: &[Series], notes: &[Note], facts: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in facts {
        let _ = writeln!(text, "fact\t{name}\t{value}");
    }
    for note in notes {
        let _ = writeln!(text, "note\t{}\t{}", note.case, note.cells.join("\t"));
    }
    for one in series {
        if let Err(why) = &one.outcome {
            let why = why.replace(['\t', '\n'], " ");
            let _ = writeln!(text, "failed\t{}\t{}\t{why}", one.case, one.peer);
        }
        for s in one.outcome.iter().flatten() {
            let left = s.left_rss_kib.unwrap_or(0.0);
            let (case, peer) = (one.case, one.peer);
            let numbers = [s.wall_s, s.cpu_s, s.peak_rss_kib, left, s.faults];
            let numbers = numbers.map(|number| number.to_string()).join("\t");
            let _ = writeln!(text, "{case}\t{peer}\t{numbers}");
        }
    }
    text
}

/// Reads a file. Cases and peers that no longer exist are skipped.
fn read(text: &str, known: &[&'static str]) -> Measured {
    let mut found = Measured::default();
    let case = |name: &str| known.iter().copied().find(|case| *case == name);
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells.as_slice() {
            ["fact", name, value] => found.facts.push(((*name).to_owned(), (*value).to_owned())),
            ["note", name, rest @ ..] => {
                let cells = rest.iter().map(|cell| (*cell).to_owned()).collect();
                found.notes.extend(case(name).map(|case| Note { case, cells }));
            }
            ["failed", name, peer, why] => {
                if let (Some(case), Ok(peer)) = (case(name), peers::by_name(peer)) {
                    let outcome = Err((*why).to_owned());
                    found.series.push(Series { case, peer: peer.name, outcome });
                }
            }
            _ => {
                if let Some((case, peer, sample)) = round(&cells, known) {
                    push(&mut found.series, case, peer, sample);
                }
            }
        }
    }
    found
}

fn round(cells: &[&str], known: &[&'static str]) -> Option<(&'static str, &'static str, Sample)> {
    let [case, peer, rest @ ..] = cells else { return None };
    let case = known.iter().copied().find(|known| known == case)?;
    let peer = peers::by_name(peer).ok()?.name;
    let numbers: Vec<f64> = rest.iter().filter_map(|cell| cell.parse().ok()).collect();
    let &[wall_s, cpu_s, peak_rss_kib, left, faults] = numbers.as_slice() else { return None };
    let left_rss_kib = Some(left).filter(|left| *left > 0.0);
    Some((case, peer, Sample { wall_s, cpu_s, peak_rss_kib, left_rss_kib, faults }))
}

fn push(series: &mut Vec<Series>, case: &'static str, peer: &'static str, sample: Sample) {
    match series.iter_mut().find(|one| (one.case, one.peer) == (case, peer)) {
        Some(Series { outcome: Ok(samples), .. }) => samples.push(sample),
        Some(_) => {}
        None => series.push(Series { case, peer, outcome: Ok(vec![sample]) }),
    }
}

#[cfg(test)]
mod tests {
    use super::{Measured, Note, merged, read, written};
    use crate::programs::launch::Sample;
    use crate::programs::report::Series;

    #[test]
    fn what_was_written_is_read_again() {
        let sample = Sample {
            wall_s: 1.5,
            cpu_s: 1.25,
            peak_rss_kib: 2048.0,
            left_rss_kib: Some(1024.0),
            faults: 7.0,
        };
        let one = Series { case: "lua", peer: "glibc", outcome: Ok(vec![sample, sample]) };
        let other = Series { case: "lua", peer: "jemalloc", outcome: Err("it\tdied\n".to_owned()) };
        let note = Note { case: "lua", cells: vec!["3".to_owned(), "4".to_owned()] };
        let facts = [("kernel".to_owned(), "6".to_owned())];
        let text = written(&[one, other], std::slice::from_ref(&note), &facts);
        let text = text + "gone\tglibc\t1\t1\t1\t1\t1\nlua\tnobody\t1\t1\t1\t1\t1\n";
        let found = read(&text, &["z3", "lua"]);
        assert_eq!((found.series.len(), found.notes), (2, vec![note]));
        assert_eq!(found.series[0].outcome.as_ref().unwrap(), &[sample, sample]);
        assert_eq!(found.series[1].outcome.as_ref().unwrap_err(), "it died ");
        assert_eq!(found.facts, facts);
    }

    #[test]
    fn other_cases_stay_and_the_same_is_replaced() {
        let file = std::env::temp_dir().join(format!("lumalloc-kept-{}", std::process::id()));
        let series = |case, wall_s: f64| {
            let sample =
                Sample { wall_s, cpu_s: 1.0, peak_rss_kib: 1.0, left_rss_kib: None, faults: 1.0 };
            let peer = if wall_s > 2.0 { "glibc" } else { "jemalloc" };
            let series = vec![Series { case, peer, outcome: Ok(vec![sample]) }];
            let facts = vec![("run".to_owned(), wall_s.to_string())];
            Measured { series, notes: Vec::new(), facts }
        };
        let known = ["lua", "z3"];
        let kept = |is_merged, measured| merged(&file, is_merged, &known, measured).unwrap();
        kept(false, series("z3", 1.0));
        kept(true, series("lua", 2.0));
        let last = kept(true, series("z3", 3.0));
        let alone = kept(false, series("z3", 4.0));
        std::fs::remove_file(&file).unwrap();
        let walls = |kept: &super::Kept| -> Vec<f64> {
            kept.series.iter().map(|one| one.outcome.as_ref().unwrap()[0].wall_s).collect()
        };
        assert_eq!((last.cases.clone(), walls(&last)), (vec!["lua", "z3"], vec![2.0, 3.0]));
        assert_eq!(walls(&alone), [4.0]);
        let facts: Vec<&str> = last.facts.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!((facts, alone.facts.len()), (vec!["3", "2", "1"], 1));
    }
}
