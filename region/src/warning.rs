//! What the method `Debug` finds, as lines of text. Source: vmalloc(3), Debugging.

use crate::line::Line;
use crate::position::Position;
use lumalloc::observe::code_place;

/// What a call was about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To allocate a block.
    Alloc,
    /// To free a block.
    Free,
    /// To change the size of a block.
    Resize,
}

/// When a watched block was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It was allocated.
    Allocated,
    /// It will be resized.
    BeingResized,
    /// It was resized.
    Resized,
    /// It will be freed.
    BeingFreed,
}

/// What is wrong, or was watched for.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    /// There was no memory.
    NoMemory(Action),
    /// No block of the region begins at the address.
    NotABlock(Action, usize),
    /// The block at the address was freed before.
    FreedBefore(Action, usize),
    /// A byte outside the block was overwritten.
    Overwritten {
        /// The address of the block.
        block: usize,
        /// How many bytes behind the start of the block the byte lies. Negative: before it.
        at: isize,
        /// Where the block was allocated.
        allocated: Position,
    },
    /// A byte of the block was written after the block was freed.
    WrittenAfterFree {
        /// The address of the block.
        block: usize,
        /// How many bytes behind the start of the block the byte lies.
        at: isize,
        /// Where the block was allocated.
        allocated: Position,
    },
    /// The block was in use when the region was closed.
    Leaked {
        /// The address of the block.
        block: usize,
        /// Its size.
        size: usize,
        /// Where the block was allocated.
        allocated: Position,
    },
    /// A watched block was met.
    Watched {
        /// The address of the block.
        block: usize,
        /// Its size.
        size: usize,
        /// When.
        moment: Moment,
    },
}

/// A finding of the method [`Debug`](crate::Debug).
#[derive(Clone, Copy, Debug)]
pub struct Warning {
    /// What was found.
    pub trouble: Trouble,
    /// Where the call that found it comes from.
    pub detected: Position,
}

impl Warning {
    /// Returns the line of text, which ends with a newline. The region has the address `region`.
    #[must_use]
    pub fn line(&self, region: usize) -> Line {
        let mut line = Line::new();
        match self.trouble {
            Trouble::NoMemory(action) => {
                error(&mut line, action, region).text(b"can't get memory:");
            }
            Trouble::NotABlock(action, block) => {
                add_block(error(&mut line, action, region), block).text(b"unallocated block:");
            }
            Trouble::FreedBefore(action, block) => {
                add_block(error(&mut line, action, region), block).text(b"already freed:");
            }
            Trouble::Overwritten { block, at, allocated } => {
                corrupted(&mut line, region, block, at);
                add_position(&mut line, b"allocated", allocated);
            }
            Trouble::WrittenAfterFree { block, at, allocated } => {
                corrupted(&mut line, region, block, at).text(b"already freed:");
                add_position(&mut line, b"allocated", allocated);
            }
            Trouble::Leaked { block, size, allocated } => {
                add_block(line.text(b"leak:region=").hex(region).text(b":"), block);
                line.text(b"size=").decimal(size).text(b":");
                add_position(&mut line, b"allocated", allocated);
            }
            Trouble::Watched { block, size, moment } => {
                add_block(line.text(b"alert:region=").hex(region).text(b":"), block);
                line.text(b"size=").decimal(size).text(b":").text(moment.text());
            }
        }
        self.add_detected(&mut line);
        line.text(b"\n");
        line
    }

    fn add_detected(&self, line: &mut Line) {
        if let Some((file, number)) = self.detected.file_and_line() {
            line.text(b"detected at=").end_of(file).text(b",").decimal(number).text(b",");
            line.end_of(self.detected.function().unwrap_or(b"0")).text(b":");
        } else {
            add_stack(line, b"detected", self.detected);
        }
    }
}

impl Moment {
    fn text(self) -> &'static [u8] {
        match self {
            Moment::Allocated => b"just allocated:",
            Moment::BeingResized => b"being resized:",
            Moment::Resized => b"just resized:",
            Moment::BeingFreed => b"being freed:",
        }
    }
}

