//! Names of functions of this process, from the symbol tables of its files.
//!
//! Of a file only the tables of sections and symbols are read, because a program with debug
//! information may be larger than its heap. Nothing is kept between requests.
use crate::own_files;
use lumalloc_profile::ranges::{self, Range};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// How many times the bytes of a file's tables of symbols may be needed to read it: they are read
/// whole, each name is copied, and each function has twice the bytes of its symbol, in a list that
/// grows by doubling.
const TIMES: usize = 6;

/// Returns the bytes that may be needed to name functions of all files of this process.
pub(crate) fn bytes() -> usize {
    let files = Symbols::of_process().map(Symbols::files).unwrap_or_default();
    let files: BTreeSet<String> = files.into_iter().collect();
    let tables = files.iter().filter_map(|path| bytes_of_tables(path));
    let bytes = tables.fold(0_u64, u64::saturating_add);
    usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(TIMES)
}

/// Returns the bytes of a file's tables of symbols and of their names.
fn bytes_of_tables(path: &str) -> Option<u64> {
    let cache = ReadCache::new(open(path)?);
    let file: ElfFile64<'_, object::Endianness, _> = ElfFile64::parse(&cache).ok()?;
    let tables = [".symtab", ".strtab", ".dynsym", ".dynstr"];
    Some(tables.iter().filter_map(|name| file.section_by_name(name)).map(|it| it.size()).sum())
}

/// Opens a mapped file. The path of a program that was replaced while it runs is not that of its
/// file.
fn open(path: &str) -> Option<File> {
    let own = own_files::program();
    let is_program = fs::read_link(own).is_ok_and(|program| program == Path::new(path));
    File::open(if is_program { own } else { path }).ok()
}

/// The files with code of this process.
#[derive(Default)]
pub(crate) struct Symbols {
    mappings: Vec<Mapping>,
    /// The addresses of the mappings, with their indices.
    ranges: Vec<Range>,
    /// The tables of the files that were asked for; `None` if a file cannot be read.
    tables: HashMap<String, Option<Table>>,
}

/// A part of a file that is mapped with code.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// A place in a file.
pub(crate) struct Place<'a> {
    pub(crate) path: &'a str,
    /// The address in the file's own numbering, which `addr2line -e PATH` takes; `None` if the file
    /// cannot be read.
    pub(crate) address: Option<u64>,
    /// The function, as the compiler wrote its name.
    pub(crate) name: Option<&'a str>,
}

impl Symbols {
    /// Finds the mapped files.
    ///
    /// # Errors
    /// `/proc/self/maps` cannot be read.
    pub(crate) fn of_process() -> io::Result<Symbols> {
        Ok(Symbols::of_maps(&own_files::read("maps")?))
    }

    /// Finds the mapped files in a text like that of `/proc/self/maps`. A path may have bytes that
    /// are not UTF-8. The functions of that file have no names then, but those of the others have.
    pub(crate) fn of_maps(maps: &[u8]) -> Symbols {
        let mappings: Vec<Mapping> =
            String::from_utf8_lossy(maps).lines().filter_map(mapping).collect();
        // The system lists them by their addresses.
        let range = |(mapping, index): (&Mapping, u64)| [mapping.start, mapping.end, index];
        let ranges = mappings.iter().zip(0..).map(range).collect();
        Symbols { mappings, ranges, tables: HashMap::new() }
    }

    /// Returns the paths of the mapped files. A path may occur more than once.
    pub(crate) fn files(self) -> Vec<String> {
        self.mappings.into_iter().map(|mapping| mapping.path).collect()
    }

    /// Returns what is known of an address of code, or `None` if it is in no file.
    pub(crate) fn place(&mut self, address: u64) -> Option<Place<'_>> {
        let index = ranges::find(&self.ranges, address)?;
        let mapping = self.mappings.get(usize::try_from(index).ok()?)?;
        let path = &mapping.path;
        if !self.tables.contains_key(path) {
            self.tables.insert(path.clone(), Table::read(path));
        }
        let table = self.tables.get(path)?.as_ref();
        let in_file = address - mapping.start + mapping.offset;
        let address = table.and_then(|table| table.address(in_file));
        let name = table.zip(address).and_then(|(table, address)| table.name(address));
        Some(Place { path, address, name })
    }

    /// Returns the name of the function that contains an address, as the compiler wrote it.
    pub(crate) fn name(&mut self, address: u64) -> Option<&str> {
        self.place(address)?.name
    }
}

