//! The file that holds a region.

use super::maps;
use crate::errno;
use crate::line::Line;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use lumalloc::system_calls::{self, close, fallocate};

/// Bytes that the file system is asked for at a time. Some are interrupted by each signal, and
/// begin anew then.
const STEP: usize = 1 << 20;

/// How [`File::lock`] locks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Locked {
    /// With others: the file is in use.
    Together,
    /// With others. Fails at once if one has it alone.
    TogetherAtOnce,
    /// Alone. Fails at once if others use the file.
    Alone,
}

/// An open file. Programs close descriptors that are not theirs, and open others with the same
/// number, so each use looks whether it is the same file.
pub(super) struct File {
    descriptor: AtomicI32,
    device: u64,
    inode: u64,
    /// Whether the file was made when it was opened.
    is_made: bool,
    /// Whether closing removes the file.
    is_removed: AtomicBool,
}

impl File {
    /// Opens a regular file for reading and writing, and makes it if there is none.
    pub(super) fn open(path: &CStr) -> Result<File, c_int> {
        match File::open_existing(path) {
            Err(libc::ENOENT) => {}
            file => return file,
        }
        match File::open_as(path, libc::O_CREAT | libc::O_EXCL) {
            // Another process was faster, or a link leads to no file.
            Err(libc::EEXIST) => File::open_as(path, libc::O_CREAT),
            file => file,
        }
    }

    /// Opens a regular file, which exists, for reading and writing.
    pub(super) fn open_existing(path: &CStr) -> Result<File, c_int> {
        File::open_as(path, 0)
    }

    /// Lets closing remove the file, if it was made when it was opened.
    pub(super) fn remove_if_made(&self) {
        if self.is_made {
            self.remove_when_closed();
        }
    }

    fn open_as(path: &CStr, flags: c_int) -> Result<File, c_int> {
        const FLAGS: c_int = libc::O_RDWR | libc::O_NONBLOCK | libc::O_NOCTTY;
        let descriptor = system_calls::open_beside_streams(path, flags | FLAGS, 0o644);
        if descriptor < 0 {
            return Err(errno::get());
        }
        let Some(status) = status(descriptor) else {
            let failed = errno::get();
            close(descriptor);
            return Err(failed);
        };
        if status.st_mode & libc::S_IFMT != libc::S_IFREG {
            close(descriptor);
            return Err(libc::EINVAL);
        }
        let (device, inode) = (status.st_dev, status.st_ino);
        let descriptor = AtomicI32::new(descriptor);
        let is_made = flags & libc::O_EXCL != 0;
        Ok(File { descriptor, device, inode, is_made, is_removed: AtomicBool::new(false) })
    }

    /// The descriptor, for a mapping.
    pub(super) fn descriptor(&self) -> c_int {
        self.descriptor.load(Ordering::Relaxed)
    }

    /// Opens the file again if the program closed the descriptor. The file is mapped at `start`,
    /// from its beginning. One thread at a time calls this, for a region that is made.
    pub(super) fn open_again(&self, start: usize) {
        if self.length().is_some() {
            return;
        }
        let mut place = [0; libc::PATH_MAX as usize];
        let path = maps::path_at(start, &mut place);
        let opened = path.and_then(|path| File::open_existing(path).ok());
        let Some(other) = opened.filter(|other| other.identity() == self.identity()) else {
            return;
        };
        // Who opens the region may have locked the file, and wait for the lock of the region, which
        // is held here.
        other.lock(Locked::TogetherAtOnce);
        self.descriptor.store(other.descriptor(), Ordering::Relaxed);
        core::mem::forget(other);
    }

