//! Lines of text that are put together on the stack.

/// A line of text. What is added beyond its room is left out.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; Line::MOST],
    length: usize,
}

impl Line {
    /// The most bytes that a line holds.
    pub const MOST: usize = 1024;

    /// The most bytes of a name, so that two have room.
    const NAME: usize = 400;

    /// An empty line.
    #[must_use]
    pub const fn new() -> Line {
        Line { bytes: [0; Line::MOST], length: 0 }
    }

    /// Adds text.
    pub fn text(&mut self, text: &[u8]) -> &mut Line {
        for &byte in text {
            if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = byte;
                self.length += 1;
            }
        }
        self
    }

    /// Adds the end of a name that may be too long for a line.
    pub fn end_of(&mut self, name: &[u8]) -> &mut Line {
        self.text(name.get(name.len().saturating_sub(Line::NAME)..).unwrap_or_default())
    }

    /// Adds a number in lower-case hexadecimal digits.
    pub fn hex(&mut self, number: usize) -> &mut Line {
        self.digits(number, 16)
    }

    /// Adds a number in decimal digits.
    pub fn decimal(&mut self, number: usize) -> &mut Line {
        self.digits(number, 10)
    }

    /// Returns what was added.
    #[must_use]
    pub fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn digits(&mut self, mut number: usize, base: usize) -> &mut Line {
        let mut digits = [0u8; 20];
        let mut first = digits.len();
        for (at, slot) in digits.iter_mut().enumerate().rev() {
            let value = (number % base) as u8;
            *slot = if value < 10 { b'0' + value } else { b'a' + value - 10 };
            number /= base;
            first = at;
            if number == 0 {
                break;
            }
        }
        self.text(digits.get(first..).unwrap_or_default())
    }
}

impl Default for Line {
    fn default() -> Line {
        Line::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_digits() {
        let mut line = Line::new();
        line.hex(0).text(b" ").hex(0xfe12).text(b" ").hex(usize::MAX).text(b" ");
        line.decimal(0).text(b" ").decimal(usize::MAX);
        let expected = b"0 fe12 ffffffffffffffff 0 18446744073709551615";
        assert_eq!(line.get(), expected);
    }

    #[test]
    fn of_a_long_name_the_end_stands() {
        let mut line = Line::new();
        let mut name = [b'x'; 1000];
        name[999] = b'y';
        line.end_of(&name).text(b"|").end_of(b"short");
        assert_eq!(line.get().len(), 400 + 6);
        assert!(line.get().ends_with(b"xy|short"));
    }

    #[test]
    fn what_has_no_room_is_left_out() {
        let mut line = Line::new();
        for _ in 0..Line::MOST {
            line.text(b"ab");
        }
        assert_eq!(line.get().len(), Line::MOST);
    }
}
