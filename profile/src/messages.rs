//! Messages about files, on standard error or where messages of the allocator go.

use crate::reason;
use crate::sink::{Sink, Text};
use core::ffi::{CStr, c_int};
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use lumalloc::message;

pub(crate) struct Messages;

impl Sink for Messages {
    fn put(&mut self, bytes: &[u8]) -> bool {
        message::write(bytes);
        true
    }
}

/// Says that a file could not be written. It is out of line, so that the text is on the stack only
/// then.
#[cold]
#[inline(never)]
pub(crate) fn tell_unwritten(what: &[u8], path: &CStr, error: c_int) {
    tell(what, b" could not be written to ", path, error);
}

/// Says that a file is whole, but keeps the name that it had until then.
#[cold]
#[inline(never)]
pub(crate) fn tell_unnamed(what: &[u8], path: &CStr, error: c_int) {
    tell(what, b" is whole, but keeps its name ", path, error);
}

fn tell(what: &[u8], how: &[u8], path: &CStr, error: c_int) {
    let mut messages = Messages;
    let mut text = Text::new(&mut messages);
    text.bytes(b"<lumalloc>: ").bytes(what).bytes(how);
    text.bytes(path.to_bytes()).bytes(b": ");
    reason::put(&mut text, error);
    text.bytes(b"\n");
    text.end();
    message::warned();
}

/// The error with which the table of mappings was read last. 0: it could be read.
static UNREAD_MAPPINGS: AtomicI32 = AtomicI32::new(0);

/// Notes whether the table of mappings could be read. Says it if it could not, once for each error
/// after another: without the table no reader finds the functions of a profile.
pub(crate) fn note_mappings(read: Result<(), c_int>) {
    let error = read.err().unwrap_or(0);
    if UNREAD_MAPPINGS.swap(error, Relaxed) != error && error != 0 {
        tell_unread_mappings(error);
    }
}

#[cold]
#[inline(never)]
fn tell_unread_mappings(error: c_int) {
    let mut messages = Messages;
    let mut text = Text::new(&mut messages);
    text.bytes(b"<lumalloc>: profiles have no mappings, so that no functions are found: ");
    text.bytes(b"/proc/self/maps: ");
    reason::put(&mut text, error);
    text.bytes(b"\n");
    text.end();
    message::warned();
}
