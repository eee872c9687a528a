//! `arenas.*`: settings and size classes that all arenas share.
use crate::buffers::Buffers;
use crate::row::{Access, Index, Spec, index_at};
use crate::row_macros::{ask, ro, row, rw};
use crate::{Error, Type, Value};
use core::ffi::c_void;
use core::ptr;
use lumalloc::control::arenas::{self, Pages};
use lumalloc::{control, observe, options};

/// Bytes of a huge page of the system.
const HUGE_PAGE: usize = 2 << 20;

/// The rows of `arenas.*`.
pub static ROWS: &[Spec] = &[
    ro!("arenas.narenas", Unsigned, Count, |_| control::narenas(), "limit on the number of arenas"),
    rw!(
        "arenas.dirty_decay_ms",
        Ssize,
        Milliseconds,
        |_| arenas::default_decay_ms(Pages::Dirty),
        |_, millis| set_decay(Pages::Dirty, millis),
        "dirty_decay_ms that arenas made later begin with"
    ),
    rw!(
        "arenas.muzzy_decay_ms",
        Ssize,
        Milliseconds,
        |_| arenas::default_decay_ms(Pages::Muzzy),
        |_, millis| set_decay(Pages::Muzzy, millis),
        "muzzy_decay_ms that arenas made later begin with"
    ),
    row!(
        "arenas.create",
        Unsigned,
        None,
        Access::UnsafeCreate(Type::Pointer(c"extent_hooks_t *"), create),
        "makes an arena, with these extent hooks if any are given, and answers its index"
    ),
    row!(
        "experimental.arenas_create_ext",
        Unsigned,
        None,
        Access::Raw(c"rw", create_ext),
        "arenas.create with a struct: extent_hooks_t *, bool metadata_use_hooks (no effect here)"
    )
    .unstable(),
    ask!(
        "arenas.lookup",
        Pointer("void *") => Unsigned,
        None,
        |_, block| block.and_then(|block| arenas::lookup(block.cast())).ok_or(Error::Invalid),
        "the arena that a block belongs to, 0 for one of 0 bytes; EINVAL for what is no block"
    ),
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
    ro!(
        "arenas.nbins",
        Unsigned,
        Count,
        |_| observe::nbins(),
        "small size classes, whose blocks come from slabs: up to 32 KiB"
    ),
    ro!("arenas.nhbins", Unsigned, Count, |_| observe::nhbins(), "size classes that threads cache"),
    ro!("arenas.bin.<i>.size", Size, Bytes, |mib| Ok(bin(mib)?.size), "size of a block"),
    ro!("arenas.bin.<i>.nregs", U32, Count, |mib| Ok(bin(mib)?.nregs), "blocks in a slab"),
    ro!("arenas.bin.<i>.slab_size", Size, Bytes, |mib| Ok(bin(mib)?.slab_size), "size of a slab"),
    ro!("arenas.bin.<i>.nshards", U32, Count, |_| 1, "bins of the class in an arena"),
    ro!(
        "arenas.nlextents",
        Unsigned,
        Count,
        |_| observe::nlextents(),
        "large size classes, each block a run of pages: from 40 KiB on"
    ),
    ro!("arenas.lextent.<i>.size", Size, Bytes, lextent, "size of a large class"),
];

/// The indices that `arenas.bin.<i>` and `arenas.lextent.<i>` take.
pub static INDICES: &[Index] = &[
    Index { path: "arenas.bin.<i>", valid: |mib| bin(mib).is_ok() },
    Index { path: "arenas.lextent.<i>", valid: |mib| lextent(mib).is_ok() },
];

/// # Safety
/// As [`create_with`].
unsafe fn create(_: &[usize], hooks: *mut c_void) -> Result<Value<'static>, Error> {
    // SAFETY: the caller's promise.
    unsafe { create_with(hooks) }.map(Value::Unsigned)
}

/// `arena_config_t`. Metadata lies apart from the blocks, and never comes from the hooks.
#[repr(C)]
struct ArenaConfig {
    hooks: *mut c_void,
    _metadata_use_hooks: bool,
}

/// `experimental.arenas_create_ext`.
///
/// # Safety
/// As [`crate::access()`]; the hooks must be what their C type says.
unsafe fn create_ext(_: &[usize], buffers: Buffers) -> Result<(), Error> {
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.require_place(Type::Unsigned) }?;
    let mut hooks = ptr::null_mut();
    if !buffers.newp.is_null() {
        if buffers.newlen != size_of::<ArenaConfig>() {
            return Err(Error::Invalid);
        }
        // SAFETY: newp is as long as the struct, whose first field is the hooks.
        hooks = unsafe { ptr::read_unaligned(buffers.newp.cast::<*mut c_void>()) };
    }
    // SAFETY: as above.
    let arena = unsafe { create_with(hooks) }?;
    // SAFETY: the caller upholds the contract.
    unsafe { buffers.answer(Type::Unsigned, Value::Unsigned(arena)) }
}

/// Makes an arena with these hooks, or without hooks if they are null.
///
/// # Safety
/// As [`mod@crate::access`]: the hooks are what their C type says.
unsafe fn create_with(hooks: *mut c_void) -> Result<u32, Error> {
    // SAFETY: the caller's promise.
    unsafe { arenas::create_with(hooks.cast()) }.ok_or(Error::Again)
}

fn set_decay(pages: Pages, millis: isize) -> Result<(), Error> {
    arenas::set_default_decay_ms(pages, millis).then_some(()).ok_or(Error::Fault)
}

fn bin(mib: &[usize]) -> Result<observe::Bin, Error> {
    observe::bin(index_at(mib, 2)?).ok_or(Error::NoEntry)
}

fn lextent(mib: &[usize]) -> Result<usize, Error> {
    observe::lextent(index_at(mib, 2)?).ok_or(Error::NoEntry)
}
