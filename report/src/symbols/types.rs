//! The types of a program with their sizes, from its debug information.

use std::collections::{BTreeSet, HashMap, HashSet};

use gimli::{
    AttributeValue, DW_AT_byte_size, DW_AT_language, DW_AT_name, DW_AT_type, DwTag, UnitOffset,
    UnitRef,
};

use super::dwarf::Debug;
use super::image::Slice;
use crate::block_type::async_named;
use crate::library_names::ASYNC;

/// Types of at most this size are so many that a size says nothing.
const NOISE: u64 = 64;
/// The outermost namespaces of types that are not the program's own.
const FOREIGN: [&str; 3] = ["std", "__gnu_cxx", "__cxxabiv1"];
/// Crates of Rust's standard library. A program in another language may have such namespaces.
const CRATES: [&str; 6] = ["core", "alloc", "hashbrown", "gimli", "addr2line", "object"];
/// As [`CRATES`], of the allocator.
const OWN_CRATES: [&str; 7] = [
    "lumalloc",
    "lumalloc_capi",
    "lumalloc_ctl",
    "lumalloc_exporter",
    "lumalloc_namespace",
    "lumalloc_profile",
    "lumalloc_region",
];
/// What names of the compiler's tables of methods end with: `<x::Cat as x::Pet>::{vtable_type}`.
const VTABLE: &str = "::{vtable_type}";

/// What a namespace without a name is called in names of functions.
const ANONYMOUS: &str = "(anonymous namespace)";

/// Returns structures and classes above 64 bytes, sorted by size and name, with the namespaces and
/// classes around them, as in names of functions. Those of the standard libraries and of the
/// allocator are left out. A typedef of C stands in place of the name of its structure, and one of
/// C++ names a structure that has no name.
pub(super) fn of(debug: &Debug) -> Vec<(u64, String)> {
    let mut found = BTreeSet::new();
    debug.for_each_unit(|unit| {
        let mut types = Types::default();
        types.read(unit);
        found.extend(types.named());
    });
    found.into_iter().collect()
}

/// The language of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    C,
    Rust,
    Other,
    /// `dwz` makes units that do not say it.
    Unknown,
}

impl Language {
    fn of(unit: UnitRef<'_, Slice>) -> Language {
        let mut entries = unit.entries();
        let value = entries.next_dfs().ok().flatten().and_then(|it| it.attr_value(DW_AT_language));
        match value {
            Some(AttributeValue::Language(
                gimli::DW_LANG_C
                | gimli::DW_LANG_C89
                | gimli::DW_LANG_C99
                | gimli::DW_LANG_C11
                | gimli::DW_LANG_C17
                | gimli::DW_LANG_ObjC,
            )) => Language::C,
            Some(AttributeValue::Language(gimli::DW_LANG_Rust)) => Language::Rust,
            Some(_) => Language::Other,
            None => Language::Unknown,
        }
    }

    /// Whether an outermost namespace belongs to a standard library or to the allocator.
    fn is_foreign(self, namespace: &str) -> bool {
        let has_crates = matches!(self, Language::Rust | Language::Unknown);
        let is_crate = || CRATES.contains(&namespace) || OWN_CRATES.contains(&namespace);
        FOREIGN.contains(&namespace) || (has_crates && is_crate())
    }

    /// Whether a typedef at a depth stands in place of the name that a structure has. In C++ it is
    /// one more name, as `Pool::Item` of a `Widget`.
    fn prefers_typedef(self, depth: isize) -> bool {
        match self {
            Language::C => true,
            Language::Rust | Language::Other => false,
            // A typedef inside a namespace or a class is not of C.
            Language::Unknown => depth == 1,
        }
    }
}

/// The types of one unit.
#[derive(Default)]
struct Types {
    structures: HashMap<UnitOffset, Structure>,
    /// Enumerations of Rust that hold values, and states of its `async` code. The structures inside
    /// are their variants, which have the size of the whole.
    enums: HashSet<UnitOffset>,
    typedefs: Vec<Typedef>,
}

/// A structure or class.
struct Structure {
    size: u64,
    name: Option<String>,
    /// The entry that it is inside.
    parent: Option<UnitOffset>,
}

/// A name for a structure.
struct Typedef {
    of: UnitOffset,
    name: String,
    /// Whether it stands in place of the name that the structure has.
    is_preferred: bool,
}