/// Returns the mapping of a line of `/proc/self/maps`, if it is a file's code.
fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ').map(str::trim);
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.contains('x');
    let offset = fields.next()?;
    let path = fields.nth(2)?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let mapping = Mapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
    };
    (is_code && path.starts_with('/')).then_some(mapping)
}

/// The functions of a file.
struct Table {
    /// Parts of the file that are loaded: the place in the file, the size, the address.
    segments: Vec<(u64, u64, u64)>,
    /// Functions by their first address, with their size and name.
    functions: Vec<(u64, u64, String)>,
}

impl Table {
    fn read(path: &str) -> Option<Table> {
        let cache = ReadCache::new(open(path)?);
        let file: ElfFile64<'_, object::Endianness, _> = ElfFile64::parse(&cache).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        let segments = segments.collect();
        let mut functions = Vec::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            if symbol.kind() == SymbolKind::Text
                && symbol.is_definition()
                && let Ok(name) = symbol.name()
            {
                functions.push((symbol.address(), symbol.size(), name.to_owned()));
            }
        }
        functions.sort_unstable();
        Some(Table { segments, functions })
    }

    /// Returns the address of a byte of the file.
    fn address(&self, place: u64) -> Option<u64> {
        let is_in = |(offset, size, _): &&(u64, u64, u64)| place.wrapping_sub(*offset) < *size;
        let (offset, _, start) = self.segments.iter().find(is_in)?;
        Some(place - offset + start)
    }

    /// Returns the name of the function at an address.
    fn name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|(first, ..)| *first <= address);
        let (first, size, name) = self.functions.get(..after)?.last()?;
        // Functions written in assembly may have no size.
        (*size == 0 || address - first < *size).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn a_function_that_is_not_exported() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn the_tables_of_all_files_are_counted_each_once() {
        let own = std::env::current_exe().unwrap();
        let tables = bytes_of_tables(own.to_str().unwrap()).unwrap();
        assert!((100_000..fs::metadata(&own).unwrap().len()).contains(&tables), "{tables}");
        let all = bytes() as u64 / TIMES as u64;
        assert!((tables..2 * tables + (4 << 20)).contains(&all), "{all} beside {tables}");
        assert_eq!(bytes_of_tables("/nowhere"), None);
    }

    #[test]
    fn functions_have_their_names() {
        let mut symbols = Symbols::of_process().unwrap();
        let place = a_function_that_is_not_exported as fn() -> u64;
        let name = symbols.name((place as *const ()).addr() as u64).unwrap();
        assert!(name.contains("a_function_that_is_not_exported"), "{name}");
        let printf = (libc::printf as *const ()).addr() as u64;
        assert!(symbols.name(printf + 1).is_some_and(|name| name.contains("printf")));
        let local = 0;
        assert_eq!(symbols.name((&raw const local).addr() as u64), None, "the stack is no file");
        assert_eq!(symbols.name(0), None);
    }

    #[test]
    fn a_path_that_is_not_utf_8_takes_no_names_from_other_files() {
        let mut maps = b"1000-2000 r-xp 00000000 fe:00 1 /tmp/\xff\n".to_vec();
        maps.extend(fs::read("/proc/self/maps").unwrap());
        let mut symbols = Symbols::of_maps(&maps);
        assert_eq!(symbols.place(0x1000).unwrap().path, "/tmp/\u{fffd}");
        let place = a_function_that_is_not_exported as fn() -> u64;
        assert!(symbols.name((place as *const ()).addr() as u64).is_some());
    }

    #[test]
    fn lines_of_maps() {
        let line = "7f00-7f10 r-xp 00002000 fe:00 1234                 /usr/lib/a b.so";
        let expected =
            Mapping { start: 0x7f00, end: 0x7f10, offset: 0x2000, path: "/usr/lib/a b.so".into() };
        assert_eq!(mapping(line), Some(expected));
        for line in [
            "7f00-7f10 r--p 00002000 fe:00 1234 /usr/lib/a.so",
            "7f00-7f10 r-xp 00000000 00:00 0 [vdso]",
            "7f00-7f10 r-xp 00000000 00:00 0",
            "x-y r-xp 0 00:00 0 /a",
            "",
        ] {
            assert_eq!(mapping(line), None, "{line}");
        }
        assert!(Table::read("/proc/self/maps").is_none() && Table::read("/nowhere").is_none());
    }
}
