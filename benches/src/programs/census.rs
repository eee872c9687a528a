//! How much a program allocates: a program that bypasses malloc says nothing about an allocator.

use super::keep::Note;
use super::launch::{Stage, once};
use super::line::Values;
use super::table::Program;
use crate::commands::finish;
use crate::places::Places;
use crate::progress::progress;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The fewest allocations of a full run that say something about an allocator. Ghostscript makes
/// 7000, of 14 KiB on average, and cuts them up itself.
const FEWEST: u64 = 5000;

/// The requests of one full run, summed over all its processes.
pub(crate) struct Count {
    name: &'static str,
    allocations: u64,
    bytes: u64,
    threads: u64,
}

/// The length of the recorder's head, a page: events, allocations, bytes, threads.
pub(crate) const HEAD: usize = 4096;

/// Builds the recorder, a shared object that is preloaded in front of the C library.
pub(crate) fn recorder(places: &Places) -> Result<PathBuf, String> {
    let path = places.built("record.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]);
    gcc.arg("-fno-builtin");
    finish(gcc.arg(places.benches("recorder/record.c")).arg("-o").arg(&path))?;
    Ok(path)
}

/// A number of the recorder's head.
pub(crate) fn number(head: &[u8], index: usize) -> u64 {
    let bytes = head.get(8 * index..8 * index + 8);
    bytes.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

/// Runs every program once with the recorder counting.
pub(crate) fn take(
    places: &Places,
    launch: &Path,
    programs: &[&'static Program],
    values: &Values,
) -> Result<Vec<Count>, String> {
    let recorder = recorder(places)?;
    let file = values.made.join("census");
    let stage = Stage { launch, values };
    let mut counts = Vec::new();
    for program in programs {
        progress(&format!("counting {}", program.name));
        fs::write(&file, [0; HEAD]).map_err(|error| format!("the census: {error}"))?;
        once(&stage, program, &|command| {
            command.env("LD_PRELOAD", &recorder).env("LUMALLOC_RECORD", &file);
        })
        .map_err(|why| format!("{} under the recorder: {why}", program.name))?;
        let head = fs::read(&file).map_err(|error| format!("the census: {error}"))?;
        let count = Count {
            name: program.name,
            allocations: number(&head, 1),
            bytes: number(&head, 2),
            threads: number(&head, 3),
        };
        if count.allocations < FEWEST * u64::from(values.percent) / 100 {
            return Err(format!("{} allocates {} times only", program.name, count.allocations));
        }
        counts.push(count);
    }
    Ok(counts)
}

/// The columns of the counts.
pub(crate) const COLUMNS: [&str; 4] =
    ["", "allocations, thousands", "bytes each, mean", "threads of all processes"];

/// The counts as rows of the report.
pub(crate) fn notes(counts: &[Count]) -> Vec<Note> {
    let row = |count: &Count| Note {
        case: count.name,
        cells: vec![
            (count.allocations / 1000).to_string(),
            (count.bytes / count.allocations.max(1)).to_string(),
            count.threads.to_string(),
        ],
    };
    counts.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::{Count, notes, number};

    #[test]
    fn a_head_is_read() {
        let mut head = [0; 24];
        head[8] = 7;
        head[17] = 1;
        assert_eq!([0, 1, 2, 3].map(|index| number(&head, index)), [0, 7, 256, 0]);
    }

    #[test]
    fn counts_stand_in_the_report() {
        let rows = notes(&[Count { name: "a", allocations: 2000, bytes: 64_000, threads: 3 }]);
        assert_eq!((rows[0].case, rows[0].cells.join(" ")), ("a", "2 32 3".to_owned()));
    }
}
