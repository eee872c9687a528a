//! Parts of JSON that the writers of profiles share.

use crate::sink::Text;
use lumalloc::observe::SampleMoment;

/// Appends a text in quotation marks. Names of threads have printable characters of ASCII, or those
/// that the system allows.
pub(crate) fn text(to: &mut Text<'_>, text: &str) {
    to.bytes(b"\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => to.bytes(b"\\").bytes(&[byte]),
            0..=0x1f => to.bytes(b"\\u00").bytes(&[hex(byte >> 4), hex(byte & 15)]),
            _ => to.bytes(&[byte]),
        };
    }
    to.bytes(b"\"");
}

fn hex(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

/// Appends the addresses of a stack, as an array of texts.
pub(crate) fn stack(to: &mut Text<'_>, frames: &[usize]) {
    to.bytes(b"[");
    let mut between: &[u8] = b"";
    for frame in frames {
        to.bytes(between).bytes(b"\"").hexadecimal(*frame as u64).bytes(b"\"");
        between = b",";
    }
    to.bytes(b"]");
}

/// Appends the fields of a moment, with this word before their names.
pub(crate) fn moment(to: &mut Text<'_>, word: &[u8], moment: &SampleMoment) {
    to.bytes(b",\"").bytes(word).bytes(b"_thread_uid\":").decimal(moment.thread);
    if !moment.thread_name.is_empty() {
        to.bytes(b",\"").bytes(word).bytes(b"_thread_name\":");
        text(to, moment.thread_name);
    }
    to.bytes(b",\"").bytes(word).bytes(b"_time\":").decimal(moment.time);
    to.bytes(b",\"").bytes(word).bytes(b"_trace\":");
    stack(to, moment.stack);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn texts_and_stacks_are_json() {
        let mut got = Vec::new();
        let mut to = Text::new(&mut got);
        text(&mut to, "a \"b\"\\\n");
        stack(&mut to, &[]);
        stack(&mut to, &[0x10, 0xabc]);
        let thread_name = "main";
        let at = SampleMoment { time: 5, thread: 2, thread_name, stack: &[1] };
        moment(&mut to, b"alloc", &at);
        assert!(to.end());
        let expected = "\"a \\\"b\\\"\\\\\\u000a\"[][\"0x10\",\"0xabc\"],\"alloc_thread_uid\":2,\
                        \"alloc_thread_name\":\"main\",\"alloc_time\":5,\"alloc_trace\":[\"0x1\"]";
        assert_eq!(core::str::from_utf8(&got), Ok(expected));
    }
}
