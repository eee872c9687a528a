//! A log of the samples that were freed, as JSON. Source: jemalloc(3), `prof.log_start`,
//! `prof.log_stop`.
//!
//! ```text
//! {"info":{"duration":…,"version":"…","lg_sample_rate":19,"prof_time_resolution":"default",
//! "pid":…},"threads":[{"thr_uid":1,"thr_name":"main"}],"stack_traces":[["0x55d0c1a2f3b4"]],
//! "allocations":[{"alloc_thread":0,"free_thread":0,"alloc_trace":0,"free_trace":0,
//! "alloc_timestamp":…,"free_timestamp":…,"usize":112}]}
//! ```
//! Threads and traces are named by their places in the arrays. Times are nanoseconds, of the
//! monotonic clock.

use crate::json;
use crate::output_file::{Name, write_whole};
use crate::path::{Numbered, Path};
use crate::process::{process_id, this_process};
use crate::reason;
use crate::scratch::Scratch;
use crate::sink::{Sink, Text};
use crate::table::Table;
use core::error::Error;
use core::ffi::{CStr, c_int};
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use lumalloc::observe::{self, SampleLog, SampleMoment, TakeoverMutex};
use lumalloc::{VERSION, control, options};

/// What stops a function of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process was started without `prof:true`.
    Off,
    /// A log is kept already.
    Running,
    /// No log is kept, or one that was begun before a fork, which is the parent's.
    Stopped,
    /// The name is empty, or longer than any path. Or there is none, because the prefix is empty.
    BadName,
    /// The file could not be written, with the system's error number. The log is lost.
    Unwritten(c_int),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Off => "the process was started without prof:true",
            Refusal::Running => "a log is kept already",
            Refusal::Stopped => "no log is kept",
            Refusal::BadName => "the name is empty or too long, or there is no prefix for one",
            Refusal::Unwritten(error) => return reason::say_unwritten(formatter, *error),
        })
    }
}

impl Error for Refusal {}

/// The name of the file of the present log. A log begins and ends under this lock.
static NAME: TakeoverMutex<Path> = TakeoverMutex::new(Path::new());
/// Whether the program gave the name. Used under the lock of the name.
static IS_GIVEN: AtomicBool = AtomicBool::new(false);
/// The process that began the log, as the number of forks before it, and 1. 0: none. Written under
/// the lock of the name.
static BEGUN_BY: AtomicU64 = AtomicU64::new(0);
static FILES: Numbered = Numbered::new(".json");

/// Begins a log of the samples that are freed. It is kept in memory until [`stop`] writes it to the
/// file of that name, or without a name to `<prefix>.<pid>.<number>.json`.
///
/// # Errors
/// [`Refusal`] says why there is none.
pub fn start(name: Option<&CStr>) -> Result<(), Refusal> {
    if !control::profile::is_enabled() {
        return Err(Refusal::Off);
    }
    let path = FILES.path(name).ok_or(Refusal::BadName)?;
    // The log begins under the lock of its name, so that who ends it finds this name.
    NAME.with(|present, _| {
        if !control::profile::start_log() {
            return Err(Refusal::Running);
        }
        *present = path;
        IS_GIVEN.store(name.is_some(), Ordering::Relaxed);
        BEGUN_BY.store(this_process(), Ordering::Relaxed);
        Ok(())
    })
}

/// Returns whether this process has begun a log. The log of a parent process is not to be ended at
/// the exit of a child: it may be long, and nothing is written.
pub(crate) fn is_begun_here() -> bool {
    BEGUN_BY.load(Ordering::Relaxed) == this_process()
}

/// Ends the log, and writes it.
///
/// # Errors
/// [`Refusal::Off`], [`Refusal::Stopped`], and [`Refusal::Unwritten`].
#[inline]
pub fn stop() -> Result<(), Refusal> {
    stop_or(|_, _| ())
}

/// As [`stop`]. Calls `tell` with the file that could not be written, and with the error.
///
/// # Errors
/// As [`stop`].
pub(crate) fn stop_or(tell: impl FnOnce(&CStr, c_int)) -> Result<(), Refusal> {
    if control::profile::is_enabled() { end(tell) } else { Err(Refusal::Off) }
}

