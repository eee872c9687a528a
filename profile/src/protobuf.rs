//! Messages of protocol buffers, written into a buffer. Source: protobuf.dev, "Encoding".

use crate::varints::Varints;

/// The fields of a message. What does not fit is left out, and told.
pub(crate) struct Message<'a>(Varints<'a>);

const VARINT: u64 = 0;
const BYTES: u64 = 2;

impl<'a> Message<'a> {
    /// Begins a message.
    pub(crate) fn new(buffer: &'a mut [u8]) -> Message<'a> {
        Message(Varints::resume(buffer, 0))
    }

    /// Appends a number without its field, as the elements of a packed field are.
    pub(crate) fn element(&mut self, number: u64) -> &mut Message<'a> {
        self.0.number(number);
        self
    }

    /// Appends a number, unless it is 0, which is what a missing one means.
    pub(crate) fn number(&mut self, field: u64, number: u64) -> &mut Message<'a> {
        if number != 0 {
            self.element(field << 3 | VARINT).element(number);
        }
        self
    }

    /// Appends bytes, a string or the bytes of a message.
    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) -> &mut Message<'a> {
        self.element(field << 3 | BYTES).0.bytes(bytes);
        self
    }

    /// Returns the bytes, or `None` if the buffer was too small.
    pub(crate) fn end(&self) -> Option<&[u8]> {
        self.0.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the documentation.
    #[test]
    fn fields_have_the_documented_bytes() {
        let mut buffer = [0; 16];
        let mut message = Message::new(&mut buffer);
        message.number(1, 150).number(3, 0).bytes(2, b"testing");
        assert_eq!(message.end(), Some(&b"\x08\x96\x01\x12\x07testing"[..]));
        message.bytes(2, b"testing");
        assert_eq!(message.end(), None);
        let mut packed = [0; 16];
        let mut elements = Message::new(&mut packed);
        elements.element(3).element(270).element(86942);
        let elements = elements.end().expect("it fits");
        let mut message = Message::new(&mut buffer);
        message.bytes(6, elements);
        assert_eq!(message.end(), Some(&[0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5][..]));
    }
}
