//! Where in its source a program calls from.

use crate::noted::note;
use crate::stacks::{self, DEPTH};
use core::panic::Location;

/// Stands in the place of the line if the name of the file is the address of a stack.
const OF_STACK: u32 = u32::MAX;

/// A position in the source of a program: file, line, and function, as far as they are known. Or
/// the return addresses of the callers, where a program records no position.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    file: Name,
    line: u32,
    function: Name,
}

/// Where a call comes from, which is made a [`Position`] only if that is wanted.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// It is not known.
    Unknown,
    /// A caller in Rust.
    Rust(&'static Location<'static>),
    /// A position that the program recorded.
    Recorded(Position),
    /// The functions that are on the stack.
    Stack,
}

impl Origin {
    /// Returns the position.
    #[must_use]
    pub fn position(self) -> Position {
        match self {
            Origin::Unknown => Position::UNKNOWN,
            Origin::Rust(caller) => Position::new(caller.file().as_bytes(), caller.line(), b""),
            Origin::Recorded(position) => position,
            Origin::Stack => stacks::here().map_or(Position::UNKNOWN, Position::of_stack),
        }
    }
}

/// A text that the program keeps during a call, or that was noted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name {
    pub(crate) address: usize,
    pub(crate) length: u32,
}

impl Name {
    fn of(text: &'static [u8]) -> Name {
        match u32::try_from(text.len()).unwrap_or(0) {
            0 => Name::default(),
            length => Name { address: text.as_ptr().expose_provenance(), length },
        }
    }

    pub(crate) fn text(&self) -> Option<&'static [u8]> {
        if self.length == 0 || self.address == 0 {
            return None;
        }
        let start = core::ptr::with_exposed_provenance(self.address);
        // SAFETY: the name was made from a text that the program keeps, or that was noted.
        Some(unsafe { core::slice::from_raw_parts(start, self.length as usize) })
    }

    /// Returns the same text as it was noted, which stays when the program's does not, as that of a
    /// plug-in that is closed. `None` if there is no memory. What is no text stays as it is.
    pub(crate) fn noted(self) -> Option<Name> {
        match self.text() {
            Some(text) => note(text).map(Name::of),
            None => Some(self),
        }
    }
}

impl Position {
    /// No position.
    pub const UNKNOWN: Position = Position {
        file: Name { address: 0, length: 0 },
        line: 0,
        function: Name { address: 0, length: 0 },
    };

    /// A position. An empty text and a line of 0 mean that it is unknown. The texts must stay
    /// during the calls that get the position.
    #[must_use]
    pub fn new(file: &'static [u8], line: u32, function: &'static [u8]) -> Position {
        Position { file: Name::of(file), line, function: Name::of(function) }
    }

    /// The position that a stack stands for.
    fn of_stack(stack: &'static [usize; DEPTH]) -> Position {
        let address = stack.as_ptr().expose_provenance();
        Position { file: Name { address, length: 0 }, line: OF_STACK, ..Position::UNKNOWN }
    }

    /// Returns the return addresses of the callers, the innermost first, if they are known in place
    /// of file and line.
    #[must_use]
    pub fn stack(&self) -> Option<&'static [usize]> {
        if self.line != OF_STACK {
            return None;
        }
        let stack = core::ptr::with_exposed_provenance::<[usize; DEPTH]>(self.file.address);
        // SAFETY: a position with this line was made of a stack that was noted, which stays.
        let stack = unsafe { stack.as_ref() }?;
        stack.split(|address| *address == 0).next()
    }

    /// Returns whether nothing is known.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        self.line == 0 && self.function.length == 0
    }

    /// Returns file and line, if both are known.
    #[must_use]
    pub fn file_and_line(&self) -> Option<(&'static [u8], usize)> {
        let line = Some(self.line).filter(|line| !matches!(*line, 0 | OF_STACK))? as usize;
        Some((self.file.text()?, line))
    }

    /// Returns the function, if it is known.
    #[must_use]
    pub fn function(&self) -> Option<&'static [u8]> {
        self.function.text()
    }

    /// Returns the same position with names that stay. It is unknown if there is no memory.
    pub(crate) fn noted(self) -> Position {
        let names = self.file.noted().zip(self.function.noted());
        names.map_or(Position::UNKNOWN, |(file, function)| Position { file, function, ..self })
    }

    /// Returns the parts, for the header of a block.
    pub(crate) fn parts(&self) -> (Name, u32, Name) {
        (self.file, self.line, self.function)
    }

    /// Makes a position of parts.
    ///
    /// # Safety
    /// They are what [`Position::parts`] returned in this process.
    pub(crate) unsafe fn from_parts(file: Name, line: u32, function: Name) -> Position {
        Position { file, line, function }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_knows_what_it_was_made_of() {
        let position = Position::new(b"file.c", 7, b"main");
        assert_eq!(position.file_and_line(), Some((&b"file.c"[..], 7)));
        assert_eq!(position.function(), Some(&b"main"[..]));
        assert_eq!(Position::new(b"file.c", 0, b"").file_and_line(), None);
        assert_eq!(Position::UNKNOWN.function(), None);
        assert!(Origin::Unknown.position().file_and_line().is_none());
        let recorded = Origin::Recorded(position).position();
        assert_eq!(recorded.file_and_line(), position.file_and_line());
        let here = Origin::Rust(Location::caller()).position();
        assert!(here.file_and_line().is_some_and(|(file, _)| file.ends_with(b"position.rs")));
    }
}