/// [`stop`] where samples are taken. It is out of line, because each process calls `stop` at its
/// end, and its pages are not to be loaded for that.
#[cold]
#[inline(never)]
fn end(tell: impl FnOnce(&CStr, c_int)) -> Result<(), Refusal> {
    let ended = NAME.with(|path, _| {
        let log = control::profile::stop_log()?;
        // The file of a log that was begun before a fork is that of the parent process, which may
        // write to it still.
        let is_own = is_begun_here();
        let is_given = IS_GIVEN.load(Ordering::Relaxed);
        let origin = if is_given { Name::Given } else { Name::MadeUp };
        is_own.then(|| (log, path.clone(), origin))
    });
    let (log, path, origin) = ended.ok_or(Refusal::Stopped)?;
    let written = write_whole(path.as_c_str(), origin, |sink| write(sink, &log));
    written.map_err(|error| {
        tell(path.as_c_str(), error);
        Refusal::Unwritten(error)
    })
}

fn write(sink: &mut dyn Sink, log: &SampleLog) -> bool {
    let moments = || {
        let both = |sample: observe::PastSample| [Some(sample.allocated), sample.freed];
        log.samples().flat_map(both).flatten()
    };
    let places = 4 * moments().count().max(8);
    let (mut threads, mut stacks) = (Scratch::new(places), Scratch::new(places));
    let mut threads = Table::<1>::new(threads.words());
    let mut stacks = Table::<1>::new(stacks.words());
    let mut text = Text::new(sink);
    head(&mut text, log);
    text.bytes(b",\"threads\":[");
    each_new(&mut text, &mut threads, moments(), thread_key, |text, moment| {
        text.bytes(b"{\"thr_uid\":").decimal(moment.thread).bytes(b",\"thr_name\":");
        json::text(text, moment.thread_name);
        text.bytes(b"}");
    });
    text.bytes(b"],\"stack_traces\":[");
    each_new(&mut text, &mut stacks, moments(), stack_key, |text, moment| {
        json::stack(text, moment.stack);
    });
    text.bytes(b"],\"allocations\":[");
    let mut between: &[u8] = b"\n";
    for sample in log.samples() {
        let Some(freed) = sample.freed else { continue };
        let mut place = |moment: &SampleMoment| {
            let thread = threads.value(&thread_key(moment)).map_or(0, |place| *place);
            let stack = stacks.value(&stack_key(moment)).map_or(0, |place| *place);
            (thread.saturating_sub(1), stack.saturating_sub(1))
        };
        let (by, at) = (place(&sample.allocated), place(&freed));
        text.bytes(between).bytes(b"{\"alloc_thread\":").decimal(by.0);
        text.bytes(b",\"free_thread\":").decimal(at.0);
        text.bytes(b",\"alloc_trace\":").decimal(by.1);
        text.bytes(b",\"free_trace\":").decimal(at.1);
        text.bytes(b",\"alloc_timestamp\":").decimal(sample.allocated.time);
        text.bytes(b",\"free_timestamp\":").decimal(freed.time);
        text.bytes(b",\"usize\":").decimal(sample.usable as u64).bytes(b"}");
        between = b",\n";
    }
    text.bytes(b"]}\n");
    text.end()
}

fn thread_key(moment: &SampleMoment) -> [u64; 1] {
    [moment.thread]
}

fn stack_key(moment: &SampleMoment) -> [u64; 1] {
    [moment.stack.as_ptr().addr() as u64]
}

fn head(text: &mut Text<'_>, log: &SampleLog) {
    let [since, until] = log.times();
    let resolution: &[u8] = if options::current().prof_time_high { b"high" } else { b"default" };
    text.bytes(b"{\"info\":{\"duration\":").decimal(until.saturating_sub(since));
    text.bytes(b",\"version\":\"").bytes(VERSION.as_bytes());
    text.bytes(b"\",\"lg_sample_rate\":").decimal(u64::from(observe::lg_profile_sample()));
    text.bytes(b",\"prof_time_resolution\":\"").bytes(resolution);
    text.bytes(b"\",\"pid\":").decimal(u64::from(process_id())).bytes(b"}");
}

/// Calls `write` with each moment whose key is new, with commas between, and gives the keys places
/// from 1 on.
fn each_new(
    text: &mut Text<'_>,
    places: &mut Table<'_, 1>,
    moments: impl Iterator<Item = SampleMoment>,
    key: fn(&SampleMoment) -> [u64; 1],
    mut write: impl FnMut(&mut Text<'_>, &SampleMoment),
) {
    let mut count = 0;
    for moment in moments {
        let Some(place) = places.value(&key(&moment)).filter(|place| **place == 0) else {
            continue;
        };
        text.bytes(if count == 0 { b"\n" } else { b",\n" });
        count += 1;
        *place = count;
        write(text, &moment);
    }
}