    /// Copies the path that the file has now, and returns its length. A longer path loses its
    /// beginning. The file is mapped at `start`, from its beginning. 0: there is no `/proc`, or the
    /// program closed the descriptor and the file was removed.
    pub(super) fn path(&self, start: usize, into: &mut [u8]) -> usize {
        let mut place = [0; libc::PATH_MAX as usize];
        // The descriptor is that of another file if the program closed it. A thread may have
        // descriptors of its own, but `/proc/self/fd` has those of the first thread.
        let whole = errno::keeping(|| match self.linked(&mut place) {
            0 => maps::path_at(start, &mut place)
                .filter(|path| identity_of(path) == Some(self.identity()))
                .map_or(0, CStr::count_bytes),
            length => length,
        });
        let whole = place.get(..whole).unwrap_or(&[]);
        let end = whole.get(whole.len().saturating_sub(into.len())..).unwrap_or(&[]);
        into.iter_mut().zip(end).for_each(|(place, byte)| *place = *byte);
        end.len()
    }

    /// Copies the path to which the descriptor leads. Returns its length, or 0 if it leads to
    /// another file.
    fn linked(&self, into: &mut [u8]) -> usize {
        let mut line = Line::new();
        line.text(b"/proc/self/fd/").decimal(self.descriptor() as usize).text(b"\0");
        let link = CStr::from_bytes_until_nul(line.get()).unwrap_or(c"");
        if identity_of(link) != Some(self.identity()) {
            return 0;
        }
        let to = into.as_mut_ptr().cast();
        // SAFETY: the link ends with NUL, and the buffer has this length.
        let length = unsafe { libc::readlink(link.as_ptr(), to, into.len()) };
        usize::try_from(length).unwrap_or(0)
    }

    /// Returns device and number of the file.
    pub(super) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Returns the file's length, or `None` if the descriptor is another file's by now.
    pub(super) fn length(&self) -> Option<usize> {
        let status = status(self.descriptor())?;
        let is_same = (status.st_dev, status.st_ino) == self.identity();
        usize::try_from(status.st_size).ok().filter(|_| is_same)
    }

    /// Locks the file, as long as it is open here or in a child of this process. Returns whether it
    /// is locked.
    pub(super) fn lock(&self, how: Locked) -> bool {
        let operation = match how {
            Locked::Together => libc::LOCK_SH,
            Locked::TogetherAtOnce => libc::LOCK_SH | libc::LOCK_NB,
            Locked::Alone => libc::LOCK_EX | libc::LOCK_NB,
        };
        loop {
            // SAFETY: the call takes no memory.
            if unsafe { libc::flock(self.descriptor(), operation) } == 0 {
                return true;
            }
            if errno::get() != libc::EINTR {
                return false;
            }
        }
    }

    /// Makes the file at least so long, with space on the disk from `from` on if the file system
    /// can promise it.
    pub(super) fn reserve(&self, from: usize, length: usize) -> Result<(), c_int> {
        let now = self.length().ok_or(libc::EBADF)?;
        may_be_so_long(now, length)?;
        let mut at = from;
        while at < length {
            let end = length.min(at.saturating_add(STEP));
            match self.allocate(0, at, end) {
                Ok(()) => at = end,
                Err(libc::EOPNOTSUPP | libc::ENOSYS) => return self.lengthen(now, length),
                Err(failed) => {
                    // The space that there was is of no use.
                    let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                    let _ = self.allocate(hole, from, at);
                    return Err(failed);
                }
            }
        }
        Ok(())
    }

    /// Has the file system allocate a part of the file, or do what else `mode` says.
    fn allocate(&self, mode: c_int, from: usize, to: usize) -> Result<(), c_int> {
        let (start, size) = (offset(from)?, offset(to - from)?);
        loop {
            if size == 0 || fallocate(self.descriptor(), mode, start, size) == 0 {
                return Ok(());
            }
            let failed = errno::get();
            if failed != libc::EINTR {
                return Err(failed);
            }
        }
    }

    fn lengthen(&self, now: usize, length: usize) -> Result<(), c_int> {
        let new = offset(length)?;
        // SAFETY: the call takes no memory.
        if now < length && unsafe { libc::ftruncate(self.descriptor(), new) } != 0 {
            return Err(errno::get());
        }
        Ok(())
    }

