//! The class of a C++ object from its first word, which points to a v-table.
//!
//! The word before a v-table points to the class's `type_info`, which has the name. Both are read
//! from the files of the program and its libraries: their symbols are not needed. Every pointer in
//! them is one that the dynamic linker would fill in.

mod image;
mod class;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::HashMap;
use std::path::PathBuf;

use crate::profile::Mapping;
use crate::symbols::{Search, paths};
use image::Image;

/// The classes of v-tables.
pub(crate) struct Rtti {
    /// The file of each mapping; none for memory without a file.
    paths: Vec<Option<PathBuf>>,
    images: HashMap<PathBuf, Option<Image>>,
}

impl Rtti {
    /// Reads nothing yet.
    pub(crate) fn new(mappings: &[Mapping], search: &Search) -> Rtti {
        Rtti { paths: paths(mappings, search), images: HashMap::new() }
    }

    /// The name of the class whose v-table an address of the process is, with the namespaces. The
    /// mappings are asked in this order.
    pub(crate) fn class(
        &mut self,
        address: u64,
        mappings: &[Mapping],
        order: impl Iterator<Item = usize>,
    ) -> Option<String> {
        let mut order: Vec<usize> = order.collect();
        // Data lie behind the code of their file: the nearest one is the most likely. The order is
        // kept among equals.
        order.sort_by_key(|index| address.checked_sub(mappings[*index].start).unwrap_or(u64::MAX));
        order.into_iter().find_map(|index| {
            let image = self.image(index, &mappings[index])?;
            let inside = address.wrapping_sub(image.bias(&mappings[index])?);
            image.contains(inside).then(|| class::of_vtable(image, inside))
        })?
    }

    fn image(&mut self, index: usize, mapping: &Mapping) -> Option<&Image> {
        let path = self.paths[index].clone()?;
        let image = self.images.entry(path);
        let image = image.or_insert_with_key(|path| Image::read(path).ok()).as_ref();
        image.filter(|image| mapping.build_id.is_empty() || image.build_id() == mapping.build_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::{Said, run};

    /// The words whose class is not the expected one, with what was found.
    fn wrong(said: &Said) -> Vec<(String, Option<String>)> {
        let mut rtti = Rtti::new(&said.mappings, &Search::default());
        let mut wrong = Vec::new();
        for (name, word) in &said.words {
            let found = rtti.class(*word, &said.mappings, 0..said.mappings.len());
            if found.as_deref() != Some(name).filter(|name| *name != "-").map(String::as_str) {
                wrong.push((name.clone(), found));
            }
        }
        assert_eq!(said.words.len(), 23);
        wrong
    }

    #[test]
    fn classes_are_found_without_symbols() {
        for (name, flags) in [
            ("pie", &["-O2", "-fPIE", "-pie"][..]),
            ("fixed", &["-O2", "-fno-pie", "-no-pie"]),
            ("packed", &["-O2", "-pie", "-Wl,-z,pack-relative-relocs"]),
            ("static", &["-O2", "-static"]),
            ("static-pie", &["-O2", "-static-pie"]),
            ("lto", &["-O2", "-flto", "-fPIE", "-pie"]),
            ("lto-fixed", &["-O3", "-flto", "-fno-pie", "-no-pie"]),
            ("lto-static", &["-O2", "-flto", "-static"]),
        ] {
            let (said, _directory) = run(name, flags, true);
            assert_eq!(wrong(&said), [], "{name}");
        }
    }

    #[test]
    fn classes_without_type_info_are_found_by_symbols() {
        for (name, flags) in [
            ("no-rtti", &["-O2", "-fno-rtti"][..]),
            ("no-rtti-lto", &["-O2", "-flto", "-fno-rtti"]),
            ("no-rtti-lto-static", &["-O2", "-flto", "-fno-rtti", "-static"]),
        ] {
            let (said, _directory) = run(name, flags, false);
            assert_eq!(wrong(&said), [], "{name}");
        }
    }
}
