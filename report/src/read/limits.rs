//! Limits of what a file may have. Those of a pprof file are checked before it is decoded: an empty
//! message is 2 bytes in the file and about 100 bytes in memory, and a number is 1 byte in the file
//! and 8 in memory. A frame of a stack is about 12 bytes in memory: the number of its place, and
//! its own.

use std::borrow::Cow;
use std::cell::Cell;

/// The most messages: samples and their labels, places and their lines, functions, mappings and
/// strings. 100,000 stacks with 4 samples each have about 3 million.
const MESSAGES: usize = 10_000_000;
/// The most numbers: values, and the places of stacks.
const NUMBERS: usize = 100_000_000;
/// The most bytes of names, where each use of a name counts. A file may use one long name often.
const NAMES: usize = 512 << 20;
/// The most frames of all stacks, as many as places. lumalloc keeps a million stacks, which have 50
/// million with 50 places each.
const FRAMES: usize = NUMBERS;
/// The most frames of one stack. Those of programs have some hundred, and a picture of a deeper one
/// would take more memory than the file by far.
const DEEPEST: usize = 10_000;
/// The most lines of a heap_v2. A stack has two, and one for each thread.
const LINES: usize = 10_000_000;

/// Fields of the file that are messages or strings.
const PARTS: std::ops::RangeInclusive<u64> = 1..=6;
const SAMPLE: u64 = 2;
const LOCATION: u64 = 4;
const STRING: u64 = 6;
const COMMENT: u64 = 13;

/// Refuses a file that has too many messages or numbers. What comes after damage is not counted,
/// because it is not decoded either.
pub(super) fn check(file: &[u8]) -> Result<(), String> {
    check_at_most(MESSAGES, NUMBERS, file)
}

fn check_at_most(messages: usize, numbers: usize, file: &[u8]) -> Result<(), String> {
    Count { messages, numbers }.file(file).map_err(|too_many| match too_many {
        TooMany::Messages => {
            format!("it has more than {messages} samples, labels, places, functions and names")
        }
        TooMany::Numbers => format!("it has more than {numbers} values and places of stacks"),
    })
}

/// Refuses a heap_v2 that has too many lines.
pub(super) fn check_lines(text: &str) -> Result<(), String> {
    if text.lines().nth(LINES).is_some() {
        return Err(format!("it has more than {LINES} lines"));
    }
    Ok(())
}

/// Returns the file with `?` in place of each byte of a string that is no UTF-8, which the decoder
/// refuses: paths may have any bytes.
pub(super) fn with_valid_names(file: &[u8]) -> Cow<'_, [u8]> {
    let mut valid = Cow::Borrowed(file);
    let mut fields = Fields(file);
    while let Some((field, contents)) = fields.next() {
        let text = contents.filter(|_| field == STRING).unwrap_or_default();
        if std::str::from_utf8(text).is_ok() {
            continue;
        }
        let mut at = file.len() - fields.0.len() - text.len();
        for chunk in text.utf8_chunks() {
            at += chunk.valid().len();
            let end = at + chunk.invalid().len();
            valid.to_mut()[at..end].fill(b'?');
            at = end;
        }
    }
    valid
}

/// What there is too much of.
enum TooMany {
    Messages,
    Numbers,
}

/// How many bytes of names may still be copied.
pub(super) struct Names(Cell<usize>);

impl Default for Names {
    fn default() -> Names {
        Names(Cell::new(NAMES))
    }
}

impl Names {
    /// Copies a name, if there is room for it.
    pub(super) fn copy(&self, name: &str) -> Result<String, String> {
        let left = self.0.get().checked_sub(name.len());
        self.0.set(left.ok_or_else(|| {
            let most = NAMES >> 20;
            format!("it has more than {most} MiB of names, where each use of a name counts")
        })?);
        Ok(name.to_owned())
    }
}

/// How many frames of stacks may still come. Each stack has all functions of its places.
pub(super) struct Frames {
    most: usize,
    left: usize,
    /// How many this stack has.
    depth: usize,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames::at_most(FRAMES)
    }
}

impl Frames {
    pub(super) fn at_most(most: usize) -> Frames {
        Frames { most, left: most, depth: 0 }
    }

    /// Begins to count the frames of another stack.
    pub(super) fn begin_stack(&mut self) {
        self.depth = 0;
    }

    /// Counts some frames of the stack, if there is room for them.
    pub(super) fn take(&mut self, count: usize) -> Result<(), String> {
        self.depth = self.depth.saturating_add(count);
        if self.depth > DEEPEST {
            return Err(format!("it has a stack of more than {DEEPEST} frames"));
        }
        let most = self.most;
        let left = self.left.checked_sub(count);
        self.left = left.ok_or_else(|| {
            format!("it has more than {most} frames of stacks, where each use of a place counts")
        })?;
        Ok(())
    }
}

/// How many messages and numbers may still come.
struct Count {
    messages: usize,
    numbers: usize,
}

/// A field: its number, and its contents. A number has no contents.
type Field<'a> = (u64, Option<&'a [u8]>);

