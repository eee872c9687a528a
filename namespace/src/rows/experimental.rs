//! `approximate_stats.*` and `experimental.*`.
use crate::Error;
use crate::buffers::Output;
use crate::row::{Access, Index, Spec, index_at};
use crate::row_macros::{ro, row};
use crate::rows::arena;
use core::ffi::c_void;
use lumalloc::observe;

/// Bytes of a C pointer, and of a number.
const WORD: usize = size_of::<usize>();

/// The rows of both branches.
pub static ROWS: &[Spec] = &[
    ro!(
        "approximate_stats.active",
        Size,
        Bytes,
        |_| observe::approximate_active(),
        "in pages of slabs and large blocks now, without a new epoch"
    ),
    row!(
        "experimental.utilization.query",
        Layout("{void *slabcur; size_t nfree,nregs,size,bin_nfree,bin_nregs}"),
        None,
        Access::Exchange(query),
        "how full the slab of the block at *(void **)newp is, and its class in the arena"
    )
    .unstable(),
    row!(
        "experimental.utilization.batch_query",
        Layout("array of {size_t nfree,nregs,size}"),
        None,
        Access::Exchange(batch_query),
        "how full the slabs of the blocks in the array of void * at newp are"
    )
    .unstable(),
    ro!(
        "experimental.arenas.<i>.pactivep",
        Pointer("size_t *"),
        None,
        active_pages_place,
        "where the arena counts its active pages, to be read at any time"
    )
    .unstable(),
];

/// The indices that `experimental.arenas.<i>` takes.
pub static INDICES: &[Index] =
    &[Index { path: "experimental.arenas.<i>", valid: |mib| arena::is_index(mib.get(2)) }];

fn active_pages_place(mib: &[usize]) -> Result<*mut c_void, Error> {
    let index = u32::try_from(index_at(mib, 2)?).map_err(|_| Error::NoEntry)?;
    let place = observe::active_pages_place(index).ok_or(Error::Fault)?;
    Ok(place.cast_mut().cast())
}

/// The pointer in one word of the input.
fn pointer(word: &[u8]) -> *const u8 {
    let mut bytes = [0; WORD];
    bytes.iter_mut().zip(word).for_each(|(to, from)| *to = *from);
    core::ptr::with_exposed_provenance(usize::from_ne_bytes(bytes))
}

/// Stores numbers one after the other.
fn put(output: &mut Output, offset: usize, numbers: &[usize]) -> Result<(), Error> {
    for (place, number) in numbers.iter().enumerate() {
        output.put(offset + place * WORD, &number.to_ne_bytes())?;
    }
    Ok(())
}

fn query(_: &[usize], input: &[u8], output: &mut Output) -> Result<(), Error> {
    if input.len() != WORD || output.room() != 6 * WORD {
        return Err(Error::Invalid);
    }
    let block = pointer(input);
    let (slab, bin) = (observe::utilization(block), observe::bin_utilization(block));
    let numbers = [bin.slabcur, slab.nfree, slab.nregs, slab.size, bin.nfree, bin.nregs];
    put(output, 0, &numbers)
}

fn batch_query(_: &[usize], input: &[u8], output: &mut Output) -> Result<(), Error> {
    let blocks = input.len() / WORD;
    if blocks == 0 || input.len() != blocks * WORD || output.room() != blocks * 3 * WORD {
        return Err(Error::Invalid);
    }
    for (at, word) in input.chunks_exact(WORD).enumerate() {
        let slab = observe::utilization(pointer(word));
        put(output, at * 3 * WORD, &[slab.nfree, slab.nregs, slab.size])?;
    }
    Ok(())
}
