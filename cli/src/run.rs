//! `lumalloc run`: any program, with the library preloaded.
//!
//! The library is found ([`library`]), the program is found and examined ([`program`], [`elf`]),
//! and the environment is prepared ([`environment`]). Then this process becomes the program, so the
//! exit status, signals ([`broken_pipe`]) and process number are those of the program.

#[allow(unsafe_code)] // asks the kernel for a permission
mod access;
#[allow(unsafe_code)] // asks what a signal does, and sets it before exec
mod broken_pipe;
#[allow(unsafe_code)] // reads an attribute of a file, and asks what the process may gain
mod capabilities;
mod elf;
mod library;
mod environment;
mod named;
mod program;

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::arguments::RunArguments;
use crate::failure::{Failure, Outcome, reason, tell};
use crate::standard_streams;

/// The exit status when the program exists but cannot be executed.
const NOT_EXECUTABLE: u8 = 126;
/// The exit status when there is no such program.
const NOT_FOUND: u8 = 127;

/// Becomes the program. Returns only with a failure.
pub(crate) fn run(arguments: &RunArguments) -> Outcome {
    let (name, rest) = arguments.command.split_first().expect("clap requires a program");
    let library = library::find(arguments.library.as_deref())?;
    let path = program::find(name, std::env::var_os("PATH").as_deref())?;
    if let Some(reason) = program::escapes_preloading(&path, &library) {
        let shown = path.display();
        tell(format_args!("lumalloc: run: warning: {shown}: {reason}; preloading has no effect\n"));
    }
    let left_out = program::ends_preloaded(&path);
    if let Some(reason) = left_out {
        let shown = path.display();
        tell(format_args!("lumalloc: run: warning: {shown}: {reason}; nothing is preloaded\n"));
    }
    let mut command = Command::new(&path);
    command.arg0(name).args(rest);
    let mut libraries = vec![library];
    let inherited = std::env::var_os(environment::EXPORTER);
    match environment::exporter(arguments.exporter.as_deref(), inherited.as_deref())? {
        Some((address, origin)) => {
            libraries.push(library::exporter(&libraries[0], origin)?);
            command.env(environment::EXPORTER, address);
        }
        None => {
            command.env_remove(environment::EXPORTER);
        }
    }
    let inherited = std::env::var_os("LD_PRELOAD");
    if left_out.is_none() {
        command.env("LD_PRELOAD", environment::preload(&libraries, inherited.as_deref()));
    } else if let Some(inherited) = inherited {
        command.env("LD_PRELOAD", environment::without_ours(&libraries, &inherited));
    }
    if !arguments.conf.is_empty() {
        let conf = std::env::var_os("LUMALLOC_CONF");
        command.env("LUMALLOC_CONF", environment::conf(conf.as_deref(), &arguments.conf));
    }
    broken_pipe::keep(&mut command);
    standard_streams::keep_closed(&mut command);
    let error = command.exec();
    Err(Failure::with_status(
        NOT_EXECUTABLE,
        format!("run: {}: cannot be executed: {}", path.display(), reason(&error)),
    ))
}
