//! Shared memory segments of System V.

use crate::errno;
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use lumalloc::system_calls;

/// A segment, attached or not.
pub(super) struct Identity {
    id: c_int,
    /// Whether closing removes the segment.
    is_removed: AtomicBool,
}

impl Identity {
    /// Finds the segment of a file and a project, or makes it with so many bytes. The file is made
    /// if there is none.
    pub(super) fn of(path: &CStr, project: c_int, bytes: usize) -> Result<Identity, c_int> {
        make_file(path)?;
        let make = libc::IPC_CREAT | libc::IPC_EXCL | 0o644;
        loop {
            match Identity::find(path, project) {
                Err(libc::ENOENT) => {}
                found => return found,
            }
            match Identity::get(path, project, bytes, make) {
                Err(libc::EEXIST) => {}
                made => return made,
            }
        }
    }

    /// Finds the segment of a file and a project.
    pub(super) fn find(path: &CStr, project: c_int) -> Result<Identity, c_int> {
        Identity::get(path, project, 0, 0)
    }

    fn get(path: &CStr, project: c_int, bytes: usize, flags: c_int) -> Result<Identity, c_int> {
        // SAFETY: the path is a string of C.
        let key = unsafe { libc::ftok(path.as_ptr(), project) };
        if key == -1 {
            return Err(errno::get());
        }
        // SAFETY: the call takes no memory.
        let id = unsafe { libc::shmget(key, bytes, flags) };
        if id < 0 {
            Err(errno::get())
        } else {
            Ok(Identity { id, is_removed: AtomicBool::new(false) })
        }
    }

    /// Returns the number of the segment.
    pub(super) fn number(&self) -> c_int {
        self.id
    }

    /// Returns the size of the segment, and how often it is attached.
    pub(super) fn status(&self) -> Result<(usize, usize), c_int> {
        let mut status = MaybeUninit::<libc::shmid_ds>::zeroed();
        // SAFETY: the status is writable.
        if unsafe { libc::shmctl(self.id, libc::IPC_STAT, status.as_mut_ptr()) } != 0 {
            return Err(errno::get());
        }
        // SAFETY: the system wrote it.
        let status = unsafe { status.assume_init() };
        Ok((status.shm_segsz, status.shm_nattch as usize))
    }

    /// Attaches the segment at an address that nothing else has, or for 0 anywhere.
    pub(super) fn attach(&self, address: usize) -> Result<usize, c_int> {
        let address = ptr::without_provenance(address);
        // SAFETY: the segment replaces no mapping.
        let start = unsafe { libc::shmat(self.id, address, 0) };
        if start.addr() != usize::MAX {
            return Ok(start.expose_provenance());
        }
        let failed = errno::get();
        Err(if !address.is_null() && failed == libc::EINVAL { libc::EADDRINUSE } else { failed })
    }

    /// Lets closing remove the segment.
    pub(super) fn remove_when_closed(&self) {
        self.is_removed.store(true, Ordering::Relaxed);
    }

    /// Detaches the segment, and removes it if that is wanted.
    pub(super) fn detach(&self, start: usize) {
        if self.is_removed.load(Ordering::Relaxed) {
            // SAFETY: the call takes no memory.
            unsafe { libc::shmctl(self.id, libc::IPC_RMID, ptr::null_mut()) };
        }
        detach(start);
    }
}

pub(super) fn detach(start: usize) {
    // SAFETY: callers pass a segment that they attached, and that nothing uses any more.
    unsafe { libc::shmdt(ptr::with_exposed_provenance(start)) };
}

/// Makes an empty file if there is none. Any kind of file will do, and need not be readable.
fn make_file(path: &CStr) -> Result<(), c_int> {
    // SAFETY: the path is a string of C.
    if unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0 {
        return Ok(());
    }
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOCTTY;
    let descriptor = system_calls::open(path, flags, 0o644);
    if descriptor < 0 {
        return Err(errno::get());
    }
    system_calls::close(descriptor);
    Ok(())
}
