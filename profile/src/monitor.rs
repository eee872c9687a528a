//! The heap monitor: each allocation and each free is written to a file, with its time, its thread
//! and its stack. `lumalloc events` shows the file. Source: the heap monitor of Taligent.
//!
//! ```no_run
//! use lumalloc_profile::monitor::Monitor;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let monitor = Monitor::start(c"own.events")?;
//! // … what is to be seen …
//! let counts = monitor.stop()?;
//! assert_eq!(counts.dropped, 0);
//! # Ok(())
//! # }
//! ```
//!
//! A thread that has filled its buffer of 512 events writes them before it goes on, so no event is
//! lost unless the file cannot be written. Such events are counted, the file says how many they
//! are, and [`stop`] tells the first error. The file has its name once it is whole. Until then
//! `.tmp` follows the name, or a number and `.tmp` if there is such a file already, and such a file
//! can be read too. It stays open, with a number that programs do not reach. A program may close
//! that descriptor all the same, and threads with other descriptors do not have it: then the file
//! is opened by its name once more.

use crate::event_file::{self, Unended};
use crate::event_output::Output;
use crate::old_blocks::{self, Time};
use crate::output_file::MOST_TAKEN;
use crate::path::Numbered;
use crate::process::{keep_errno, monotonic, this_process};
use crate::reason;
use core::cell::UnsafeCell;
use core::error::Error;
use core::ffi::{CStr, c_int, c_long};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use lumalloc::control::{monitor, monitor::Record};
use lumalloc::system_calls;

pub use lumalloc::control::monitor::Counts;

/// What stops a function of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Events are being recorded already.
    Running,
    /// No events are being recorded.
    Stopped,
    /// The name is empty, or longer than any path. Or there is none, because the prefix is empty.
    BadName,
    /// The file could not be written, with the system's error number.
    Unwritten(c_int),
    /// There is no memory, or the system refuses `membarrier`.
    System,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Running => "events are being recorded already",
            Refusal::Stopped => "no events are being recorded",
            Refusal::BadName => "the name is empty or too long, or there is no prefix for one",
            Refusal::System => "there is no memory, or the system refuses membarrier",
            Refusal::Unwritten(error) => return reason::say_unwritten(formatter, *error),
        })
    }
}

impl Error for Refusal {}

/// The output, which one thread uses at a time.
struct Shared(UnsafeCell<Output>);

// SAFETY: `STATE` lets one thread at a time start or stop, and while events are recorded the output
// is used under the recorder's lock only.
unsafe impl Sync for Shared {}

static OUTPUT: Shared = Shared(UnsafeCell::new(Output::new()));

/// What is going on, and in which process. In a child of fork it is the parent's, which means that
/// nothing is going on. 0: nothing.
static STATE: AtomicU64 = AtomicU64::new(0);
const RUNNING: u64 = 1;
const CHANGING: u64 = 2;

static FILES: Numbered = Numbered::new(".events");
/// Old blocks that could not be written.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Recordings that began.
static BEGUN: AtomicU64 = AtomicU64::new(0);

fn state_of(what: u64) -> u64 {
    this_process() << 8 | what
}

/// Returns whether a state says that something is going on in this process.
fn is_busy(state: u64) -> bool {
    state >> 8 == this_process()
}

