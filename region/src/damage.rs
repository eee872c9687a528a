//! Reports of words between blocks that the program has overwritten.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The region that was reported last. Damage makes many calls fail, and one message says enough.
static REPORTED: AtomicUsize = AtomicUsize::new(0);

/// Writes a message that a word of a region's bookkeeping was overwritten, once for each region in
/// a row.
#[cold]
#[inline(never)]
pub(crate) fn report(region: usize, at: usize) {
    if REPORTED.swap(region, Ordering::Relaxed) == region {
        return;
    }
    let mut line = Line::new();
    line.text(b"<lumalloc>: region ");
    line.hex(region);
    line.text(b": the word at ");
    line.hex(at);
    line.text(b" between two blocks was overwritten; free memory near it is not used again\n");
    lumalloc::message::write(line.get());
}

/// A line of text that is put together on the stack.
struct Line {
    bytes: [u8; Line::MOST],
    length: usize,
}

impl Line {
    /// The most bytes that a line holds. What is added after is left out.
    const MOST: usize = 256;

    const fn new() -> Line {
        Line { bytes: [0; Line::MOST], length: 0 }
    }

    fn text(&mut self, text: &[u8]) {
        for &byte in text {
            if let Some(slot) = self.bytes.get_mut(self.length) {
                *slot = byte;
                self.length += 1;
            }
        }
    }

    /// Adds a number in lower-case hexadecimal digits.
    fn hex(&mut self, mut number: usize) {
        let mut digits = [0u8; 16];
        let mut first = digits.len();
        for (at, slot) in digits.iter_mut().enumerate().rev() {
            *slot = digit(number % 16);
            number /= 16;
            first = at;
            if number == 0 {
                break;
            }
        }
        self.text(digits.get(first..).unwrap_or_default());
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

fn digit(value: usize) -> u8 {
    let value = value as u8;
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}
