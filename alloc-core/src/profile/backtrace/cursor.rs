//! Reads the fields of unwind tables, one after the other.

/// The most bytes of a number in LEB128 that is read: 64 bits need ten.
const LEB_BYTES: u32 = 10;

/// A place in an unwind table, and where its record ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor {
    at: usize,
    end: usize,
}

/// How a pointer is written (DW_EH_PE): the size, and what the number is relative to.
mod encoding {
    pub(super) const ABSENT: u8 = 0xff;
    pub(super) const SIZE: u8 = 0x0f;
    pub(super) const BASE: u8 = 0x70;
    pub(super) const ABSOLUTE: u8 = 0x00;
    pub(super) const RELATIVE_TO_ITSELF: u8 = 0x10;
    pub(super) const RELATIVE_TO_TABLE: u8 = 0x30;
}

impl Cursor {
    /// Creates a cursor for the bytes from `at` to `end`.
    ///
    /// # Safety
    /// All bytes must be readable for as long as the cursor is used.
    pub(super) unsafe fn new(at: usize, end: usize) -> Cursor {
        Cursor { at, end }
    }

    /// Returns the address of the next byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Returns the bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.end.saturating_sub(self.at)
    }

    /// Returns the next `bytes` bytes as a cursor of their own, and continues after them.
    pub(super) fn part(&mut self, bytes: usize) -> Option<Cursor> {
        let at = self.advance(bytes)?;
        Some(Cursor { at, end: at + bytes })
    }

    /// Continues `bytes` bytes later. Returns the place before.
    pub(super) fn advance(&mut self, bytes: usize) -> Option<usize> {
        if bytes > self.left() {
            return None;
        }
        let at = self.at;
        self.at += bytes;
        Some(at)
    }

    /// Reads a value that may stand at any address.
    fn read<T: Copy + Default>(&mut self) -> Option<T> {
        let at = self.advance(size_of::<T>())?;
        let place = core::ptr::with_exposed_provenance::<T>(at);
        // SAFETY: the bytes are readable (the promise of `new`), and any bytes are a number.
        Some(unsafe { place.read_unaligned() })
    }

    /// Reads a byte.
    pub(super) fn u8(&mut self) -> Option<u8> {
        self.read()
    }

    /// Reads two bytes.
    pub(super) fn u16(&mut self) -> Option<u16> {
        self.read()
    }

    /// Reads four bytes.
    pub(super) fn u32(&mut self) -> Option<u32> {
        self.read()
    }

    /// Reads a number in unsigned LEB128. Bits beyond 64 are dropped.
    pub(super) fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, _)| value)
    }

    /// Reads a number in signed LEB128.
    pub(super) fn sleb(&mut self) -> Option<i64> {
        let (value, bits) = self.leb()?;
        let unused = 64u32.saturating_sub(bits);
        Some((value << unused) as i64 >> unused)
    }

    /// Reads a number in LEB128, and how many bits it has.
    fn leb(&mut self) -> Option<(u64, u32)> {
        let mut value = 0;
        for n in 0..LEB_BYTES {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << (7 * n);
            if byte & 0x80 == 0 {
                return Some((value, 7 * (n + 1)));
            }
        }
        None
    }

    /// Reads a pointer of an encoding. `table` is what pointers that are relative to the table add.
    pub(super) fn pointer(&mut self, how: u8, table: usize) -> Option<usize> {
        if how == encoding::ABSENT {
            return None;
        }
        let base = match how & encoding::BASE {
            encoding::ABSOLUTE => 0,
            encoding::RELATIVE_TO_ITSELF => self.at,
            encoding::RELATIVE_TO_TABLE => table,
            _ => return None,
        };
        let value = match how & encoding::SIZE {
            0x00 | 0x04 | 0x0c => self.read::<u64>()? as usize,
            0x01 => self.uleb()? as usize,
            0x02 => usize::from(self.u16()?),
            0x03 => self.u32()? as usize,
            0x09 => self.sleb()? as usize,
            0x0a => self.u16()? as i16 as usize,
            0x0b => self.u32()? as i32 as usize,
            _ => return None,
        };
        Some(base.wrapping_add(value))
    }

    /// Reads text up to a zero byte. Returns where it begins, and its length without that byte.
    pub(super) fn text(&mut self) -> Option<(usize, usize)> {
        let begin = self.at;
        while self.u8()? != 0 {}
        Some((begin, self.at - begin - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(bytes: &[u8]) -> Cursor {
        let at = bytes.as_ptr().expose_provenance();
        // SAFETY: the tests keep the bytes.
        unsafe { Cursor::new(at, at + bytes.len()) }
    }

    #[test]
    fn leb_numbers_are_those_of_the_dwarf_standard() {
        let numbers = [
            (&[0x02][..], 2, 2),
            (&[0x7f], 127, -1),
            (&[0x80, 0x01], 128, 128),
            (&[0x80, 0x7f], 0x3f80, -128),
            (&[0xff, 0x00], 127, 127),
            (&[0xff; 9], 0, 0),
        ];
        for (bytes, unsigned, signed) in numbers {
            let is_whole = bytes.last().is_some_and(|byte| byte & 0x80 == 0);
            assert_eq!(over(bytes).uleb(), is_whole.then_some(unsigned), "{bytes:?}");
            assert_eq!(over(bytes).sleb(), is_whole.then_some(signed), "{bytes:?}");
        }
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!((over(&most).uleb(), over(&most).sleb()), (Some(u64::MAX), Some(-1)));
    }

    #[test]
    fn nothing_is_read_beyond_the_end() {
        let bytes = [1, 2, 3, 0, 5];
        let mut cursor = over(&bytes);
        assert_eq!((cursor.u16(), cursor.left()), (Some(0x0201), 3));
        assert_eq!(cursor.u32(), None);
        assert_eq!((cursor.text().map(|(_, length)| length), cursor.left()), (Some(1), 1));
        assert_eq!(cursor.text(), None);
        let mut cursor = over(&bytes);
        let part = cursor.part(2).expect("two bytes");
        assert_eq!((part.left(), cursor.u8(), cursor.part(2).is_none()), (2, Some(3), false));
    }

    #[test]
    fn pointers_are_read_as_they_are_encoded() {
        let bytes = [0xfc, 0xff, 0xff, 0xff, 0, 0, 0, 0];
        let at = bytes.as_ptr().expose_provenance();
        assert_eq!(over(&bytes).pointer(0x1b, 0), Some(at - 4));
        assert_eq!(over(&bytes).pointer(0x3b, 1000), Some(996));
        assert_eq!(over(&bytes).pointer(0x03, 0), Some(0xffff_fffc));
        assert_eq!(over(&bytes).pointer(0x04, 0), Some(0xffff_fffc));
        assert_eq!(over(&bytes).pointer(0x0a, 0), Some(usize::MAX - 3));
        assert_eq!(over(&bytes).pointer(0xff, 0), None);
        assert_eq!(over(&bytes).pointer(0x2b, 0), None, "relative to text");
    }
}
