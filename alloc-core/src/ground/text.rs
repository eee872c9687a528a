//! Text in a fixed buffer. Messages are built in it without allocating or panicking.
//!
//! `core::fmt` is not used in the core, because its machinery can panic and is large.

/// A line of at most `N` bytes. Text beyond that is cut off.
pub(crate) struct Line<const N: usize> {
    bytes: [u8; N],
    length: usize,
}

impl<const N: usize> Line<N> {
    /// An empty line.
    pub(crate) const fn new() -> Line<N> {
        Line { bytes: [0; N], length: 0 }
    }

    /// Makes the line empty.
    pub(crate) fn clear(&mut self) {
        self.length = 0;
    }

    /// Appends bytes as they are.
    pub(crate) fn bytes(&mut self, text: &[u8]) -> &mut Self {
        for &byte in text {
            if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = byte;
                self.length += 1;
            }
        }
        self
    }

    /// Appends text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Appends a number in decimal.
    pub(crate) fn number(&mut self, n: u64) -> &mut Self {
        self.digits(n, 10)
    }

    /// Appends an address as `0x…`.
    pub(crate) fn address(&mut self, address: usize) -> &mut Self {
        self.text("0x").digits(address as u64, 16)
    }

    fn digits(&mut self, mut n: u64, base: u64) -> &mut Self {
        let mut digits = [0u8; 20];
        let mut used = 0;
        for slot in digits.iter_mut().rev() {
            let digit = (n % base) as u8;
            *slot = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
            used += 1;
            n /= base;
            if n == 0 {
                break;
            }
        }
        for &digit in digits.iter().skip(digits.len() - used) {
            self.bytes(&[digit]);
        }
        self
    }

    /// Returns the line so far.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or(&[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_addresses_and_the_cut() {
        let mut line = Line::<64>::new();
        line.text("a ").number(0).text(" ").number(u64::MAX).text(" ").address(0xdead_beef);
        assert_eq!(line.as_bytes(), b"a 0 18446744073709551615 0xdeadbeef");
        let mut short = Line::<4>::new();
        short.text("abcdef");
        assert_eq!(short.as_bytes(), b"abcd");
    }
}
