//! `POST /monitor/start` and `/monitor/stop`: the heap monitor, which writes each allocation and
//! each free to a file in the configured directory. `lumalloc events` shows the file.
use crate::answer::{Answer, JSON, body, line};
use crate::asked::Asked;
use crate::context::Context;
use crate::countdown::Countdown;
use crate::format::{Bad, bad, only};
use crate::namespace::Namespace;
use crate::paths::dump;
use crate::query;
use hyper::StatusCode;
use lumalloc_ctl::{Error, Value};
use serde_json::json;
use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest time of a recording that ends by itself.
const LONGEST: u64 = 3600;

/// A recording that was begun here.
struct Recording {
    number: u64,
    /// How many recordings had begun, with this one. `None`: the allocator does not tell.
    begun: Option<u64>,
    file: PathBuf,
}

/// The recording that was begun here, as long as it is not known to have ended. Whoever begins or
/// ends one holds this.
static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Why a recording did not begin or end.
enum Failure {
    Dump(dump::Failure),
    Running,
    Stopped,
    /// The file, if its name is known, and how many events were dropped.
    Unwritten(Option<PathBuf>, u64),
    /// No thread could be started that ends the recording.
    NoThread(io::Error),
    Error(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Dump(failure) => failure.fmt(to),
            Failure::Running => to.write_str("events are being recorded already"),
            Failure::Stopped => to.write_str("no events are being recorded"),
            Failure::Unwritten(file, dropped) => say_unwritten(to, file.as_deref(), *dropped),
            Failure::NoThread(error) => write!(
                to,
                "the recording was ended at once, as no thread can be started to end it: {error}"
            ),
            Failure::Error(error) => {
                let error = io::Error::from_raw_os_error(error.errno());
                write!(to, "the heap monitor failed: {error}")
            }
        }
    }
}

fn say_unwritten(to: &mut fmt::Formatter<'_>, file: Option<&Path>, dropped: u64) -> fmt::Result {
    match file {
        Some(file) => write!(to, "cannot write {}", file.display())?,
        None => to.write_str("the file cannot be written")?,
    }
    if dropped > 0 { write!(to, ": {dropped} events were dropped") } else { Ok(()) }
}

