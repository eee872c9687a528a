//! System calls, past the functions of the C library that are points of cancellation.
//!
//! `pthread_cancel` ends a thread at such a point, but `malloc` and `free` are none (POSIX): a
//! thread that ended in them would leave its locks, and those of the allocator, locked. A program
//! or a library may also put functions of its own in place of `open` or `write`, which allocate.
//! Results and `errno` are those of the functions with these names.
use core::ffi::{CStr, c_int, c_long, c_uint};

/// Opens a file.
#[must_use]
pub fn open(path: &CStr, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: the path is a C string.
    let file = unsafe {
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, mode as c_uint)
    };
    file as c_int
}

/// As [`open`], for a file that is closed at exec and that has no number of a standard stream: what
/// the library, or the program, says on such a stream is not written to it.
#[must_use]
pub fn open_beside_streams(path: &CStr, flags: c_int, mode: libc::mode_t) -> c_int {
    let file = open(path, flags | libc::O_CLOEXEC, mode);
    if !(libc::STDIN_FILENO..=libc::STDERR_FILENO).contains(&file) {
        return file;
    }
    // SAFETY: the call takes no pointers.
    let other = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    close(file);
    other
}

/// Closes a file.
pub fn close(file: c_int) -> c_int {
    // SAFETY: a system call without pointers.
    (unsafe { libc::syscall(libc::SYS_close, file) }) as c_int
}

/// Reads up to `into.len()` bytes.
pub fn read(file: c_int, into: &mut [u8]) -> isize {
    // SAFETY: the bytes are writable.
    (unsafe { libc::syscall(libc::SYS_read, file, into.as_mut_ptr(), into.len()) }) as isize
}

/// Reads up to `into.len()` bytes from a place in the file.
pub fn pread(file: c_int, into: &mut [u8], at: libc::off_t) -> isize {
    // SAFETY: the bytes are writable.
    (unsafe { libc::syscall(libc::SYS_pread64, file, into.as_mut_ptr(), into.len(), at) }) as isize
}

/// Writes up to `bytes.len()` bytes.
pub fn write(file: c_int, bytes: &[u8]) -> isize {
    // SAFETY: the bytes are readable.
    (unsafe { libc::syscall(libc::SYS_write, file, bytes.as_ptr(), bytes.len()) }) as isize
}

/// Writes up to `bytes.len()` bytes to a place in the file.
pub fn pwrite(file: c_int, bytes: &[u8], at: libc::off_t) -> isize {
    // SAFETY: the bytes are readable.
    (unsafe { libc::syscall(libc::SYS_pwrite64, file, bytes.as_ptr(), bytes.len(), at) }) as isize
}

/// Gives a part of the file memory on the disk.
pub fn fallocate(file: c_int, mode: c_int, at: libc::off_t, length: libc::off_t) -> c_int {
    // SAFETY: a system call without pointers.
    (unsafe { libc::syscall(libc::SYS_fallocate, file, mode, at, length) }) as c_int
}

/// Sleeps so many nanoseconds, less than a second, or until a signal comes.
pub fn nanosleep(nanoseconds: c_long) -> c_int {
    let time = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let left = core::ptr::null_mut::<libc::timespec>();
    // SAFETY: the time is readable, and nothing is written.
    (unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, left) }) as c_int
}

/// Reads a clock.
pub(crate) fn clock_gettime(clock: libc::clockid_t, now: &mut libc::timespec) -> c_int {
    // SAFETY: the place is writable.
    (unsafe { libc::syscall(libc::SYS_clock_gettime, clock, &raw mut *now) }) as c_int
}

/// Fills bytes with random ones, if the system has them ready.
pub fn getrandom(into: &mut [u8]) -> isize {
    let (start, length) = (into.as_mut_ptr(), into.len());
    // SAFETY: the bytes are writable.
    (unsafe { libc::syscall(libc::SYS_getrandom, start, length, libc::GRND_NONBLOCK) }) as isize
}

/// Returns the device and the inode of an open file, and whether it has a name. `None` if there is
/// no such descriptor, or the system does not tell. Programs close descriptors that they did not
/// open, and their own files get the numbers: by this the library knows its own again.
#[must_use]
pub fn identity(file: c_int) -> Option<(u64, u64, bool)> {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the place is writable.
    if unsafe { libc::fstat(file, found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call has filled it.
    let found = unsafe { found.assume_init() };
    Some((found.st_dev, found.st_ino, found.st_nlink > 0))
}

/// Returns another descriptor of an open file, which is closed at exec, with a number that programs
/// do not reach. `None` if there is no such number.
#[must_use]
pub fn duplicate_high(file: c_int) -> Option<c_int> {
    /// `select` takes only descriptors below this number.
    const MOST: u64 = 1024;
    /// With a lower limit on descriptors, none is taken.
    const LEAST: u64 = 64;
    /// How far below the limit the search for a free number begins.
    const ROOM: u64 = 16;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit is writable.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    let limit = limit.rlim_cur.min(MOST);
    if status != 0 || limit < LEAST {
        return None;
    }
    let from = (limit - ROOM) as c_int;
    // SAFETY: the call takes no pointers.
    let number = unsafe { libc::fcntl(file, libc::F_DUPFD_CLOEXEC, from) };
    (number >= 0).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_and_read() {
        let path = std::env::temp_dir().join(std::format!("lumalloc-{}", std::process::id()));
        let name = std::ffi::CString::new(path.to_str().expect("text")).expect("no NUL");
        let file = open(&name, libc::O_RDWR | libc::O_CREAT | libc::O_CLOEXEC, 0o600);
        assert!(file >= 0);
        assert_eq!((write(file, b"abc"), pwrite(file, b"x", 1)), (3, 1));
        let mut all = [0; 8];
        assert_eq!((read(file, &mut all), pread(file, &mut all, 1)), (0, 2));
        assert_eq!(all, *b"xc\0\0\0\0\0\0");
        assert_eq!((close(file), close(file)), (0, -1));
        std::fs::remove_file(path).expect("the file is there");
    }

    #[test]
    fn random_bytes_differ() {
        let mut bytes = [[0; 16]; 2];
        assert_eq!(bytes.each_mut().map(|bytes| getrandom(bytes)), [16, 16]);
        assert_ne!(bytes[0], bytes[1]);
    }
}
