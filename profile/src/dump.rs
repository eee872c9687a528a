//! Profiles written to files: named by the program, or by prefix, process, number and cause.
//! Source: jemalloc(3), `prof.dump`, `opt.prof_prefix`.

use crate::file;
use crate::heap_v2;
use crate::output_file::{Name, write_whole};
use crate::path::Path;
use crate::pprof;
use crate::sink::Sink;
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lumalloc::control;
use lumalloc::options::{self, ProfFormat};

/// Why a profile is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program ends.
    Final,
    /// So many bytes were allocated since the last one.
    Interval,
    /// More memory is held than ever before.
    Maximum,
    /// The program asks for it.
    Manual,
}

/// Files that were named here, and those of each cause.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);
static INTERVAL: AtomicU64 = AtomicU64::new(0);
static MAXIMUM: AtomicU64 = AtomicU64::new(0);
static MANUAL: AtomicU64 = AtomicU64::new(0);

/// What the names of pprof files end with.
const PPROF: &[u8] = b".pb.gz";

/// Writes the present profile to the file of that name, or without a name to
/// `<prefix>.<pid>.<number>.m<number>.heap`.
///
/// It is written as [`pprof`] if the name ends in `.pb.gz`, and otherwise as [`heap_v2`]. Without a
/// name `opt.prof_format` decides, and the name ends accordingly.
///
/// # Errors
/// The system's error number. `ENOENT`: the process was started without `prof:true`. `EINVAL`:
/// there is no name, and the prefix is empty.
pub fn to_file(name: Option<&CStr>, cause: Cause) -> Result<(), c_int> {
    to_file_or(name, cause, |_, _| ())
}

/// As [`to_file`]. Calls `tell` with the file that could not be written, and with the error.
///
/// # Errors
/// As [`to_file`].
pub(crate) fn to_file_or(
    name: Option<&CStr>,
    cause: Cause,
    tell: impl FnOnce(&CStr, c_int),
) -> Result<(), c_int> {
    if !control::profile::is_enabled() {
        return Err(libc::ENOENT);
    }
    let mut path = Path::new();
    let origin = if name.is_some() { Name::Given } else { Name::MadeUp };
    let name = match name {
        Some(name) => name,
        None => {
            if let Err(error) = name_by_prefix(&mut path, cause) {
                if !is_unwanted(error) {
                    tell(path.as_c_str(), error);
                }
                return Err(error);
            }
            path.as_c_str()
        }
    };
    control::profile::settle();
    let format =
        if name.to_bytes().ends_with(PPROF) { ProfFormat::Pprof } else { ProfFormat::HeapV2 };
    match write_whole(name, origin, |sink| write_as(format, sink)) {
        Ok(()) => control::profile::note_dump(name),
        Err(error) => {
            tell(name, error);
            return Err(error);
        }
    }
    Ok(())
}

/// Writes the present profile to an open file, which stays open.
///
/// # Errors
/// The system's error number. `ENOENT`: the process was started without `prof:true`.
pub fn to_descriptor(descriptor: c_int, format: ProfFormat) -> Result<(), c_int> {
    if !control::profile::is_enabled() {
        return Err(libc::ENOENT);
    }
    control::profile::settle();
    file::to_descriptor(descriptor, |sink| write_as(format, sink))
}

fn write_as(format: ProfFormat, sink: &mut dyn Sink) -> bool {
    match format {
        ProfFormat::HeapV2 => heap_v2::write(sink, options::current().prof_accum),
        ProfFormat::Pprof => pprof::write(sink),
    }
}

/// Returns whether an error of [`to_file`] says only that no profile is wanted.
#[must_use]
pub fn is_unwanted(error: c_int) -> bool {
    matches!(error, libc::ENOENT | libc::EINVAL) && is_off()
}

fn is_off() -> bool {
    !control::profile::is_enabled() || control::profile::prefix().as_c_str().is_empty()
}

/// Appends the name of the next file. It is out of line, so that the prefix is on the stack only
/// until there is a name.
#[inline(never)]
fn name_by_prefix(path: &mut Path, cause: Cause) -> Result<(), c_int> {
    let prefix = control::profile::prefix();
    let prefix = prefix.as_c_str().to_bytes();
    if prefix.is_empty() {
        return Err(libc::EINVAL);
    }
    name_by_cause(path, prefix, cause).map(|_| ()).ok_or(libc::ENAMETOOLONG)
}

/// Appends the name of the next file.
fn name_by_cause<'a>(path: &'a mut Path, prefix: &[u8], cause: Cause) -> Option<&'a mut Path> {
    let number = SEQUENCE.fetch_add(1, Relaxed);
    let path = path.push(prefix)?.push_process()?.push_number(number)?;
    let path = match cause {
        Cause::Final => path.push(b".f")?,
        Cause::Interval => path.push(b".i")?.push_number(INTERVAL.fetch_add(1, Relaxed))?,
        Cause::Maximum => path.push(b".u")?.push_number(MAXIMUM.fetch_add(1, Relaxed))?,
        Cause::Manual => path.push(b".m")?.push_number(MANUAL.fetch_add(1, Relaxed))?,
    };
    match options::current().prof_format {
        ProfFormat::HeapV2 => path.push(b".heap"),
        ProfFormat::Pprof => path.push(PPROF),
    }
}