impl Count {
    fn file(&mut self, file: &[u8]) -> Result<(), TooMany> {
        for (field, contents) in Fields(file) {
            match (field, contents) {
                (SAMPLE, Some(sample)) => self.sample(sample)?,
                (LOCATION, Some(location)) => self.location(location)?,
                (COMMENT, contents) => self.numbers(contents)?,
                _ => {}
            }
            if PARTS.contains(&field) {
                self.message()?;
            }
        }
        Ok(())
    }

    fn sample(&mut self, sample: &[u8]) -> Result<(), TooMany> {
        for (field, contents) in Fields(sample) {
            match field {
                1 | 2 => self.numbers(contents)?,
                3 => self.message()?,
                _ => {}
            }
        }
        Ok(())
    }

    fn location(&mut self, location: &[u8]) -> Result<(), TooMany> {
        Fields(location).filter(|(field, _)| *field == 4).try_for_each(|_| self.message())
    }

    fn message(&mut self) -> Result<(), TooMany> {
        self.messages = self.messages.checked_sub(1).ok_or(TooMany::Messages)?;
        Ok(())
    }

    /// Counts one number, or all that are packed together.
    fn numbers(&mut self, packed: Option<&[u8]>) -> Result<(), TooMany> {
        let ends = |bytes: &[u8]| bytes.iter().filter(|byte| **byte < 0x80).count();
        let left = self.numbers.checked_sub(packed.map_or(1, ends));
        self.numbers = left.ok_or(TooMany::Numbers)?;
        Ok(())
    }
}

/// The fields of a message, up to the first damage.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let key = self.varint()?;
        let contents = match key & 7 {
            0 => self.varint().map(|_| None)?,
            1 => self.take(8).map(|_| None)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Some(self.take(length)?)
            }
            // The ends of a group. What is inside is counted.
            3 | 4 => None,
            5 => self.take(4).map(|_| None)?,
            _ => return None,
        };
        Some((key >> 3, contents))
    }
}

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::File;
    use super::*;

    /// Returns the messages and numbers of a file: the least that are accepted.
    fn counted(file: &[u8]) -> (usize, usize) {
        let least = |is_enough: &dyn Fn(usize) -> bool| (0..1000).find(|most| is_enough(*most));
        let messages = least(&|most| check_at_most(most, 1000, file).is_ok()).expect("messages");
        let numbers = least(&|most| check_at_most(1000, most, file).is_ok()).expect("numbers");
        (messages, numbers)
    }

    #[test]
    fn messages_and_numbers_are_counted() {
        let file = File::default()
            .mapping(0x1000, 0x3000, "/bin/x", "ab12")
            .comment("pid=7")
            .stack(&[0x1010, 0x2020], &[5, 500, 2, 200], &[("bytes", 100), ("arena", 3)])
            .path("main > f", 8, 1, 1);
        let profile = &file.profile;
        let labels: usize = profile.sample.iter().map(|sample| sample.label.len()).sum();
        let lines: usize = profile.location.iter().map(|location| location.line.len()).sum();
        let messages = profile.sample_type.len() + profile.sample.len() + profile.mapping.len();
        let messages = messages + profile.location.len() + profile.function.len();
        let messages = messages + profile.string_table.len() + labels + lines;
        let numbers =
            |sample: &super::super::proto::Sample| sample.location_id.len() + sample.value.len();
        let numbers: usize = profile.sample.iter().map(numbers).sum();
        assert!(labels > 0 && lines > 0);
        assert_eq!(counted(&file.encode()), (messages, numbers + profile.comment.len()));
    }

    #[test]
    fn numbers_count_whether_they_are_packed_or_not() {
        assert_eq!(counted(&[0x12, 5, 0x0a, 3, 1, 0x80, 1]), (1, 2));
        assert_eq!(counted(&[0x12, 4, 0x08, 1, 0x10, 1]), (1, 2));
    }

    #[test]
    fn a_file_with_too_much_is_refused() {
        let text = "it has more than 10000000 samples, labels, places, functions and names";
        let samples = [0x12, 0].repeat(MESSAGES);
        assert_eq!(check(&samples), Ok(()));
        let refused = super::super::read(&[&samples[..], &[0x12, 0]].concat()).err();
        assert_eq!(refused.as_deref(), Some(text));
        assert_eq!(check_at_most(1, 1, &[0x12, 2, 0x08, 1]), Ok(()));
        let text = "it has more than 3 values and places of stacks";
        assert_eq!(check_at_most(1, 3, &[0x12, 6, 0x12, 4, 1, 1, 1, 1]), Err(text.into()));
    }

    #[test]
    fn stacks_may_have_as_many_frames_as_a_file_has_places() {
        let mut left = Frames::default();
        for _ in 0..NUMBERS / DEEPEST {
            left.begin_stack();
            assert_eq!(left.take(DEEPEST), Ok(()));
        }
        left.begin_stack();
        let text = "it has more than 100000000 frames of stacks, where each use of a place counts";
        assert_eq!(left.take(1), Err(text.into()));
    }

    #[test]
    fn nothing_is_counted_after_damage() {
        for damage in [&[0x12, 9, 0][..], &[0x12], &[0x0f, 1], &[0xff; 11], &[0x09, 0], &[0x0d]] {
            assert_eq!(check_at_most(1, 0, &[&[0x12, 0], damage].concat()), Ok(()));
        }
        assert_eq!(counted(&[0x7b, 0x12, 0, 0x7c]), (1, 0), "in a group of an unknown field");
    }
}
