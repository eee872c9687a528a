//! Where a profile is written to, piece by piece.

use crate::decimal::Decimal;

/// Takes the pieces of a profile.
pub trait Sink {
    /// Takes the next bytes. Returns `false` if they are lost; nothing more need be written then.
    fn put(&mut self, bytes: &[u8]) -> bool;

    /// Forgets all bytes, so that others are written in place of them. Returns `false` if that
    /// cannot be, as for most sinks: then what was written stays.
    fn begin_again(&mut self) -> bool {
        false
    }
}

/// Bytes that are collected before they are handed on. They lie on the stack of a thread, which may
/// have little.
const BUFFER: usize = 2048;

/// Two hexadecimal digits for each byte.
static PAIRS: [[u8; 2]; 256] = {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < pairs.len() {
        pairs[byte] = [DIGITS[byte >> 4], DIGITS[byte & 15]];
        byte += 1;
    }
    pairs
};

fn pair(byte: u8) -> [u8; 2] {
    PAIRS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// Writes text to a sink, in long pieces.
///
/// It does not use `core::fmt`, whose code can panic, because nothing in the C library may panic.
pub struct Text<'a> {
    sink: &'a mut dyn Sink,
    buffer: [u8; BUFFER],
    length: usize,
    is_whole: bool,
}

impl<'a> Text<'a> {
    /// Creates a writer of text to `sink`.
    pub fn new(sink: &'a mut dyn Sink) -> Text<'a> {
        Text { sink, buffer: [0; BUFFER], length: 0, is_whole: true }
    }

    /// Appends bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Text<'a> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.length == BUFFER {
                self.flush();
            }
            let room = self.buffer.get_mut(self.length..).unwrap_or_default();
            let length = room.len().min(rest.len());
            let (now, later) = rest.split_at_checked(length).unwrap_or_default();
            if let Some(room) = room.get_mut(..length) {
                room.copy_from_slice(now);
            }
            self.length += length;
            rest = later;
        }
        self
    }

    /// Appends a blank.
    pub(crate) fn blank(&mut self) -> &mut Text<'a> {
        if self.length == BUFFER {
            self.flush();
        }
        if let Some(place) = self.buffer.get_mut(self.length) {
            *place = b' ';
            self.length += 1;
        }
        self
    }

    /// Appends a decimal number.
    pub fn decimal(&mut self, number: u64) -> &mut Text<'a> {
        self.bytes(Decimal::of(number).as_bytes())
    }

    /// Appends a hexadecimal number, with `0x` before it.
    pub fn hexadecimal(&mut self, number: u64) -> &mut Text<'a> {
        if self.length + 18 > BUFFER {
            self.flush();
        }
        let digits = ((number | 1).ilog2() / 4 + 1) as usize;
        let bytes = number.to_be_bytes();
        let bytes = bytes.get(8 - digits.div_ceil(2)..).unwrap_or_default();
        let room = self.buffer.get_mut(self.length..).unwrap_or_default();
        // The zero before an odd number of digits is where the x comes.
        let pairs = room.get_mut(2 - digits % 2..).unwrap_or_default().as_chunks_mut().0;
        pairs.iter_mut().zip(bytes).for_each(|(place, byte)| *place = pair(*byte));
        if let Some(head) = room.first_chunk_mut() {
            *head = *b"0x";
        }
        self.length += 2 + digits;
        self
    }

    fn flush(&mut self) {
        let bytes = self.buffer.get(..self.length).unwrap_or_default();
        self.is_whole = self.is_whole && self.sink.put(bytes);
        self.length = 0;
    }

    /// Hands on what is left. Returns `false` if anything was lost.
    pub fn end(mut self) -> bool {
        self.flush();
        self.is_whole
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::vec::Vec;

    impl Sink for Vec<u8> {
        fn put(&mut self, bytes: &[u8]) -> bool {
            self.extend_from_slice(bytes);
            true
        }
    }

    struct Full;

    impl Sink for Full {
        fn put(&mut self, bytes: &[u8]) -> bool {
            bytes.is_empty()
        }
    }

    #[test]
    fn numbers_and_long_texts_arrive_whole() {
        let mut got = Vec::new();
        let mut text = Text::new(&mut got);
        text.decimal(0).bytes(b" ").decimal(u64::MAX).bytes(b" ").hexadecimal(0xdead_beef);
        for number in [0, 0xf, 0x10, 0x123, u64::MAX] {
            text.blank().hexadecimal(number);
        }
        let long = [b'x'; 3 * BUFFER];
        text.bytes(&long);
        assert!(text.end());
        let (numbers, rest) = got.split_at(got.len() - long.len());
        assert_eq!(
            numbers,
            b"0 18446744073709551615 0xdeadbeef 0x0 0xf 0x10 0x123 0xffffffffffffffff"
        );
        assert_eq!(rest, long);
    }

    #[test]
    fn a_lost_piece_is_told() {
        let mut full = Full;
        let mut text = Text::new(&mut full);
        text.bytes(b"x");
        assert!(!text.end());
        assert!(Text::new(&mut Full).end(), "nothing was written");
    }
}
