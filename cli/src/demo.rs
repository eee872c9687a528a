//! The demonstration: the service and its load, on both allocators by turns, and a table.
//!
//! A [`round`] starts the two child processes ([`helper`]), follows them and takes a [`sample`].
//! [`progress`] shows how far it is. [`table`] draws the medians, with numbers as [`mod@format`]
//! writes them. Whatever ends the demonstration, also an [`interruption`], the children are killed
//! and reaped before it.

mod format;
pub(crate) mod helper;
#[allow(unsafe_code)] // handles signals
pub(crate) mod interruption;
mod progress;
pub(crate) mod round;
pub(crate) mod sample;
mod table;

use std::io::{self, IsTerminal, Write};

use crate::arguments::DemoArguments;
use crate::failure::{Failure, Outcome, no_runtime, reason};
use crate::standard_streams;
use interruption::interrupted;
use progress::Progress;
use sample::{Sample, Side};
use table::Table;

/// Runs all rounds and prints the table.
pub(crate) fn demonstrate(arguments: &DemoArguments) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| no_runtime(&error))?;
    let samples = runtime.block_on(async {
        tokio::select! {
            biased;
            interruption = interrupted() => Err(interruption),
            // Dropped when interrupted, and the children with it.
            samples = all_rounds(arguments) => samples,
        }
    })?;
    let colour = format::wants_colour(io::stdout().is_terminal());
    let table = Table { lines: &description(arguments), samples: &samples, colour };
    let mut out = standard_streams::output()
        .map_err(|error| Failure::new(format!("cannot write the table: {}", reason(&error))))?;
    write(&table.render(), &mut out)
}

/// Writes the table. Whoever reads a pipe may have seen enough.
fn write(table: &str, out: &mut impl Write) -> Outcome {
    match out.write_all(table.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write the table: {}", reason(&error))))
        }
        _ => Ok(()),
    }
}

/// Runs both sides in each round. The order is reversed every time, so that neither side has the
/// machine at a better moment.
async fn all_rounds(arguments: &DemoArguments) -> Outcome<Vec<(Side, Sample)>> {
    let mut progress = Progress::new(2 * arguments.rounds);
    progress.introduce(round::expected(arguments) * 2 * arguments.rounds);
    let mut samples = Vec::new();
    for round in 0..arguments.rounds {
        let mut sides = [Side::Lumalloc, Side::System];
        if round % 2 == 1 {
            sides.reverse();
        }
        for side in sides {
            progress.begin(side.name(), round::expected(arguments));
            let sample = round::run(side, arguments, &mut progress).await?;
            progress.finish(&sample);
            samples.push((side, sample));
        }
    }
    Ok(samples)
}

/// Returns the lines above the table, which say what was measured.
fn description(arguments: &DemoArguments) -> [String; 2] {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    [
        format!(
            "An HTTP key-value service: {threads} threads, {} connections, {} MiB of values",
            arguments.size.connections, arguments.size.memory
        ),
        format!(
            "of 64 B to 64 KiB; 80 % GET, 15 % PUT, 5 % DELETE; medians of {} x {} s",
            arguments.rounds, arguments.seconds
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_table_that_cannot_be_written_is_said() {
        let mut full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let expected = Failure::new("cannot write the table: no space left on device");
        assert_eq!(write("a table", &mut full), Err(expected));
        let (mut pipe, reader) = UnixStream::pair().unwrap();
        drop(reader);
        assert_eq!(write("a table", &mut pipe), Ok(()));
    }

    #[test]
    fn the_table_says_what_was_measured() {
        let words = "lumalloc --connections 7 --memory 9 --rounds 3 --seconds 5";
        let arguments = Arguments::try_parse_from(words.split(' ')).unwrap().demo;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(
            description(&arguments),
            [
                format!(
                    "An HTTP key-value service: {threads} threads, 7 connections, 9 MiB of values"
                ),
                "of 64 B to 64 KiB; 80 % GET, 15 % PUT, 5 % DELETE; medians of 3 x 5 s".to_owned(),
            ]
        );
    }
}
