//! Bytes and varints (LEB128) written into a buffer of one size.

/// A buffer that is being filled. What has no room is left out, and told.
pub(crate) struct Varints<'a> {
    buffer: &'a mut [u8],
    length: usize,
    is_whole: bool,
}

/// The most bytes of a number.
pub(crate) const LONGEST: usize = 10;

impl<'a> Varints<'a> {
    /// Goes on with a buffer that has so many bytes.
    pub(crate) fn resume(buffer: &'a mut [u8], length: usize) -> Varints<'a> {
        Varints { buffer, length, is_whole: true }
    }

    /// Returns how many bytes there are.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns how many more bytes there is room for.
    pub(crate) fn room(&self) -> usize {
        self.buffer.len().saturating_sub(self.length)
    }

    /// Appends a byte.
    pub(crate) fn byte(&mut self, byte: u8) {
        match self.buffer.get_mut(self.length) {
            Some(place) => {
                *place = byte;
                self.length += 1;
            }
            None => self.is_whole = false,
        }
    }

    /// Appends a number.
    pub(crate) fn number(&mut self, number: u64) {
        let mut rest = number;
        while rest > 0x7f {
            self.byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.byte(rest as u8);
    }

    /// Appends bytes, with their number before them. Either all of them fit, or none is written.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let room = self.buffer.get_mut(self.length..).unwrap_or_default();
        match room.get_mut(..bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.is_whole = false,
        }
    }

    /// Returns the bytes from that place on, to be written over.
    pub(crate) fn tail_mut(&mut self, start: usize) -> &mut [u8] {
        self.buffer.get_mut(start..self.length).unwrap_or_default()
    }

    /// Ends the buffer, and returns what [`Varints::end`] does.
    pub(crate) fn finish(self) -> Option<&'a [u8]> {
        let buffer: &'a [u8] = self.buffer;
        buffer.get(..self.length).filter(|_| self.is_whole)
    }

    /// Returns the bytes, or `None` if the buffer was too small.
    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.buffer.get(..self.length).filter(|_| self.is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_room_is_told() {
        let mut buffer = [0; 5];
        let mut varints = Varints::resume(&mut buffer, 0);
        varints.number(300);
        varints.bytes(b"ab");
        assert_eq!((varints.length(), varints.room()), (5, 0));
        assert_eq!(varints.end(), Some(&[0xac, 2, 2, b'a', b'b'][..]));
        varints.byte(1);
        assert_eq!(varints.end(), None);
        let mut varints = Varints::resume(&mut buffer, 2);
        varints.bytes(b"abc");
        assert_eq!((varints.length(), varints.end()), (3, None));
        let mut longest = [0; LONGEST];
        let mut varints = Varints::resume(&mut longest, 0);
        varints.number(u64::MAX);
        assert_eq!(varints.end().map(<[u8]>::len), Some(LONGEST));
    }
}
