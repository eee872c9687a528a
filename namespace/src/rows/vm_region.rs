//! `vm.regions` and `vm.region.<i>.*`: the regions of vmalloc(3) that are open.
//!
//! The numbers of a region are taken together, when the first of them is read after a write to
//! `epoch`. A call that stays in the region does not let them be taken: then they are those of
//! before, or `EBUSY` if there are none. A number that no region has gives `ENOENT`.
use crate::Error;
use crate::buffers::Buffers;
use crate::row::{Access, Index, Spec, index_at};
use crate::row_macros::{act, ask, create, ro, row};
use crate::snapshot;
use core::ffi::CStr;
use lumalloc::observe::regions::{self, About, Counts, Holder, Unanswered};

/// Bytes of the buffer for the path of a region's file.
const FILE_BYTES: usize = 256;

/// A number that is counted.
macro_rules! counted {
    ($name:literal, $unit:ident, $field:ident, $help:literal) => {
        ro!(
            concat!("vm.region.<i>.", $name),
            Size,
            $unit,
            |mib| counts(mib).map(|counts| counts.$field),
            $help
        )
    };
}

/// The rows of `vm.regions` and its like.
pub static ROWS: &[Spec] = &[
    ro!("vm.regions", Size, Count, |_| regions::count(), "regions of vmalloc(3) that are open"),
    ro!(
        "vm.nregions",
        Size,
        Count,
        |_| regions::end(),
        "numbers that regions had so far: each open one has a number below it"
    ),
    ask!(
        "vm.lookup",
        Pointer("void *") => Unsigned,
        None,
        |_, handle| {
            let number = handle.and_then(|handle| regions::lookup(handle.addr()));
            number.and_then(|number| u32::try_from(number).ok()).ok_or(Error::Invalid)
        },
        "the number of the region with a handle; EINVAL for what is none"
    ),
];

/// The rows of `vm.region.<i>.*`.
pub static REGION: &[Spec] = &[
    row!(
        "vm.region.<i>.name",
        Pointer("char *"),
        None,
        Access::Raw(c"rw", name),
        "name of the region, up to 31 bytes; read into the 32 bytes at *(char **)oldp"
    ),
    ro!(
        "vm.region.<i>.method",
        Str,
        None,
        |mib| about(mib).map(|about| about.method),
        "best, last, pool, debug or profile"
    ),
    ro!(
        "vm.region.<i>.discipline",
        Str,
        None,
        |mib| about(mib).map(|about| about.discipline),
        "where its memory comes from: system, heap, file, segment, or program for its own function"
    ),
    ro!(
        "vm.region.<i>.flags",
        Unsigned,
        None,
        |mib| about(mib).map(|about| about.flags),
        "method and flags as bits, as vmset returns them"
    ),
    ro!(
        "vm.region.<i>.address",
        Size,
        None,
        |mib| about(mib).map(|about| about.address),
        "address of the handle; of a region of a Rust program, of its first segment"
    ),
    row!(
        "vm.region.<i>.file",
        Pointer("char *"),
        None,
        Access::Raw(c"r-", file),
        "path of its file, or the end of it; read into the 256 bytes at *(char **)oldp"
    ),
    counted!("n_busy", Count, busy, "blocks that the program has"),
    counted!("s_busy", Bytes, busy_bytes, "in blocks that the program has"),
    counted!(
        "m_busy",
        Bytes,
        busy_largest,
        "of the largest block of the program; 0 with the method last"
    ),
    counted!("n_free", Count, free, "free blocks"),
    counted!("s_free", Bytes, free_bytes, "in free blocks"),
    counted!("m_free", Bytes, free_largest, "of the largest free block"),
    counted!("n_seg", Count, segments, "segments that the discipline gave"),
    counted!("extent", Bytes, extent, "in segments, the region's own words among it"),
    ro!(
        "vm.region.<i>.holder",
        Unsigned,
        None,
        |mib| holder(mib).map(|holder| holder.map_or(0, |holder| holder.process)),
        "process that is in a call of a region of several processes, or ended in one; 0: none"
    ),
    ro!(
        "vm.region.<i>.holder_alive",
        Bool,
        None,
        |mib| holder(mib).map(|holder| holder.is_none_or(|holder| holder.is_alive)),
        "whether that process exists; if not, the next call in the region takes its lock over"
    ),
    create!(
        "vm.region.<i>.check",
        Void => Unsigned,
        Count,
        |mib| {
            let damaged = regions::check(number(mib)?).map_err(error)?;
            Ok::<u32, Error>(u32::try_from(damaged).unwrap_or(u32::MAX))
        },
        "checks all blocks: how many are damaged; ENOENT with the methods last and pool"
    ),
    act!(
        "vm.region.<i>.compact",
        |mib| regions::compact(number(mib)?).map_err(error),
        "gives free memory back to the discipline, which is called by this thread"
    ),
];

/// The indices that `vm.region.<i>` takes: all numbers that regions had, and 0.
pub static INDICES: &[Index] = &[Index {
    path: "vm.region.<i>",
    valid: |mib| mib.get(2).is_some_and(|number| *number < regions::end().max(1)),
}];

fn number(mib: &[usize]) -> Result<usize, Error> {
    index_at(mib, 2)
}

fn about(mib: &[usize]) -> Result<About, Error> {
    regions::about(number(mib)?).ok_or(Error::NoEntry)
}

fn holder(mib: &[usize]) -> Result<Option<Holder>, Error> {
    about(mib).map(|about| about.holder)
}

fn counts(mib: &[usize]) -> Result<Counts, Error> {
    let epoch = snapshot::current().epoch;
    regions::counts(number(mib)?, epoch).map_err(error)
}

fn error(unanswered: Unanswered) -> Error {
    match unanswered {
        Unanswered::Missing | Unanswered::Unknown => Error::NoEntry,
        Unanswered::Busy => Error::Busy,
    }
}

/// `vm.region.<i>.name`: both buffers hold a `char *`, one to the caller's 32 bytes, one to the new
/// name.
///
/// # Safety
/// As [`mod@crate::access`]; the two pointers must be valid.
unsafe fn name(mib: &[usize], buffers: Buffers) -> Result<(), Error> {
    let number = number(mib)?;
    let name = regions::name(number).ok_or(Error::NoEntry)?;
    // SAFETY: the caller upholds the contract, and vouches for 32 bytes.
    unsafe { buffers.copy_text(&name) }?;
    if !buffers.writes() {
        return Ok(());
    }
    // SAFETY: the caller upholds the contract.
    let new: &CStr = unsafe { buffers.given_text() }?;
    if regions::set_name(number, new.to_bytes()) { Ok(()) } else { Err(Error::NoEntry) }
}

/// `vm.region.<i>.file`: the buffer holds a `char *` to the caller's 256 bytes.
///
/// # Safety
/// As [`mod@crate::access`]; the pointer must be valid.
unsafe fn file(mib: &[usize], buffers: Buffers) -> Result<(), Error> {
    if buffers.writes() {
        return Err(Error::NotPermitted);
    }
    let mut path = [0; FILE_BYTES];
    let room = path.get_mut(..FILE_BYTES - 1).unwrap_or(&mut []);
    match regions::file(number(mib)?, room) {
        // SAFETY: the caller upholds the contract, and vouches for 256 bytes.
        Some(1..) => unsafe { buffers.copy_text(&path) },
        _ => Err(Error::NoEntry),
    }
}
