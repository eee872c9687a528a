//! `lumalloc events`: recordings of the heap monitor.

pub(crate) mod arguments;
mod values;

use lumalloc_report::events::{Names, Recording, Stop, lines};

use crate::failure::{Failure, Outcome};
use crate::profile::output;
use arguments::EventsArguments;

/// Shows a recording.
pub(crate) fn show(arguments: &EventsArguments) -> Outcome {
    let output = arguments.output.as_deref();
    output::check(output, [&arguments.file].into_iter(), "the recording").map_err(failure)?;
    let recording = Recording::open(&arguments.file).map_err(failure)?;
    let search = arguments.names.search(arguments.program.as_deref());
    let mut names = Names::new(&recording, &search).map_err(failure)?;
    for note in recording.notes().iter().chain(names.notes()) {
        eprintln!("lumalloc: events: warning: {note}");
    }
    let filter = arguments.filter.filter();
    let written = output::stream(output, |out| {
        let shown = lines(&recording, &mut names, &filter, out);
        shown.map_err(|stop| match stop {
            Stop::Input(error) => output::Stop::Input(error.to_string()),
            Stop::Output(error) => output::Stop::Output(error),
        })
    });
    written.map_err(failure)
}

fn failure(what: impl std::fmt::Display) -> Failure {
    Failure::new(format!("events: {what}"))
}