fn error(line: &mut Line, action: Action, region: usize) -> &mut Line {
    let name: &[u8] = match action {
        Action::Alloc => b"alloc",
        Action::Free => b"free",
        Action::Resize => b"resize",
    };
    line.text(name).text(b" error:region=").hex(region).text(b":")
}

fn corrupted(line: &mut Line, region: usize, block: usize, at: isize) -> &mut Line {
    add_block(line.text(b"corrupted data:region=").hex(region).text(b":"), block);
    line.text(b"bad byte at=").text(if at < 0 { b"-" } else { b"" });
    line.decimal(at.unsigned_abs()).text(b":")
}

fn add_block(line: &mut Line, block: usize) -> &mut Line {
    line.text(b"block=").hex(block).text(b":")
}

fn add_position(line: &mut Line, what: &[u8], position: Position) {
    if let Some((file, number)) = position.file_and_line() {
        line.text(what).text(b" at=").end_of(file).text(b",").decimal(number).text(b":");
    } else {
        add_stack(line, what, position);
    }
}

/// Adds the callers, as files and addresses in them, if they are known in place of a position.
fn add_stack(line: &mut Line, what: &[u8], position: Position) {
    let Some(stack) = position.stack() else { return };
    let mut before: &[u8] = b" from=";
    line.text(what);
    for address in stack {
        line.text(before);
        match code_place(*address) {
            Some(place) => line.text(place.name()).text(b"+0x").hex(place.offset),
            None => line.text(b"0x").hex(*address),
        };
        before = b",";
    }
    line.text(b":");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(trouble: Trouble, detected: Position) -> std::string::String {
        let line = Warning { trouble, detected }.line(0xabc);
        std::string::String::from_utf8_lossy(line.get()).into_owned()
    }

    #[test]
    fn the_lines_are_those_of_the_library_of_2011() {
        let (none, here) = (Position::UNKNOWN, Position::new(b"p2.c", 34, b""));
        let cases = [
            (Trouble::NoMemory(Action::Alloc), "alloc error:region=abc:can't get memory:\n"),
            (Trouble::NoMemory(Action::Resize), "resize error:region=abc:can't get memory:\n"),
            (
                Trouble::NotABlock(Action::Free, 1),
                "free error:region=abc:block=1:unallocated block:\n",
            ),
            (
                Trouble::FreedBefore(Action::Resize, 0x1f0),
                "resize error:region=abc:block=1f0:already freed:\n",
            ),
            (
                Trouble::Overwritten { block: 0x220, at: 29, allocated: none },
                "corrupted data:region=abc:block=220:bad byte at=29:\n",
            ),
            (
                Trouble::Overwritten { block: 0x220, at: -3, allocated: here },
                "corrupted data:region=abc:block=220:bad byte at=-3:allocated at=p2.c,34:\n",
            ),
            (
                Trouble::WrittenAfterFree { block: 0x220, at: 5, allocated: none },
                "corrupted data:region=abc:block=220:bad byte at=5:already freed:\n",
            ),
            (
                Trouble::Leaked { block: 0x220, size: 5, allocated: here },
                "leak:region=abc:block=220:size=5:allocated at=p2.c,34:\n",
            ),
            (
                Trouble::Watched { block: 0x210, size: 40, moment: Moment::Allocated },
                "alert:region=abc:block=210:size=40:just allocated:\n",
            ),
            (
                Trouble::Watched { block: 0x210, size: 40, moment: Moment::BeingResized },
                "alert:region=abc:block=210:size=40:being resized:\n",
            ),
            (
                Trouble::Watched { block: 0x210, size: 40, moment: Moment::Resized },
                "alert:region=abc:block=210:size=40:just resized:\n",
            ),
            (
                Trouble::Watched { block: 0x210, size: 40, moment: Moment::BeingFreed },
                "alert:region=abc:block=210:size=40:being freed:\n",
            ),
        ];
        for (trouble, expected) in cases {
            assert_eq!(line(trouble, none), expected);
        }
        let bad = Trouble::NotABlock(Action::Free, 1);
        let expected = "free error:region=abc:block=1:unallocated block:detected at=p2.c,34,0:\n";
        assert_eq!(line(bad, here), expected);
        let there = Position::new(b"p2.c", 34, b"main");
        assert!(line(bad, there).ends_with(":detected at=p2.c,34,main:\n"));
    }
}
