//! Files that the core reads. None of the functions changes `errno` or allocates.

use super::os::{errno, keep_errno};
use super::system_calls;
use super::text::Line;
use core::ffi::{CStr, c_int};

/// Bytes of a file that are read at a time.
const PIECE: usize = 256;

/// Reads up to `buffer.len()` bytes of a file. Returns `None` if it cannot be opened or read.
pub(crate) fn read<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = with_file(path, |file| {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match read_some(file, rest)? {
                0 => break,
                n => filled += n,
            }
        }
        Some(filled)
    })?;
    buffer.get(..length)
}

/// Calls `see` with the pieces of a file in turn, until it returns `false`. Returns `None` if the
/// file cannot be opened or read.
pub(crate) fn read_in_pieces(path: &CStr, mut see: impl FnMut(&[u8]) -> bool) -> Option<()> {
    with_file(path, |file| {
        let mut buffer = [0; PIECE];
        loop {
            let n = read_some(file, &mut buffer)?;
            if n == 0 || !see(buffer.get(..n)?) {
                return Some(());
            }
        }
    })
}

/// Bytes of a line that [`read_lines`] reads. Callers may have little stack.
const LINE: usize = 512;

/// Calls `see` with the lines of a file in turn, without their ends. Leaves out lines of [`LINE`]
/// bytes and more. Returns `None` if the file cannot be opened or read.
pub(crate) fn read_lines(path: &CStr, mut see: impl FnMut(&[u8])) -> Option<()> {
    let mut line = Line::<LINE>::new();
    read_in_pieces(path, |piece| {
        let mut parts = piece.split(|byte| *byte == b'\n');
        line.bytes(parts.next().unwrap_or_default());
        for begun in parts {
            see_whole(&line, &mut see);
            line.clear();
            line.bytes(begun);
        }
        true
    })?;
    see_whole(&line, &mut see);
    Some(())
}

fn see_whole(line: &Line<LINE>, see: &mut impl FnMut(&[u8])) {
    if line.as_bytes().len() < LINE {
        see(line.as_bytes());
    }
}

/// Returns the target of a symbolic link, cut at the buffer's length.
pub(crate) fn link<'a>(path: &CStr, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let length = keep_errno(|| {
        // SAFETY: the path is a C string and the buffer is writable for its length.
        unsafe { libc::readlink(path.as_ptr(), buffer.as_mut_ptr().cast(), buffer.len()) }
    });
    if length < 0 { None } else { buffer.get(..length as usize) }
}

fn with_file<T>(path: &CStr, act: impl FnOnce(c_int) -> Option<T>) -> Option<T> {
    keep_errno(|| {
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        let file = system_calls::open(path, flags, 0);
        if file < 0 {
            return None;
        }
        let result = act(file);
        system_calls::close(file);
        result
    })
}

/// Reads some bytes of a file, 0 at its end.
fn read_some(file: c_int, buffer: &mut [u8]) -> Option<usize> {
    loop {
        let n = system_calls::read(file, buffer);
        if n >= 0 {
            return Some(n as usize);
        }
        if errno() != libc::EINTR {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_across_pieces_and_long_ones_are_left_out() {
        let file = std::env::temp_dir().join(format!("lumalloc-lines-{}", std::process::id()));
        let lines = [&b"a"[..], b"", &[b'b'; 300], &[b'c'; LINE - 1], &[b'd'; LINE], b"e"];
        std::fs::write(&file, lines.join(&b'\n')).unwrap();
        let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        let mut seen = Vec::new();
        assert_eq!(read_lines(&path, |line| seen.push(line.to_vec())), Some(()));
        assert!(seen == [lines[0], lines[1], lines[2], lines[3], lines[5]], "{}", seen.len());
        std::fs::remove_file(&file).unwrap();
        assert_eq!(read_lines(&path, |_| {}), None);
    }

    #[test]
    fn a_file_is_read_as_far_as_it_is_wanted() {
        let path = std::ffi::CString::new(std::env::current_exe().unwrap().to_str().unwrap());
        let path = path.unwrap();
        let all = std::fs::read(path.to_str().unwrap()).unwrap();
        let mut buffer = [0; 1000];
        assert!(read(&path, &mut buffer) == Some(&all[..1000]));
        let mut seen = Vec::new();
        let mut see = |piece: &[u8]| {
            seen.extend_from_slice(piece);
            seen.len() < 1000
        };
        assert_eq!(read_in_pieces(&path, &mut see), Some(()));
        assert!(seen == all[..4 * PIECE], "{} bytes", seen.len());
        assert_eq!(read(c"/nowhere", &mut buffer), None);
        assert_eq!(read_in_pieces(c"/", |_| true), None, "a directory");
    }
}