/// Enters a state from the one before. `None`: nothing was going on. Returns whether it was so.
fn enter(before: Option<u64>, state: u64) -> bool {
    // Loaded once: what the exchange compares with is what was judged.
    let present = STATE.load(Ordering::Relaxed);
    let is_so = before.map_or(!is_busy(present), |before| present == state_of(before));
    // AcqRel: pairs with itself and the Release in `leave`, so that this thread sees what was done
    // to the output.
    let swapped =
        || STATE.compare_exchange(present, state, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    is_so && swapped()
}

/// How often the end of a recording looks whether another thread has begun or ended it, and the
/// nanoseconds between two looks.
const LOOKS: usize = 5000;
const BETWEEN: c_long = 1_000_000;

/// Enters `CHANGING` from `RUNNING`, once the thread that begins a recording has done so. Returns
/// `false` if nothing is recorded, or that takes longer than some seconds: it may be this thread.
fn enter_from_running() -> bool {
    for _ in 0..LOOKS {
        let state = STATE.load(Ordering::Relaxed);
        if state == state_of(CHANGING) {
            keep_errno(|| system_calls::nanosleep(BETWEEN));
        } else if state != state_of(RUNNING) {
            return false;
        } else if enter(Some(RUNNING), state_of(CHANGING)) {
            return true;
        }
    }
    false
}

/// Notes that nothing is going on.
fn leave() {
    // Release: pairs with the AcqRel in `enter`.
    STATE.store(0, Ordering::Release);
}

/// Returns whether events are being recorded, or a recording is beginning or ending.
#[must_use]
pub fn is_running() -> bool {
    is_busy(STATE.load(Ordering::Relaxed))
}

/// Returns the counts of events of the present recording, or of the last one. Old blocks that could
/// not be written are counted as dropped.
#[must_use]
pub fn counts() -> Counts {
    let Counts { taken, dropped } = monitor::counts();
    Counts { taken, dropped: dropped + LOST.load(Ordering::Relaxed) }
}

/// Returns how many recordings began in this process, and in those that it was forked from. It
/// tells the present recording from a later one.
#[must_use]
pub fn recordings() -> u64 {
    BEGUN.load(Ordering::Relaxed)
}

/// Begins to record each allocation and each free, to the file of that name, or without a name to
/// `<prefix>.<pid>.<number>.events`, where the prefix is that of profiles (`prof.prefix`). The
/// blocks that are live at that moment are written too.
///
/// A child of fork does not record. It may start a recording of its own.
///
/// # Errors
/// [`Refusal`] says why nothing is recorded.
pub fn start(name: Option<&CStr>) -> Result<(), Refusal> {
    start_or(name, |_, _| ()).map(|_| ())
}

/// As [`start`], and returns the number of the recording. Calls `tell` with the file that could not
/// be written, and with the error.
///
/// # Errors
/// As [`start`].
pub(crate) fn start_or(
    name: Option<&CStr>,
    tell: impl FnOnce(&CStr, c_int),
) -> Result<u64, Refusal> {
    if !enter(None, state_of(CHANGING)) {
        return Err(Refusal::Running);
    }
    if let Err(refusal) = begin(name) {
        if let Refusal::Unwritten(error) = refusal {
            // SAFETY: this thread alone starts, and nothing is recorded.
            tell(unsafe { &*OUTPUT.0.get() }.path(), error);
        }
        leave();
        return Err(refusal);
    }
    let lost = old_blocks::for_each_chunk(Time::After, |fill| {
        // SAFETY: under the recorder's lock.
        monitor::alone(|| unsafe { &mut *OUTPUT.0.get() }.put(event_file::OLD, fill))
    });
    LOST.store(lost, Ordering::Relaxed);
    let number = BEGUN.fetch_add(1, Ordering::Relaxed) + 1;
    enter(Some(CHANGING), state_of(RUNNING));
    Ok(number)
}

fn begin(name: Option<&CStr>) -> Result<(), Refusal> {
    let mut begun = begin_file(name);
    // A process that had this number may have left such a file, here or in a container.
    for _ in 1..MOST_TAKEN {
        if name.is_some() || begun != Err(Refusal::Unwritten(libc::EEXIST)) {
            break;
        }
        begun = begin_file(name);
    }
    begun?;
    LOST.store(0, Ordering::Relaxed);
    monitor::start(take).map_err(|_| {
        // SAFETY: this thread alone starts, and nothing is recorded.
        unsafe { &mut *OUTPUT.0.get() }.remove();
        Refusal::System
    })
}

/// Begins a file of that name, or without a name of the next number.
fn begin_file(name: Option<&CStr>) -> Result<(), Refusal> {
    let path = FILES.path(name).ok_or(Refusal::BadName)?;
    // SAFETY: this thread alone starts, and nothing is recorded.
    let output = unsafe { &mut *OUTPUT.0.get() };
    output.set_name(path.as_c_str()).ok_or(Refusal::BadName)?;
    output.begin(name.is_some()).map_err(Refusal::Unwritten)
}

/// Takes what the recorder has.
fn take(record: Record<'_>) -> bool {
    // SAFETY: under the recorder's lock.
    let output = unsafe { &mut *OUTPUT.0.get() };
    match record {
        Record::Events(events) => output.events(events),
        Record::End(message) => output.put(event_file::MESSAGE, |chunk| {
            chunk.number(monotonic()).text(message);
        }),
        Record::Forked => {
            output.leave();
            true
        }
    }
}

/// Ends the recording. Returns the counts of its events.
///
/// While another thread begins or ends one, it waits for that.
///
/// # Errors
/// [`Refusal::Stopped`], and [`Refusal::Unwritten`] with the first error of the file. If its end
/// could not be written, or its name not changed, it keeps the name that ends in `.tmp`. If only a
/// part of the recording could not be written, it has its name, and says how many events were
/// dropped, as [`counts`] does.
#[inline]
pub fn stop() -> Result<Counts, Refusal> {
    stop_or(|_, _| ())
}

/// As [`stop`]. Calls `tell` with the present name of a file that lacks something, and with the
/// reason.
///
/// # Errors
/// As [`stop`].
#[inline]
pub(crate) fn stop_or(tell: impl FnOnce(&CStr, Unended)) -> Result<Counts, Refusal> {
    if is_running() { end(None, tell) } else { Err(Refusal::Stopped) }
}

/// [`stop`] of a recording: of that with a number, or of any. It is out of line, because each
/// process calls `stop` at its end, and its pages are not to be loaded for that.
#[cold]
#[inline(never)]
fn end(only: Option<u64>, tell: impl FnOnce(&CStr, Unended)) -> Result<Counts, Refusal> {
    if !enter_from_running() {
        return Err(Refusal::Stopped);
    }
    if only.is_some_and(|number| number != recordings()) {
        enter(Some(CHANGING), state_of(RUNNING));
        return Err(Refusal::Stopped);
    }
    // While events are recorded: one of a block that is allocated from now on has a later time.
    // Without these chunks the types of the blocks are missing, and nothing else.
    let _ = old_blocks::for_each_chunk(Time::Before, |fill| {
        // SAFETY: under the recorder's lock.
        monitor::alone(|| unsafe { &mut *OUTPUT.0.get() }.put(event_file::LIVE, fill))
    });
    monitor::stop();
    let counts = counts();
    // SAFETY: this thread alone stops, and nothing is recorded any more.
    let output = unsafe { &mut *OUTPUT.0.get() };
    let ended = output.end(counts);
    if let Err(unended) = ended {
        tell(output.present_name(), unended);
    }
    leave();
    let error = |unended| match unended {
        Unended::Cut(error) | Unended::Lost(error) | Unended::Unnamed(error) => {
            Refusal::Unwritten(error)
        }
    };
    ended.map(|()| counts).map_err(error)
}

/// A recording that ends when this is dropped, unless it has ended already. A later one goes on.
#[derive(Debug)]
#[must_use]
pub struct Monitor {
    /// Which recording of the process it is.
    number: u64,
}

impl Monitor {
    /// As [`start`], to the file of that name.
    ///
    /// # Errors
    /// [`Refusal`] says why nothing is recorded.
    pub fn start(name: &CStr) -> Result<Monitor, Refusal> {
        start_or(Some(name), |_, _| ()).map(|number| Monitor { number })
    }

    /// As [`stop`].
    ///
    /// # Errors
    /// As [`stop`]. [`Refusal::Stopped`] if it was stopped otherwise.
    pub fn stop(self) -> Result<Counts, Refusal> {
        let ended = self.end();
        core::mem::forget(self);
        ended
    }

    fn end(&self) -> Result<Counts, Refusal> {
        if is_running() { end(Some(self.number), |_, _| ()) } else { Err(Refusal::Stopped) }
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        // There is nobody to tell. The counts are kept.
        let _ = self.end();
    }
}
