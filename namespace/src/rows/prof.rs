//! `prof.*`, `thread.prof.*` and `mprof.*`: the heap profiler. As in jemalloc, in a process that
//! was started without `prof:true` the switches and the rate read `false` and 0, and nearly all
//! writes and actions return `ENOENT`.
use crate::row::{Access, Spec};
use crate::row_macros::{act, ro, row, rw, wo, wo_or};
use crate::{Error, Value};
use core::ffi::CStr;
use lumalloc::control::profile::{self, BadName};
use lumalloc::intervals;
use lumalloc::observe;
use lumalloc::options::{self, ProfFormat};
use lumalloc_profile::actions;
use lumalloc_profile::dump;
use lumalloc_profile::log;
use lumalloc_profile::mprof::{self, Refusal};

/// The lowest rate.
const MOST_LG_SAMPLE: usize = 63;

/// The rows of all three branches.
pub static ROWS: &[Spec] = &[
    row!(
        "thread.prof.name",
        Str,
        None,
        Access::ReadOrWrite(
            |_| enabled().map(|()| Value::Str(profile::thread_name())),
            |_, name| set_name(name)
        ),
        "name of this thread in profiles, at most 15 bytes; read or written, not both (EPERM); \
         EINVAL for unprintable characters"
    ),
    rw!(
        "thread.prof.active",
        Bool,
        None,
        |_| profile::is_enabled() && profile::is_thread_active(),
        |_, active| set(active, profile::set_thread_active),
        "whether this thread is sampled while the process is"
    ),
    rw!(
        "prof.thread_active_init",
        Bool,
        None,
        |_| profile::is_enabled() && profile::samples_new_threads(),
        |_, sampled| set(sampled, profile::set_samples_new_threads),
        "whether new threads are sampled"
    ),
    rw!(
        "prof.active",
        Bool,
        None,
        |_| profile::is_enabled() && profile::is_active(),
        |_, active| set_active(active),
        "whether the process is sampled (a write of true without opt.prof: ENOENT)"
    ),
    wo_or!(
        "prof.dump",
        Str,
        None,
        |_, name| dump(Some(name)),
        |_| dump(None),
        "writes a heap profile to the file of that name, or for NULL to one that is named by \
         prefix, process and number (EFAULT: it could not be written; standard error tells why)"
    ),
    wo!(
        "prof.write_heap_v2",
        Unsigned,
        None,
        |_, descriptor| write(descriptor, ProfFormat::HeapV2),
        "writes a heap profile for jeprof to this open file descriptor (EFAULT: it could not be \
         written)"
    ),
    wo!(
        "prof.write_pprof",
        Unsigned,
        None,
        |_, descriptor| write(descriptor, ProfFormat::Pprof),
        "writes a heap profile for pprof to this open file descriptor (EFAULT: it could not be \
         written)"
    ),
    rw!(
        "prof.gdump",
        Bool,
        None,
        |_| profile::is_enabled() && intervals::profiles_maxima(),
        |_, profiled| set(profiled, intervals::set_profiles_maxima),
        "whether a profile is written at each new maximum of the memory held"
    ),
    wo!(
        "prof.prefix",
        Str,
        None,
        |_, prefix| enabled().map(|()| profile::set_prefix(prefix)),
        "what names of profiles begin with"
    ),
    wo_or!(
        "prof.reset",
        Size,
        Log2,
        |_, lg_sample| reset(lg_sample),
        |_| reset(observe::lg_profile_sample() as usize),
        "forgets the samples, and sets the rate if one is given; above 63 it is 63"
    ),
    ro!(
        "prof.interval",
        U64,
        Bytes,
        |_| when_enabled(|| options::current().prof_interval().unwrap_or(0)),
        "bytes allocated between two profiles, or 0 if none are written at intervals"
    ),
    ro!(
        "prof.lg_sample",
        Size,
        Log2,
        |_| when_enabled(|| observe::lg_profile_sample() as usize),
        "bytes between two samples, on average; 0 without opt.prof too"
    ),
    ro!(
        "prof.samples.taken",
        U64,
        Count,
        |_| observe::profile_counts().taken,
        "allocations that became samples, since the start"
    ),
    ro!(
        "prof.samples.missed",
        U64,
        Count,
        |_| observe::profile_counts().missed,
        "allocations that were to become samples and did not, for lack of memory"
    ),
    ro!(
        "prof.samples.live",
        Size,
        Count,
        |_| observe::profile_counts().live,
        "samples that are in use"
    ),
    ro!(
        "prof.samples.stacks",
        U64,
        Count,
        |_| observe::profile_counts().stacks,
        "different stacks of samples, since the start"
    ),
    ro!(
        "prof.samples.bytes",
        U64,
        Bytes,
        |_| observe::profile_counts().bytes,
        "bytes of the stored stacks, a part of stats.metadata"
    ),
    wo_or!(
        "prof.log_start",
        Str,
        None,
        |_, name| log::start(Some(name)).map_err(log_error),
        |_| log::start(None).map_err(log_error),
        "begins a log of the samples that are freed, for the file of that name, or for NULL one \
         that is named by prefix, process and number"
    ),
    act!(
        "prof.log_stop",
        |_| actions::stop_log().map_err(log_error),
        "ends the log, and writes it as JSON"
    ),
    rw!(
        "mprof.autosave",
        U64,
        Count,
        |_| exact().map(|()| mprof::autosave()),
        |_, count| mprof::set_autosave(count).map_err(error_of),
        "allocations between two writes of the profile of mprof(1); 0: it is written at the end"
    ),
    act!(
        "mprof.stop",
        |_| actions::stop_mprof().map_err(error_of),
        "writes the profile of mprof(1), and ends it"
    ),
    wo!(
        "mprof.restart",
        Str,
        None,
        |_, name| mprof::restart(name).map_err(error_of),
        "begins a profile of mprof(1) that is written to this file; empty: to standard output"
    ),
];

