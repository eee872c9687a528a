//! The errors of the namespace.
use core::ffi::c_int;

/// Why a key could not be found, read or written. [`Error::errno`] is what `mallctl` returns for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `ENOENT`: no such name, MIB or index, or it means nothing in this build or configuration.
    NoEntry,
    /// `EPERM`: a write to what can only be read, a read of what can only be written, or arguments
    /// to an action.
    NotPermitted,
    /// `EINVAL`: a buffer of the wrong length, or a value out of range.
    Invalid,
    /// `EAGAIN`: the system refuses to start what was asked for, or memory for it ran out.
    Again,
    /// `EBUSY`: what the program holds stands in the way.
    Busy,
    /// `EFAULT`: the action failed.
    Fault,
    /// `ENOMEM`: no memory for what was asked for.
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
