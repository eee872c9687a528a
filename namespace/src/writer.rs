//! Text in pieces: a fixed buffer on the stack, which is handed to a C callback whenever it is
//! full.
//!
//! It does not use `core::fmt`, whose code can panic, because nothing in the C library may panic.
use core::ffi::{CStr, c_char, c_void};

/// `void write_cb(void *cbopaque, const char *s)`, as `malloc_stats_print` takes it.
pub type WriteCallback = unsafe extern "C" fn(*mut c_void, *const c_char);

/// Bytes of text collected before the callback is called.
const BUFFER: usize = 1024;

/// Collects text and hands it on as NUL-terminated pieces. The rest is handed on when the writer
/// goes out of scope.
pub struct Writer {
    callback: WriteCallback,
    opaque: *mut c_void,
    length: usize,
    buffer: [u8; BUFFER],
}

impl Writer {
    /// A writer that calls `callback` with `opaque`.
    ///
    /// # Safety
    /// The callback must accept `opaque` and any NUL-terminated text as long as the writer lives.
    pub unsafe fn new(callback: WriteCallback, opaque: *mut c_void) -> Self {
        Writer { callback, opaque, length: 0, buffer: [0; BUFFER] }
    }

    /// Appends text. A NUL in the text would end the piece it is in.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Appends the text of a C string.
    pub fn c_text(&mut self, text: &CStr) {
        self.bytes(text.to_bytes());
    }

    /// Appends a decimal number.
    pub fn number(&mut self, number: u64) {
        self.right_number(number, 0);
    }

    /// Appends a decimal number, with blanks before it if it has fewer than `width` characters.
    pub fn right_number(&mut self, number: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut rest = number;
        let mut used = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            used += 1;
            if rest == 0 {
                break;
            }
        }
        let skipped = digits.len() - used;
        self.repeat(b' ', width.saturating_sub(used));
        for &digit in digits.iter().skip(skipped) {
            self.byte(digit);
        }
    }

    /// As [`Writer::right_number`], with a sign.
    pub fn right_signed(&mut self, number: i64, width: usize) {
        if number >= 0 {
            return self.right_number(number.unsigned_abs(), width);
        }
        let tens = |rest: &u64| (*rest >= 10).then_some(*rest / 10);
        let digits = core::iter::successors(Some(number.unsigned_abs()), tens).count();
        self.repeat(b' ', width.saturating_sub(digits + 1));
        self.signed(number);
    }

    /// Appends text, with blanks before it if it has fewer than `width` characters.
    pub fn right(&mut self, text: &str, width: usize) {
        self.right_bytes(text.as_bytes(), width);
    }

    /// Appends bytes, with blanks before them if they are fewer than `width`.
    pub fn right_bytes(&mut self, bytes: &[u8], width: usize) {
        self.repeat(b' ', width.saturating_sub(bytes.len()));
        self.bytes(bytes);
    }

    /// Appends bytes, with blanks after them if they are fewer than `width`.
    pub fn left_bytes(&mut self, bytes: &[u8], width: usize) {
        self.bytes(bytes);
        self.repeat(b' ', width.saturating_sub(bytes.len()));
    }

    /// Appends a decimal number with its sign.
    pub fn signed(&mut self, number: i64) {
        if number < 0 {
            self.byte(b'-');
        }
        self.number(number.unsigned_abs());
    }

    /// Appends one byte `count` times.
    pub fn repeat(&mut self, byte: u8, count: usize) {
        (0..count).for_each(|_| self.byte(byte));
    }

    /// Appends text given as bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.byte(byte));
    }

    fn byte(&mut self, byte: u8) {
        // The last place in the buffer is kept for the NUL.
        if self.length + 1 >= BUFFER {
            self.flush();
        }
        if let Some(place) = self.buffer.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    /// Hands on the collected text.
    fn flush(&mut self) {
        if let Some(end) = self.buffer.get_mut(self.length) {
            *end = 0;
        }
        if self.length > 0 {
            self.length = 0;
            // SAFETY: the caller of `new` vouches for the callback and `opaque`; the text was just
            // terminated.
            unsafe { (self.callback)(self.opaque, self.buffer.as_ptr().cast()) };
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.flush();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::string::String;

    unsafe extern "C" fn append(opaque: *mut c_void, piece: *const c_char) {
        // SAFETY: the tests pass a String.
        let all = unsafe { &mut *opaque.cast::<String>() };
        // SAFETY: a writer hands on NUL-terminated text.
        let piece = unsafe { CStr::from_ptr(piece) };
        assert!(piece.count_bytes() < BUFFER);
        all.push_str(piece.to_str().unwrap());
    }

    /// The text that `write` writes.
    pub(crate) fn collected(write: impl FnOnce(&mut Writer)) -> String {
        let mut all = String::new();
        // SAFETY: `append` takes a String, which outlives the writer.
        let mut writer = unsafe { Writer::new(append, (&raw mut all).cast()) };
        write(&mut writer);
        drop(writer);
        all
    }

    #[test]
    fn numbers_are_decimal() {
        let text = collected(|writer| {
            for number in [0, 7, 10, 4096, u64::MAX] {
                writer.number(number);
                writer.text(" ");
            }
            for number in [0, -1, i64::MIN, i64::MAX] {
                writer.signed(number);
                writer.text(" ");
            }
        });
        assert_eq!(
            text,
            "0 7 10 4096 18446744073709551615 0 -1 -9223372036854775808 9223372036854775807 "
        );
    }

    #[test]
    fn numbers_and_text_are_aligned() {
        let text = collected(|writer| {
            writer.right_signed(-10, 5);
            writer.right_signed(7, 3);
            writer.right_signed(-123, 2);
            writer.right_number(9, 4);
            writer.right("ab", 4);
            writer.left_bytes(b"cd", 4);
            writer.left_bytes(b"efgh", 2);
        });
        assert_eq!(text, "  -10  7-123   9  abcd  efgh");
    }

    #[test]
    fn text_longer_than_the_buffer_arrives_whole() {
        for length in [0, 1, BUFFER - 2, BUFFER - 1, BUFFER, 5 * BUFFER + 3] {
            let text: String = (0..length).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
            assert_eq!(collected(|writer| writer.text(&text)), text);
        }
    }
}
