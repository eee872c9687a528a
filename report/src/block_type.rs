//! The type of blocks, from the type arguments of the functions that allocated them.
//!
//! The memory of `Vec<Widget>` is allocated by `RawVec<Widget>::grow_one`. So the functions of the
//! standard library at the inner end of a stack name the type. Code of the program ends the
//! search.

use std::borrow::Cow;

use crate::library_names::{
    AROUND, ASYNC, BARE, BOXES, CONTAINERS, HELPERS, LIBRARIES, MAKERS, MODULES, NODES,
    OF_ELEMENTS, PARTS, RUST_BARE, RUST_BEGIN, RUST_LIBRARIES, SET_VALUE, SHARED_POINTERS, STRINGS,
    TABLES, VALUE_TABLES, VALUES, VERSIONS,
};

/// A function by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function<'a> {
    /// The name, demangled.
    pub(crate) name: &'a str,
    /// Whether it may be written in Rust: nothing says that it is not.
    pub(crate) may_be_rust: bool,
}

/// A container and its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Type {
    container: String,
    elements: Vec<String>,
}

impl Type {
    /// A container with those of its arguments that are elements. `None` if none is.
    fn new<'a>(container: &str, arguments: impl Iterator<Item = &'a str>) -> Option<Type> {
        let elements: Vec<String> =
            arguments.filter_map(|argument| element_of(container, argument)).collect();
        (!elements.is_empty()).then(|| Type { container: container.to_owned(), elements })
    }

    fn is_part(&self) -> bool {
        self.container.starts_with('_') || PARTS.contains(&self.container.as_str())
    }

    fn is_bytes(&self) -> bool {
        self.elements.iter().all(|element| matches!(element.as_str(), "u8" | "char"))
    }

    fn text(&self) -> String {
        let of_set = match self.container.as_str() {
            "HashMap" => Some(("HashSet", "()")),
            "BTreeMap" => Some(("BTreeSet", SET_VALUE)),
            _ => None,
        };
        if let (Some((set, no_value)), [key, value]) = (of_set, self.elements.as_slice())
            && value == no_value
        {
            return format!("{set}<{key}>");
        }
        if let Some(text) = self.text_of_table() {
            return text;
        }
        let elements = self.elements.join(", ");
        match (self.container.as_str(), elements.as_str()) {
            ("basic_string", "char") => "std::string".to_owned(),
            _ if self.is_part() => elements,
            (container, _) => format!("{container}<{elements}>"),
        }
    }
}

impl Type {
    /// The map or set of C++ whose inside this is. Its first two arguments are the key, and what an
    /// entry holds.
    fn text_of_table(&self) -> Option<String> {
        if let Some((_, map, set)) = VALUE_TABLES.iter().find(|(name, ..)| *name == self.container)
        {
            let entry = self.elements.first()?;
            let pair = VALUES.iter().find_map(|begin| entry.strip_prefix(begin));
            let pair = pair.and_then(|pair| pair.strip_suffix('>'));
            return Some(pair.map_or(format!("{set}<{entry}>"), |pair| format!("{map}<{pair}>")));
        }
        let (_, map, set) = TABLES.iter().find(|(inside, ..)| *inside == self.container)?;
        let [key, entry, ..] = self.elements.as_slice() else { return None };
        if key == entry {
            return Some(format!("{set}<{key}>"));
        }
        let pair = entry.strip_prefix("std::pair<")?.strip_suffix('>')?;
        let value = split(pair, ",").get(1)?.trim();
        Some(format!("{map}<{key}, {value}>"))
    }
}

/// Returns the type of the blocks that a stack allocates; the functions are innermost first.
pub(crate) fn of_functions<'a>(functions: impl Iterator<Item = Function<'a>>) -> Option<String> {
    let mut found: Option<Type> = None;
    // What starts the program, or a thread, allocates no block for it.
    let is_inside =
        |function: &Function<'_>| is_library(*function) && !function.name.contains(RUST_BEGIN);
    for Function { name, .. } in functions.take_while(is_inside) {
        let name = &*without_versions(name);
        let is_bytes = found.as_ref().is_none_or(Type::is_bytes);
        if is_bytes && is_of_string(name) {
            return Some("String".to_owned());
        }
        // What has made an object may have called others that made parts of it.
        let maker = || found.is_none().then(|| type_of_maker(name)).flatten();
        let Some(next) = type_of(name).or_else(maker) else { continue };
        // A container farther out contains the one that the block is of.
        let is_better = found.as_ref().is_none_or(|found| {
            found.is_part() && (!next.is_part() || (is_bytes && !next.is_bytes()))
        });
        if is_better {
            found = Some(next);
        }
    }
    found.map(|found| found.text())
}

