//! `arena.<i>.*`: settings and actions of one arena.
use crate::Error;
use crate::buffers::Buffers;
use crate::row::{Access, Index, Spec, index_at};
use crate::row_macros::{act, ro, row, rw, unsafe_act, unsafe_rw};
use core::ffi::{CStr, c_void};
use lumalloc::control::arenas::{self, Pages};
use lumalloc::control::{self, ARENAS_ALL, ARENAS_DESTROYED, profile};
use lumalloc::options::{self, Dss};

/// The rows of `arena.<i>.*`.
pub static ROWS: &[Spec] = &[
    ro!(
        "arena.<i>.initialized",
        Bool,
        None,
        |mib| all_or_one(mib).map(arenas::is_initialized),
        "whether the arena exists; true for index 4096, which means all"
    ),
    act!(
        "arena.<i>.decay",
        |mib| purge(mib, arenas::decay),
        "gives back the unused pages whose time has come; index 4096 means all arenas"
    ),
    act!(
        "arena.<i>.purge",
        |mib| purge(mib, control::purge),
        "gives all unused pages of the arena back to the system; index 4096 means all arenas"
    ),
    unsafe_act!(
        "arena.<i>.reset",
        reset,
        "discards every block of an arena that was created; EFAULT for automatic ones"
    ),
    unsafe_act!(
        "arena.<i>.destroy",
        destroy,
        "reset, then ends the arena; EFAULT also while threads or caches are bound to it"
    ),
    rw!(
        "arena.<i>.dss",
        Str,
        None,
        |mib| arenas::dss(all_or_one(mib)?).map(dss_name).ok_or(Error::Fault),
        write_dss,
        "use of sbrk: disabled, primary or secondary; index 4096 means arenas made later"
    ),
    rw!(
        "arena.<i>.dirty_decay_ms",
        Ssize,
        Milliseconds,
        |mib| arenas::decay_ms(one(mib)?, Pages::Dirty).ok_or(Error::Fault),
        |mib, millis| done(arenas::set_decay_ms(one(mib)?, Pages::Dirty, millis)),
        "time until unused dirty pages are purged; a write purges what is unused now"
    ),
    rw!(
        "arena.<i>.muzzy_decay_ms",
        Ssize,
        Milliseconds,
        |mib| arenas::decay_ms(one(mib)?, Pages::Muzzy).ok_or(Error::Fault),
        |mib, millis| done(arenas::set_decay_ms(one(mib)?, Pages::Muzzy, millis)),
        "time until unused muzzy pages are purged; a write purges what is unused now"
    ),
    unsafe_rw!(
        "arena.<i>.extent_hooks",
        Pointer("extent_hooks_t *"),
        None,
        read_hooks,
        write_hooks,
        "functions that supply the arena's pages; they run under no lock, and may call mallctl"
    ),
    rw!(
        "arena.<i>.oversize_threshold",
        Size,
        Bytes,
        |mib| arenas::oversize_threshold(one(mib)?).ok_or(Error::Fault),
        |mib, bytes| done(arenas::set_oversize_threshold(one(mib)?, bytes)),
        "blocks at least this long go back to the system when they are freed; 0: none does"
    ),
    rw!(
        "arena.<i>.retain_grow_limit",
        Size,
        Bytes,
        |mib| arenas::retain_grow_limit(retaining(mib)?).ok_or(Error::Fault),
        |mib, bytes| done(arenas::set_retain_grow_limit(retaining(mib)?, bytes)),
        "most bytes of addresses reserved at a time in advance; ENOENT with retain:false"
    ),
    rw!(
        "arena.<i>.limit",
        Size,
        Bytes,
        |mib| arenas::limit(one(mib)?).ok_or(Error::Fault),
        |mib, bytes| done(arenas::set_limit(one(mib)?, bytes)),
        "bytes with memory that the arena may hold; beyond it as limit.hard; 0: any"
    ),
    rw!(
        "arena.<i>.limit_exempt",
        Bool,
        None,
        |mib| arenas::is_limit_exempt(one(mib)?).ok_or(Error::Fault),
        |mib, on| done(arenas::set_limit_exempt(one(mib)?, on)),
        "limit.hard refuses the arena no pages, as it must not for threads that can raise it"
    ),
    rw!(
        "arena.<i>.profiled",
        Bool,
        None,
        |mib| profile::is_arena_profiled(one(mib)?).ok_or(Error::Fault),
        |mib, on| done(profile::set_arena_profiled(one(mib)?, on)),
        "heap profiles have the arena's allocations; set it to false before the first one"
    ),
    rw!(
        "arena.<i>.reserve",
        Size,
        Bytes,
        |mib| arenas::reserve(one(mib)?).ok_or(Error::Fault),
        |mib, bytes| done(arenas::set_reserve(one(mib)?, bytes)),
        "unused bytes that no purge takes; a write purges what is unused beyond, empty slabs too"
    ),
    row!(
        "arena.<i>.name",
        Pointer("char *"),
        None,
        Access::Raw(c"rw", name),
        "name of the arena, up to 31 bytes; read into the 32 bytes at *(char **)oldp"
    ),
];

