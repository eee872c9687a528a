//! Where a profile is written to, piece by piece.

/// Takes the pieces of a profile.
pub trait Sink {
    /// Takes the next bytes. Returns `false` if they are lost; nothing more need be written then.
    fn put(&mut self, bytes: &[u8]) -> bool;
}

/// Bytes that are collected before they are handed on.
const BUFFER: usize = 4096;

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
        for byte in bytes {
            if self.length == BUFFER {
                self.flush();
            }
            if let Some(place) = self.buffer.get_mut(self.length) {
                *place = *byte;
                self.length += 1;
            }
        }
        self
    }

    /// Appends a decimal number.
    pub fn decimal(&mut self, number: u64) -> &mut Text<'a> {
        self.digits(number, 10)
    }

    /// Appends a hexadecimal number, with `0x` before it.
    pub fn hexadecimal(&mut self, number: u64) -> &mut Text<'a> {
        self.bytes(b"0x").digits(number, 16)
    }

    fn digits(&mut self, number: u64, base: u64) -> &mut Text<'a> {
        let mut digits = [0; 20];
        let (mut rest, mut used) = (number, 0);
        for digit in digits.iter_mut().rev() {
            let value = (rest % base) as u8;
            *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
            rest /= base;
            used += 1;
            if rest == 0 {
                break;
            }
        }
        let first = digits.len() - used;
        self.bytes(digits.get(first..).unwrap_or_default())
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
        let long = [b'x'; 3 * BUFFER];
        text.bytes(&long);
        assert!(text.end());
        let (numbers, rest) = got.split_at(got.len() - long.len());
        assert_eq!(numbers, b"0 18446744073709551615 0xdeadbeef");
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