/// Whether a function makes the text of a string of Rust.
fn is_of_string(name: &str) -> bool {
    let path = name.trim_start_matches('<');
    STRINGS.iter().any(|begin| path.starts_with(begin))
}

/// Returns the type of the blocks that a stack deletes; the functions are innermost first.
///
/// Rust's `drop_in_place<Box<Widget>>` names the type where the methods that it calls do not. What
/// is farther out is the type of what contains the block.
pub(crate) fn of_deletion<'a>(functions: impl Iterator<Item = Function<'a>>) -> Option<String> {
    let mut inner = Vec::new();
    let mut found: Option<Type> = None;
    let is_inside = |function: &Function<'_>| {
        let name = without_versions(function.name);
        let is_shared = SHARED_POINTERS.iter().any(|begin| name.starts_with(begin));
        is_library(*function) && !is_shared && !is_of_element(&name)
    };
    for function in functions.take_while(is_inside) {
        let Some(dropped) = dropped(function.name) else {
            inner.push(function);
            continue;
        };
        if dropped == "alloc::string::String" && found.as_ref().is_none_or(Type::is_bytes) {
            return Some("String".to_owned());
        }
        if found.as_ref().is_some_and(|found| !found.is_part()) {
            break;
        }
        match type_of(&format!("{dropped}::drop")) {
            // What a part belongs to stands farther out.
            Some(next) if next.is_part() || next.is_bytes() => found = Some(next),
            Some(next) => return Some(next.text()),
            None => break,
        }
    }
    found.map(|found| found.text()).or_else(|| of_functions(inner.into_iter()))
}

/// Whether a function of C++ destroys an element. The function of the element's own class may be
/// missing in the stack, if the last that it does is to free a block.
fn is_of_element(name: &str) -> bool {
    let parts = split(name, "::");
    parts.last().is_some_and(|last| OF_ELEMENTS.iter().any(|begin| last.starts_with(begin)))
}

/// The type that a function drops: `core::ptr::drop_in_place<alloc::boxed::Box<Widget>>`, with `::`
/// before the arguments in the newer form of names.
fn dropped(name: &str) -> Option<&str> {
    let rest = ["core::ptr::drop_in_place", "core::ptr::drop_glue"]
        .iter()
        .find_map(|begin| name.strip_prefix(begin))?;
    let rest = rest.strip_prefix("::").unwrap_or(rest);
    // Names that were put together have the arguments twice: `drop_in_place<A>::<A>`.
    let first = split(rest, "::").first().copied()?;
    first.strip_prefix('<').and_then(|first| first.strip_suffix('>'))
}

/// Whether a function belongs to a standard library, or to one of the containers of others.
pub(crate) fn is_library(function: Function<'_>) -> bool {
    let mut name = function.name.trim_start_matches(['<', '&']).trim_start_matches("mut ");
    // A method of a library's trait, for a type that belongs to no crate: `<T as alloc::…>::f`.
    if let Some((own, library)) = name.split_once(" as ")
        && !own.contains("::")
    {
        name = library;
    }
    let is_any = |begins: &[&str]| begins.iter().any(|begin| name.starts_with(begin));
    let is_rust = || is_any(&RUST_LIBRARIES) || is_any(&RUST_BARE);
    is_any(&LIBRARIES) || is_any(&BARE) || (function.may_be_rust && is_rust())
}

/// The container of a method and its elements.
///
/// Rust's older names have the arguments at their end: `Vec<T,A>::push::<Widget, Global>`. The
/// first of them are those of the container, others may be those of the method.
fn type_of(name: &str) -> Option<Type> {
    let parts = split(name, "::");
    let first = parts.first()?;
    // `<alloc::vec::Vec<Widget> as core::clone::Clone>::clone`
    let own = first.strip_prefix('<').and_then(|own| own.strip_suffix('>'));
    let own = own.map(|own| split(own, " as ").first().copied().unwrap_or(own));
    // The function itself is no container, even if it has the name of one: `Option<T>::map<U>`.
    let path = own.map_or_else(|| parts[..parts.len() - 1].to_vec(), |own| split(own, "::"));
    let known = path.iter().filter_map(|part| generic(part)).find(|(head, _)| {
        head.starts_with('_') || PARTS.contains(head) || CONTAINERS.contains(head)
    });
    let Some((container, arguments)) = known else { return type_of_module(&parts) };
    let mut arguments = split(arguments, ",");
    if arguments.iter().all(|argument| is_placeholder(container, argument)) {
        let last = parts.last().and_then(|part| generic(part)).filter(|(head, _)| head.is_empty());
        let own = split(last?.1, ",");
        arguments = own.into_iter().take(arguments.len()).collect();
    }
    if container == "Box"
        && let Some(node) = arguments.first().and_then(|first| type_of_node(first))
    {
        return Some(node);
    }
    Type::new(container, arguments.into_iter())
}

