//! `lumalloc events`: recordings of the heap monitor.

pub(crate) mod arguments;
mod values;

use std::io::Write;

use lumalloc_report::events::{
    AnalysisOptions, By, LifetimesOptions, Names, PinsOptions, Recording, Stop, dump, dump_json,
    lifetimes, lifetimes_json, lines, pins, pins_json,
};

use crate::failure::{Failure, Outcome, tell};
use crate::profile::output;
use arguments::{ByArgument, EventsArguments};

/// How many deleted blocks the analysis shows.
const DELETED: u32 = 100;
/// How many rows a table has.
const TOP: u32 = 20;
/// How many pages are listed with their blocks.
const EMPTIEST: u32 = 5;

/// Shows a recording.
pub(crate) fn show(arguments: &EventsArguments) -> Outcome {
    let output = arguments.output.as_deref();
    let program = arguments.program.as_ref().map(|path| (path, "the program"));
    let inputs = [(&arguments.file, "the recording")].into_iter().chain(program);
    output::check(output, inputs).map_err(failure)?;
    let recording = Recording::open(&arguments.file).map_err(failure)?;
    let search = arguments.names.search(arguments.program.as_deref()).map_err(failure)?;
    let mut names = Names::new(&recording, &search).map_err(failure)?;
    for note in recording.notes().iter().chain(names.notes()) {
        tell(format_args!("lumalloc: events: warning: {note}\n"));
    }
    let written = output::stream(output, |out| {
        write(arguments, &mut names, out).map_err(|stop| match stop {
            Stop::Input(error) => output::Stop::Input(error.to_string()),
            Stop::Output(error) => output::Stop::Output(error),
        })
    });
    written.map_err(failure)?;
    recording.damage().map_or(Ok(()), |error| Err(failure(error)))
}

fn write(
    arguments: &EventsArguments,
    names: &mut Names<'_>,
    out: &mut dyn Write,
) -> Result<(), Stop> {
    let filter = arguments.filter.filter();
    let by = match arguments.by {
        None | Some(ByArgument::Site) => By::Site,
        Some(ByArgument::Stack) => By::Stack,
        Some(ByArgument::Type) => By::Type,
    };
    let top = arguments.top.unwrap_or(TOP) as usize;
    if arguments.analyze {
        let deleted = if arguments.live { 0 } else { arguments.deleted.unwrap_or(DELETED) };
        let options = AnalysisOptions { filter, deleted: deleted as usize };
        let show = if arguments.json { dump_json } else { dump };
        show(names, &options, out)
    } else if arguments.lifetimes {
        let show = if arguments.json { lifetimes_json } else { lifetimes };
        show(names, &LifetimesOptions { filter, by, top }, out)
    } else if arguments.pins {
        let page = arguments.page.unwrap_or_default();
        let emptiest = arguments.emptiest.unwrap_or(EMPTIEST) as usize;
        let show = if arguments.json { pins_json } else { pins };
        show(names, &PinsOptions { filter, by, top, page, emptiest }, out)
    } else {
        lines(names, &filter, out)
    }
}

fn failure(what: impl std::fmt::Display) -> Failure {
    Failure::new(format!("events: {what}"))
}
