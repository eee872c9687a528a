//! `ctl.*`. Made from the rows of the namespace.

use crate::key::{Ask, Key, Read};
use crate::typed::Text;

/// `ctl.access`: what may be done with it: r-, rw, -w or --.
pub const ACCESS: Key<Ask<Text, Text>> = Key::new("ctl.access");

/// `ctl.help`: one line about it.
pub const HELP: Key<Ask<Text, Text>> = Key::new("ctl.help");

/// `ctl.input`: the C type of what that key is asked about; - when it is not asked.
pub const INPUT: Key<Ask<Text, Text>> = Key::new("ctl.input");

/// `ctl.names`: the names of all keys, one a line.
pub const NAMES: Key<Read<Text>> = Key::new("ctl.names");

/// `ctl.stability`: stable, unstable or deprecated.
pub const STABILITY: Key<Ask<Text, Text>> = Key::new("ctl.stability");

/// `ctl.type`: the C type of the key whose name comes in.
pub const TYPE: Key<Ask<Text, Text>> = Key::new("ctl.type");

/// `ctl.unit`: its unit: bytes, pages, count, ms, ns, log2 or -.
pub const UNIT: Key<Ask<Text, Text>> = Key::new("ctl.unit");
