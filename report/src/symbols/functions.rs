//! The names of all functions, each of them once.

use std::collections::HashMap;

use super::demangle::{demangle, may_be_rust};
use super::printable;
use crate::block_type::Function;

/// The most bytes of names that a profile brings along, demangled. What comes after them is shown
/// mangled: a file of 1 MB may have names that stand for 100 GB.
const DEMANGLED_MAX: usize = 512 << 20;

/// The names of all functions.
pub(super) struct Functions {
    names: Vec<String>,
    may_be_rust: Vec<bool>,
    by_name: HashMap<String, usize>,
    /// How many bytes may still be demangled.
    room: usize,
}

impl Default for Functions {
    fn default() -> Functions {
        let (names, may_be_rust, by_name) = Default::default();
        Functions { names, may_be_rust, by_name, room: DEMANGLED_MAX }
    }
}

impl Functions {
    /// All names, by their numbers.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// A function, by its number.
    pub(super) fn of(&self, number: usize) -> Function<'_> {
        Function { name: &self.names[number], may_be_rust: self.may_be_rust[number] }
    }

    /// The number of a name. Characters that control a terminal are replaced.
    pub(super) fn number(&mut self, name: String, may_be_rust: bool) -> usize {
        let name = printable(name);
        *self.by_name.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            self.may_be_rust.push(may_be_rust);
            self.names.len() - 1
        })
    }

    /// The number of a name that may be mangled, of a function in a source file.
    pub(super) fn demangled(&mut self, raw: &str, file: &str) -> usize {
        let name = (self.room > 0).then(|| demangle(raw));
        let name = name.filter(|name| name.len() <= self.room);
        self.room = name.as_ref().map_or(0, |name| self.room - name.len());
        self.number(name.unwrap_or_else(|| raw.to_owned()), may_be_rust(raw, file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_need_too_much_room_stay_mangled() {
        let mut functions = Functions { room: 10, ..Functions::default() };
        let raw = ["_ZN1a1bEv", "_ZN1a1cEv", "_ZN1a1dEv", "_ZN1a1eEv", "_Z1fv", "main"];
        let numbers = raw.map(|name| functions.demangled(name, ""));
        assert_eq!(functions.names(), ["a::b", "a::c", "_ZN1a1dEv", "_ZN1a1eEv", "_Z1fv", "main"]);
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
        assert_eq!(functions.demangled("a::b", ""), 0);
    }
}
