//! The method and the flags of a region, as bits. Source: vmalloc(3), `vmopen` and `vmset`.

use core::ffi::CStr;

/// Each successful call is written to the trace file.
pub const TRACE: u32 = 0o1;
/// The region is checked at each call.
pub const DBCHECK: u32 = 0o2;
/// The program is aborted when an error is found.
pub const DBABORT: u32 = 0o4;
/// Several threads or processes may use the region at once.
pub const SHARE: u32 = 0o10;
/// The handle lies in the region's memory.
pub const MEMORYF: u32 = 0o20;
/// Successful calls are announced to the discipline.
pub const ANNOUNCE: u32 = 0o100_000;
/// Blocks that are in use when the region is closed are reported, by the method for debugging.
pub const LEAKS: u32 = 0o200_000;
/// Several processes use the region, whose memory is a file's or a shared segment's.
pub const PROCESSES: u32 = 0o400_000;
/// A thread that does not own the region is in it, or comes in.
pub(crate) const VISITED: u32 = 0o1_000_000;
/// malloc allocates or has allocated in the region.
pub(crate) const MALLOC: u32 = 0o2_000_000;
/// Other processes may have the memory, which is the program's own: where threads take turns, the
/// lock names its process.
pub const COMMON: u32 = 0o4_000_000;
/// Flags that programs do not see.
pub(crate) const HIDDEN: u32 = PROCESSES | VISITED | MALLOC | COMMON;
/// The flags that can be changed while the region is open.
pub const FLAGS: u32 = TRACE | DBCHECK | DBABORT | SHARE;
/// The smallest free block that suffices.
pub const BEST: u32 = 0o100;
/// Blocks of one size.
pub const POOL: u32 = 0o200;
/// Only the last block can be freed.
pub const LAST: u32 = 0o400;
/// Best fit with guards and checks.
pub const DEBUG: u32 = 0o1000;
/// Best fit with counts by position.
pub const PROFILE: u32 = 0o2000;
/// All methods.
pub const METHODS: u32 = 0o3700;

/// Returns the name of the method among the flags of a region.
#[must_use]
pub fn method_name(mode: u32) -> &'static CStr {
    match mode & METHODS {
        BEST => c"best",
        POOL => c"pool",
        LAST => c"last",
        DEBUG => c"debug",
        PROFILE => c"profile",
        _ => c"unknown",
    }
}
