//! `tcache.*`. Made from the rows of the namespace.

use crate::key::{Ask, Key, Write};

/// `tcache.create`: makes a cache for MALLOCX_TCACHE and answers its number.
pub const CREATE: Key<Ask<(), u32>> = Key::new("tcache.create");

/// `tcache.destroy`: gives the blocks of the cache with this number back, and the number too
/// (EFAULT: no cache).
pub const DESTROY: Key<Write<u32>> = Key::new("tcache.destroy");

/// `tcache.flush`: gives the blocks of the cache with this number back (EFAULT: there is none).
pub const FLUSH: Key<Write<u32>> = Key::new("tcache.flush");
