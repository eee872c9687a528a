//! `lumalloc mprof`, `lumalloc heap` and `lumalloc flamegraph`: heap profiles of any process that
//! ran on lumalloc or jemalloc.

pub(crate) mod arguments;
#[allow(unsafe_code)] // opens a descriptor again
mod descriptor;
pub(crate) mod output;
mod recording;
#[allow(unsafe_code)] // gives a file its name
mod unfinished;

use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use lumalloc_report::events::is_recording;
use lumalloc_report::mprof::{Leaks, Verbosity};
use lumalloc_report::views::{By, Bytes, Value};
use lumalloc_report::{Report, is_profile, mprof as tables, views};

use crate::failure::{Failure, Outcome, tell};
use arguments::{
    ByArgument, FlameGraphArguments, HeapArguments, MprofArguments, NamesArguments, ValueArgument,
};

/// The profile of mprof(1) when none is named.
const MPROF_DATA: &str = "mprof.data";

/// Shows the four tables.
pub(crate) fn mprof(arguments: &MprofArguments) -> Outcome {
    let (program, data) = match (&arguments.program, &arguments.data) {
        // One argument is the program, unless it is a profile.
        (Some(only), None) if is_pipe(only) || is_profile(only) => (None, only.clone()),
        (program, data) => (program.clone(), data.clone().unwrap_or_else(|| MPROF_DATA.into())),
    };
    let command = Command { name: "mprof", output: None };
    let report = command.open(&data, program.as_deref(), &arguments.names)?;
    command.check_blocks("the tables of mprof(1) need", &data, &report)?;
    let verbosity = match (arguments.verbose, arguments.terse) {
        (true, _) => Verbosity::Verbose,
        (_, true) => Verbosity::Terse,
        _ => Verbosity::Normal,
    };
    let leaks = match (arguments.noleaktable, arguments.offsets) {
        (true, _) => Leaks::None,
        (_, true) => Leaks::WithOffsets,
        _ => Leaks::ByName,
    };
    let options = tables::Options { verbosity, leaks };
    let written = output::stream(None, |out| Ok(tables::tables(&report, &options, out)?));
    written.map_err(|what| command.failure(what))
}

/// Whether a path is that of a pipe. No program is one, and what is read to look at it is gone.
fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo())
}

/// Shows a profile, or what changed since another one; or a recording of the heap monitor.
pub(crate) fn heap(arguments: &HeapArguments) -> Outcome {
    let command = Command { name: "heap", output: arguments.output.as_deref() };
    if is_recording(&arguments.file) {
        return recording::show(&command, arguments);
    }
    let profiles = [&arguments.file].into_iter().chain(&arguments.diff);
    command.check_output(profiles, arguments.program.as_ref())?;
    let open = |path: &Path| command.open(path, arguments.program.as_deref(), &arguments.names);
    let title = arguments.file.display().to_string();
    let text = if let Some(path) = &arguments.diff {
        let (new, old) = (open(&arguments.file)?, open(path)?);
        command.check_value(arguments.value, &arguments.file, &new)?;
        command.check_value(arguments.value, path, &old)?;
        difference(arguments, &new, &old, [&title, &path.display().to_string()])
    } else {
        let parts = command.open_parts(&arguments.file, arguments)?;
        command.check_value(arguments.value, &arguments.file, &parts.0)?;
        if arguments.dhat {
            command.check_blocks("--dhat needs", &arguments.file, &parts.0)?;
        }
        match parts {
            (whole, None) => single(arguments, &whole, &title),
            _ if arguments.dhat => {
                return Err(command.failure(format_args!(
                    "{title}: it has negative numbers, as a difference of two profiles has; \
                     --dhat writes no differences"
                )));
            }
            (more, Some(less)) => {
                let titles = [&format!("{title}: what was added"), "what was taken away"];
                difference(arguments, &more, &less, titles)
            }
        }
    };
    command.write(&text)
}

/// Draws a profile.
pub(crate) fn flame_graph(arguments: &FlameGraphArguments) -> Outcome {
    let command = Command { name: "flamegraph", output: arguments.output.as_deref() };
    command.check_output([&arguments.file].into_iter(), arguments.program.as_ref())?;
    let report = command.open(&arguments.file, arguments.program.as_deref(), &arguments.names)?;
    command.check_value(arguments.value, &arguments.file, &report)?;
    let title = arguments.file.display().to_string();
    command.write(&lumalloc_report::flame_graph(&report, &title, value(arguments.value)))
}

