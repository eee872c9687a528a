//! Starts the exporter, or says in one line why it cannot. The program goes on in any case.
use crate::family;
use crate::survival;
use exporter::namespace::Preloaded;
pub(crate) use exporter::say::say;
use exporter::wish::{Place, VARIABLE, Wish};
use exporter::{Builder, Exporter, StartError};
use std::ffi::{OsString, c_void};
use std::io::ErrorKind;
use std::mem;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long the program waits for the exporter, at most.
const PATIENCE: Duration = Duration::from_secs(15);

/// It serves until the process, or its first thread, ends.
static RUNNING: Mutex<Option<Exporter>> = Mutex::new(None);
/// The process that has the exporter's threads.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// Returns the value of the variable. A program that runs with more rights than its caller does
/// not listen to the caller's environment, as in the allocator.
fn wish() -> Option<OsString> {
    // SAFETY: takes and returns a number.
    if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
        return None;
    }
    std::env::var_os(VARIABLE).filter(|wish| !wish.is_empty())
}

/// Whether the program was started with an address to serve at.
pub(crate) fn is_wished() -> bool {
    wish().is_some()
}

/// Starts the exporter.
pub(crate) fn start() {
    let Some(text) = wish() else { return };
    survival::prepare();
    match Wish::read(&text, VARIABLE) {
        Ok(wish) if is_for_us(&wish) => match serve(wish) {
            Ok(()) => {}
            // The ancestor serves, as intended.
            Err(why) if is_taken(&*why) && family::has_ancestor_with(VARIABLE, &text) => {}
            Err(why) => {
                say(&why.to_string());
            }
        },
        Ok(_) => {}
        Err(why) => {
            say(&why);
        }
    }
}

/// Whether the running program is meant.
fn is_for_us(wish: &Wish) -> bool {
    let Some(wanted) = &wish.program else { return true };
    let command = std::env::args_os().next().map(PathBuf::from);
    command.as_deref().and_then(|command| command.file_name()) == Some(wanted)
}

fn serve(wish: Wish) -> Result<(), Box<dyn std::error::Error>> {
    let allocator = Preloaded::find()?;
    let is_any = |address: SocketAddr| address.port() == 0;
    let is_told = matches!(wish.place, Place::Tcp(address) if is_any(address));
    let is_told_too = wish.metrics.is_some_and(is_any);
    let exporter = builder(wish, allocator).start()?;
    if let Some(address) = exporter.address().filter(|_| is_told) {
        say(&format!("it listens on http://{address}/"));
    }
    if let Some(address) = exporter.metrics_address().filter(|_| is_told_too) {
        say(&format!("it serves metrics on http://{address}/metrics"));
    }
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(exporter);
    // SAFETY: the library is never unloaded. A failure leaves a file behind.
    unsafe { libc::atexit(at_exit) };
    STARTED_BY.store(std::process::id(), Ordering::Relaxed);
    watch_this_thread();
    Ok(())
}

/// The threads run on, because they may be in the midst of an answer. Only the file goes.
extern "C" fn at_exit() {
    if let Ok(running) = RUNNING.try_lock()
        && let Some(exporter) = &*running
    {
        exporter.remove_socket_file();
    }
}

/// Has the exporter stop when this thread, the program's first, calls `pthread_exit`. The C library
/// ends such a process when its last thread ends, and the exporter's would never.
fn watch_this_thread() {
    let mut key = 0;
    // SAFETY: the key is on this stack frame, and the library is never unloaded.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(at_thread_exit)) } == 0 {
        // SAFETY: the key was made. The value is only looked at for whether it is null.
        unsafe { libc::pthread_setspecific(key, ptr::dangling::<u8>().cast()) };
    }
}

/// A child of `fork` has no threads of the exporter to stop.
unsafe extern "C" fn at_thread_exit(_: *mut c_void) {
    let running = RUNNING.try_lock().ok().and_then(|mut running| running.take());
    if STARTED_BY.load(Ordering::Relaxed) == std::process::id() {
        drop(running);
    } else {
        mem::forget(running);
    }
}

fn builder(wish: Wish, allocator: Preloaded) -> Builder {
    let builder =
        Exporter::of(Box::leak(Box::new(allocator))).start_within(PATIENCE).own_descriptors();
    let builder = match wish.place {
        Place::Tcp(address) => builder.listen(address),
        Place::Unix(path) => builder.listen_unix(path),
    };
    let builder = wish.metrics.into_iter().fold(builder, Builder::metrics_on);
    let builder = builder.allow_hosts(wish.hosts);
    let builder = wish.token.into_iter().fold(builder, Builder::token_file);
    wish.dumps.into_iter().fold(builder, Builder::dump_directory)
}

/// Whether another process listens on the address.
fn is_taken(why: &(dyn std::error::Error + 'static)) -> bool {
    match why.downcast_ref() {
        Some(StartError::Listen(_, error)) => error.kind() == ErrorKind::AddrInUse,
        Some(StartError::Taken(_)) => true,
        _ => false,
    }
}
