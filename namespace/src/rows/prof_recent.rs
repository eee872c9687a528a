//! `experimental.prof_recent.*`: the last samples of the heap profiler. Source: jemalloc.
use crate::Error;
use crate::buffers::Buffers;
use crate::row::{Access, Spec};
use crate::row_macros::{row, rw};
use crate::rows::prof::enabled;
use crate::writer::{WriteCallback, Writer};
use core::ffi::c_void;
use core::ptr;
use lumalloc::control::profile;
use lumalloc_profile::recent;
use lumalloc_profile::sink::Sink;

/// The rows of the branch.
pub static ROWS: &[Spec] = &[
    rw!(
        "experimental.prof_recent.alloc_max",
        Ssize,
        Count,
        |_| enabled().map(|()| profile::recent_samples()),
        |_, most| set_most(most),
        "how many of the last samples are kept, with what becomes of them; -1: all"
    )
    .unstable(),
    row!(
        "experimental.prof_recent.alloc_dump",
        Layout("{void (*write_cb)(void *, const char *); void *}"),
        None,
        Access::Raw(c"-w", dump),
        "writes the last samples as JSON through a callback (EAGAIN: another thread does the same)"
    )
    .unstable(),
];

fn set_most(most: isize) -> Result<(), Error> {
    enabled()?;
    if most < -1 {
        return Err(Error::Invalid);
    }
    profile::set_recent_samples(most);
    Ok(())
}

/// The value of `experimental.prof_recent.alloc_dump`.
#[repr(C)]
struct Target {
    write: Option<WriteCallback>,
    opaque: *mut c_void,
}

/// Hands pieces of text to a callback.
struct ToCallback(Writer);

impl Sink for ToCallback {
    fn put(&mut self, bytes: &[u8]) -> bool {
        self.0.bytes(bytes);
        true
    }
}

/// # Safety
/// As [`mod@crate::access`]; the function must be what its C type says.
unsafe fn dump(_: &[usize], buffers: Buffers) -> Result<(), Error> {
    enabled()?;
    if buffers.has_place() {
        return Err(Error::NotPermitted);
    }
    if buffers.newp.is_null() || buffers.newlen != size_of::<Target>() {
        return Err(Error::Invalid);
    }
    // SAFETY: newp is as long as the struct.
    let target = unsafe { ptr::read_unaligned(buffers.newp.cast::<Target>()) };
    let write = target.write.ok_or(Error::Invalid)?;
    profile::settle();
    // SAFETY: as in C, the caller that writes this key vouches for its function.
    let mut sink = ToCallback(unsafe { Writer::new(write, target.opaque) });
    if recent::write(&mut sink) { Ok(()) } else { Err(Error::Again) }
}
