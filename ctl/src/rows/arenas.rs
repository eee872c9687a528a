//! `arenas.*`: what all arenas share.
use crate::Error;
use crate::row::{Index, Row, index_at};
use crate::row_macros::ro;
use lumalloc::{control, observe, options};

/// Bytes of a huge page of the system.
const HUGE_PAGE: usize = 2 << 20;

/// These keys.
pub static ROWS: &[Row] = &[
    ro!("arenas.narenas", Unsigned, Count, |_| control::narenas(), "limit on the number of arenas"),
    ro!("arenas.quantum", Size, Bytes, |_| 16, "step between the smallest size classes"),
    ro!("arenas.page", Size, Bytes, |_| lumalloc::PAGE, "size of the allocator's page"),
    ro!("arenas.hugepage", Size, Bytes, |_| HUGE_PAGE, "size of a huge page"),
    ro!(
        "arenas.tcache_max",
        Size,
        Bytes,
        |_| options::current().tcache_max,
        "largest size that threads cache"
    ),
    ro!("arenas.nbins", Unsigned, Count, |_| observe::nbins(), "small size classes"),
    ro!("arenas.nhbins", Unsigned, Count, |_| observe::nhbins(), "size classes that threads cache"),
    ro!("arenas.bin.<i>.size", Size, Bytes, |mib| Ok(bin(mib)?.size), "size of a block"),
    ro!("arenas.bin.<i>.nregs", U32, Count, |mib| Ok(bin(mib)?.nregs), "blocks in a slab"),
    ro!("arenas.bin.<i>.slab_size", Size, Bytes, |mib| Ok(bin(mib)?.slab_size), "size of a slab"),
    ro!("arenas.bin.<i>.nshards", U32, Count, |_| 1, "bins of the class in an arena"),
    ro!("arenas.nlextents", Unsigned, Count, |_| observe::nlextents(), "large size classes"),
    ro!("arenas.lextent.<i>.size", Size, Bytes, lextent, "size of a large class"),
];

/// Their indices.
pub static INDICES: &[Index] = &[
    Index { path: "arenas.bin.<i>", valid: |mib| bin(mib).is_ok() },
    Index { path: "arenas.lextent.<i>", valid: |mib| lextent(mib).is_ok() },
];

fn bin(mib: &[usize]) -> Result<observe::Bin, Error> {
    observe::bin(index_at(mib, 2)?).ok_or(Error::NoEntry)
}

fn lextent(mib: &[usize]) -> Result<usize, Error> {
    observe::lextent(index_at(mib, 2)?).ok_or(Error::NoEntry)
}
