//! Starts the exporter, or says in one line why it cannot. The program goes on in any case.
use crate::family;
use crate::survival;
use exporter::namespace::Preloaded;
use exporter::wish::{Place, VARIABLE, Wish};
use exporter::{Builder, Exporter, StartError};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::mem;
use std::path::PathBuf;

fn wish() -> Option<OsString> {
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
            Err(why) => say(&why.to_string()),
        },
        Ok(_) => {}
        Err(why) => say(&why),
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
    let exporter = builder(wish, allocator).start()?;
    // The exporter serves until the process ends.
    mem::forget(exporter);
    Ok(())
}

fn builder(wish: Wish, allocator: Preloaded) -> Builder {
    let builder = Exporter::of(Box::leak(Box::new(allocator)));
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

/// Writes one line to standard error.
pub(crate) fn say(what: &str) {
    let line = format!("<lumalloc>: exporter: {what}\n");
    // SAFETY: the pointer and the length are those of the text. A failure cannot be reported.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
}
