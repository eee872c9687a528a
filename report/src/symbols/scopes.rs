//! The namespaces, classes and functions around functions that have no linkage name.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gimli::{
    DW_AT_name, DW_TAG_class_type, DW_TAG_namespace, DW_TAG_structure_type, DW_TAG_subprogram,
    UnitOffset, UnitRef,
};

use super::image::Slice;

/// For each function of a unit that has one: what stands before its name.
type Prefixes = HashMap<UnitOffset, String>;

/// The prefixes of all units that were asked for.
#[derive(Default)]
pub(super) struct Scopes {
    of: RefCell<HashMap<usize, Rc<Prefixes>>>,
}

impl Scopes {
    /// What stands before the name of a function, as `shop::Shelf::`. May be empty.
    pub(super) fn prefix(&self, unit: UnitRef<'_, Slice>, function: UnitOffset) -> String {
        let Some(begin) = unit.header.debug_info_offset() else { return String::new() };
        let known = self.of.borrow().get(&begin.0).cloned();
        let prefixes = known.unwrap_or_else(|| {
            let prefixes = Rc::new(prefixes(unit));
            self.of.borrow_mut().insert(begin.0, Rc::clone(&prefixes));
            prefixes
        });
        prefixes.get(&function).cloned().unwrap_or_default()
    }
}

fn prefixes(unit: UnitRef<'_, Slice>) -> Prefixes {
    let mut found = Prefixes::new();
    let mut entries = unit.entries();
    // The scopes that the entry is in, with their depths.
    let mut scopes: Vec<(isize, String)> = Vec::new();
    while let Ok(Some(entry)) = entries.next_dfs() {
        let depth = entry.depth();
        scopes.truncate(scopes.partition_point(|(outside, _)| *outside < depth));
        let tag = entry.tag();
        let is_function = tag == DW_TAG_subprogram;
        if is_function && !scopes.is_empty() {
            let names = scopes.iter().map(|(_, name)| format!("{name}::"));
            found.insert(entry.offset(), names.collect());
        }
        if is_function
            || [DW_TAG_namespace, DW_TAG_class_type, DW_TAG_structure_type].contains(&tag)
        {
            let name = entry.attr_value(DW_AT_name).and_then(|name| unit.attr_string(name).ok());
            // A namespace without a name has none in the names of its functions.
            let name = name.map(|name| String::from_utf8_lossy(&name).into_owned());
            scopes.extend(name.map(|name| (depth, name)));
        }
    }
    found
}