impl From<Failure> for Answer {
    fn from(failure: Failure) -> Answer {
        let status = match failure {
            Failure::Dump(failure) => return failure.into(),
            Failure::Running | Failure::Stopped => StatusCode::CONFLICT,
            Failure::NoThread(_) => StatusCode::SERVICE_UNAVAILABLE,
            Failure::Unwritten(..) | Failure::Error(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        line(status, failure)
    }
}

/// Answers `POST /monitor/start`. With `?seconds=` the recording ends by itself.
pub(crate) fn start(context: &Context, asked: &Asked) -> Answer {
    let seconds = match seconds(asked) {
        Ok(seconds) => seconds,
        Err(bad) => return bad.into(),
    };
    let directory = context.settings.load().dump_directory.clone();
    let begun = dump::new_name(directory.as_deref()).map_err(Failure::Dump).and_then(|stem| {
        let file = stem.with_added_extension("events");
        begin(context, file, seconds)
    });
    match begun {
        Ok(file) => told(json!({ "file": file.to_string_lossy(), "seconds": seconds })),
        Err(failure) => failure.into(),
    }
}

/// Answers `POST /monitor/stop`.
pub(crate) fn stop(context: &Context, asked: &Asked) -> Answer {
    if let Err(bad) = only(asked, &[]) {
        return bad.into();
    }
    let mut recording = recording();
    let own = recording.take().filter(|recording| !has_ended(context.namespace, recording));
    let file = own.map(|recording| recording.file);
    let ended = end(context.namespace);
    drop(recording);
    replace_countdown(context, None);
    match ended {
        Ok([events, dropped]) => {
            let file = file.map(|file| file.to_string_lossy().into_owned());
            told(json!({ "file": file, "events": events, "dropped": dropped }))
        }
        Err(Error::Again) => Failure::Stopped.into(),
        Err(Error::Fault) => {
            let dropped = count(context.namespace, "monitor.dropped").unwrap_or(0);
            Failure::Unwritten(file, dropped).into()
        }
        Err(error) => Failure::Error(error).into(),
    }
}

fn told(what: serde_json::Value) -> Answer {
    body(JSON, format!("{what}\n"))
}

fn recording() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a recording was ended elsewhere, as by the key `monitor.stop`: its file has its name
/// then, or if its end could not be written, another recording may have begun.
fn has_ended(namespace: &dyn Namespace, recording: &Recording) -> bool {
    recording.begun != count(namespace, "monitor.recordings").ok() || recording.file.exists()
}

fn seconds(asked: &Asked) -> Result<Option<u64>, Bad> {
    only(asked, &["seconds"])?;
    let Some(text) = query::values(asked.uri().query(), "seconds").next() else {
        return Ok(None);
    };
    match text.parse() {
        Ok(seconds @ 1..=LONGEST) => Ok(Some(seconds)),
        _ => Err(bad(format_args!("seconds is a number from 1 to {LONGEST}, not {text:?}"))),
    }
}

fn begin(context: &Context, file: PathBuf, seconds: Option<u64>) -> Result<PathBuf, Failure> {
    let namespace = context.namespace;
    let name = CString::new(file.as_os_str().as_bytes())
        .map_err(|_| Failure::Unwritten(Some(file.clone()), 0))?;
    let mut recording = recording();
    let started =
        namespace.find("monitor.start").and_then(|key| namespace.write(&key, Value::Str(&name)));
    match started {
        Ok(()) => {}
        Err(Error::Busy) => return Err(Failure::Running),
        Err(Error::Fault) => return Err(Failure::Unwritten(Some(file), 0)),
        Err(error) => return Err(Failure::Error(error)),
    }
    let number = NEXT.fetch_add(1, Relaxed);
    let begun = count(namespace, "monitor.recordings").ok();
    let end = seconds.map(|seconds| end_after(context, number, Duration::from_secs(seconds)));
    let end = end.transpose().map_err(Failure::NoThread)?;
    *recording = Some(Recording { number, begun, file: file.clone() });
    drop(recording);
    replace_countdown(context, end);
    Ok(file)
}

/// Drops the countdown of an earlier recording, whose thread waits for [`RECORDING`].
fn replace_countdown(context: &Context, with: Option<Countdown>) {
    let mut place = context.recording.lock().unwrap_or_else(PoisonError::into_inner);
    drop(std::mem::replace(&mut *place, with));
}

/// Begins a countdown that ends the recording. Without a thread, the recording ends at once.
fn end_after(context: &Context, number: u64, time: Duration) -> io::Result<Countdown> {
    let namespace = context.namespace;
    let (name, memory) = ("lumalloc-record", Arc::clone(&context.memory));
    let countdown = Countdown::start(name, memory, time, move || end_own(namespace, number));
    countdown.inspect_err(|_| _ = end(namespace))
}

/// Ends the recording of that number, unless it has ended: the present one may be another.
fn end_own(namespace: &dyn Namespace, number: u64) {
    let mut recording = recording();
    let own = recording.take_if(|recording| recording.number == number);
    if own.is_some_and(|own| !has_ended(namespace, &own)) {
        let _ = end(namespace);
    }
}

/// Ends the recording. Returns how many events were written, and how many were dropped.
fn end(namespace: &dyn Namespace) -> Result<[u64; 2], Error> {
    namespace.act(&namespace.find("monitor.stop")?)?;
    Ok([count(namespace, "monitor.events")?, count(namespace, "monitor.dropped")?])
}

fn count(namespace: &dyn Namespace, name: &str) -> Result<u64, Error> {
    match namespace.read(&namespace.find(name)?)? {
        Value::U64(count) => Ok(count),
        _ => Err(Error::Fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Linked;
    use crate::testing::{Directory, into, json as told, post, said};
    use std::fs;
    use std::thread;

    fn is_active() -> bool {
        let namespace: &dyn Namespace = &Linked;
        let key = namespace.find("monitor.active").unwrap();
        namespace.read(&key) == Ok(Value::Bool(true))
    }

    /// The mask of blocked signals of the thread that ends a recording, once it has its name.
    fn blocked_where_it_ends() -> Option<u64> {
        let mut threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let status = threads.find_map(|thread| {
            let status = fs::read_to_string(thread.path().join("status")).ok()?;
            status.starts_with("Name:\tlumalloc-record\n").then_some(status)
        })?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    }

    #[test]
    fn a_recording_that_no_thread_can_end_is_refused() {
        let failure = Failure::NoThread(io::Error::from_raw_os_error(libc::EAGAIN));
        let reason = "the recording was ended at once, as no thread can be started to end it: \
                      Resource temporarily unavailable (os error 11)\n";
        assert_eq!(said(failure.into()), (503, reason.into()));
    }

    #[test]
    fn another_failure_is_the_system_s_text() {
        let text = "the heap monitor failed: Cannot allocate memory (os error 12)\n";
        assert_eq!(said(Failure::Error(Error::NoMemory).into()), (500, text.into()));
    }

    /// The process has one recording at a time, so this is one test.
    #[test]
    fn a_recording_is_begun_and_ended() {
        let directory = Directory::new("monitor");
        let context = into(Some(&directory.0));
        let none = "no events are being recorded\n";
        assert_eq!(said(stop(&context, &post("/monitor/stop", ""))), (409, none.into()));

        let begun = told(start(&context, &post("/monitor/start", "")));
        let file = PathBuf::from(begun["file"].as_str().unwrap());
        assert_eq!(file.parent(), Some(directory.0.as_path()));
        assert!(begun["seconds"].is_null() && is_active() && !file.exists());
        let twice = "events are being recorded already\n";
        assert_eq!(said(start(&context, &post("/monitor/start", ""))), (409, twice.into()));
        let ended = told(stop(&context, &post("/monitor/stop", "")));
        assert_eq!((&ended["file"], &ended["dropped"]), (&begun["file"], &json!(0)));
        assert!(ended["events"].is_u64() && !is_active() && file.exists());
        assert_eq!(said(stop(&context, &post("/monitor/stop", ""))), (409, none.into()));

        let begun = told(start(&context, &post("/monitor/start?seconds=1", "")));
        assert_eq!(begun["seconds"], 1);
        let mut blocked = None;
        while is_active() {
            blocked = blocked.or_else(blocked_where_it_ends);
            thread::yield_now();
        }
        let signal = 1 << (libc::SIGTERM - 1);
        assert!(
            blocked.is_some_and(|mask| mask & signal != 0),
            "no handler runs there: {blocked:?}"
        );
        let other = PathBuf::from(begun["file"].as_str().unwrap());
        assert!(other != file && other.exists());
        // One that is ended before its time ends no later one.
        told(start(&context, &post("/monitor/start?seconds=3600", "")));
        told(stop(&context, &post("/monitor/stop", "")));
        told(start(&context, &post("/monitor/start", "")));
        assert!(is_active());
        told(stop(&context, &post("/monitor/stop", "")));

        a_timer_ends_its_own_recording_only(&context, &directory);
        told(start(&context, &post("/monitor/start?seconds=3600", "")));
        drop(context);
        while is_active() {
            thread::yield_now();
        }

        let missing = PathBuf::from("/nonexistent/for/events");
        let text = "cannot write /nonexistent/for/events: No such file or directory (os error 2)\n";
        let nowhere = into(Some(&missing));
        assert_eq!(said(start(&nowhere, &post("/monitor/start", ""))), (500, text.into()));
    }

    fn a_timer_ends_its_own_recording_only(context: &Context, directory: &Directory) {
        let begin = || told(start(context, &post("/monitor/start?seconds=3600", "")));
        let number = || recording().as_ref().map(|recording| recording.number);
        let namespace: &dyn Namespace = &Linked;
        let act = |name: &str| namespace.act(&namespace.find(name).unwrap()).unwrap();
        let begin_elsewhere = |name: &str| {
            let path = directory.0.join(name).into_os_string().into_encoded_bytes();
            let path = CString::new(path).unwrap();
            let key = namespace.find("monitor.start").unwrap();
            namespace.write(&key, Value::Str(&path)).unwrap();
        };
        // Ended and begun here.
        begin();
        let first = number().unwrap();
        told(stop(context, &post("/monitor/stop", "")));
        begin();
        end_own(&Linked, first);
        assert!(is_active());
        // Ended and begun elsewhere.
        let second = number().unwrap();
        act("monitor.stop");
        begin_elsewhere("other.events");
        end_own(&Linked, second);
        assert!(is_active() && number().is_none());
        act("monitor.stop");
        // Ended elsewhere without a file that is whole, and begun elsewhere.
        begin();
        let unwritten = number().unwrap();
        recording().as_ref().map(|own| std::fs::remove_file(own.file.with_added_extension("tmp")));
        let key = namespace.find("monitor.stop").unwrap();
        assert_eq!(namespace.act(&key), Err(Error::Fault));
        begin_elsewhere("after one that was not written.events");
        end_own(&Linked, unwritten);
        assert!(is_active() && number().is_none());
        act("monitor.stop");
        // Begun elsewhere, so that its name is not known here, and without a file that is whole.
        begin_elsewhere("removed.events");
        std::fs::remove_file(directory.0.join("removed.events.tmp")).unwrap();
        let (status, text) = said(stop(context, &post("/monitor/stop", "")));
        let dropped = text.strip_prefix("the file cannot be written: ");
        let dropped = dropped.and_then(|rest| rest.strip_suffix(" events were dropped\n"));
        let is_number = dropped.is_some_and(|number| number.parse::<u64>().is_ok());
        assert!(status == 500 && is_number, "{text}");
        // The file of one that was ended elsewhere is not that of the next one.
        begin();
        act("monitor.stop");
        begin_elsewhere("another.events");
        assert!(told(stop(context, &post("/monitor/stop", "")))["file"].is_null());
        // Its own.
        begin();
        end_own(&Linked, number().unwrap());
        assert!(!is_active() && number().is_none());
    }

    #[test]
    fn a_wrong_request_is_refused() {
        let context = into(None);
        let text = "no directory is configured for files: name one with dumps:DIRECTORY in \
                    LUMALLOC_EXPORTER, --dump-directory of lumalloc serve, or dump_directory of \
                    the builder\n";
        assert_eq!(said(start(&context, &post("/monitor/start", ""))), (409, text.into()));
        for wrong in ["0", "3601", "x", ""] {
            let path = format!("/monitor/start?seconds={wrong}");
            let text = format!("seconds is a number from 1 to 3600, not {wrong:?}\n");
            assert_eq!(said(start(&context, &post(&path, ""))), (400, text));
        }
        let text = "no such parameter: \"x\"; there are none here\n";
        assert_eq!(said(stop(&context, &post("/monitor/stop?x", ""))), (400, text.into()));
    }
}