/// The container that puts such a node into a box.
fn type_of_node(node: &str) -> Option<Type> {
    let (begin, container, count) =
        NODES.iter().find(|(begin, ..)| node.trim().starts_with(begin))?;
    let arguments = node.trim().strip_prefix(begin)?.strip_suffix('>')?;
    let elements = split(arguments, ",").into_iter().take(*count);
    Type::new(container, elements)
}

/// What a function of C++ returns: `std::make_unique<Widget>`.
fn type_of_maker(name: &str) -> Option<Type> {
    let (head, arguments) = generic(name.strip_prefix("std::")?)?;
    let (_, container) = MAKERS.iter().find(|(maker, _)| *maker == head)?;
    Type::new(container, split(arguments, ",").into_iter().take(1))
}

/// The name without the namespaces of versions of C++ libraries: `std::vector` for
/// `std::__1::vector`.
fn without_versions(name: &str) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    for version in VERSIONS {
        if name.contains(version) {
            name = name.replace(version, "std::").into();
        }
    }
    name
}

/// The container of a function that is known with its module only: `alloc::vec::push<Widget>`.
fn type_of_module(parts: &[&str]) -> Option<Type> {
    let (function, modules) = parts.split_last()?;
    let (_, arguments) = generic(function)?;
    let find = |(names, ..): &&(&[&str], &str, usize)| {
        // Modules of a container may have modules of their own.
        modules.windows(names.len()).any(|window| window == *names)
    };
    let (_, container, count) = MODULES.iter().find(find)?;
    let elements = split(arguments, ",").into_iter().take(*count);
    if *container == "Box"
        && let Some(node) = elements.clone().next().and_then(type_of_node)
    {
        return Some(node);
    }
    Type::new(container, elements)
}

/// The two parts of `Vec<Widget>`.
fn generic(part: &str) -> Option<(&str, &str)> {
    let (head, rest) = part.split_once('<')?;
    Some((head, &rest[..rest.rfind('>')?]))
}

/// Whether an argument is the parameter of a container and not a type. Only names of Rust have
/// parameters, where a type has its crate before it. The containers of C++ begin with small letters
/// or `_`, and `vector<A>` has a class `A`.
fn is_placeholder(container: &str, argument: &str) -> bool {
    let argument = argument.trim();
    let is_letter = argument.len() == 1 && argument.starts_with(char::is_uppercase);
    is_letter && container.starts_with(char::is_uppercase)
}

/// An argument of a container that says something. What is in a box may be a closure.
fn element_of(container: &str, argument: &str) -> Option<String> {
    let of_box = || BOXES.contains(&container).then(|| closure(argument)).flatten();
    let is_known = !is_placeholder(container, argument);
    is_known.then(|| element(argument)).flatten().or_else(of_box)
}

/// A closure, with the name that all builds have: `main::{closure#0}`.
fn closure(argument: &str) -> Option<String> {
    let argument = argument.trim();
    let last = split(argument, "::").last()?.trim_start_matches('{');
    let is_closure = last.starts_with("closure") && last.ends_with('}');
    is_closure.then(|| argument.replace("{closure_env#", "{closure#"))
}

/// An argument that says something, and is no code.
fn element(argument: &str) -> Option<String> {
    let argument = argument.trim();
    let helper = argument.trim_start_matches('&');
    let is_helper = HELPERS.iter().any(|begin| helper.starts_with(begin));
    let is_code = argument.contains("{closure") || argument.contains("lambda(");
    let is_number = argument.starts_with(|first: char| first.is_ascii_digit() || first == '(')
        && argument.ends_with(|last: char| last.is_ascii_digit());
    let is_slice = argument.starts_with('[') && !argument.contains("; ");
    let is_condition = matches!(argument, "true" | "false");
    let is_noise = argument.is_empty()
        || argument.starts_with(['\'', '_'])
        || is_slice
        || is_number
        || is_condition;
    (!is_helper && !is_code && !is_noise).then(|| async_named(plain(argument)))
}

