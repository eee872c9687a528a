//! Functions that have the same name: overloaded ones of C++, and those of C that are known in one
//! file each.

use std::collections::HashMap;
use std::rc::Rc;

use super::demangle::{is_legacy_rust, plain, with_parameters};
use super::printable;

/// The most bytes of names with parameters. What comes after them has none.
const PARAMETERS_MAX: usize = 64 << 20;

/// What a function is known by.
#[derive(Clone, Copy)]
pub(super) struct KnownBy<'a> {
    /// The number of its name.
    pub(super) name: usize,
    /// Its mangled name; may be empty.
    pub(super) mangled: &'a str,
    /// Its module, and its first address there. `None`: it is inlined, or not known.
    pub(super) begin: Option<(usize, u64)>,
    /// The source file of a line of it; may be empty.
    pub(super) file: &'a Rc<str>,
}

/// What tells a function from others of its name.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Identity {
    name: usize,
    /// The mangled name of C++; may be empty.
    mangled: Rc<str>,
    begin: Option<(usize, u64)>,
    /// Empty where the function has a beginning: it may have lines of several files.
    file: Rc<str>,
}

/// A function.
struct Function {
    identity: Identity,
    /// The source file of the first line that was seen.
    file: Rc<str>,
}

/// All functions, by their numbers.
#[derive(Default)]
pub(super) struct Overloads {
    all: Vec<Function>,
    numbers: HashMap<Identity, usize>,
}

impl Overloads {
    /// The number of a function.
    pub(super) fn number(&mut self, known: KnownBy<'_>) -> usize {
        let mangled = plain(known.mangled);
        let is_cpp = mangled.starts_with("_Z") && !is_legacy_rust(mangled);
        let mangled = if is_cpp { mangled } else { "" };
        let file = if known.begin.is_some() { "".into() } else { Rc::clone(known.file) };
        let (name, begin) = (known.name, known.begin);
        let identity = Identity { name, mangled: mangled.into(), begin, file };
        *self.numbers.entry(identity).or_insert_with_key(|identity| {
            let file = Rc::clone(known.file);
            self.all.push(Function { identity: identity.clone(), file });
            self.all.len() - 1
        })
    }

    /// Whether two functions have the same name, also mangled.
    pub(super) fn are_alike(&self, one: usize, other: usize) -> bool {
        let of = |number: usize| {
            let identity = &self.all[number].identity;
            (identity.name, &identity.mangled)
        };
        of(one) == of(other)
    }

    /// Tells functions of the same name apart. `names` are all names.
    pub(super) fn told_apart(&self, names: &[String]) -> Exact {
        let mut of_name: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, function) in self.all.iter().enumerate() {
            of_name.entry(function.identity.name).or_default().push(number);
        }
        let mut room = PARAMETERS_MAX;
        let mut exact = Exact { of: vec![0; self.all.len()], names: Vec::new() };
        for (name, text) in names.iter().enumerate() {
            let Some(numbers) = of_name.get(&name) else { continue };
            let mut texts: Vec<String> = Vec::new();
            for number in numbers {
                let own = self.text(text, &self.all[*number], numbers, &mut room);
                let place = texts.iter().position(|other| *other == own);
                exact.of[*number] = exact.names.len() + place.unwrap_or(texts.len());
                if place.is_none() {
                    texts.push(own);
                }
            }
            exact.names.append(&mut texts);
        }
        exact
    }

    /// The name of a function, with what tells it from the others of `numbers`.
    fn text(&self, name: &str, own: &Function, numbers: &[usize], room: &mut usize) -> String {
        let others = || numbers.iter().map(|number| &self.all[*number]);
        let mangled = &own.identity.mangled;
        let is_overloaded = *room > 0 && others().any(|other| other.identity.mangled != *mangled);
        let text = if is_overloaded { with_parameters(mangled).map(printable) } else { None };
        *room = room.saturating_sub(text.as_ref().map_or(0, String::len));
        let text = text.unwrap_or_else(|| name.to_owned());
        let is_other_file = |other: &Function| {
            other.identity.mangled == *mangled && !other.file.is_empty() && other.file != own.file
        };
        let file = own.file.rsplit('/').next().unwrap_or_default();
        if !file.is_empty() && others().any(is_other_file) {
            format!("{text} ({file})")
        } else {
            text
        }
    }
}

/// The functions of a profile, told apart.
pub(crate) struct Exact {
    /// The place of each function among the names.
    of: Vec<usize>,
    names: Vec<String>,
}

impl Exact {
    /// The place of a function, by its number.
    pub(crate) fn place(&self, number: usize) -> usize {
        self.of.get(number).copied().unwrap_or(0)
    }

    /// The names, by their places. They are different.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function: its name, the mangled one, its beginning, a file, and the name by which it is
    /// told apart.
    type Row = (usize, &'static str, Option<u64>, &'static str, &'static str);

    fn told_apart(names: &[&str], rows: &[Row]) -> usize {
        let mut overloads = Overloads::default();
        let number = |(name, mangled, begin, file, _): &Row| {
            let file: &Rc<str> = &(*file).into();
            let begin = begin.map(|begin| (0, begin));
            overloads.number(KnownBy { name: *name, mangled, begin, file })
        };
        let numbers: Vec<usize> = rows.iter().map(number).collect();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let exact = overloads.told_apart(&names);
        for (number, (.., expected)) in numbers.iter().zip(rows) {
            assert_eq!(exact.names()[exact.place(*number)], *expected);
        }
        exact.names().len()
    }

    #[test]
    fn functions_of_c_are_told_apart_by_their_files() {
        let rows = [
            (0, "main", Some(1), "main.c", "main"),
            (1, "init", Some(2), "src/a.c", "init (a.c)"),
            (1, "init", Some(3), "b.c", "init (b.c)"),
            (1, "init", None, "b.c", "init (b.c)"),
            // The lines of a function of a generated parser are in two files.
            (2, "yyparse", Some(4), "parser.tab.c", "yyparse"),
            (2, "yyparse", Some(4), "parser.y", "yyparse"),
            // A part of a function is elsewhere.
            (3, "f", Some(5), "f.c", "f"),
            (3, "f", Some(9), "f.c", "f"),
            (3, "f", Some(11), "", "f"),
        ];
        assert_eq!(told_apart(&["main", "init", "yyparse", "f"], &rows), 5);
    }

    #[test]
    fn overloaded_functions_are_told_apart_by_their_parameters() {
        let rows = [
            (0, "_Z1fi", Some(1), "f.cc", "f(int)"),
            (0, "_Z1fd", Some(2), "f.cc", "f(double)"),
            // The two forms of a constructor are one function.
            (1, "_ZN1AC1Ev", Some(3), "a.cc", "A::A()"),
            (1, "_ZN1AC2Ev", Some(4), "a.cc", "A::A()"),
            (2, "_ZN12_GLOBAL__N_14initEv", Some(5), "a.cc", "(anonymous namespace)::init (a.cc)"),
            (2, "_ZN12_GLOBAL__N_14initEv", Some(6), "b.cc", "(anonymous namespace)::init (b.cc)"),
            // Instances of a generic function of Rust are one function.
            (3, "_ZN1b4pushE17h0123456789abcdefE", Some(7), "b.rs", "b::push"),
            (3, "_ZN1b4pushE17h0123456789abcdeeE", Some(8), "b.rs", "b::push"),
        ];
        let names = ["f", "A::A", "(anonymous namespace)::init", "b::push"];
        assert_eq!(told_apart(&names, &rows), 6);
    }
}
