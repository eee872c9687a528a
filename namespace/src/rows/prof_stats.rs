//! `prof.stats.*`: samples of the heap profiler by size class. They return `ENOENT` without
//! `prof_stats:true`. In jemalloc the names do not exist then.
use crate::Error;
use crate::Type;
use crate::buffers::Buffers;
use crate::row::{Access, Index, Spec, index_at};
use crate::row_macros::row;
use core::ptr;
use lumalloc::control::profile;
use lumalloc::observe::{self, BINS, LEXTENTS, ProfileClass, ProfileSum};
use lumalloc::options;

/// Rows of one kind of class.
macro_rules! class_rows {
    ($rows:ident, $path:literal, $what:literal, $class:expr) => {
        #[doc = concat!("The rows of `", $path, "`.")]
        pub static $rows: &[Spec] = &[
            row!(
                concat!($path, ".live"),
                Layout("prof_stats_t {uint64_t req_sum, count}"),
                None,
                // SAFETY: the caller of a handler upholds the contract of `read`.
                Access::Raw(c"r-", |mib, buffers| unsafe { read(mib, buffers, $class, live) }),
                concat!("samples of the ", $what, " class in use: requested bytes, and number")
            ),
            row!(
                concat!($path, ".accum"),
                Layout("prof_stats_t {uint64_t req_sum, count}"),
                None,
                // SAFETY: the caller of a handler upholds the contract of `read`.
                Access::Raw(c"r-", |mib, buffers| unsafe { read(mib, buffers, $class, accum) }),
                concat!("samples of the ", $what, " class since the start or the last prof.reset")
            ),
        ];
    };
}

class_rows!(ROWS, "prof.stats.bins.<i>", "small", observe::profile_bin);
class_rows!(LEXTENT_ROWS, "prof.stats.lextents.<i>", "large", observe::profile_lextent);

/// The indices that `prof.stats.*` takes.
pub static INDICES: &[Index] = &[
    Index { path: "prof.stats.bins.<i>", valid: |mib| is_class(mib, BINS) },
    Index { path: "prof.stats.lextents.<i>", valid: |mib| is_class(mib, LEXTENTS) },
];

fn is_class(mib: &[usize], end: usize) -> bool {
    mib.get(3).is_some_and(|index| *index < end)
}

fn live(class: ProfileClass) -> ProfileSum {
    class.live
}

fn accum(class: ProfileClass) -> ProfileSum {
    class.accum
}

/// `prof_stats_t`.
#[repr(C)]
struct ProfStats {
    req_sum: u64,
    count: u64,
}

/// Reads the samples of a class.
///
/// # Safety
/// As [`mod@crate::access`].
unsafe fn read(
    mib: &[usize],
    buffers: Buffers,
    class: fn(usize) -> Option<ProfileClass>,
    sum: fn(ProfileClass) -> ProfileSum,
) -> Result<(), Error> {
    if buffers.writes() {
        return Err(Error::NotPermitted);
    }
    if !profile::is_enabled() || !options::current().prof_stats {
        return Err(Error::NoEntry);
    }
    let sum = sum(class(index_at(mib, 3)?).ok_or(Error::NoEntry)?);
    if !buffers.has_place() {
        return Ok(());
    }
    // SAFETY: the caller upholds the contract.
    if unsafe { buffers.room() } != size_of::<ProfStats>() {
        // SAFETY: as above.
        unsafe { buffers.require_place(Type::Void) }?;
        return Err(Error::Invalid);
    }
    let stats = ProfStats { req_sum: sum.requested, count: sum.count };
    // SAFETY: the place is as long as the struct.
    unsafe { ptr::write_unaligned(buffers.oldp.cast(), stats) };
    Ok(())
}