fn exact() -> Result<(), Error> {
    if options::current().mprof { Ok(()) } else { Err(Error::NoEntry) }
}

fn log_error(refusal: log::Refusal) -> Error {
    match refusal {
        log::Refusal::Off => Error::NoEntry,
        log::Refusal::Running => Error::Busy,
        log::Refusal::Stopped => Error::Again,
        log::Refusal::BadName => Error::Invalid,
        log::Refusal::Unwritten(_) => Error::Fault,
    }
}

fn error_of(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Off => Error::NoEntry,
        Refusal::Running => Error::Busy,
        Refusal::Stopped => Error::Again,
        Refusal::Unwritten(_) => Error::Fault,
        Refusal::BadName => Error::Invalid,
    }
}

/// `ENOENT` in a process that was started without `prof:true`.
pub(super) fn enabled() -> Result<(), Error> {
    if profile::is_enabled() { Ok(()) } else { Err(Error::NoEntry) }
}

/// What a number is, or 0 in a process that was started without `prof:true`.
fn when_enabled<T: Default>(read: impl FnOnce() -> T) -> T {
    if profile::is_enabled() { read() } else { T::default() }
}

fn set(to: bool, set: fn(bool) -> bool) -> Result<(), Error> {
    enabled()?;
    set(to);
    Ok(())
}

fn set_name(name: Value<'_>) -> Result<(), Error> {
    enabled()?;
    let Value::Str(name) = name else { return Err(Error::Invalid) };
    profile::set_thread_name(name).map_err(|bad| match bad {
        BadName::Unprintable => Error::Invalid,
        BadName::FromSystem => Error::NoEntry,
    })
}

fn set_active(active: bool) -> Result<(), Error> {
    if active {
        enabled()?;
    }
    profile::set_active(active);
    Ok(())
}

fn dump(name: Option<&CStr>) -> Result<(), Error> {
    enabled()?;
    actions::dump(name).map_err(|_| Error::Fault)
}

fn write(descriptor: u32, format: ProfFormat) -> Result<(), Error> {
    enabled()?;
    let descriptor = i32::try_from(descriptor).map_err(|_| Error::Invalid)?;
    dump::to_descriptor(descriptor, format).map_err(|_| Error::Fault)
}

fn reset(lg_sample: usize) -> Result<(), Error> {
    enabled()?;
    // Source: jemalloc, `prof_reset_ctl`.
    profile::reset(lg_sample.min(MOST_LG_SAMPLE) as u32);
    Ok(())
}
