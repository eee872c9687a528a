//! The name of an arena. Source: jemalloc(3) 5.3, `arena.<i>.name`.

use crate::ground::text::Line;

/// Bytes that a name may have, with its NUL.
pub const NAME_BYTES: usize = 32;

/// A name: NUL-terminated, at most [`NAME_BYTES`] long.
#[derive(Clone, Copy)]
pub(crate) struct Name([u8; NAME_BYTES]);

impl Name {
    /// The name of an arena without one: `auto_3`, or `manual_12` for a created arena.
    pub(crate) fn of_arena(id: u32, created: bool) -> Name {
        let mut line = Line::<NAME_BYTES>::new();
        line.text(if created { "manual_" } else { "auto_" }).number(u64::from(id));
        Name::new(line.as_bytes())
    }

    /// A name of as much of a text as fits.
    pub(crate) fn new(text: &[u8]) -> Name {
        let mut name = [0; NAME_BYTES];
        let text = text.split(|c| *c == 0).next().unwrap_or_default();
        for (to, from) in name.iter_mut().take(NAME_BYTES - 1).zip(text) {
            *to = *from;
        }
        Name(name)
    }

    /// The bytes of the name, with NULs to the end.
    pub(crate) fn bytes(self) -> [u8; NAME_BYTES] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_and_end_with_nul() {
        assert!(Name::of_arena(3, false).bytes().starts_with(b"auto_3\0"));
        assert!(Name::of_arena(12, true).bytes().starts_with(b"manual_12\0"));
        let long = Name::new(&[b'x'; 100]).bytes();
        assert!(long[..31].iter().all(|c| *c == b'x') && long[31] == 0);
        assert!(Name::new(b"a\0b").bytes().starts_with(b"a\0\0"));
    }
}