impl Types {
    fn read(&mut self, unit: UnitRef<'_, Slice>) {
        let language = Language::of(unit);
        let mut entries = unit.entries();
        // Whether the outermost namespace around the entry is left out.
        let mut is_foreign = false;
        let mut scope = Scope::default();
        // The entry that is read, and those that it is inside.
        let mut path = Vec::new();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth();
            is_foreign &= depth > 1;
            path.truncate(usize::try_from(depth).unwrap_or(0));
            let parent = path.last().copied();
            path.push(entry.offset());
            let name = entry.attr_value(DW_AT_name).and_then(|name| unit.attr_string(name).ok());
            let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
            let whole = name.as_deref().map(|name| scope.name_at(depth, name));
            scope.enter(entry.tag(), depth, name.as_deref());
            match entry.tag() {
                gimli::DW_TAG_namespace if depth == 1 => {
                    is_foreign = name.is_some_and(|name| language.is_foreign(&name));
                }
                _ if is_foreign => {}
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                    let size = entry.attr_value(DW_AT_byte_size);
                    if let Some(size) = size.and_then(|size| size.udata_value()) {
                        let structure = Structure { size, name: whole, parent };
                        self.structures.insert(entry.offset(), structure);
                    }
                }
                gimli::DW_TAG_variant_part => self.enums.extend(parent),
                gimli::DW_TAG_typedef => {
                    let of = entry.attr_value(DW_AT_type);
                    if let (Some(AttributeValue::UnitRef(of)), Some(name)) = (of, whole) {
                        let is_preferred = language.prefers_typedef(depth);
                        self.typedefs.push(Typedef { of, name, is_preferred });
                    }
                }
                _ => {}
            }
        }
    }

    fn named(self) -> Vec<(u64, String)> {
        let mut structures = self.structures;
        for Typedef { of, name, is_preferred } in self.typedefs {
            if let Some(structure) = structures.get_mut(&of)
                && (is_preferred || structure.name.is_none())
            {
                structure.name = Some(name);
            }
        }
        let is_variant =
            |it: &Structure| it.parent.is_some_and(|parent| self.enums.contains(&parent));
        let whole = structures.into_values().filter(|it| !is_variant(it) && it.size > NOISE);
        let named = whole.filter_map(|it| it.name.map(|name| (it.size, async_named(name))));
        named.filter(|(_, name)| is_own(name)).collect()
    }
}

/// The namespaces and classes around an entry, each with its depth.
#[derive(Default)]
struct Scope(Vec<(isize, String)>);

impl Scope {
    /// Returns the whole name of an entry.
    fn name_at(&mut self, depth: isize, name: &str) -> String {
        self.leave(depth);
        let around = self.0.iter().map(|(_, name)| name.as_str());
        around.chain([name]).collect::<Vec<_>>().join("::")
    }

    fn leave(&mut self, depth: isize) {
        self.0.retain(|(outside, _)| *outside < depth);
    }

    /// Notes that the entries below one are inside it.
    fn enter(&mut self, tag: DwTag, depth: isize, name: Option<&str>) {
        self.leave(depth);
        let name = match tag {
            gimli::DW_TAG_namespace => name.unwrap_or(ANONYMOUS),
            gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => name.unwrap_or_default(),
            _ => return,
        };
        if !name.is_empty() {
            self.0.push((depth, name.to_owned()));
        }
    }
}

/// Whether a tuple has a part that is the allocator's. Tuples are in no namespace.
fn is_tuple_of_allocator(name: &str) -> bool {
    let is_of = |part: &str| OWN_CRATES.contains(&part);
    let is_separator = |letter: char| !letter.is_alphanumeric() && letter != '_';
    name.starts_with('(') && name.split(is_separator).any(is_of)
}

