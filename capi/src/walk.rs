//! lumalloc's own functions: the walk over live blocks, and the heap as a map.
//!
//! They return error numbers and do not change `errno`.
use alloc_core::control::{self, arenas};
use alloc_core::observe;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use lumalloc_namespace::heap_map::{self, Part};
use lumalloc_namespace::writer::{WriteCallback, Writer};

/// `bool see(void *cbopaque, void *ptr, size_t size, unsigned arena)`.
pub type SeeBlock = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_uint) -> bool;

/// Converts an index of C: `None` for all arenas.
///
/// Errors: `ENOENT` if there is no such arena.
fn arena_of(index: c_uint) -> Result<Option<u32>, c_int> {
    match index {
        control::ARENAS_ALL => Ok(None),
        index if index != control::ARENAS_DESTROYED && arenas::is_initialized(index) => {
            Ok(Some(index))
        }
        _ => Err(libc::ENOENT),
    }
}

/// Calls `see` with each live block of an arena, or of all arenas for `MALLCTL_ARENAS_ALL`, until
/// it returns `false`: see [`observe::blocks`]. The arena of a guarded sample is `UINT_MAX`. No
/// lock is held while `see` runs, so it may allocate and free.
///
/// Errors: `ENOENT` if there is no such arena; `EINVAL` for a null callback; `ECANCELED` when `see`
/// returned `false`.
///
/// # Safety
/// `see` must accept `cbopaque` and any block, and must not unwind.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lumalloc_walk(
    arena: c_uint,
    see: Option<SeeBlock>,
    cbopaque: *mut c_void,
) -> c_int {
    let Some(see) = see else { return libc::EINVAL };
    let arena = match arena_of(arena) {
        Ok(arena) => arena,
        Err(error) => return error,
    };
    let goes_on = observe::blocks(arena).all(|block| {
        let place = ptr::with_exposed_provenance_mut(block.address);
        // SAFETY: the caller vouches for the callback.
        unsafe { see(cbopaque, place, block.usable, block.arena.unwrap_or(c_uint::MAX)) }
    });
    if goes_on { 0 } else { libc::ECANCELED }
}

/// Writes the runs of an arena, or of the whole heap for `MALLCTL_ARENAS_ALL`, through `write_cb`
/// as JSON: see [`heap_map::print`]. The first run is the first at or above `from`, and there are
/// `most` runs at most, or all for 0. No lock is held while `write_cb` runs.
///
/// Errors: `ENOENT` if there is no such arena; `EINVAL` for a null callback.
///
/// # Safety
/// `write_cb` must accept `cbopaque` and any NUL-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lumalloc_map(
    write_cb: Option<WriteCallback>,
    cbopaque: *mut c_void,
    arena: c_uint,
    from: *const c_void,
    most: usize,
) -> c_int {
    let Some(write_cb) = write_cb else { return libc::EINVAL };
    match arena_of(arena) {
        Ok(arena) => {
            // SAFETY: the caller vouches for the callback.
            let mut writer = unsafe { Writer::new(write_cb, cbopaque) };
            heap_map::print(&mut writer, Part { arena, from: from.addr(), most });
            0
        }
        Err(error) => error,
    }
}

/// Writes the run around an address, and the sites whose samples are in use in it, through
/// `write_cb` as JSON: see [`heap_map::print_at`]. No lock is held while `write_cb` runs.
///
/// Errors: `EINVAL` for a null callback.
///
/// # Safety
/// `write_cb` must accept `cbopaque` and any NUL-terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lumalloc_map_at(
    write_cb: Option<WriteCallback>,
    cbopaque: *mut c_void,
    address: *const c_void,
) -> c_int {
    let Some(write_cb) = write_cb else { return libc::EINVAL };
    // SAFETY: the caller vouches for the callback.
    let mut writer = unsafe { Writer::new(write_cb, cbopaque) };
    heap_map::print_at(&mut writer, address.addr());
    0
}
