//! Where in its source a program calls from.

use crate::random::random;
use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering};

/// A position in the source of a program: file, line, and function, as far as they are known.
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
}

impl Origin {
    /// Returns the position.
    #[must_use]
    pub fn position(self) -> Position {
        match self {
            Origin::Unknown => Position::UNKNOWN,
            Origin::Rust(caller) => Position::new(caller.file().as_bytes(), caller.line(), b""),
            Origin::Recorded(position) => position,
        }
    }
}

/// A text that the program keeps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Name {
    pub(crate) address: usize,
    pub(crate) length: u32,
}

impl Name {
    fn of(text: &'static [u8]) -> Name {
        let length = u32::try_from(text.len()).unwrap_or(0);
        Name { address: text.as_ptr().expose_provenance(), length }
    }

    pub(crate) fn text(&self) -> Option<&'static [u8]> {
        if self.length == 0 || self.address == 0 {
            return None;
        }
        let start = core::ptr::with_exposed_provenance(self.address);
        // SAFETY: the name was made from a text that the program keeps.
        Some(unsafe { core::slice::from_raw_parts(start, self.length as usize) })
    }
}

impl Position {
    /// No position.
    pub const UNKNOWN: Position = Position {
        file: Name { address: 0, length: 0 },
        line: 0,
        function: Name { address: 0, length: 0 },
    };

    /// A position. An empty text and a line of 0 mean that it is unknown.
    #[must_use]
    pub fn new(file: &'static [u8], line: u32, function: &'static [u8]) -> Position {
        Position { file: Name::of(file), line, function: Name::of(function) }
    }

    /// Returns file and line, if both are known.
    #[must_use]
    pub fn file_and_line(&self) -> Option<(&'static [u8], usize)> {
        let line = usize::try_from(self.line).ok().filter(|line| *line > 0)?;
        Some((self.file.text()?, line))
    }

    /// Returns the function, if it is known.
    #[must_use]
    pub fn function(&self) -> Option<&'static [u8]> {
        self.function.text()
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

/// Returns a number that is not 0 and that other processes do not have, except those that were
/// forked. Positions in the region's memory are used only by the process that wrote them.
pub(crate) fn process_mark() -> u32 {
    static MARK: AtomicU32 = AtomicU32::new(0);
    let mark = MARK.load(Ordering::Relaxed);
    if mark != 0 {
        return mark;
    }
    let new = random((&raw const MARK).addr()) as u32 | 1;
    match MARK.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => new,
        Err(other) => other,
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

    #[test]
    fn the_mark_of_a_process_stays() {
        assert_ne!(process_mark(), 0);
        assert_eq!(process_mark(), process_mark());
    }
}
