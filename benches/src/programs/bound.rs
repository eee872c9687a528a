//! Checks that preloading takes effect. The log of the dynamic linker tells: in a short run that is
//! not measured, every malloc that the program's working part binds has to be that of the peer.

use super::launch::{Stage, once, preload};
use super::table::Program;
use crate::commands::finish;
use crate::prepare::Contender;
use std::fs;
use std::path::Path;
use std::process::Command;

const SYMBOLS: [&str; 6] =
    ["malloc", "calloc", "realloc", "free", "posix_memalign", "malloc_usable_size"];

/// Runs a program with the linker's log and checks the log.
pub(crate) fn check(stage: &Stage, program: &Program, contender: &Contender) -> Result<(), String> {
    let logs = stage.values.made.join("bindings");
    // An error only means that there is no such directory, which is what is wanted.
    let _ = fs::remove_dir_all(&logs);
    fs::create_dir_all(&logs).map_err(|error| format!("the linker's logs: {error}"))?;
    once(stage, program, &|command| {
        preload(command, contender);
        command.env("LD_DEBUG", "bindings").env("LD_DEBUG_OUTPUT", logs.join("log"));
        command.env("LD_BIND_NOW", "1");
    })?;
    let expected = contender.shared_object.as_ref().and_then(|path| path.file_name());
    let expected = expected.map_or_else(|| "libc.so.6".into(), |name| name.to_string_lossy());
    let mut found = 0;
    for entry in fs::read_dir(&logs).map_err(|error| error.to_string())?.flatten() {
        let log = fs::read(entry.path()).map_err(|error| error.to_string())?;
        let log = String::from_utf8_lossy(&log);
        found += bindings(&log, program.worker, &expected, &defines)?;
    }
    let _ = fs::remove_dir_all(&logs);
    if found == 0 {
        return Err(format!("no {} binds malloc at all", program.worker));
    }
    Ok(())
}

/// Whether a file defines a function with this name.
fn defines(file: &str, symbol: &str) -> bool {
    let symbols = finish(Command::new("nm").args(["-D", "--defined-only", file]));
    let is_it = |line: &str| line.split_whitespace().last().is_some_and(|name| name == symbol);
    symbols.is_ok_and(|symbols| symbols.lines().any(is_it))
}

/// How many bindings of malloc and its relatives lead from the worker to the expected file. A
/// binding that leads elsewhere is an error. An executable that takes the address of malloc
/// binds the name to its own PLT entry, which jumps to the library. So only an executable that
/// defines the name itself is an error.
fn bindings(
    log: &str,
    worker: &str,
    expected: &str,
    defines: &dyn Fn(&str, &str) -> bool,
) -> Result<usize, String> {
    let name = |path: &str| -> String {
        Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    let mut found = 0;
    for line in log.lines() {
        let Some((_, binding)) = line.split_once("binding file ") else { continue };
        let words: Vec<&str> = binding.split_whitespace().collect();
        let [from, _, "to", to, _, "normal", "symbol", symbol, ..] = words.as_slice() else {
            continue;
        };
        let symbol = symbol.trim_matches(['`', '\'']);
        if !SYMBOLS.contains(&symbol) || !name(from).starts_with(worker) {
            continue;
        }
        if from == to && !defines(to, symbol) {
            continue;
        }
        if name(to) != expected {
            return Err(format!("the {symbol} of {from} is that of {to}, not of {expected}"));
        }
        found += 1;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::bindings;

    const LOG: &str = "\
        7:\tbinding file /bin/z3 [0] to /t/liba.so [0]: normal symbol `malloc' [X]\n\
        7:\tbinding file /bin/z3 [0] to /lib/libc.so.6 [0]: normal symbol `puts'\n\
        7:\tbinding file /lib/libm.so.6 [0] to /lib/libc.so.6 [0]: normal symbol `free'\n";

    #[test]
    fn the_workers_malloc_has_to_be_the_peers() {
        let found = |worker, expected| bindings(LOG, worker, expected, &|_, _| false);
        assert_eq!(found("z3", "liba.so"), Ok(1));
        assert_eq!(found("lua", "liba.so"), Ok(0));
        assert_eq!(
            found("z3", "libb.so").unwrap_err(),
            "the malloc of /bin/z3 is that of /t/liba.so, not of libb.so"
        );
    }

    #[test]
    fn a_stub_is_not_a_definition() {
        let log = "1:\tbinding file /b/cc1 [0] to /b/cc1 [0]: normal symbol `free' [X]\n";
        assert_eq!(bindings(log, "cc1", "liba.so", &|_, _| false), Ok(0));
        assert_eq!(
            bindings(log, "cc1", "liba.so", &|file, symbol| (file, symbol) == ("/b/cc1", "free")),
            Err("the free of /b/cc1 is that of /b/cc1, not of liba.so".to_owned())
        );
    }
}
