//! `lumalloc region`: regions that vmmopen(3) made, from their files.

pub(crate) mod arguments;

use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lumalloc_region::SharedRegion;
use serde::Serialize;

use crate::failure::{Failure, Outcome, reason};
use crate::profile::output;
use arguments::{Action, RegionArguments};

/// What `lumalloc region stat` shows.
#[derive(Debug, Serialize)]
struct Report {
    address: usize,
    busy: usize,
    busy_bytes: usize,
    busy_largest: usize,
    free: usize,
    free_bytes: usize,
    free_largest: usize,
    extent: usize,
    room: usize,
    /// The process that was in the region.
    process: Option<u32>,
    /// Whether it ended there.
    ended: bool,
}

/// A block in use.
#[derive(Debug, Serialize)]
struct Block {
    address: usize,
    bytes: usize,
}

/// Does what is wanted with a region.
pub(crate) fn region(arguments: &RegionArguments) -> Outcome {
    match &arguments.action {
        Action::Stat(of) => {
            let report = report(&mut open(&of.file)?);
            output::json_or(of.json, &report, |out| write(&report, out)).map_err(failure)
        }
        Action::Walk(of) => {
            let mut blocks = Vec::new();
            let mut see = |address, bytes| blocks.push(Block { address, bytes });
            open(&of.file)?.for_each_block(&mut see);
            output::json_or(of.json, &blocks, |out| {
                blocks
                    .iter()
                    .try_for_each(|block| writeln!(out, "{:x} {}", block.address, block.bytes))
            })
            .map_err(failure)
        }
        Action::Check(of) => {
            if open(&of.file)?.is_whole() {
                return Ok(());
            }
            let what = "words between blocks were overwritten";
            Err(failure(format!("{}: {what}", of.file.display())))
        }
        Action::Compact(of) => {
            open(&of.file)?.compact();
            Ok(())
        }
    }
}

fn failure(what: impl std::fmt::Display) -> Failure {
    Failure::new(format!("region: {what}"))
}

/// Opens the region in a file.
fn open(path: &Path) -> Outcome<SharedRegion> {
    let broken = |what: String| failure(format!("{}: {what}", path.display()));
    let name = CString::new(path.as_os_str().as_bytes());
    let name = name.map_err(|_| broken("not a path".to_owned()))?;
    SharedRegion::open(&name).map_err(|code| {
        broken(match code {
            libc::EINVAL => "no region, or cut off".to_owned(),
            libc::EADDRINUSE => "its addresses are in use in this process".to_owned(),
            _ => reason(&std::io::Error::from_raw_os_error(code)),
        })
    })
}

fn report(region: &mut SharedRegion) -> Report {
    let stat = region.stat();
    Report {
        address: region.base(),
        busy: stat.busy,
        busy_bytes: stat.busy_bytes,
        busy_largest: stat.busy_largest,
        free: stat.free,
        free_bytes: stat.free_bytes,
        free_largest: stat.free_largest,
        extent: stat.extent,
        room: region.room(),
        process: region.holder().map(|holder| holder.process),
        ended: region.holder().is_some_and(|holder| !holder.is_alive()),
    }
}

fn write(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    let blocks = |count: usize, bytes: usize, largest: usize| {
        format!("{count} blocks, {bytes} bytes, the largest {largest}")
    };
    let (busy, free) = (
        blocks(report.busy, report.busy_bytes, report.busy_largest),
        blocks(report.free, report.free_bytes, report.free_largest),
    );
    writeln!(out, "address   {:x}", report.address)?;
    writeln!(out, "in use    {busy}")?;
    writeln!(out, "free      {free}")?;
    writeln!(out, "extent    {} bytes, room for {}", report.extent, report.room)?;
    match report.process {
        None => writeln!(out, "lock      free"),
        Some(process) if report.ended => {
            writeln!(out, "lock      process {process} ended in a call; taken over")
        }
        Some(process) => writeln!(out, "lock      process {process} was in a call"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_whose_addresses_are_taken_is_said() {
        let name = format!("lumalloc-cli-region-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let first = SharedRegion::open_or_make(&name, 1 << 16).unwrap();
        let second = open(&path).err();
        drop(first);
        std::fs::remove_file(&path).unwrap();
        let why = "its addresses are in use in this process";
        assert_eq!(second, Some(failure(format!("{}: {why}", path.display()))));
    }

    #[test]
    fn who_was_in_the_region_is_said() {
        let shown = |process, ended| {
            let report = Report {
                address: 0x7000,
                busy: 2,
                busy_bytes: 96,
                busy_largest: 64,
                free: 1,
                free_bytes: 4000,
                free_largest: 4000,
                extent: 8192,
                room: 65536,
                process,
                ended,
            };
            let mut text = Vec::new();
            write(&report, &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let numbers = "\
address   7000
in use    2 blocks, 96 bytes, the largest 64
free      1 blocks, 4000 bytes, the largest 4000
extent    8192 bytes, room for 65536
";
        for (process, ended, lock) in [
            (None, false, "free"),
            (Some(7), true, "process 7 ended in a call; taken over"),
            (Some(7), false, "process 7 was in a call"),
        ] {
            assert_eq!(shown(process, ended), format!("{numbers}lock      {lock}\n"));
        }
    }
}
