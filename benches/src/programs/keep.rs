//! Keeps rounds of earlier commands, so that a long measurement can be made in pieces (`--merge`).

use super::launch::Sample;
use super::report::Series;
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

/// The series and notes of a report.
pub(crate) struct Kept {
    pub(crate) cases: Vec<&'static str>,
    pub(crate) series: Vec<Series>,
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

/// These series and notes, together with those of other cases in the file if `is_merged`. The file
/// then holds all of them. `known` is every case, in the order of the report.
pub(crate) fn merged(
    file: &Path,
    is_merged: bool,
    known: &[&'static str],
    mut series: Vec<Series>,
    mut notes: Vec<Note>,
) -> Result<Kept, String> {
    if is_merged && file.exists() {
        let text = fs::read_to_string(file).map_err(|error| format!("earlier rounds: {error}"))?;
        let (earlier, earlier_notes) = read(&text, known);
        let is_new =
            |case: &str, peer: &str| series.iter().all(|one| (one.case, one.peer) != (case, peer));
        let others: Vec<Series> =
            earlier.into_iter().filter(|one| is_new(one.case, one.peer)).collect();
        series.extend(others);
        let is_new = |note: &Note| notes.iter().all(|other| other.case != note.case);
        let others: Vec<Note> = earlier_notes.into_iter().filter(is_new).collect();
        notes.extend(others);
    }
    let place = |case: &str| known.iter().position(|other| *other == case);
    series.sort_by_key(|one| place(one.case));
    notes.sort_by_key(|note| place(note.case));
    let mut cases: Vec<&'static str> = series.iter().map(|one| one.case).collect();
    cases.dedup();
    let text = written(&series, &notes);
    fs::write(file, text).map_err(|error| format!("the rounds: {error}"))?;
    Ok(Kept { cases, series, notes })
}

fn written(series: &[Series], notes: &[Note]) -> String {
    let mut text = String::new();
    for note in notes {
        let _ = writeln!(text, "note\t{}\t{}", note.case, note.cells.join("\t"));
    }
    for one in series {
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
fn read(text: &str, known: &[&'static str]) -> (Vec<Series>, Vec<Note>) {
    let (mut series, mut notes) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let case = |name: &str| known.iter().copied().find(|case| *case == name);
        if let ["note", name, rest @ ..] = cells.as_slice() {
            let cells = rest.iter().map(|cell| (*cell).to_owned()).collect();
            notes.extend(case(name).map(|case| Note { case, cells }));
        } else if let Some((case, peer, sample)) = round(&cells, known) {
            push(&mut series, case, peer, sample);
        }
    }
    (series, notes)
}

fn round(cells: &[&str], known: &[&'static str]) -> Option<(&'static str, &'static str, Sample)> {
    let [case, peer, rest @ ..] = cells else { return None };
    let case = known.iter().copied().find(|known| known == case)?;
    let peer = crate::peers::by_name(peer).ok()?.name;
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
    use super::{Note, merged, read, written};
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
        let note = Note { case: "lua", cells: vec!["3".to_owned(), "4".to_owned()] };
        let text = written(&[one], std::slice::from_ref(&note));
        let text = text + "gone\tglibc\t1\t1\t1\t1\t1\nlua\tnobody\t1\t1\t1\t1\t1\n";
        let (series, notes) = read(&text, &["z3", "lua"]);
        assert_eq!((series.len(), notes), (1, vec![note]));
        assert_eq!(series[0].outcome.as_ref().unwrap(), &[sample, sample]);
    }

    #[test]
    fn other_cases_stay_and_the_same_is_replaced() {
        let file = std::env::temp_dir().join(format!("lumalloc-kept-{}", std::process::id()));
        let series = |case, wall_s| {
            let sample =
                Sample { wall_s, cpu_s: 1.0, peak_rss_kib: 1.0, left_rss_kib: None, faults: 1.0 };
            vec![Series { case, peer: "glibc", outcome: Ok(vec![sample]) }]
        };
        let known = ["lua", "z3"];
        let kept =
            |is_merged, series| merged(&file, is_merged, &known, series, Vec::new()).unwrap();
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
    }
}
