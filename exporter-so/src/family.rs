//! Whether an ancestor of this process was told to serve at the same address, and has the library.
//! Then the address is taken as intended, and the programs that this process's parent starts need
//! not report it. The environment alone proves nothing: a wrapper that hands it on may not be
//! preloaded.
//!
//! A program that has changed its user cannot look at what its ancestors were told. If it was told
//! itself, so was the ancestor above it: a program as `su` hands the environment on. Only a service
//! manager, as which the first process runs, tells its children what it was not told.
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;

/// The most ancestors that are looked at. No tree of processes in use has more.
const MOST: usize = 64;

/// The end of the path of this library.
const LIBRARY: &[u8] = b"/liblumalloc_exporter.so";

/// The names of service managers that are the first process.
const MANAGERS: [&str; 2] = ["systemd", "init"];

/// Whether an ancestor that has the library was started with this value of the variable, which this
/// process was started with.
pub(crate) fn has_ancestor_with(variable: &str, value: &OsStr) -> bool {
    let mut wanted = variable.as_bytes().to_vec();
    wanted.push(b'=');
    wanted.extend_from_slice(value.as_bytes());
    let mut process = parent_of("self");
    let mut is_child_told = true;
    for _ in 0..MOST {
        let Some(ancestor) = process.filter(|&process| process > 0) else { return false };
        let environment = fs::read(format!("/proc/{ancestor}/environ"));
        let is_told = match environment {
            Err(why) if why.kind() == ErrorKind::PermissionDenied => {
                if is_child_told && !is_manager(ancestor) {
                    return true;
                }
                false
            }
            environment => {
                let environment = environment.unwrap_or_default();
                environment.split(|&byte| byte == 0).any(|entry| entry == wanted)
            }
        };
        if is_told && has_exporter(ancestor) {
            return true;
        }
        is_child_told = is_told;
        process = parent_of(&ancestor.to_string());
    }
    false
}

/// Whether a process starts services, with variables that it does not have itself.
fn is_manager(process: u32) -> bool {
    let name = || fs::read_to_string("/proc/1/comm").unwrap_or_default();
    process == 1 && MANAGERS.contains(&name().trim_end())
}

/// Whether a process has loaded this library. Its exporter may just be about to start.
fn has_exporter(process: u32) -> bool {
    let mappings = fs::read(format!("/proc/{process}/maps")).unwrap_or_default();
    mappings.split(|&byte| byte == b'\n').any(|line| line.ends_with(LIBRARY))
}

/// Returns the second number behind the command, which is in parentheses and may hold any text.
fn parent_of(process: &str) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.split_whitespace().nth(1)?.parse().ok()
}