    /// Reads words from a place in the file on. Returns how many bytes there were.
    pub(super) fn read(&self, from: usize, into: &mut [u64]) -> Result<usize, c_int> {
        let (start, bytes) = (into.as_mut_ptr().cast::<c_void>(), size_of_val(into));
        let from = offset(from)?;
        // SAFETY: the place has so many bytes, and any are a value.
        let read = unsafe { libc::pread(self.descriptor(), start, bytes, from) };
        usize::try_from(read).map_err(|_| errno::get())
    }

    /// Writes the first word.
    pub(super) fn write_start(&self, word: u64) -> Result<(), c_int> {
        let bytes = size_of::<u64>();
        // A write is held against the limit wherever the file ends.
        may_be_so_long(0, bytes)?;
        // SAFETY: the word has so many bytes.
        let written =
            unsafe { libc::pwrite(self.descriptor(), (&raw const word).cast(), bytes, 0) };
        if written < 0 { Err(errno::get()) } else { Ok(()) }
    }

    /// Lets closing remove the file.
    pub(super) fn remove_when_closed(&self) {
        self.is_removed.store(true, Ordering::Relaxed);
    }

    /// Lets closing leave the file.
    pub(super) fn keep_when_closed(&self) {
        self.is_removed.store(false, Ordering::Relaxed);
    }

    /// Returns whether closing removes the file.
    pub(super) fn is_removed_when_closed(&self) -> bool {
        self.is_removed.load(Ordering::Relaxed)
    }

    /// Removes the file, wherever it was moved meanwhile.
    fn remove(&self) {
        let mut path: [c_char; 4096] = [0; 4096];
        // Those of the process are those of its first thread, which may have ended.
        let is_found = [&b"/proc/self/fd/"[..], b"/proc/thread-self/fd/"].iter().any(|directory| {
            let mut line = Line::new();
            line.text(directory).decimal(self.descriptor() as usize).text(b"\0");
            let link = line.get().as_ptr().cast();
            // SAFETY: the link's name ends with NUL, and the place has one byte more.
            unsafe { libc::readlink(link, path.as_mut_ptr(), path.len() - 1) > 0 }
        });
        if !is_found {
            return;
        }
        // SAFETY: the path ends with NUL.
        let path = unsafe { CStr::from_ptr(path.as_ptr()) };
        if identity_of(path) == Some(self.identity()) {
            // SAFETY: the path ends with NUL.
            unsafe { libc::unlink(path.as_ptr()) };
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if self.length().is_none() {
            return;
        }
        if self.is_removed_when_closed() {
            self.remove();
        }
        close(self.descriptor());
    }
}

/// Fails with `EFBIG` if a file of `now` bytes may not become so long: whoever tries gets a signal,
/// which ends the process.
fn may_be_so_long(now: usize, length: usize) -> Result<(), c_int> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the place is this function's.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    let is_within = length <= now || length as u64 <= limit.rlim_cur;
    if is_within { Ok(()) } else { Err(libc::EFBIG) }
}

fn offset(bytes: usize) -> Result<libc::off_t, c_int> {
    libc::off_t::try_from(bytes).map_err(|_| libc::EFBIG)
}

/// Returns device and number of a file.
pub(super) fn identity_of(path: &CStr) -> Option<(u64, u64)> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the path ends with NUL, and the status is writable.
    let result = unsafe { libc::stat(path.as_ptr(), status.as_mut_ptr()) };
    // SAFETY: all bytes are zeros, or what the system wrote.
    let status = unsafe { status.assume_init() };
    (result == 0).then_some((status.st_dev, status.st_ino))
}

fn status(descriptor: c_int) -> Option<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: the status is writable.
    let result = unsafe { libc::fstat(descriptor, status.as_mut_ptr()) };
    // SAFETY: all bytes are zeros, or what the system wrote.
    (result == 0).then(|| unsafe { status.assume_init() })
}
