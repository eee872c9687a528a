//! `mprof.*`. Made from the rows of the namespace.

use crate::key::{Act, Key, ReadWrite, Write};
use crate::typed::Text;

/// `mprof.autosave` (count): allocations between two writes of the profile of mprof(1); 0: it is
/// written at the end.
pub const AUTOSAVE: Key<ReadWrite<u64>> = Key::new("mprof.autosave");

/// `mprof.restart`: begins a profile of mprof(1) that is written to this file; empty: to standard
/// output.
pub const RESTART: Key<Write<Text>> = Key::new("mprof.restart");

/// `mprof.stop`: writes the profile of mprof(1), and ends it.
pub const STOP: Key<Act> = Key::new("mprof.stop");