fn single(arguments: &HeapArguments, report: &Report, title: &str) -> String {
    let value = value(arguments.value);
    if arguments.collapsed {
        views::folded(report, value, views::Shown::Functions)
    } else if arguments.dhat {
        views::dhat(report, title, value)
    } else if arguments.json {
        views::json(report, title)
    } else {
        views::overview(report, title, &options(arguments))
    }
}

fn difference(arguments: &HeapArguments, new: &Report, old: &Report, titles: [&str; 2]) -> String {
    if arguments.collapsed {
        views::folded_difference(new, old, value(arguments.value))
    } else if arguments.json {
        views::json_difference(new, old, titles)
    } else {
        views::difference(new, old, titles, &options(arguments))
    }
}

fn options(arguments: &HeapArguments) -> views::Options {
    let by: Vec<By> = arguments.by.iter().map(|by| self::by(*by)).collect();
    views::Options {
        by: if by.is_empty() { By::ALL.to_vec() } else { by },
        value: value(arguments.value),
        top: arguments.top as usize,
        bytes: if arguments.bytes { Bytes::AllDigits } else { Bytes::WithUnits },
    }
}

fn value(argument: ValueArgument) -> Value {
    match argument {
        ValueArgument::LiveBytes => Value::LiveBytes,
        ValueArgument::LiveBlocks => Value::LiveBlocks,
        ValueArgument::AllocatedBytes => Value::AllocatedBytes,
        ValueArgument::Allocations => Value::Allocations,
    }
}

fn by(argument: ByArgument) -> By {
    match argument {
        ByArgument::Stack => By::Stack,
        ByArgument::Site => By::Site,
        ByArgument::Function => By::Function,
        ByArgument::Type => By::Type,
        ByArgument::Size => By::Size,
        ByArgument::Thread => By::Thread,
        ByArgument::Arena => By::Arena,
    }
}

/// A command, whose name begins its messages.
struct Command<'a> {
    name: &'static str,
    output: Option<&'a Path>,
}

impl Command<'_> {
    fn failure(&self, what: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {what}", self.name))
    }

    /// Refuses an output that would replace a profile or the program.
    fn check_output<'p>(
        &self,
        profiles: impl Iterator<Item = &'p PathBuf>,
        program: Option<&'p PathBuf>,
    ) -> Outcome {
        let profiles = profiles.map(|path| (path, "the profile"));
        let inputs = profiles.chain(program.map(|path| (path, "the program")));
        output::check(self.output, inputs).map_err(|what| self.failure(what))
    }

    /// Refuses a value that the file does not have.
    fn check_value(&self, value: ValueArgument, path: &Path, report: &Report) -> Outcome {
        let name = match value {
            ValueArgument::LiveBytes => return Ok(()),
            ValueArgument::LiveBlocks => {
                return self.check_blocks("--value live-blocks needs", path, report);
            }
            ValueArgument::AllocatedBytes => "allocated-bytes",
            ValueArgument::Allocations => "allocations",
        };
        if report.profile().has_allocs {
            return Ok(());
        }
        let path = path.display();
        Err(self.failure(format_args!(
            "{path} has live blocks only; --value {name} needs a file that counts allocations \
             since the start (prof_accum:true)"
        )))
    }

    /// Refuses a file of bytes alone for something that needs numbers of blocks.
    fn check_blocks(&self, what_needs: &str, path: &Path, report: &Report) -> Outcome {
        if !report.profile().lacks_blocks {
            return Ok(());
        }
        let path = path.display();
        Err(self.failure(format_args!("{path} has bytes alone; {what_needs} numbers of blocks")))
    }

    /// Reads a profile. What the user should know goes to standard error.
    fn open(&self, path: &Path, program: Option<&Path>, names: &NamesArguments) -> Outcome<Report> {
        let search = names.search(program).map_err(|what| self.failure(what))?;
        let report = Report::open(path, &search).map_err(|error| self.failure(error))?;
        self.warn(&report);
        Ok(report)
    }

    /// The same for a file that may be a difference.
    fn open_parts(
        &self,
        path: &Path,
        arguments: &HeapArguments,
    ) -> Outcome<(Report, Option<Report>)> {
        let search = arguments.names.search(arguments.program.as_deref());
        let search = search.map_err(|what| self.failure(what))?;
        let parts = Report::open_parts(path, &search).map_err(|error| self.failure(error))?;
        self.warn(&parts.0);
        Ok(parts)
    }

    fn warn(&self, report: &Report) {
        for note in report.notes() {
            tell(format_args!("lumalloc: {}: warning: {note}\n", self.name));
        }
    }

    fn write(&self, text: &str) -> Outcome {
        output::write(text, self.output).map_err(|what| self.failure(what))
    }
}
