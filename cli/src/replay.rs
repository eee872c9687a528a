//! `lumalloc replay`: the calls of a trace that vmtrace(3) wrote, on regions or malloc. Source:
//! vmalloc(3), which calls such a program mtreplay(1).

pub(crate) mod arguments;
mod blocks;
mod line;
mod plan;
mod round;
#[allow(unsafe_code)] // calls malloc and free
mod target;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use lumalloc_report::input_file;
use serde::Serialize;

use crate::failure::{Failure, Outcome, printable, reason};
use crate::profile::output;
use arguments::{MethodArgument, ReplayArguments};
use line::parse;
use plan::{Plan, Planner, Recorded};

/// The longest line of a trace, in bytes. A file of another kind may have one without an end.
const LONGEST: u64 = 1 << 16;

/// What a replay showed.
#[derive(Debug, Serialize)]
struct Report {
    regions: usize,
    allocs: usize,
    resizes: usize,
    frees: usize,
    compactions: usize,
    clears: usize,
    /// Calls about blocks that the trace had not seen.
    unknown: usize,
    /// Calls that got no memory, and frees that the method refused.
    failed: usize,
    refused: usize,
    /// How long the calls took when they were recorded, and how many threads made them, if the
    /// trace says it.
    recorded_nanoseconds: Option<u64>,
    recorded_threads: Option<usize>,
    /// The median of the rounds.
    nanoseconds: u128,
    peak_busy: usize,
    /// 0 for malloc.
    peak_extent: usize,
    extent: usize,
    live_blocks: usize,
    live_bytes: usize,
    live: Vec<Place>,
}

/// The live blocks of a place in the program.
#[derive(Debug, Serialize)]
struct Place {
    blocks: usize,
    bytes: usize,
    /// `None`: the trace does not say it.
    place: Option<String>,
}

/// Replays a trace.
pub(crate) fn replay(arguments: &ReplayArguments) -> Outcome {
    let plan = read(&arguments.trace, arguments.method).map_err(failure)?;
    let report = report(&plan, arguments).ok_or_else(|| failure("no memory for a region"))?;
    let written =
        output::json_or(arguments.json, &report, |out| write(&report, arguments.top as usize, out));
    written.map_err(failure)
}

fn failure(what: impl std::fmt::Display) -> Failure {
    Failure::new(format!("replay: {what}"))
}

/// Reads a trace. A last line without an end is left out: the program died while it wrote. A first
/// one is read all the same, so that a file of another kind is refused.
fn read(path: &Path, only: Option<MethodArgument>) -> Result<Plan, String> {
    let broken = |error| format!("{}: {}", path.display(), reason(&error));
    let mut file = BufReader::new(input_file::open(path).map_err(broken)?);
    let mut planner = Planner::default();
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        file.by_ref().take(LONGEST).read_until(b'\n', &mut bytes).map_err(broken)?;
        let text = match bytes.strip_suffix(b"\n") {
            Some(text) => String::from_utf8_lossy(text),
            // No line of a trace is that long, and an empty text is none either.
            None if bytes.len() as u64 == LONGEST => "".into(),
            None if number == 1 && !bytes.is_empty() => String::from_utf8_lossy(&bytes),
            None => break,
        };
        let Some(record) = parse(&text) else {
            return Err(format!("{}:{number}: not a line of a trace", path.display()));
        };
        planner.add(&record, only);
    }
    Ok(planner.finish())
}

/// Makes the rounds. Returns `None` if there is no memory for a region.
fn report(plan: &Plan, arguments: &ReplayArguments) -> Option<Report> {
    let discipline = arguments.discipline;
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..arguments.rounds {
        times.push(round::run(plan, discipline, false)?.time);
    }
    times.sort();
    let seen = round::run(plan, discipline, true)?;
    let counts = plan.counts;
    Some(Report {
        regions: plan.regions.len(),
        allocs: counts.allocs,
        resizes: counts.resizes,
        frees: counts.frees,
        compactions: counts.compactions,
        clears: counts.clears,
        unknown: counts.unknown,
        failed: seen.failed,
        refused: seen.refused,
        recorded_nanoseconds: plan.recorded.as_ref().map(Recorded::nanoseconds),
        recorded_threads: plan.recorded.as_ref().map(Recorded::threads),
        nanoseconds: times.get(times.len() / 2)?.as_nanos(),
        peak_busy: plan.peak,
        peak_extent: seen.peak_extent,
        extent: seen.extent,
        live_blocks: plan.live.len(),
        live_bytes: plan.live.iter().fold(0, |sum, live| sum.saturating_add(live.size)),
        live: places(plan),
    })
}

/// The live blocks by the places that allocated them, the most bytes first.
fn places(plan: &Plan) -> Vec<Place> {
    let mut sums: BTreeMap<Option<&str>, (usize, usize)> = BTreeMap::new();
    for live in &plan.live {
        let (blocks, bytes) = sums.entry(live.place.as_deref()).or_default();
        *blocks += 1;
        *bytes = bytes.saturating_add(live.size);
    }
    let place = |(place, (blocks, bytes)): (Option<&str>, _)| Place {
        blocks,
        bytes,
        place: place.map(str::to_owned),
    };
    let mut places: Vec<Place> = sums.into_iter().map(place).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.bytes));
    places
}

fn write(report: &Report, top: usize, out: &mut dyn Write) -> std::io::Result<()> {
    let calls = report.allocs + report.resizes + report.frees + report.compactions;
    writeln!(out, "regions          {}", report.regions)?;
    writeln!(
        out,
        "calls            {calls}: {} allocations, {} resizes, {} frees, {} compactions",
        report.allocs, report.resizes, report.frees, report.compactions
    )?;
    for (count, what) in [
        (report.clears, "times a region was cleared"),
        (report.unknown, "calls about blocks that the trace had not seen"),
        (report.failed, "calls that got no memory"),
        (report.refused, "frees that the method refused"),
    ] {
        if count > 0 {
            writeln!(out, "                 {count} {what}")?;
        }
    }
    if let (Some(nanoseconds), Some(threads)) =
        (report.recorded_nanoseconds, report.recorded_threads)
    {
        let (seconds, plural) = (nanoseconds as f64 / 1e9, if threads == 1 { "" } else { "s" });
        writeln!(out, "recorded         {seconds:.3} s, by {threads} thread{plural}")?;
    }
    let millis = report.nanoseconds as f64 / 1e6;
    write!(out, "time             {millis:.3} ms")?;
    if calls > 0 {
        write!(out, ", {:.1} ns a call", report.nanoseconds as f64 / calls as f64)?;
    }
    writeln!(out)?;
    writeln!(out, "peak in use      {} bytes", report.peak_busy)?;
    if report.peak_extent > 0 {
        let ratio = report.peak_extent as f64 / report.peak_busy.max(1) as f64;
        let extent = report.peak_extent;
        writeln!(out, "peak extent      {extent} bytes, {ratio:.2} times the peak in use")?;
        writeln!(out, "extent at end    {} bytes", report.extent)?;
    }
    writeln!(out, "live at end      {} blocks, {} bytes", report.live_blocks, report.live_bytes)?;
    for place in report.live.iter().take(top) {
        let name = printable(place.place.as_deref().unwrap_or("?"));
        writeln!(out, "  {:>12} bytes {:>10} blocks  {name}", place.bytes, place.blocks)?;
    }
    if report.live.len() > top {
        writeln!(out, "  and {} places more", report.live.len() - top)?;
    }
    Ok(())
}
