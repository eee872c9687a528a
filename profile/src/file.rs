//! Files by system calls, without allocation: opened, written, and read in pieces.

use crate::process::{keep_errno, last_error, thread_id};
use crate::sink::Sink;
use core::ffi::{CStr, c_char, c_int};
use core::mem::ManuallyDrop;
use lumalloc::own_files;
use lumalloc::system_calls::{self, without_signals};

/// An open file, which is closed at the end.
pub(crate) struct File(pub(crate) c_int);

/// The mode of a new file, which the process may restrict (`umask`).
pub(crate) const USUAL: libc::mode_t = 0o644;
/// The mode of a new file that nobody but the user of the process can open.
pub(crate) const PRIVATE: libc::mode_t = 0o600;

impl File {
    /// Opens a file as [`File::open_with_mode`]; a new one has the usual mode.
    pub(crate) fn open(path: &CStr, how: c_int) -> Result<File, c_int> {
        File::open_with_mode(path, how, USUAL)
    }

    /// Opens a file, and waits for nobody: a pipe that nobody reads cannot be opened for writing.
    pub(crate) fn open_with_mode(
        path: &CStr,
        how: c_int,
        mode: libc::mode_t,
    ) -> Result<File, c_int> {
        const AT_ONCE: c_int = libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = system_calls::open_beside_streams(path, how | AT_ONCE, mode);
        if file < 0 { Err(last_error()) } else { Ok(File(file)) }
    }

    /// Lets writes wait for the reader of a pipe.
    pub(crate) fn let_writes_wait(&self) {
        // SAFETY: the file is open, and only here.
        unsafe { libc::fcntl(self.0, libc::F_SETFL, 0) };
    }

    /// Writes all bytes.
    pub(crate) fn write(&self, bytes: &[u8]) -> Result<(), c_int> {
        system_calls::write_all(self.0, bytes)
    }

    /// Writes bytes at a place. If they cannot be written whole, the file ends there.
    pub(crate) fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), c_int> {
        let start = libc::off_t::try_from(at).map_err(|_| libc::EFBIG)?;
        let written = without_signals(|| self.write_from(start, bytes));
        if written.is_err() {
            // SAFETY: the file is open.
            unsafe { libc::ftruncate(self.0, start) };
        }
        written
    }

    /// Removes all bytes, so that the next ones are the first. Returns `false` if they stay.
    fn empty(&self) -> bool {
        // SAFETY: the file is open, and only here.
        let start = unsafe { libc::lseek(self.0, 0, libc::SEEK_SET) };
        // SAFETY: as above.
        start == 0 && unsafe { libc::ftruncate(self.0, 0) } == 0
    }

    fn write_from(&self, mut at: libc::off_t, bytes: &[u8]) -> Result<(), c_int> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = system_calls::pwrite(self.0, rest, at);
            match usize::try_from(written) {
                Ok(0) => return Err(libc::EIO),
                Ok(written) => {
                    rest = rest.get(written..).unwrap_or_default();
                    at = at.saturating_add(written as libc::off_t);
                }
                Err(_) if last_error() == libc::EINTR => {}
                Err(_) => return Err(last_error()),
            }
        }
        Ok(())
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Option<()> {
        let mut rest = buffer;
        let mut at = libc::off_t::try_from(at).ok()?;
        while !rest.is_empty() {
            let read = system_calls::pread(self.0, rest, at);
            match usize::try_from(read) {
                Ok(0) => return None,
                Ok(read) => (rest, at) = (rest.get_mut(read..)?, at.checked_add(read as i64)?),
                Err(_) if last_error() == libc::EINTR => {}
                Err(_) => return None,
            }
        }
        Some(())
    }

    /// Gives the file, which is new, the mode and the owner of the regular file at a path, as it
    /// would have if that one were written to. `more` is added to the mode. If the system refuses
    /// the group, nobody gets more rights by that than before.
    pub(crate) fn resemble(&self, path: &CStr, more: libc::mode_t) {
        const PERMISSIONS: libc::mode_t = 0o777;
        let Some(present) = regular(path) else { return };
        let mode = present.st_mode & PERMISSIONS;
        let has_group = self.belongs_to(present.st_uid, present.st_gid)
            || self.belongs_to(libc::uid_t::MAX, present.st_gid);
        let mode = if has_group { mode } else { for_another_group(mode) };
        // SAFETY: the file is open.
        unsafe { libc::fchmod(self.0, mode | more) };
    }

    /// Gives the file to an owner, or leaves that for the number -1, and to a group. `false`: the
    /// system refuses.
    fn belongs_to(&self, owner: libc::uid_t, group: libc::gid_t) -> bool {
        // SAFETY: the file is open.
        unsafe { libc::fchown(self.0, owner, group) == 0 }
    }

    fn read(&self, buffer: &mut [u8]) -> Result<usize, c_int> {
        loop {
            match usize::try_from(system_calls::read(self.0, buffer)) {
                Ok(read) => return Ok(read),
                Err(_) if last_error() == libc::EINTR => {}
                Err(_) => return Err(last_error()),
            }
        }
    }
}

