//! The type of blocks, from the type arguments of the functions that allocated them.
//!
//! The memory of `Vec<Widget>` is allocated by `RawVec<Widget>::grow_one`. So the standard library's
//! functions at the inner end of a stack name the type. Code of the program ends the search.

/// What the names of functions of standard libraries begin with, without a leading `<`.
const LIBRARIES: [&str; 7] =
    ["alloc::", "core::", "std::", "hashbrown::", "__gnu_cxx::", "indexmap::", "smallvec::"];
/// Arguments that are no elements: allocators, hashers, comparisons.
const HELPERS: [&str; 9] = [
    "alloc::alloc::Global",
    "std::hash::random::RandomState",
    "std::allocator<",
    "std::char_traits<",
    "std::less<",
    "std::hash<",
    "std::equal_to<",
    "std::default_delete<",
    "core::hash::BuildHasherDefault<",
];
/// Parts of containers. A function of the container itself, farther out, names it better.
const PARTS: [&str; 9] = [
    "RawVec",
    "RawVecInner",
    "RawTable",
    "RawTableInner",
    "NonNull",
    "allocator",
    "allocator_traits",
    "new_allocator",
    "GlobalAlloc",
];

/// A container and its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Type {
    container: String,
    elements: Vec<String>,
}

impl Type {
    fn is_part(&self) -> bool {
        self.container.starts_with('_') || PARTS.contains(&self.container.as_str())
    }

    fn is_bytes(&self) -> bool {
        self.elements.iter().all(|element| matches!(element.as_str(), "u8" | "char"))
    }

    fn text(&self) -> String {
        let elements = self.elements.join(", ");
        match (self.container.as_str(), elements.as_str()) {
            ("basic_string", "char") => "std::string".to_owned(),
            _ if self.is_part() => elements,
            (container, _) => format!("{container}<{elements}>"),
        }
    }
}

/// Returns the type of the blocks that a stack allocates; the functions are innermost first.
pub(crate) fn of_functions<'a>(functions: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut found: Option<Type> = None;
    let mut is_string = false;
    for name in functions.take_while(|name| is_library(name)) {
        is_string |= name.contains("alloc::string::String") || name.starts_with("alloc::fmt::");
        let Some(next) = type_of(name) else { continue };
        let is_better = found.as_ref().is_none_or(|found| {
            (found.is_part() && !next.is_part()) || (found.is_bytes() && !next.is_bytes())
        });
        if is_better {
            found = Some(next);
        }
    }
    match found {
        Some(found) if !(is_string && found.is_bytes()) => Some(found.text()),
        _ => is_string.then(|| "String".to_owned()),
    }
}

fn is_library(name: &str) -> bool {
    let name = name.trim_start_matches(['<', '&']);
    LIBRARIES.iter().any(|library| name.starts_with(library))
}

/// The container of a method and its elements. Arguments at the end of the name, which Rust's older
/// names have, replace those of the container.
fn type_of(name: &str) -> Option<Type> {
    let mut container = "";
    let mut elements = Vec::new();
    for part in split(name, "::") {
        let (head, arguments) = match part.find('<') {
            // `<alloc::vec::Vec<Widget> as core::clone::Clone>::clone`
            Some(0) if container.is_empty() && part.contains(" as ") => {
                let own = part[1..].split(" as ").next().unwrap_or("");
                match type_of(own) {
                    Some(own) => return Some(own),
                    None => continue,
                }
            }
            Some(at) => (&part[..at], &part[at + 1..part.rfind('>').unwrap_or(part.len())]),
            None => continue,
        };
        let found: Vec<String> = split(arguments, ",").into_iter().filter_map(element).collect();
        if !found.is_empty() {
            elements = found;
        }
        // `<impl [T]>`
        if !head.is_empty() && (container.is_empty() || head.starts_with(char::is_uppercase)) {
            container = head;
        }
    }
    let container = if container.is_empty() { "_" } else { container }.to_owned();
    (!elements.is_empty()).then_some(Type { container, elements })
}

