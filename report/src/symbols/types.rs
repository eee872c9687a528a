//! The types of a program with their sizes, from its debug information.

use std::collections::{BTreeSet, HashMap};

use gimli::{AttributeValue, DW_AT_byte_size, DW_AT_name, DW_AT_type, DwTag, UnitOffset, UnitRef};

use super::dwarf::Debug;
use super::image::Slice;

/// Types of at most this size are so many that a size says nothing.
const NOISE: u64 = 64;
/// The outermost namespaces of types that are not the program's own.
const FOREIGN: [&str; 9] = [
    "std",
    "core",
    "alloc",
    "hashbrown",
    "__gnu_cxx",
    "__cxxabiv1",
    "gimli",
    "addr2line",
    "object",
];

/// What a namespace without a name is called in names of functions.
const ANONYMOUS: &str = "(anonymous namespace)";

/// Returns structures and classes above 64 bytes, sorted by size and name, with the namespaces and
/// classes around them, as in names of functions. Those of the standard libraries are left out. A
/// typedef stands in place of the name of its structure.
pub(super) fn of(debug: &Debug) -> Vec<(u64, String)> {
    let mut found = BTreeSet::new();
    debug.for_each_unit(|unit| {
        let mut types = Types::default();
        types.read(unit);
        found.extend(types.named());
    });
    found.into_iter().collect()
}

/// The types of one unit.
#[derive(Default)]
struct Types {
    structures: HashMap<UnitOffset, (u64, Option<String>)>,
    typedefs: Vec<(UnitOffset, String)>,
}

impl Types {
    fn read(&mut self, unit: UnitRef<'_, Slice>) {
        let mut entries = unit.entries();
        // The depth of the namespace that is left out, while inside it.
        let mut foreign: Option<isize> = None;
        let mut scope = Scope::default();
        while let Ok(Some(entry)) = entries.next_dfs() {
            let depth = entry.depth();
            foreign = foreign.filter(|outside| depth > *outside);
            let name = entry.attr_value(DW_AT_name).and_then(|name| unit.attr_string(name).ok());
            let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
            let whole = name.as_deref().map(|name| scope.name_at(depth, name));
            scope.enter(entry.tag(), depth, name.as_deref());
            match entry.tag() {
                gimli::DW_TAG_namespace
                    if name.as_deref().is_some_and(|name| FOREIGN.contains(&name)) =>
                {
                    foreign = foreign.or(Some(depth));
                }
                _ if foreign.is_some() => {}
                gimli::DW_TAG_structure_type | gimli::DW_TAG_class_type => {
                    let size = entry.attr_value(DW_AT_byte_size);
                    if let Some(size) = size.and_then(|size| size.udata_value()) {
                        self.structures.insert(entry.offset(), (size, whole));
                    }
                }
                gimli::DW_TAG_typedef => {
                    let of = entry.attr_value(DW_AT_type);
                    if let (Some(AttributeValue::UnitRef(of)), Some(name)) = (of, whole) {
                        self.typedefs.push((of, name));
                    }
                }
                _ => {}
            }
        }
    }

    fn named(self) -> Vec<(u64, String)> {
        let mut structures = self.structures;
        for (of, name) in self.typedefs {
            if let Some((_, known)) = structures.get_mut(&of) {
                *known = Some(name);
            }
        }
        let named = structures.into_values();
        let named = named.filter_map(|(size, name)| name.map(|name| (size, name)));
        named.filter(|(size, name)| *size > NOISE && is_own(name)).collect()
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

/// Whether it is no type of the C library or of a compiler.
fn is_own(name: &str) -> bool {
    let plain = name.split('<').next().unwrap_or(name);
    let name = plain.rsplit("::").next().unwrap_or(plain);
    !name.starts_with(['_', '{']) && name != "FILE"
}

#[cfg(test)]
mod tests {
    use super::*;

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
        );
    }

    #[test]
    fn a_typedef_replaces_the_name_of_its_structure() {
        let mut types = Types::default();
        types.structures.insert(UnitOffset(1), (100, Some("tag".into())));
        types.structures.insert(UnitOffset(2), (100, None));
        types.structures.insert(UnitOffset(3), (64, Some("small".into())));
        types.structures.insert(UnitOffset(4), (216, Some("_IO_FILE".into())));
        types.typedefs.push((UnitOffset(1), "widget".into()));
        types.typedefs.push((UnitOffset(9), "pointer".into()));
        assert_eq!(types.named(), [(100, "widget".to_owned())]);
    }
}