/// The mode of a file in place of one of another group: the group and all others have the rights
/// that both had. Who was in the group is one of the others now.
fn for_another_group(mode: libc::mode_t) -> libc::mode_t {
    let both = mode >> 3 & mode & 0o7;
    mode & 0o700 | both << 3 | both
}

impl Drop for File {
    fn drop(&mut self) {
        system_calls::close(self.0);
    }
}

/// Calls `see` with the contents of a file, piece by piece.
///
/// # Errors
/// The system's error number, if the file cannot be read to its end.
pub fn for_each_piece(path: &CStr, mut see: impl FnMut(&[u8])) -> Result<(), c_int> {
    keep_errno(|| {
        let file = File::open(path, libc::O_RDONLY)?;
        // It lies on the stack of a thread, which may have little.
        let mut buffer = [0; 1024];
        loop {
            let length = file.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            see(buffer.get(..length).unwrap_or_default());
        }
    })
}

/// Fills a buffer from a place in a file. Returns `None` if it cannot be filled.
pub(crate) fn read_at(path: &CStr, at: u64, buffer: &mut [u8]) -> Option<()> {
    keep_errno(|| File::open(path, libc::O_RDONLY).ok()?.read_at(at, buffer))
}

/// Fills a buffer from an address of this process, which may be unmapped meanwhile. Returns `None`
/// if that cannot be read. A process that has changed its user may not open its memory as a file;
/// some sandboxes refuse the call.
pub(crate) fn read_memory(at: u64, buffer: &mut [u8]) -> Option<()> {
    let length = buffer.len();
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: length };
    let from = core::ptr::with_exposed_provenance_mut(usize::try_from(at).ok()?);
    let remote = libc::iovec { iov_base: from, iov_len: length };
    let me = thread_id();
    // SAFETY: the kernel checks the remote place, and writes only to the buffer.
    let call =
        || unsafe { libc::process_vm_readv(me, &raw const local, 1, &raw const remote, 1, 0) };
    let read = keep_errno(|| usize::try_from(call()).map_err(|_| last_error()));
    match read {
        Ok(read) => (read == length).then_some(()),
        Err(libc::EFAULT) => None,
        Err(_) => own_files::MEMORY.into_iter().find_map(|path| read_at(path, at, buffer)),
    }
}

/// Writes to an open file of the program, which stays open.
///
/// # Errors
/// The system's error number.
pub(crate) fn to_descriptor(
    descriptor: c_int,
    write: impl FnOnce(&mut dyn Sink) -> bool,
) -> Result<(), c_int> {
    keep_errno(|| {
        let file = ManuallyDrop::new(File(descriptor));
        let mut sink = ToFile { file: &file, error: None, is_ours: false };
        let is_whole = write(&mut sink);
        match sink.error {
            None if is_whole => Ok(()),
            error => Err(error.unwrap_or(libc::EIO)),
        }
    })
}

