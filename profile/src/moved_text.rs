//! Code that a program has moved to other memory at the same addresses, as those do that want huge
//! pages for it. The system tells no file for such memory, but those of the mappings around it.

use crate::maps_line::{Line, hash};

/// The last line of the table that is not such memory.
pub(crate) struct MovedText {
    /// The hash of its name.
    hash: u64,
    /// Where the beginning of its file would be.
    base: u64,
    end: u64,
    /// The end of the memory without a file that follows it without a gap.
    reached: u64,
}

impl MovedText {
    pub(crate) fn new() -> MovedText {
        MovedText { hash: 0, base: 0, end: 0, reached: 0 }
    }

    /// Notes the next line. Returns the code before it that belongs to the same file: it lies
    /// between two mappings that are as far from each other in the file as in memory.
    pub(crate) fn before<'a>(&mut self, line: &Line<'a>) -> Option<Line<'a>> {
        if line.name.is_empty() && line.may_run && line.start == self.reached {
            self.reached = line.end;
            return None;
        }
        let (hash, base) = (hash(line.name), line.start.wrapping_sub(line.offset));
        let next = MovedText { hash, base, end: line.end, reached: line.end };
        let last = core::mem::replace(self, next);
        let is_same = line.name.starts_with(b"/") && (last.hash, last.base) == (hash, base);
        let is_between = last.end < last.reached && last.reached == line.start;
        (is_same && is_between).then(|| Line {
            start: last.end,
            end: last.reached,
            may_run: true,
            offset: last.end.wrapping_sub(base),
            name: line.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps_line::parse;
    use std::string::{String, ToString};
    use std::vec::Vec;

    /// The places of such code in a table, and in its file.
    fn moved(table: &str) -> Vec<(u64, u64, u64, String)> {
        let mut moved = MovedText::new();
        let part = |line| {
            let part = moved.before(&parse(line)?)?;
            let name = String::from_utf8_lossy(part.name).to_string();
            Some((part.start, part.end, part.offset, name))
        };
        table.lines().map(str::trim).map(str::as_bytes).filter_map(part).collect()
    }

    #[test]
    fn code_between_two_mappings_of_a_file_belongs_to_it() {
        let table = "10000-11000 r--p 00000000 00:01 7 /a
                     11000-12000 r-xp 00001000 00:01 7 /a
                     12000-14000 r-xp 00000000 00:00 0
                     14000-15000 rwxp 00000000 00:00 0
                     15000-16000 r-xp 00005000 00:01 7 /a
                     16000-17000 r-xp 00000000 00:00 0
                     17000-18000 r--p 00007000 00:01 7 /a
                     18000-19000 r-xp 00000000 00:00 0";
        let expected = [(0x12000, 0x15000, 0x2000), (0x16000, 0x17000, 0x6000)];
        let expected = expected.map(|(start, end, offset)| (start, end, offset, "/a".to_string()));
        assert_eq!(moved(table), expected);
    }

    #[test]
    fn other_memory_belongs_to_no_file() {
        let begin = "11000-12000 r-xp 00001000 00:01 7 /a";
        let end = "15000-16000 r-xp 00005000 00:01 7 /a";
        let code = "12000-15000 r-xp 00000000 00:00 0";
        let whole = [begin, code, end];
        assert_eq!(moved(&whole.join("\n")).len(), 1);
        for (at, other) in [
            (0, "11000-12000 r-xp 00001000 00:01 8 /b"),
            (0, "11000-12000 r-xp 00002000 00:01 7 /a"),
            (0, "10000-11000 r-xp 00000000 00:01 7 /a"),
            (1, "12000-15000 r--p 00000000 00:00 0"),
            (1, "12000-14000 r-xp 00000000 00:00 0"),
            (1, "13000-15000 r-xp 00000000 00:00 0"),
            (1, "12000-15000 r-xp 00000000 00:00 0 [vdso]"),
            (2, "15000-16000 r-xp 00000000 00:00 0 [heap]"),
        ] {
            let mut lines = whole;
            lines[at] = other;
            assert_eq!(moved(&lines.join("\n")), [], "{other}");
        }
    }
}
