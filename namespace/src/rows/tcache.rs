//! `tcache.*`: caches that belong to no thread.
use crate::Error;
use crate::row::Spec;
use crate::row_macros::{create, wo};
use lumalloc::control::tcache;

/// The rows of `tcache.*`.
pub static ROWS: &[Spec] = &[
    create!(
        "tcache.create",
        Void => Unsigned,
        None,
        |_| tcache::create().ok_or(Error::Fault),
        "makes a cache for MALLOCX_TCACHE and answers its number"
    ),
    wo!(
        "tcache.flush",
        Unsigned,
        None,
        |_, id| tcache::flush(id).then_some(()).ok_or(Error::Fault),
        "gives the blocks of the cache with this number back (EFAULT: there is none)"
    ),
    wo!(
        "tcache.destroy",
        Unsigned,
        None,
        |_, id| tcache::destroy(id).then_some(()).ok_or(Error::Fault),
        "gives the blocks of the cache with this number back, and the number too (EFAULT: no cache)"
    ),
];
