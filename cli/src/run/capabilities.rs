//! The capabilities that a file gives to its program, as `setcap` sets them. The kernel starts such
//! a program as one with setuid, and the loader ignores `LD_PRELOAD`. A process may be one whose
//! programs gain nothing, and so may a mount.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const ATTRIBUTE: &std::ffi::CStr = c"security.capability";
/// The bit of the first word that makes the permitted capabilities effective.
const EFFECTIVE: u32 = 1;

/// Returns whether a program may gain privileges by this file. Under `no_new_privs`, and where the
/// mount is `nosuid`, none does, and the loader reads `LD_PRELOAD` for all.
pub(crate) fn may_gain(path: &Path) -> bool {
    may_gain_here() && !is_without_setuid(path)
}

fn may_gain_here() -> bool {
    // SAFETY: takes and returns numbers.
    unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 }
}

/// Whether the file lies on a mount whose files give no privileges.
fn is_without_setuid(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut mount = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path is NUL-terminated, and there is room for the answer.
    if unsafe { libc::statvfs(path.as_ptr(), mount.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, so the system has written the answer.
    unsafe { mount.assume_init() }.f_flag & libc::ST_NOSUID != 0
}

/// Whether the program in this file gains capabilities.
pub(crate) fn gains(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    let mut value = [0u8; 64];
    // SAFETY: both names are NUL-terminated, and the buffer is writable for its length.
    let length = unsafe {
        libc::getxattr(path.as_ptr(), ATTRIBUTE.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    let length = usize::try_from(length).unwrap_or(0);
    value.get(..length).is_some_and(grants)
}

/// Whether the attribute grants anything. Its words: version and flags, then twice permitted and
/// inheritable ones, each the lower and the upper half; little-endian.
fn grants(value: &[u8]) -> bool {
    let word = |index: usize| {
        let bytes = value.get(4 * index..4 * index + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let has = |index: usize, bits: u32| word(index).is_some_and(|word| word & bits != 0);
    has(0, EFFECTIVE) || has(1, u32::MAX) || has(3, u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_gains_privileges_where_the_system_lets_none() {
        // The setting is that of a thread, and stays.
        let thread = std::thread::spawn(|| {
            // SAFETY: takes and returns numbers.
            let status = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
            (status, may_gain_here())
        });
        assert_eq!(thread.join().unwrap(), (0, false));
    }

    #[test]
    fn what_is_inheritable_only_is_not_granted() {
        let value = |words: [u32; 5]| words.map(u32::to_le_bytes).concat();
        assert!(grants(&value([0x0200_0001, 1 << 13, 0, 0, 0])));
        assert!(grants(&value([0x0200_0000, 1 << 13, 0, 0, 0])));
        assert!(grants(&value([0x0300_0000, 0, 0, 1, 0])));
        assert!(!grants(&value([0x0200_0000, 0, 1 << 13, 0, 1])));
        assert!(!grants(&[]));
    }

    #[test]
    fn ordinary_files_have_none() {
        assert!(!gains(Path::new("/bin/sh")) && !gains(Path::new("/nowhere/x")));
    }
}
