//! `fill.*`. Made from the rows of the namespace.

use crate::key::{Key, ReadWrite};

/// `fill.junk_allocated`: what any thread allocates from now on reads 0xa5; opt.junk at first.
pub const JUNK_ALLOCATED: Key<ReadWrite<bool>> = Key::new("fill.junk_allocated");

/// `fill.junk_freed`: what any thread frees from now on reads 0x5a; opt.junk at first.
pub const JUNK_FREED: Key<ReadWrite<bool>> = Key::new("fill.junk_freed");

/// `fill.zero`: what any thread allocates from now on reads zero; opt.zero at first.
pub const ZERO: Key<ReadWrite<bool>> = Key::new("fill.zero");