/// The indices that `arena.<i>` takes.
pub static INDICES: &[Index] = &[Index { path: "arena.<i>", valid: |mib| is_index(mib.get(1)) }];

/// Whether an index can stand in `arena.<i>`: an arena below the limit, the limit itself (the old
/// way to say "all", which Redis uses), [`ARENAS_ALL`] or [`ARENAS_DESTROYED`].
pub(crate) fn is_index(index: Option<&usize>) -> bool {
    index.and_then(|&index| u32::try_from(index).ok()).is_some_and(|index| {
        matches!(index, ARENAS_ALL | ARENAS_DESTROYED) || index <= control::narenas()
    })
}

/// The index of a MIB. The old way to say "all" becomes [`ARENAS_ALL`].
fn all_or_one(mib: &[usize]) -> Result<u32, Error> {
    let index = one(mib)?;
    Ok(if index == control::narenas() { ARENAS_ALL } else { index })
}

/// The index of a MIB.
fn one(mib: &[usize]) -> Result<u32, Error> {
    u32::try_from(index_at(mib, 1)?).map_err(|_| Error::NoEntry)
}

/// The index of a MIB; no entry unless the option `retain` is on.
fn retaining(mib: &[usize]) -> Result<u32, Error> {
    if options::current().retain { one(mib) } else { Err(Error::NoEntry) }
}

fn done(done: bool) -> Result<(), Error> {
    done.then_some(()).ok_or(Error::Fault)
}

/// Purges arenas. An arena that has not been made has nothing to purge, so this does not fail.
fn purge(mib: &[usize], purge: fn(u32) -> bool) -> Result<(), Error> {
    purge(all_or_one(mib)?);
    Ok(())
}

fn read_hooks(mib: &[usize]) -> Result<*mut c_void, Error> {
    arenas::extent_hooks(one(mib)?).map(<*mut _>::cast).ok_or(Error::Fault)
}

/// # Safety
/// As [`mod@crate::access`]: the hooks are what their C type says.
unsafe fn write_hooks(mib: &[usize], hooks: *mut c_void) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let before = unsafe { arenas::set_extent_hooks(one(mib)?, hooks.cast()) };
    done(before.is_some())
}

/// # Safety
/// No block of the arena is used any more.
unsafe fn reset(mib: &[usize]) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    done(unsafe { arenas::reset(one(mib)?) })
}

/// # Safety
/// As [`reset`].
unsafe fn destroy(mib: &[usize]) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    done(unsafe { arenas::destroy(one(mib)?) })
}

const DSS: [(Dss, &CStr); 3] =
    [(Dss::Disabled, c"disabled"), (Dss::Primary, c"primary"), (Dss::Secondary, c"secondary")];

/// The name of a setting.
pub(crate) fn dss_name(dss: Dss) -> &'static CStr {
    DSS.iter().find(|(setting, _)| *setting == dss).map_or(c"", |(_, name)| *name)
}

fn write_dss(mib: &[usize], name: &CStr) -> Result<(), Error> {
    let dss = DSS.iter().find(|(_, other)| *other == name).ok_or(Error::Invalid)?;
    done(arenas::set_dss(all_or_one(mib)?, dss.0))
}

/// `arena.<i>.name`: both buffers hold a `char *`, one to the caller's 32 bytes, one to the new
/// name.
///
/// # Safety
/// As [`mod@crate::access`]; the two pointers must be valid.
unsafe fn name(mib: &[usize], buffers: Buffers) -> Result<(), Error> {
    let index = one(mib)?;
    if index >= control::narenas() {
        return Err(Error::Invalid);
    }
    let name = arenas::name(index).ok_or(Error::Fault)?;
    // SAFETY: the caller upholds the contract, and vouches for 32 bytes.
    unsafe { buffers.copy_text(&name) }?;
    if !buffers.writes() {
        return Ok(());
    }
    // SAFETY: the caller upholds the contract.
    let new = unsafe { buffers.given_text() }?;
    done(arenas::set_name(index, new.to_bytes()))
}
