//! `monitor.*`. Made from the rows of the namespace.

use crate::key::{Act, Key, Read, Write};
use crate::typed::Text;

/// `monitor.active`: whether each allocation and each free is being written to a file.
pub const ACTIVE: Key<Read<bool>> = Key::new("monitor.active");

/// `monitor.dropped` (count): allocations and frees that could not be written, because the file
/// refused them.
pub const DROPPED: Key<Read<u64>> = Key::new("monitor.dropped");

/// `monitor.events` (count): allocations and frees that were written, by the present or the last
/// recording.
pub const EVENTS: Key<Read<u64>> = Key::new("monitor.events");

/// `monitor.recordings` (count): recordings that began; tells the present one from a later one.
pub const RECORDINGS: Key<Read<u64>> = Key::new("monitor.recordings");

/// `monitor.start`: begins to write each allocation and each free to the file of that name, or for
/// NULL to one that is named by prof.prefix, process and number (EBUSY: it does already; EFAULT:
/// the file cannot be written; standard error tells why).
pub const START: Key<Write<Text>> = Key::new("monitor.start");

/// `monitor.stop`: ends what monitor.start began (EAGAIN: it was not begun; EFAULT: a part of the
/// file could not be written; standard error tells why).
pub const STOP: Key<Act> = Key::new("monitor.stop");
