//! The table that a program has: one [`Row`] for each key, in the order of the tree.
//!
//! The texts of all rows are one text, of which a row tells its parts, because each pointer in a
//! table costs every process 32 bytes: the word, which the loader writes, and an entry that tells
//! the loader to do so.
use crate::row::{Access, Spec, Stability};
use crate::tree_draft::{FLAT, ORDER, ROW_COUNT};
use crate::value::{Type, Unit};
use core::ffi::CStr;

/// One key of the namespace.
#[derive(Clone, Copy)]
pub struct Row {
    name: Part,
    help: Part,
    /// The type of the value.
    pub kind: Type,
    /// What a number counts.
    pub unit: Unit,
    /// What may be done with the key.
    pub access: Access,
    /// What a program may rely on.
    pub stability: Stability,
}

impl Row {
    const fn of(spec: &Spec, name: Part, help: Part) -> Row {
        let Spec { kind, unit, access, stability, .. } = *spec;
        Row { name, help, kind, unit, access, stability }
    }

    /// A row without texts.
    #[cfg(test)]
    pub(crate) const fn without_texts(spec: &Spec) -> Row {
        Row::of(spec, Part::EMPTY, Part::EMPTY)
    }

    /// The dotted name. A component in `<…>` stands for any index that its rule among
    /// [`INDICES`](crate::rows::INDICES) allows.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match core::str::from_utf8(self.name_bytes()) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    /// The bytes of the name.
    #[must_use]
    pub const fn name_bytes(&self) -> &'static [u8] {
        self.name.of(&NAMES)
    }

    /// The part of the name with this place and length, as part of [`names`].
    pub(crate) const fn name_part(&self, begin: usize, length: usize) -> Part {
        Part::at(self.name.begin as usize + begin, length)
    }

    /// A description in one line.
    #[must_use]
    pub const fn help(&self) -> &'static CStr {
        match CStr::from_bytes_with_nul(self.help.of(&HELP)) {
            Ok(help) => help,
            Err(_) => c"",
        }
    }

    /// The components of the name.
    pub fn components(&self) -> impl Iterator<Item = &'static [u8]> + use<> {
        self.name_bytes().split(|&byte| byte == b'.')
    }
}

/// A part of a text.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    begin: u16,
    end: u16,
}

impl Part {
    pub(crate) const EMPTY: Part = Part { begin: 0, end: 0 };

    /// The part of `length` bytes that begins at `begin`.
    const fn at(begin: usize, length: usize) -> Part {
        assert!(begin + length <= u16::MAX as usize, "the texts have become too long");
        Part { begin: begin as u16, end: (begin + length) as u16 }
    }

    /// How many bytes it has.
    pub(crate) const fn length(self) -> usize {
        self.end.saturating_sub(self.begin) as usize
    }

    /// The bytes of the part; none if the text is shorter.
    pub(crate) const fn of(self, text: &'static [u8]) -> &'static [u8] {
        let (begin, end) = (self.begin as usize, self.end as usize);
        match text.split_at_checked(end) {
            Some((text, _)) => match text.split_at_checked(begin) {
                Some((_, part)) => part,
                None => &[],
            },
            None => &[],
        }
    }
}

/// Which text of a key.
#[derive(Clone, Copy)]
enum Text {
    Name,
    Help,
}

/// The text of the row at a place.
const fn text(which: Text, place: usize) -> &'static [u8] {
    let spec = FLAT[ORDER[place]];
    match which {
        Text::Name => spec.name.as_bytes(),
        Text::Help => spec.help.to_bytes(),
    }
}

/// How long the texts of all rows are, with a byte behind each.
const fn length(which: Text) -> usize {
    let (mut length, mut place) = (0, 0);
    while place < ROW_COUNT {
        length += text(which, place).len() + 1;
        place += 1;
    }
    length
}

/// The texts of all rows, with a byte behind each. What is left of the array stays 0.
const fn join<const N: usize>(which: Text, behind: u8) -> [u8; N] {
    let mut all = [0; N];
    let (mut used, mut place) = (0, 0);
    while place < ROW_COUNT {
        let text = text(which, place);
        let mut at = 0;
        while at < text.len() {
            all[used] = text[at];
            used += 1;
            at += 1;
        }
        all[used] = behind;
        used += 1;
        place += 1;
    }
    all
}

/// The names of all keys, a line each, and a NUL.
static NAMES: [u8; length(Text::Name) + 1] = join(Text::Name, b'\n');

/// The descriptions of all keys, each with a NUL.
static HELP: [u8; length(Text::Help)] = join(Text::Help, 0);

/// The names of all keys, a line each, as a C text with its NUL.
pub(crate) const fn names() -> &'static [u8] {
    &NAMES
}

static ROWS: [Row; ROW_COUNT] = {
    let mut rows = [Row::of(FLAT[0], Part::EMPTY, Part::EMPTY); ROW_COUNT];
    let (mut name, mut help, mut place) = (0, 0, 0);
    while place < ROW_COUNT {
        let (name_length, help_length) =
            (text(Text::Name, place).len(), text(Text::Help, place).len() + 1);
        let parts = (Part::at(name, name_length), Part::at(help, help_length));
        rows[place] = Row::of(FLAT[ORDER[place]], parts.0, parts.1);
        name += name_length + 1;
        help += help_length;
        place += 1;
    }
    rows
};

/// All rows. Rows that share a branch are neighbours.
#[must_use]
pub const fn rows() -> &'static [Row] {
    &ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_the_texts_of_its_file() {
        for (row, flat) in rows().iter().zip(ORDER) {
            let spec = FLAT[flat];
            assert_eq!((row.name(), row.help()), (spec.name, spec.help));
        }
    }

    #[test]
    fn a_part_that_is_not_in_the_text_is_empty() {
        let part = |begin, end| Part { begin, end }.of(b"text");
        assert_eq!((part(1, 3), part(0, 4)), (&b"ex"[..], &b"text"[..]));
        assert!(part(0, 5).is_empty() && part(3, 2).is_empty());
    }
}