/// An argument that says something.
fn element(argument: &str) -> Option<String> {
    let argument = argument.trim();
    let is_placeholder = argument.len() == 1 && argument.starts_with(char::is_uppercase);
    let is_helper = HELPERS.iter().any(|helper| argument.starts_with(helper));
    let is_code = argument.contains("{closure") || argument.contains("lambda(");
    let is_number = argument.starts_with(|first: char| first.is_ascii_digit() || first == '(')
        && argument.ends_with(|last: char| last.is_ascii_digit());
    let is_noise = argument.is_empty() || argument.starts_with(['\'', '[', '_']) || is_number;
    (!is_placeholder && !is_helper && !is_code && !is_noise).then(|| plain(argument))
}

/// An element without the parts of the library around it.
fn plain(element: &str) -> String {
    for begin in ["std::_Sp_counted_ptr_inplace<", "std::_List_node<", "alloc::sync::ArcInner<"] {
        if let Some(rest) = element.strip_prefix(begin) {
            return split(rest.trim_end_matches('>'), ",")
                .first()
                .map_or("", |it| it.trim())
                .into();
        }
    }
    element.to_owned()
}

/// The parts of a text between separators that are not inside brackets.
fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut depth, mut begin) = (0usize, 0);
    for (at, character) in text.char_indices() {
        match character {
            '<' | '(' | '[' | '{' => depth += 1,
            // The arrow of a function's type is no bracket.
            '>' if text[..at].ends_with('-') => {}
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= begin && text[at..].starts_with(separator) => {
                parts.push(&text[begin..at]);
                begin = at + separator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_s_functions_name_the_type() {
        for (functions, expected) in [
            (
                &[
                    "alloc::raw_vec::RawVec<x::Widget>::grow_one",
                    "alloc::vec::Vec<x::Widget>::push",
                ][..],
                Some("Vec<x::Widget>"),
            ),
            (&["alloc::boxed::Box<T>::new::<x::Widget>"], Some("Box<x::Widget>")),
            (
                &["alloc::vec::Vec<T,A>::push::<x::Widget, alloc::alloc::Global>"],
                Some("Vec<x::Widget>"),
            ),
            (&["<alloc::vec::Vec<x::W> as core::clone::Clone>::clone"], Some("Vec<x::W>")),
            (&["alloc::raw_vec::RawVec<(u64, x::W)>::grow"], Some("(u64, x::W)")),
            (
                &[
                    "hashbrown::raw::RawTable<(u64, Widget)>::reserve_rehash",
                    "std::collections::hash::map::HashMap<u64, Widget>::insert",
                ],
                Some("HashMap<u64, Widget>"),
            ),
            (
                &["alloc::raw_vec::RawVec<u8>::reserve", "alloc::string::String::push"],
                Some("String"),
            ),
            (&["alloc::vec::Vec<u8>::with_capacity"], Some("Vec<u8>")),
            (
                &[
                    "std::__new_allocator<Widget>::allocate",
                    "std::vector<Widget, std::allocator<Widget> >::reserve",
                ],
                Some("vector<Widget>"),
            ),
            (
                &["std::__cxx11::basic_string<char, std::char_traits<char>, \
                std::allocator<char> >::_M_create"],
                Some("std::string"),
            ),
            (
                &["std::__new_allocator<std::_Sp_counted_ptr_inplace<W, std::allocator<void>, \
                (__gnu_cxx::_Lock_policy)2> >::allocate"],
                Some("W"),
            ),
            (&["make_widget", "alloc::boxed::Box<x::W>::new"], None),
            (&["std::thread::spawn_unchecked"], None),
            (&["alloc::vec::Vec<T>::new"], None),
            (&[], None),
        ] {
            let found = of_functions(functions.iter().copied());
            assert_eq!(found.as_deref(), expected, "{functions:?}");
        }
    }

    #[test]
    fn separators_inside_brackets_do_not_separate() {
        assert_eq!(split("a::b<c::d>::e", "::"), ["a", "b<c::d>", "e"]);
        assert_eq!(split("fn() -> u8, (b, c)", ","), ["fn() -> u8", " (b, c)"]);
        assert_eq!(split("", ","), [""]);
    }
}