/// Whether it is no type of the C library, of a compiler or of the allocator.
fn is_own(name: &str) -> bool {
    let is_left_out = name.ends_with(VTABLE) || is_tuple_of_allocator(name);
    let plain = name.split('<').next().unwrap_or(name);
    let name = plain.rsplit("::").next().unwrap_or(plain);
    let is_async = ASYNC.iter().any(|(_, plain)| name == *plain);
    (is_async || !name.starts_with(['_', '{'])) && name != "FILE" && !is_left_out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::module::{Module, Search};
    use super::*;
    use crate::profile::Mapping;
    use crate::rtti::testing::{Directory, tool};

    #[test]
    fn names_have_the_namespaces_and_classes_around_them() {
        let (mut scope, space, class) =
            (Scope::default(), gimli::DW_TAG_namespace, gimli::DW_TAG_class_type);
        scope.enter(space, 1, Some("http"));
        assert_eq!(scope.name_at(2, "Node"), "http::Node");
        scope.enter(class, 2, Some("Node"));
        assert_eq!(scope.name_at(3, "Part"), "http::Node::Part");
        scope.enter(space, 1, None);
        assert_eq!(scope.name_at(2, "Node"), "(anonymous namespace)::Node");
        assert_eq!(scope.name_at(1, "Other"), "Other");
        assert!(
            is_own("http::Node")
                && is_own("Pair<std::_Any>")
                && !is_own("http::__node")
                && !is_own("_IO_FILE")
                && !is_own("<x::Cat as x::Pet<u8>>::{vtable_type}")
                && !is_own("(&u8, lumalloc_profile::path::Path)")
                && is_own("(u64, x::Cat)")
                && is_own("x::Tree<lumalloc::Lumalloc>")
        );
    }

    fn typedef(of: usize, name: &str, is_preferred: bool) -> Typedef {
        Typedef { of: UnitOffset(of), name: name.to_owned(), is_preferred }
    }

    #[test]
    fn a_typedef_of_c_replaces_the_name_of_its_structure() {
        let mut types = Types::default();
        for (at, size, name) in [
            (1, 100, Some("tag")),
            (2, 100, None),
            (3, 64, Some("small")),
            (4, 216, Some("_IO_FILE")),
        ] {
            let structure = Structure { size, name: name.map(str::to_owned), parent: None };
            types.structures.insert(UnitOffset(at), structure);
        }
        types.typedefs.push(typedef(1, "widget", true));
        types.typedefs.push(typedef(9, "pointer", true));
        assert_eq!(types.named(), [(100, "widget".to_owned())]);
    }

    /// The types of a library or program that a compiler makes of a text.
    fn types_of(directory: &Directory, compiler: &str, flags: &[&str], text: &str) -> Vec<String> {
        let [source, built] = ["source", "built"].map(|name| directory.0.join(name));
        std::fs::write(&source, text).expect("written");
        let flags = flags.iter().chain(&["-g", "-o"]).map(Path::new);
        tool(compiler, &flags.chain([built.as_path(), &source]).collect::<Vec<_>>());
        types_in(&built)
    }

    fn types_in(file: &Path) -> Vec<String> {
        let (mapping, search) =
            (Mapping { limit: 1 << 20, ..Mapping::default() }, Search::default());
        let module = Module::find(&mapping, file, &search, &mut Vec::new());
        let types = module.debug().map(of).unwrap_or_default();
        types.into_iter().map(|(size, name)| format!("{size} {name}")).collect()
    }

    const CPP: [&str; 4] = ["-shared", "-fPIC", "-x", "c++"];

    #[test]
    fn a_typedef_of_cpp_names_only_what_has_no_name() {
        let text = "struct Widget { char a[200]; };
            struct Pool { using Item = Widget; typedef struct { char a[201]; } Inner;
                          Item *item; Inner *inner; };
            template<class D> struct Base { char a[202]; };
            struct Derived : Base<Derived> { typedef Base<Derived> Super; Super *super; };
            typedef struct { char a[300]; } First; typedef First Second;
            typedef Widget Global;
            Pool pool; Derived derived; Second second; Global global;";
        let expected = ["200 Widget", "201 Pool::Inner", "202 Base<Derived>", "216 Derived"];
        let expected = [&expected[..], &["300 First"]].concat();
        let directory = Directory::new("cpp-typedefs");
        assert_eq!(types_of(&directory, "g++", &CPP, text), expected);
    }

    /// The units that `dwz` makes do not say which language they are of.
    #[test]
    fn typedefs_are_known_in_shared_units_of_both_languages() {
        let directory = Directory::new("shared-typedefs");
        let text = "struct Widget { char a[200]; };
            struct Pool { typedef Widget Item; Item *item; } pool;";
        for (language, text, expected) in [
            ("c++", text, "200 Widget"),
            ("c", "typedef struct tag { char a[201]; } widget; widget one;", "201 widget"),
        ] {
            let flags = ["-shared", "-fPIC", "-x", language];
            types_of(&directory, "g++", &flags, text);
            let [built, other, shared] =
                ["built", "other", "shared"].map(|name| directory.0.join(name));
            std::fs::copy(&built, &other).expect("copied");
            let [m, name] = ["-m", "-M"].map(Path::new);
            tool("dwz", &[m, &shared, name, &shared, &built, &other]);
            assert_eq!(types_in(&built), [expected], "{language}");
        }
    }

    #[test]
    fn variants_of_rust_are_not_types() {
        let text = r#"
            use std::hint::black_box;
            enum Shape { Point(u8), Path { all: [u64; 20], count: u8 }, Nothing }
            enum One<T> { Only(T, [u64; 30]) }
            struct Widget { name: [u8; 100] }
            async fn leaf(all: [u8; 80]) -> u8 {
                black_box(&all);
                std::future::ready(()).await;
                all[1]
            }
            struct Server { port: u8 }
            impl Server {
                async fn fetch<T>(&self, all: [T; 70]) -> u8 {
                    black_box(&all);
                    leaf([self.port; 80]).await + size_of_val(&all) as u8
                }
            }
            fn main() {
                black_box(Box::new([Shape::Point(1), Shape::Path { all: [1; 20], count: 2 }]));
                black_box(Box::new((Shape::Nothing, One::Only(1u8, [2; 30]))));
                black_box(Box::new(Widget { name: [1; 100] }));
                black_box(Box::pin(Server { port: 1 }.fetch([1u16; 70])));
                let all = [7u64; 50];
                let sum: Box<dyn Fn() -> u64> = Box::new(move || all.iter().sum());
                black_box(sum());
                black_box(Box::pin(async move { leaf([1; 80]).await + all[3] as u8 }));
            }"#;
        let directory = Directory::new("rust-variants");
        let flags = ["--edition", "2024", "--crate-name", "x"];
        let types = types_of(&directory, "rustc", &flags, text);
        let own = types.iter().map(|it| it.split_once(' ').map_or("", |(_, name)| name));
        let mut own: Vec<&str> = own.filter(|name| name.starts_with("x::")).collect();
        own.sort_unstable();
        let expected = [
            "x::One<u8>",
            "x::Shape",
            "x::Widget",
            "x::leaf::{async fn}",
            "x::main::{async block}",
            "x::{impl#0}::fetch::{async fn}<u16>",
        ];
        assert_eq!(own, expected, "{types:?}");
    }

    #[test]
    fn only_outermost_namespaces_of_a_language_are_those_of_its_libraries() {
        let directory = Directory::new("foreign");
        let text = "namespace core { struct Cache { char a[200]; } cache; }
            namespace shop { namespace std { struct Shelf { char a[201]; } shelf; } }
            namespace std { struct Any { char a[202]; } any; }
            namespace __gnu_cxx { struct Any { char a[203]; } any; }";
        let expected = ["200 core::Cache", "201 shop::std::Shelf"];
        assert_eq!(types_of(&directory, "g++", &CPP, text), expected);
        let text = "mod core { pub struct Cache(pub [u8; 200]); }
            mod std { pub struct Shelf(pub [u8; 201]); }
            fn main() {
                ::std::hint::black_box(Box::new(core::Cache([1; 200])));
                ::std::hint::black_box(Box::new(std::Shelf([1; 201])));
            }";
        let flags = ["--edition", "2024", "--crate-name", "x"];
        let types = types_of(&directory, "rustc", &flags, text);
        let is_of = |begin: &str| types.iter().filter(|it| it.contains(begin)).count();
        assert!(types.contains(&"200 x::core::Cache".to_owned()), "{types:?}");
        assert!(types.contains(&"201 x::std::Shelf".to_owned()), "{types:?}");
        assert_eq!([" core::", " alloc::", " std::"].map(is_of), [0; 3], "{types:?}");
    }

    /// Of a program that the allocator is linked to.
    #[test]
    fn structures_of_the_allocator_and_tables_of_methods_are_no_types_of_the_program() {
        let text = "#![crate_name = \"NAME\"]
            pub mod sites { pub struct Site(pub [u8; 200]); }
            trait Pet {
                fn a(&self) {} fn b(&self) {} fn c(&self) {}
                fn d(&self) {} fn e(&self) {} fn f(&self) {}
            }
            impl Pet for sites::Site {}
            fn main() {
                let pet: Box<dyn Pet> = Box::new(sites::Site([1; 200]));
                ::std::hint::black_box(pet);
            }";
        let directory = Directory::new("of-the-allocator");
        let types = |name: &str| {
            let text = text.replace("NAME", name);
            let types = types_of(&directory, "rustc", &["--edition", "2024"], &text);
            let is_own = |it: &String| it.contains("Site") || it.contains("vtable");
            types.into_iter().filter(is_own).collect::<Vec<_>>()
        };
        assert_eq!(types("shop"), ["200 shop::sites::Site"]);
        assert_eq!(types("lumalloc_shop"), ["200 lumalloc_shop::sites::Site"]);
        assert_eq!(types("lumalloc_profile"), [""; 0]);
    }
}
