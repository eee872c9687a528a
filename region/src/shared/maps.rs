//! The paths of mapped files, as `/proc/self/maps` has them.

use crate::errno;
use crate::line::Line;
use core::ffi::{CStr, c_int};
use lumalloc::{own_files, system_calls};

/// Returns the path of the file that is mapped from an address on.
pub(super) fn path_at(start: usize, into: &mut [u8]) -> Option<&CStr> {
    let length = own_files::MAPS.into_iter().find_map(|maps| {
        let maps = system_calls::open(maps, libc::O_RDONLY | libc::O_CLOEXEC, 0);
        if maps < 0 {
            return None;
        }
        let mut bytes = Bytes { descriptor: maps, buffer: [0; 1024], next: 0, length: 0 };
        find(&mut bytes, start, into)
    })?;
    CStr::from_bytes_with_nul(into.get(..length)?).ok()
}

/// Finds the line of a mapping, and copies its path with a NUL behind it. Returns how many bytes it
/// has with that.
fn find(bytes: &mut impl Iterator<Item = u8>, start: usize, into: &mut [u8]) -> Option<usize> {
    let mut begin = Line::new();
    begin.hex(start).text(b"-");
    while !has(bytes, begin.get())? {}
    // Nothing before the path has this character.
    bytes.find(|byte| matches!(byte, b'/' | b'\n')).filter(|byte| *byte == b'/')?;
    let path = core::iter::once(b'/').chain(bytes.take_while(|byte| *byte != b'\n'));
    let mut length = 0;
    for byte in path.chain([0]) {
        *into.get_mut(length)? = byte;
        length += 1;
    }
    Some(length)
}

/// Returns whether a line begins with a text, and reads the text, or the whole line if it begins
/// otherwise. `None`: there is no line.
fn has(bytes: &mut impl Iterator<Item = u8>, text: &[u8]) -> Option<bool> {
    for &wanted in text {
        let byte = bytes.next()?;
        if byte != wanted {
            if byte != b'\n' {
                bytes.find(|byte| *byte == b'\n')?;
            }
            return Some(false);
        }
    }
    Some(true)
}

/// The bytes of an open file, which is closed at the end.
struct Bytes {
    descriptor: c_int,
    buffer: [u8; 1024],
    next: usize,
    length: usize,
}

impl Iterator for Bytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.next == self.length {
            let read = system_calls::read(self.descriptor, &mut self.buffer);
            (self.next, self.length) = (0, usize::try_from(read).unwrap_or(0));
        }
        let byte = self.buffer.get(..self.length)?.get(self.next).copied()?;
        self.next += 1;
        Some(byte)
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        errno::keeping(|| system_calls::close(self.descriptor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_mapping_is_found() {
        let maps = "1000-2000 rw-s 00000000 08:01 7    /tmp/a b\n\
                    2000-3000 rw-p 00000000 00:00 0 \n\
                    20000-30000 r--p 00000000 08:01 8 /x/y (deleted)\n\
                    40000-50000 r--p 00000000 08:01 8 /cut";
        let path = |start, room| {
            let mut into = [0; 64];
            let length = find(&mut maps.bytes(), start, &mut into[..room])?;
            Some(CStr::from_bytes_with_nul(&into[..length]).unwrap().to_owned())
        };
        assert_eq!(path(0x1000, 64), Some(c"/tmp/a b".into()));
        assert_eq!(path(0x20000, 64), Some(c"/x/y (deleted)".into()));
        assert_eq!(path(0x40000, 64), Some(c"/cut".into()));
        assert_eq!([path(0x2000, 64), path(0x200, 64), path(0x50000, 64)], [None, None, None]);
        // Eight bytes and NUL.
        assert_eq!(path(0x1000, 9), Some(c"/tmp/a b".into()));
        assert_eq!(path(0x1000, 8), None);
    }

    #[test]
    fn this_process_has_no_file_at_the_first_page() {
        assert_eq!(path_at(0, &mut [0; 64]), None);
    }
}