/// A type with the names that tables have for states of `async` code: `fetch::{async fn}` for
/// `fetch::{async_fn_env#0}`.
pub(crate) fn async_named(mut name: String) -> String {
    for (begin, plain) in ASYNC {
        while let Some(at) = name.find(begin)
            && let Some(length) = name[at..].find('}')
        {
            name.replace_range(at..=at + length, plain);
        }
    }
    name
}

/// An element without the parts of the library around it.
pub(crate) fn plain(element: &str) -> String {
    let bare = without_versions(element);
    for begin in AROUND {
        if let Some(rest) = bare.strip_prefix(begin) {
            let rest = rest.strip_suffix('>').unwrap_or(rest);
            return split(rest, ",").first().map_or("", |it| it.trim()).to_owned();
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

    /// The type that some functions name; `<` separates them, innermost first.
    fn of(functions: &str) -> Option<String> {
        of_functions(functions.split(" < ").map(unknown))
    }

    /// A function of a language that is not known.
    fn unknown(name: &str) -> Function<'_> {
        Function { name, may_be_rust: true }
    }

    #[test]
    fn functions_of_rust_name_the_type() {
        for (functions, expected) in [
            (
                "alloc::raw_vec::RawVec<x::Widget>::grow_one < alloc::vec::Vec<x::Widget>::push",
                "Vec<x::Widget>",
            ),
            ("alloc::boxed::Box<T>::new::<x::Widget>", "Box<x::Widget>"),
            ("alloc::boxed::Box<T>::new::<x::f::{closure_env#0}>", "Box<x::f::{closure#0}>"),
            (
                "<alloc::boxed::Box<x::f::{closure#0}::{closure#1}>>::new",
                "Box<x::f::{closure#0}::{closure#1}>",
            ),
            (
                "alloc::boxed::Box<T>::new::<alloc::sync::ArcInner<x::f::{closure_env#2}>>",
                "Arc<x::f::{closure#2}>",
            ),
            ("alloc::boxed::new<x::f::{closure_env#0}>", "Box<x::f::{closure#0}>"),
            ("alloc::vec::Vec<x::W>::extend::<x::f::{closure#0}>", "Vec<x::W>"),
            ("alloc::vec::Vec<T,A>::push::<x::W, alloc::alloc::Global>", "Vec<x::W>"),
            ("<alloc::vec::Vec<x::W> as core::clone::Clone>::clone", "Vec<x::W>"),
            ("alloc::raw_vec::RawVec<(u64, x::W)>::grow", "(u64, x::W)"),
            ("alloc::raw_vec::RawVec<x::W>::grow < hashbrown::raw::RawTable<x::Y>::new", "x::W"),
            (
                "hashbrown::raw::RawTable<(u64, Widget)>::reserve_rehash < \
                 std::collections::hash::map::HashMap<u64, Widget>::insert",
                "HashMap<u64, Widget>",
            ),
            ("alloc::raw_vec::RawVec<u8>::reserve < alloc::string::String::push", "String"),
            ("alloc::vec::Vec<u8>::with_capacity", "Vec<u8>"),
            ("<alloc::vec::Vec<u8>>::new < core::option::Option<T>::map::<String>", "Vec<u8>"),
            ("alloc::boxed::Box<T>::new::<alloc::sync::ArcInner<x::P<()>>>", "Arc<x::P<()>>"),
            ("<alloc::boxed::Box<alloc::rc::RcInner<x::W>>>::new", "Rc<x::W>"),
            (
                "<alloc::boxed::Box<alloc::collections::linked_list::Node<x::W>, \
              &alloc::alloc::Global>>::new_in",
                "LinkedList<x::W>",
            ),
            (
                "<alloc::boxed::Box<alloc::collections::btree::node::LeafNode<u8, x::W>>>::new_in",
                "BTreeMap<u8, x::W>",
            ),
            (
                "<alloc::boxed::Box<alloc::collections::btree::node::InternalNode<x::W, \
              alloc::collections::btree::set_val::SetValZST>>>::new_in",
                "BTreeSet<x::W>",
            ),
            ("hashbrown::map::HashMap<x::W, ()>::insert", "HashSet<x::W>"),
            ("<alloc::boxed::Box<x::Widget>>::new_uninit_in", "Box<x::Widget>"),
            (
                "hashbrown::map::HashMap<K,V,S,A>::find::<u64, Widget, \
                 std::hash::random::RandomState, alloc::alloc::Global, u64>",
                "HashMap<u64, Widget>",
            ),
            (
                "<alloc::vec::Vec<T> as alloc::vec::SpecFromIter<T,I>>::from_iter\
                 ::<x::Widget, core::iter::adapters::map::Map<u8>>",
                "Vec<x::Widget>",
            ),
        ] {
            assert_eq!(of(functions).as_deref(), Some(expected), "{functions}");
        }
    }

    /// Containers of bytes inside other containers, as a copy of the outer one makes them.
    #[test]
    fn buffers_of_bytes_are_not_of_the_container_around_theirs() {
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, \
                      std::allocator<char> >";
        let of_cpp = |outer: &str| {
            format!(
                "std::__new_allocator<char>::allocate < {string}::_M_create < \
                 {string}::basic_string < std::{outer}<{string}, {string} >::f"
            )
        };
        let of_rust = |inner: &str, outer: &str| {
            format!("alloc::raw_vec::RawVec<u8>::with_capacity_in < {inner} < {outer}")
        };
        let (string, vec) = ("<alloc::string::String as core::clone::Clone>::clone", "Vec<u8>");
        let bytes = "<alloc::vec::Vec<u8> as core::clone::Clone>::clone";
        for (functions, expected) in [
            (of_cpp("map"), "std::string"),
            (of_cpp("vector"), "std::string"),
            (of_cpp("_Rb_tree"), "std::string"),
            (of_rust(bytes, "hashbrown::map::HashMap<u64, alloc::vec::Vec<u8>>::insert"), vec),
            (of_rust(bytes, "alloc::vec::Vec<alloc::vec::Vec<u8>>::extend_from_slice"), vec),
            (of_rust(string, "alloc::vec::Vec<alloc::string::String>::clone"), "String"),
            (of_rust("hashbrown::raw::RawTable<(u64, x::W)>::new", "x::f"), "(u64, x::W)"),
        ] {
            assert_eq!(of(&functions).as_deref(), Some(expected), "{functions}");
            let functions = functions.split(" < ").map(unknown);
            assert_eq!(of_deletion(functions).as_deref(), Some(expected));
        }
    }

    #[test]
    fn states_of_async_code_have_the_names_of_the_tables() {
        for (functions, expected) in [
            ("alloc::boxed::Box<T>::new::<x::f::{async_fn_env#0}>", "Box<x::f::{async fn}>"),
            (
                "alloc::raw_vec::RawVec<(x::f::{async_fn_env#0}<u8>, x::g::{async_fn_env#1})>::a",
                "(x::f::{async fn}<u8>, x::g::{async fn})",
            ),
            (
                "alloc::boxed::Box<T>::new::<alloc::sync::ArcInner<x::main::{async_block_env#2}>>",
                "Arc<x::main::{async block}>",
            ),
        ] {
            assert_eq!(of(functions).as_deref(), Some(expected), "{functions}");
        }
    }

    #[test]
    fn modules_name_the_container() {
        for (functions, expected) in [
            ("alloc::boxed::new<x::Widget>", Some("Box<x::Widget>")),
            ("alloc::rc::new<[u64; 4]>", Some("Rc<[u64; 4]>")),
            ("alloc::boxed::new<[u64]>", None),
            // Debug information without types, as of `debug = "line-tables-only"`.
            (
                "alloc::boxed::new<alloc::sync::ArcInner<[u8; 112]>> < alloc::sync::new<[u8; 112]>",
                Some("Arc<[u8; 112]>"),
            ),
            ("alloc::boxed::new<alloc::rc::RcInner<x::W>>", Some("Rc<x::W>")),
            ("alloc::raw_vec::grow_one<x::W> < alloc::vec::push<x::W>", Some("Vec<x::W>")),
            ("alloc::vec::from_iter<x::W, core::slice::iter::Iter<x::Y>>", Some("Vec<x::W>")),
            ("alloc::vec::spec_from_iter::from_iter<x::W, x::I>", Some("Vec<x::W>")),
            (
                "hashbrown::raw::reserve_rehash<(u64, x::W), x::F> < \
                 hashbrown::map::insert<u64, x::W, std::hash::random::RandomState>",
                Some("HashMap<u64, x::W>"),
            ),
            (
                "alloc::collections::btree::node::new<u64, u16> < \
                 alloc::collections::btree::map::insert<u64, u16>",
                Some("BTreeMap<u64, u16>"),
            ),
            ("alloc::raw_vec::with_capacity<u8> < alloc::string::from", Some("String")),
            ("core::option::map<x::W>", None),
            ("alloc::vec::push", None),
        ] {
            assert_eq!(of(functions).as_deref(), expected, "{functions}");
        }
    }

    #[test]
    fn functions_of_cpp_name_the_type() {
        for (functions, expected) in [
            // A class may have a name of one letter, as a parameter has in names of Rust.
            (
                "std::__new_allocator<A>::allocate < std::vector<A, std::allocator<A> >::reserve",
                "vector<A>",
            ),
            ("std::unique_ptr<A, std::default_delete<A> >::reset", "unique_ptr<A>"),
            ("std::_Rb_tree<A, A, std::_Identity<A>, std::less<A> >::_M_copy<false>", "set<A>"),
            (
                "std::__new_allocator<Widget>::allocate < \
                 std::vector<Widget, std::allocator<Widget> >::reserve",
                "vector<Widget>",
            ),
            (
                "std::__cxx11::basic_string<char, std::char_traits<char>, \
                 std::allocator<char> >::_M_create",
                "std::string",
            ),
            (
                "std::__new_allocator<std::_Sp_counted_ptr_inplace<W, std::allocator<void>, \
                 (__gnu_cxx::_Lock_policy)2> >::allocate",
                "W",
            ),
            // What is left of an unordered_map and of a set where all else was inlined.
            (
                "std::_Hashtable<int, std::pair<int const, Crow*>, std::allocator<std::pair<int \
                 const, Crow*> >, std::__detail::_Select1st, std::equal_to<int>, std::hash<int>, \
                 std::__detail::_Mod_range_hashing, std::__detail::_Default_ranged_hash, \
                 std::__detail::_Prime_rehash_policy, std::__detail::_Hashtable_traits<false, \
                 false, true> >::_M_insert_unique_node",
                "unordered_map<int, Crow*>",
            ),
            (
                "std::_Rb_tree<int, int, std::_Identity<int>, std::less<int>, \
                 std::allocator<int> >::_M_insert_unique<int>",
                "set<int>",
            ),
        ] {
            assert_eq!(of(functions).as_deref(), Some(expected), "{functions}");
        }
    }

    #[test]
    fn functions_that_make_an_object_name_the_type() {
        for (functions, expected) in [
            ("std::make_unique<Widget, int, char const (&) [2]>", Some("unique_ptr<Widget>")),
            ("std::make_unique<int []>", Some("unique_ptr<int []>")),
            ("std::make_unique_for_overwrite<Widget>", Some("unique_ptr<Widget>")),
            ("std::__1::make_unique<Widget, int>", Some("unique_ptr<Widget>")),
            // The text of a string inside the object.
            (
                "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> \
                 >::_M_create < std::make_unique<std::__cxx11::basic_string<char, \
                 std::char_traits<char>, std::allocator<char> >, char const (&) [34]>",
                Some("std::string"),
            ),
            ("shop::make_unique<Widget>", None),
            ("std::make_pair<Widget, int>", None),
        ] {
            assert_eq!(of(functions).as_deref(), expected, "{functions}");
        }
    }

    /// The names are those that clang 14 makes with and without `-O2`.
    #[test]
    fn functions_of_libcpp_name_the_type() {
        for (functions, expected) in [
            (
                "std::__1::__split_buffer<Widget, std::__1::allocator<Widget>&>::__split_buffer < \
                 std::__1::vector<Widget, std::__1::allocator<Widget> >::reserve",
                "vector<Widget>",
            ),
            (
                "std::__ndk1::vector<Widget, std::__ndk1::allocator<Widget> >::reserve",
                "vector<Widget>",
            ),
            (
                "std::__1::basic_string<char, std::__1::char_traits<char>, \
                 std::__1::allocator<char> >::__grow_by_and_replace",
                "std::string",
            ),
            (
                "std::__1::__tree<std::__1::__value_type<int, Widget>, \
                 std::__1::__map_value_compare<int, std::__1::__value_type<int, Widget>, \
                 std::__1::less<int>, true>, std::__1::allocator<std::__1::__value_type<int, \
                 Widget> > >::__construct_node<int const&>",
                "map<int, Widget>",
            ),
            (
                "std::__1::map<int, Widget, std::__1::less<int>, \
                 std::__1::allocator<std::__1::pair<int const, Widget> > >::operator[]",
                "map<int, Widget>",
            ),
            (
                "std::__1::__tree<int, Less, std::__1::allocator<int> >::__construct_node<int>",
                "set<int>",
            ),
            (
                "std::__1::__hash_table<std::__1::__hash_value_type<int, Widget>, \
                 std::__1::__unordered_map_hasher<int, std::__1::__hash_value_type<int, Widget>, \
                 std::__1::hash<int>, std::__1::equal_to<int>, true>, \
                 std::__1::__unordered_map_equal<int, std::__1::__hash_value_type<int, Widget>, \
                 std::__1::equal_to<int>, std::__1::hash<int>, true>, \
                 std::__1::allocator<std::__1::__hash_value_type<int, Widget> > >::__rehash",
                "unordered_map<int, Widget>",
            ),
            (
                "std::__1::__hash_table<int, std::__1::hash<int>, std::__1::equal_to<int>, \
                 std::__1::allocator<int> >::__emplace_unique_key_args<int, int const&>",
                "unordered_set<int>",
            ),
            (
                "std::__1::allocator<std::__1::__shared_ptr_emplace<Widget, \
                 std::__1::allocator<Widget> > >::allocate",
                "Widget",
            ),
            ("std::__1::list<Widget, std::__1::allocator<Widget> >::push_back", "list<Widget>"),
        ] {
            assert_eq!(of(functions).as_deref(), Some(expected), "{functions}");
        }
    }

    #[test]
    fn functions_of_libcpp_that_drop_name_the_type() {
        for (functions, expected) in [
            (
                "std::__1::__shared_weak_count::__release_weak < \
                 std::__1::shared_ptr<W>::~shared_ptr",
                None,
            ),
            (
                "std::__1::vector<int>::~vector < std::__1::__shared_ptr_emplace<W, \
                 std::__1::allocator<W> >::__on_zero_shared",
                Some("vector<int>"),
            ),
            ("std::__1::__shared_ptr_emplace<W, std::__1::allocator<W> >::__on_zero_shared", None),
        ] {
            let found = of_deletion(functions.split(" < ").map(unknown));
            assert_eq!(found.as_deref(), expected, "{functions}");
        }
    }

    /// The stack of the allocation tells the type where that of the deletion does not.
    #[test]
    fn what_an_element_frees_is_not_of_its_container() {
        let pair = "std::pair<int const, std::__cxx11::basic_string<char> >";
        let (tree, vector) = ("std::_Rb_tree<int, int, std::_Identity<int> >", "std::vector<int>");
        for (functions, expected) in [
            (format!("{pair}::~pair < {tree}::_M_destroy_node < {tree}::_M_erase"), None),
            (format!("std::__new_allocator<{pair} >::destroy<{pair} > < {tree}::_M_erase"), None),
            ("std::_Destroy<W*> < std::vector<W>::~vector".to_owned(), None),
            ("std::__1::destroy_at<W> < std::__1::vector<W>::clear".to_owned(), None),
            (format!("{vector}::~vector < {pair}::~pair < {tree}::_M_erase"), Some("vector<int>")),
            (format!("{tree}::_M_put_node < {tree}::_M_erase"), Some("set<int>")),
        ] {
            let found = of_deletion(functions.split(" < ").map(unknown));
            assert_eq!(found.as_deref(), expected, "{functions}");
        }
    }

    #[test]
    fn classes_keep_the_name_that_they_have() {
        let emplaced = "std::__1::__shared_ptr_emplace<W, std::__1::allocator<W> >";
        assert_eq!([plain(emplaced), plain("std::__1::Any")], ["W", "std::__1::Any"]);
    }

    #[test]
    fn functions_that_drop_name_the_type() {
        let of = |functions: &str| of_deletion(functions.split(" < ").map(unknown));
        for (functions, expected) in [
            (
                "<alloc::boxed::Box<T,A> as core::ops::drop::Drop>::drop < \
                 core::ptr::drop_in_place<alloc::boxed::Box<x::Widget>> < x::main",
                Some("Box<x::Widget>"),
            ),
            ("core::ptr::drop_in_place::<alloc::vec::Vec<x::W>> < x::f", Some("Vec<x::W>")),
            (
                "core::ptr::drop_in_place<alloc::vec::Vec<x::W>>::<alloc::vec::Vec<x::W>> < x::f",
                Some("Vec<x::W>"),
            ),
            (
                "core::ptr::drop_in_place<alloc::raw_vec::RawVec<x::W>> < \
                 core::ptr::drop_in_place<alloc::vec::Vec<x::W>> < \
                 core::ptr::drop_in_place<alloc::vec::Vec<x::Y>>",
                Some("Vec<x::W>"),
            ),
            (
                "core::ptr::drop_in_place<alloc::raw_vec::RawVec<u8>> < \
                 core::ptr::drop_in_place<alloc::vec::Vec<u8>> < \
                 core::ptr::drop_in_place<alloc::string::String> < \
                 core::ptr::drop_in_place<[alloc::string::String]> < \
                 core::ptr::drop_in_place<alloc::vec::Vec<alloc::string::String>>",
                Some("String"),
            ),
            (
                "core::ptr::drop_in_place<alloc::vec::Vec<u8>> < \
                 core::ptr::drop_in_place<alloc::vec::Vec<alloc::vec::Vec<u8>>>",
                Some("Vec<u8>"),
            ),
            (
                "<alloc::vec::Vec<x::W> as core::ops::drop::Drop>::drop < \
                 core::ptr::drop_in_place<x::Owner> < core::ptr::drop_in_place<Box<x::Owner>>",
                Some("Vec<x::W>"),
            ),
            (
                "core::ptr::drop_in_place<alloc::boxed::Box<dyn x::Shape>>",
                Some("Box<dyn x::Shape>"),
            ),
            (
                "alloc::raw_vec::RawVec<x::W>::grow_one < alloc::vec::Vec<x::W>::push",
                Some("Vec<x::W>"),
            ),
            ("core::ptr::drop_in_place<x::Widget> < x::main", None),
            (
                "std::_Sp_counted_base<(__gnu_cxx::_Lock_policy)2>::_M_release < \
                 std::__shared_ptr<W, (__gnu_cxx::_Lock_policy)2>::~__shared_ptr",
                None,
            ),
            (
                "std::__new_allocator<int>::deallocate < std::vector<int>::~vector < \
                 std::_Sp_counted_ptr_inplace<W, std::allocator<void> >::_M_dispose",
                Some("vector<int>"),
            ),
            ("x::f < core::ptr::drop_in_place<alloc::vec::Vec<x::W>>", None),
        ] {
            assert_eq!(of(functions).as_deref(), expected, "{functions}");
        }
    }

    #[test]
    fn other_functions_name_none() {
        for functions in [
            "make_widget < alloc::boxed::Box<x::W>::new",
            "std::thread::spawn_unchecked",
            "alloc::vec::Vec<T>::new",
            "core::option::Option<x::Widget>::map",
            "",
        ] {
            assert_eq!(of(functions), None, "{functions}");
        }
    }

    #[test]
    fn functions_of_libraries_are_known() {
        for (name, expected) in [
            ("alloc::vec::Vec<T>::push", true),
            ("<&x::W as core::fmt::Debug>::fmt", false),
            ("<i32 as core::fmt::Display>::fmt", true),
            ("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec::<u8>", true),
            ("<&mut alloc::string::String as core::fmt::Write>::write_str", true),
            ("<T as x::Shape>::f", false),
            ("x::f", false),
            ("<alloc::vec::Vec<x::W> as x::Shape>::f", true),
            ("_ZSt11make_sharedI4CrowJEESt10shared_ptrINSt9enable_ifIXntsr", true),
            ("_ZN4Crow3flyEv", false),
            ("map_fold<u8, x::W>", true),
            ("map_fold", false),
        ] {
            assert_eq!(is_library(unknown(name)), expected, "{name}");
        }
    }

    #[test]
    fn namespaces_of_other_languages_are_not_crates_of_rust() {
        for (name, expected) in [
            ("core::Cache::fill", false),
            ("alloc::Pool<Widget>::take", false),
            ("hashbrown::Table::grow", false),
            ("call_once<int>", false),
            ("std::vector<Widget>::reserve", true),
            ("_M_create", true),
        ] {
            let function = Function { name, may_be_rust: false };
            assert_eq!(is_library(function), expected, "{name}");
            assert!(is_library(unknown(name)), "{name}");
        }
        let names = ["core::Cache::fill", "std::vector<Job, std::allocator<Job> >::emplace_back"];
        let of =
            |may_be_rust| of_functions(names.iter().map(|name| Function { name, may_be_rust }));
        assert_eq!([of(false), of(true)], [None, Some("vector<Job>".to_owned())]);
    }

    #[test]
    fn separators_inside_brackets_do_not_separate() {
        assert_eq!(split("a::b<c::d>::e", "::"), ["a", "b<c::d>", "e"]);
        assert_eq!(split("fn() -> u8, (b, c)", ","), ["fn() -> u8", " (b, c)"]);
        assert_eq!(split("", ","), [""]);
    }
}
