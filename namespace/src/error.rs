//! The errors of the namespace.
use core::ffi::c_int;

/// Why a key could not be found, read or written. `mallctl` returns [`Error::errno`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `ENOENT`: no such name, MIB or index, or the key means nothing in this build or
    /// configuration.
    NoEntry,
    /// `EPERM`: a write to a read-only key, a read of a write-only key, or arguments to an action.
    NotPermitted,
    /// `EINVAL`: a buffer of the wrong length, or a value out of range.
    Invalid,
    /// `EAGAIN`: the system refuses to start the thing asked for, or there is no memory for it.
    Again,
    /// `EBUSY`: the memory that the program holds does not allow it, or a call is in the region.
    Busy,
    /// `EFAULT`: the action failed.
    Fault,
    /// `ENOMEM`: no memory for the thing asked for.
    NoMemory,
}

impl Error {
    /// The error number of `<errno.h>`.
    #[must_use]
    pub const fn errno(self) -> c_int {
        match self {
            Error::NoEntry => libc::ENOENT,
            Error::NotPermitted => libc::EPERM,
            Error::Invalid => libc::EINVAL,
            Error::Again => libc::EAGAIN,
            Error::Busy => libc::EBUSY,
            Error::Fault => libc::EFAULT,
            Error::NoMemory => libc::ENOMEM,
        }
    }
}
