//! The command `lumalloc`.
//!
//! Without a subcommand it shows the allocator at work: an HTTP key-value service under load, first
//! on lumalloc, then on the system's allocator, and a table that compares them. `lumalloc run`
//! starts any program on the shared library. `lumalloc map` shows the heap of a process.
//! `lumalloc mprof`, `heap` and `flamegraph` show heap profiles, `lumalloc events` shows recordings
//! of the heap monitor. `lumalloc replay` makes the calls of a trace of vmalloc(3),
//! `lumalloc region` looks at a region in a file.
//!
//! Reading order: [`arguments`] (the command line), [`switch`] (one executable, two allocators),
//! [`run`], [`map`], [`profile`] (heap profiles), [`events`] (recordings), [`replay`],
//! [`region`], then the demonstration:
//! [`service`] (the server), [`load`] (its traffic), [`demo`] (starts both and draws the table) and
//! [`forever`] (starts both and does not end).

mod arguments;
mod demo;
mod events;
mod failure;
mod forever;
#[allow(unsafe_code)] // asks what a signal does
mod ignored_signal;
mod load;
mod map;
mod profile;
mod region;
mod replay;
mod run;
mod service;
#[allow(unsafe_code)] // asks for descriptors before main, and closes them before exec
mod standard_streams;
#[allow(unsafe_code)] // implements GlobalAlloc, and calls getenv before the first allocation
mod switch;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser;
use profile::arguments::with_two_dashes;

/// Serves all allocations of this executable: by lumalloc, or by the system's allocator for half of
/// the demonstration.
#[global_allocator]
static ALLOCATOR: switch::Switch = switch::Switch;

fn main() -> ExitCode {
    let words = with_two_dashes(std::env::args_os());
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(answer) => return arguments::show(&arguments::as_written(answer, &words), &words),
    };
    let outcome = match arguments.command {
        None => demo::demonstrate(&arguments.demo),
        Some(Command::Run(run)) => run::run(&run),
        Some(Command::Map(map)) => map::show(&map),
        Some(Command::Mprof(mprof)) => profile::mprof(&mprof),
        Some(Command::Heap(heap)) => profile::heap(&heap),
        Some(Command::FlameGraph(graph)) => profile::flame_graph(&graph),
        Some(Command::Events(events)) => events::show(&events),
        Some(Command::Replay(replay)) => replay::replay(&replay),
        Some(Command::Region(region)) => region::region(&region),
        Some(Command::Serve(forever)) => forever::serve(&forever),
        Some(Command::Service(serve)) => service::serve(&serve),
        Some(Command::Load(load)) => load::generate(&load),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(),
    }
}