/// A sink that notes the first error of its file.
pub(crate) struct ToFile<'a> {
    pub(crate) file: &'a File,
    pub(crate) error: Option<c_int>,
    /// Whether nobody else writes to the file, or has read it.
    pub(crate) is_ours: bool,
}

impl Sink for ToFile<'_> {
    fn put(&mut self, bytes: &[u8]) -> bool {
        if self.error.is_none() {
            self.error = self.file.write(bytes).err();
        }
        self.error.is_none()
    }

    fn begin_again(&mut self) -> bool {
        self.is_ours && self.file.empty()
    }
}

/// Returns whether there is a file of that name.
pub(crate) fn exists(path: &CStr) -> bool {
    // SAFETY: the path is a C string.
    keep_errno(|| unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0)
}

/// What stands at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing, or a file that another one can take the place of.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Special,
}

/// Returns what stands at a path. A link is not followed.
pub(crate) fn kind(path: &CStr) -> Kind {
    match keep_errno(|| status(path)).map(|status| status.st_mode & libc::S_IFMT) {
        None | Some(libc::S_IFREG) => Kind::File,
        Some(libc::S_IFDIR) => Kind::Directory,
        Some(libc::S_IFLNK) => Kind::Link,
        Some(_) => Kind::Special,
    }
}

/// Returns a descriptor of the program by which the regular file at a path is written to: that of
/// standard output or error, or one that the path names.
pub(crate) fn descriptor_of(path: &CStr) -> Option<c_int> {
    keep_errno(|| {
        let file = status_by(libc::stat, path).filter(is_regular)?;
        let is_it = |descriptor: &c_int| {
            let identity = system_calls::identity(*descriptor);
            let is_same = identity
                .is_some_and(|(device, inode, _)| (device, inode) == (file.st_dev, file.st_ino));
            is_same && is_written_to(*descriptor)
        };
        let usual = [libc::STDOUT_FILENO, libc::STDERR_FILENO];
        named_descriptor(path).into_iter().chain(usual).find(is_it)
    })
}

fn is_written_to(descriptor: c_int) -> bool {
    // SAFETY: the call takes no pointers.
    let how = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    how >= 0 && how & libc::O_ACCMODE != libc::O_RDONLY
}

/// Returns the number of the descriptor that a path names.
fn named_descriptor(path: &CStr) -> Option<c_int> {
    let path = path.to_bytes();
    let number =
        [&b"/dev/fd/"[..], b"/proc/self/fd/"].iter().find_map(|d| path.strip_prefix(*d))?;
    core::str::from_utf8(number).ok()?.parse().ok()
}

/// Returns what the system tells of a regular file. `None`: there is none at the path.
pub(crate) fn regular(path: &CStr) -> Option<libc::stat> {
    status(path).filter(is_regular)
}

fn is_regular(status: &libc::stat) -> bool {
    status.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// Returns what the system tells of a path. A link is not followed.
fn status(path: &CStr) -> Option<libc::stat> {
    status_by(libc::lstat, path)
}

type Stat = unsafe extern "C" fn(*const c_char, *mut libc::stat) -> c_int;

fn status_by(call: Stat, path: &CStr) -> Option<libc::stat> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is a C string, and the place is writable.
    let refused = unsafe { call(path.as_ptr(), status.as_mut_ptr()) };
    // SAFETY: the call has filled it.
    (refused == 0).then(|| unsafe { status.assume_init() })
}

/// Removes a file.
pub(crate) fn remove(path: &CStr) {
    // SAFETY: the path is a C string.
    keep_errno(|| unsafe { libc::unlink(path.as_ptr()) });
}

/// Gives a file another name.
///
/// # Errors
/// The system's error number.
pub(crate) fn rename(from: &CStr, to: &CStr) -> Result<(), c_int> {
    // SAFETY: both paths are C strings.
    let status = unsafe { libc::rename(from.as_ptr(), to.as_ptr()) };
    if status == 0 { Ok(()) } else { Err(last_error()) }
}
