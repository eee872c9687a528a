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
use std::ops::Range;
use std::path::PathBuf;

use crate::profile::Mapping;
use crate::symbols::{Search, paths};
use image::Image;

/// The classes of v-tables.
pub(crate) struct Rtti {
    /// The file of each mapping; none for memory without a file.
    paths: Vec<Option<PathBuf>>,
    images: HashMap<PathBuf, Option<Image>>,
    /// Where the files are, from the first question on.
    all: Option<AllLoaded>,
}

/// The files of all mappings where the process has them.
struct AllLoaded {
    /// One for each mapping.
    loaded: Vec<Loaded>,
    /// The addresses of the process where these are, by rising addresses.
    spans: Vec<Range<u64>>,
}

/// The file of a mapping where the process has it. All its addresses are numbers of the file.
struct Loaded {
    /// How far the addresses of the process are from these numbers.
    bias: u64,
    /// From the first part to the end of the last one. Empty: there is no file.
    range: Range<u64>,
}

impl Loaded {
    fn contains(&self, address: u64) -> bool {
        self.range.contains(&address.wrapping_sub(self.bias))
    }

    /// Its addresses in the process. In a damaged file they may go round.
    fn spans(&self) -> impl Iterator<Item = Range<u64>> {
        let [start, end] = [self.range.start, self.range.end].map(|at| at.wrapping_add(self.bias));
        let parts = if start <= end { [start..end, 0..0] } else { [start..u64::MAX, 0..end] };
        parts.into_iter().filter(|part| !part.is_empty())
    }
}

/// The ranges in their order, and as one where they meet.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match all.last_mut().filter(|last| range.start <= last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => all.push(range),
        }
    }
    all
}

impl Rtti {
    /// Reads nothing yet.
    pub(crate) fn new(mappings: &[Mapping], search: &Search) -> Rtti {
        Rtti { paths: paths(mappings, search), images: HashMap::new(), all: None }
    }

    /// Whether an address of the process lies in any file, as that of each v-table does.
    pub(crate) fn is_in_a_file(&mut self, address: u64, mappings: &[Mapping]) -> bool {
        let spans = &self.all_loaded(mappings).spans;
        let behind = spans.partition_point(|span| span.start <= address);
        behind > 0 && spans[behind - 1].contains(&address)
    }

    fn all_loaded(&mut self, mappings: &[Mapping]) -> &AllLoaded {
        let all = match self.all.take() {
            Some(all) => all,
            None => {
                let loaded = mappings.iter().enumerate().map(|(at, one)| self.load(at, one));
                let loaded: Vec<Loaded> = loaded.collect();
                let spans = joined(loaded.iter().flat_map(Loaded::spans).collect());
                AllLoaded { loaded, spans }
            }
        };
        self.all.insert(all)
    }

    /// The name of the class whose v-table an address of the process is, with the namespaces. The
    /// mappings are asked in this order.
    pub(crate) fn class(
        &mut self,
        address: u64,
        mappings: &[Mapping],
        order: impl Iterator<Item = usize>,
    ) -> Option<String> {
        let loaded = &self.all_loaded(mappings).loaded;
        // Most words are no v-tables, and there may be many mappings.
        let mut order: Vec<usize> =
            order.filter(|index| loaded[*index].contains(address)).collect();
        // Data lie behind the code of their file: the nearest one is the most likely. The order is
        // kept among equals.
        order.sort_by_key(|index| address.checked_sub(mappings[*index].start).unwrap_or(u64::MAX));
        order.into_iter().find_map(|index| {
            let image = self.image(index, &mappings[index])?;
            let inside = address.wrapping_sub(image.bias(&mappings[index])?);
            image.contains(inside).then(|| class::of_vtable(image, inside))
        })?
    }

    fn load(&mut self, index: usize, mapping: &Mapping) -> Loaded {
        let image = self.image(index, mapping);
        let found = image.and_then(|image| Some((image.bias(mapping)?, image.range())));
        let (bias, range) = found.unwrap_or_default();
        Loaded { bias, range }
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
    fn many_words_of_many_mappings_are_looked_up() {
        // With a look at all mappings for each word this takes minutes.
        let count = 8000;
        let mapping = |at: u64| Mapping {
            start: at << 12,
            limit: (at + 1) << 12,
            file: "/nowhere/x".to_owned(),
            ..Mapping::default()
        };
        let mappings: Vec<Mapping> = (0..count).map(mapping).collect();
        let mut rtti = Rtti::new(&mappings, &Search::default());
        let words = (0..count).map(|word| rtti.class(word << 12, &mappings, 0..mappings.len()));
        assert_eq!(words.flatten().count(), 0);
    }

    #[test]
    fn ranges_are_joined_where_they_meet() {
        let parts = vec![7..9, 1..3, 3..4, 8..8, 2..3, 20..30, 21..22];
        assert_eq!(joined(parts), [1..4, 7..9, 20..30]);
        let spans = |bias, range| Loaded { bias, range }.spans().collect::<Vec<_>>();
        assert_eq!(spans(100, 1..5), vec![101..105]);
        assert_eq!(spans(u64::MAX - 2, 1..5), [u64::MAX - 1..u64::MAX, 0..2]);
        assert_eq!(spans(5, 0..0), Vec::new());
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
