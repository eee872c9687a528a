//! `approximate_stats.*`. Made from the rows of the namespace.

use crate::key::{Key, Read};

/// `approximate_stats.active` (bytes): in pages of slabs and large blocks now, without a new epoch.
pub const ACTIVE: Key<Read<usize>> = Key::new("approximate_stats.active");
