//! `limit.*`: bounds on the memory taken from the system.
use crate::buffers::Buffers;
use crate::row::{Access, Spec};
use crate::row_macros::{ro, row, rw, wo};
use crate::{Error, Type};
use core::ffi::c_void;
use core::ptr;
use lumalloc::control::limits::{self, LimitCallback};

/// The rows of `limit.*`.
pub static ROWS: &[Spec] = &[
    rw!(
        "limit.soft",
        Size,
        Bytes,
        |_| limits::soft(),
        |_, bytes| {
            limits::set_soft(bytes);
            Ok(())
        },
        "reaching it purges unused pages; 0: none; 95 % of the container's memory unless written"
    ),
    rw!(
        "limit.hard",
        Size,
        Bytes,
        |_| limits::hard(),
        |_, bytes| limits::set_hard_checked(bytes).map_err(|_| Error::Busy),
        "beyond it: purge, limit.callback, then NULL and ENOMEM; 0: none; EBUSY below limit.held"
    ),
    wo!(
        "limit.hard_forced",
        Size,
        Bytes,
        |_, bytes| {
            limits::set_hard(bytes);
            Ok(())
        },
        "writes limit.hard, also below limit.held: what needs new pages fails until enough is freed"
    ),
    ro!(
        "limit.held",
        Size,
        Bytes,
        |_| limits::held(),
        "bytes held now, as limit.hard counts them: with stats.holes, which limit.soft leaves out"
    ),
    ro!(
        "limit.soft_reached",
        U64,
        Count,
        |_| limits::soft_reached(),
        "times that limit.soft was reached"
    ),
    ro!(
        "limit.hard_reached",
        U64,
        Count,
        |_| limits::hard_reached(),
        "times that limit.hard or an arena's own refused pages, whether room was made or not"
    ),
    row!(
        "limit.callback",
        Layout("{bool (*f)(void *, size_t held, size_t limit, size_t wanted, unsigned); void *}"),
        None,
        Access::Raw(c"rw", callback),
        "asked at a hard bound, under no lock: true if it freed anything; arena 4096 means all"
    ),
];

/// The value of `limit.callback`.
#[repr(C)]
struct Callback {
    function: Option<LimitCallback>,
    argument: *mut c_void,
}

/// # Safety
/// As [`mod@crate::access`]; the function must be what its C type says.
unsafe fn callback(_: &[usize], buffers: Buffers) -> Result<(), Error> {
    let size = size_of::<Callback>();
    if buffers.has_place() {
        // SAFETY: the caller upholds the contract.
        if unsafe { buffers.room() } != size {
            // SAFETY: as above.
            unsafe { buffers.require_place(Type::Void) }?;
            return Err(Error::Invalid);
        }
        let (function, argument) =
            limits::callback().map_or((None, ptr::null_mut()), |(f, a)| (Some(f), a));
        // SAFETY: the place is as long as the struct.
        unsafe { ptr::write_unaligned(buffers.oldp.cast(), Callback { function, argument }) };
    }
    if !buffers.writes() {
        return Ok(());
    }
    if buffers.newp.is_null() || buffers.newlen != size {
        return Err(Error::Invalid);
    }
    // SAFETY: newp is as long as the struct.
    let new = unsafe { ptr::read_unaligned(buffers.newp.cast::<Callback>()) };
    // SAFETY: as in C, the caller that writes this key vouches for its function.
    unsafe { limits::set_callback(new.function, new.argument) }.then_some(()).ok_or(Error::NoMemory)
}
