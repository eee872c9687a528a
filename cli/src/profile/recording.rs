//! `lumalloc heap` of a recording of the heap monitor: how long blocks live, and who pins memory.

use std::io::Write;

use lumalloc_report::events::{
    By, Filter, LifetimesOptions, Names, PageSize, PinsOptions, Recording, Stop, lifetimes, pins,
};

use super::arguments::{ByArgument, HeapArguments, ValueArgument};
use super::{Command, output};
use crate::failure::{Outcome, tell};

/// How many pages are listed with their blocks.
const EMPTIEST: usize = 5;

/// Shows a recording.
pub(super) fn show(command: &Command<'_>, arguments: &HeapArguments) -> Outcome {
    let path = arguments.file.display();
    let Some(by) = by(&arguments.by) else {
        return Err(command.failure(format_args!(
            "{path} is a recording of the heap monitor; --by is site, stack or type there"
        )));
    };
    if let Some(option) = of_profiles(arguments) {
        return Err(command.failure(format_args!(
            "{path} is a recording of the heap monitor; {option} needs a profile (`lumalloc \
             events --help` has the forms of recordings)"
        )));
    }
    let program = arguments.program.as_ref().map(|path| (path, "the program"));
    let inputs = [(&arguments.file, "the recording")].into_iter().chain(program);
    output::check(command.output, inputs).map_err(|what| command.failure(what))?;
    let recording = Recording::open(&arguments.file).map_err(|what| command.failure(what))?;
    let search = arguments.names.search(arguments.program.as_deref());
    let search = search.map_err(|what| command.failure(what))?;
    let mut names = Names::new(&recording, &search).map_err(|what| command.failure(what))?;
    for note in recording.notes().iter().chain(names.notes()) {
        tell(format_args!("lumalloc: heap: warning: {note}\n"));
    }
    let written = output::stream(command.output, |out| {
        write(&mut names, by, arguments.top as usize, out).map_err(|stop| match stop {
            Stop::Input(error) => output::Stop::Input(error.to_string()),
            Stop::Output(error) => output::Stop::Output(error),
        })
    });
    written.map_err(|what| command.failure(what))?;
    recording.damage().map_or(Ok(()), |error| Err(command.failure(error)))
}

fn write(names: &mut Names<'_>, by: By, top: usize, out: &mut dyn Write) -> Result<(), Stop> {
    let options = LifetimesOptions { filter: Filter::default(), by, top };
    lifetimes(names, &options, out)?;
    writeln!(out).map_err(Stop::Output)?;
    let (filter, page) = (Filter::default(), PageSize::default());
    pins(names, &PinsOptions { filter, by, top, page, emptiest: EMPTIEST }, out)
}

/// What the blocks of a row have in common. `None`: recordings have no such table.
fn by(arguments: &[ByArgument]) -> Option<By> {
    match arguments {
        [] | [ByArgument::Site] => Some(By::Site),
        [ByArgument::Stack] => Some(By::Stack),
        [ByArgument::Type] => Some(By::Type),
        _ => None,
    }
}

/// An option that was given and needs a profile.
fn of_profiles(arguments: &HeapArguments) -> Option<&'static str> {
    let given = [
        (arguments.diff.is_some(), "--diff"),
        (arguments.collapsed, "--collapsed"),
        (arguments.dhat, "--dhat"),
        (arguments.json, "--json"),
        (arguments.bytes, "--bytes"),
        (arguments.value != ValueArgument::LiveBytes, "--value"),
    ];
    given.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
}
