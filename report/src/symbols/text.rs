//! Where the code of a file lies in the memory of the process. The system maps it in one piece, and
//! takes that apart where the program changes the protection of a page.

use std::collections::HashMap;
use std::ops::Range;

use crate::profile::Mapping;

/// What the mappings of one piece of memory have in common.
type Key<'a> = (&'a str, &'a str, u64);

/// Of each mapping, the addresses from the first to the last mapping of the same code: of the same
/// file, with the same distance between addresses and places in the file.
pub(super) fn texts(mappings: &[Mapping]) -> Vec<Range<u64>> {
    let mut texts: HashMap<Key<'_>, Range<u64>> = HashMap::new();
    for mapping in mappings {
        let text = texts.entry(key(mapping)).or_insert(mapping.start..mapping.limit);
        *text = text.start.min(mapping.start)..text.end.max(mapping.limit);
    }
    mappings.iter().map(|mapping| texts[&key(mapping)].clone()).collect()
}

fn key(mapping: &Mapping) -> Key<'_> {
    (&mapping.file, &mapping.build_id, mapping.start.wrapping_sub(mapping.offset))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::profile::{Location, Profile};
    use crate::rtti::testing::{Directory, tool};
    use crate::symbols::{Search, Symbols};

    const ID: &str = "abcdef";
    const PAGE: u64 = 0x1000;
    /// Where the file lies in memory.
    const BASE: u64 = 0x10_0000;

    #[test]
    fn pieces_of_one_mapping_are_found() {
        let mapping = |start, limit, offset, file: &str| {
            let file = file.to_owned();
            Mapping { start, limit, offset, file, build_id: String::new() }
        };
        let mappings = [
            mapping(0x3000, 0x4000, 0x2000, "a"),
            mapping(0x2000, 0x3000, 0x1000, "a"),
            mapping(0x4000, 0x5000, 0x3000, "b"),
            mapping(0x6000, 0x7000, 0x5000, "a"),
            mapping(0x9000, 0xa000, 0x1000, "a"),
        ];
        let whole = 0x2000..0x7000;
        let expected = [whole.clone(), whole.clone(), 0x4000..0x5000, whole, 0x9000..0xa000];
        assert_eq!(texts(&mappings), expected);
    }

    /// Makes a library with a function in each of three pages, of which only the debug information
    /// stays. Returns the addresses of the functions.
    fn debug_information(directory: &Directory) -> [u64; 3] {
        let at = |name: &str| directory.0.join(name);
        let (code, library, ids) = (at("a.s"), at("libx.so"), at(".build-id/ab"));
        let function = |name: &str| {
            let body = format!("{name}: nop; ret\n.size {name},2\n");
            format!(".balign 4096\n.globl {name}\n.type {name},@function\n{body}")
        };
        let text = ["first", "middle", "last"].map(function).concat();
        let end = ".section .note.GNU-stack,\"\",@progbits\n";
        std::fs::write(&code, text + end).expect("written");
        let id = format!("-Wl,--build-id=0x{ID}");
        let flags = ["-shared", "-nostdlib", &id, "-o"].map(Path::new);
        tool("gcc", &[&flags[..], &[&library, &code]].concat());
        std::fs::create_dir_all(&ids).expect("a directory");
        let debug = ids.join("cdef.debug");
        tool("objcopy", &[Path::new("--only-keep-debug"), &library, &debug]);
        let symbols = tool("nm", &[&library]);
        std::fs::remove_file(&library).expect("removed");
        ["first", "middle", "last"].map(|name| {
            let line = symbols.lines().find(|line| line.ends_with(&format!(" T {name}")));
            u64::from_str_radix(&line.expect("a symbol")[..16], 16).expect("an address")
        })
    }

    /// The names at the functions, and the notes, if the code is mapped in such pieces.
    fn names(
        directory: &Directory,
        functions: [u64; 3],
        pieces: &[Range<u64>],
    ) -> (Vec<String>, Vec<String>) {
        let file = directory.0.join("libx.so").display().to_string();
        let mapping = |piece: &Range<u64>| Mapping {
            start: BASE + piece.start,
            limit: BASE + piece.end,
            offset: piece.start,
            file: file.clone(),
            build_id: ID.to_owned(),
        };
        let locations = functions.iter().filter_map(|address| {
            let mapping = Some(pieces.iter().position(|piece| piece.contains(address))?);
            Some(Location { address: BASE + address + 1, mapping, lines: Vec::new() })
        });
        let mappings = pieces.iter().map(mapping).collect();
        let profile = Profile { mappings, locations: locations.collect(), ..Profile::default() };
        let debug_directories = vec![directory.0.clone()];
        let symbols = Symbols::of(&profile, &Search { program: None, debug_directories });
        let name = |at| symbols.functions()[symbols.location(at)[0].function].clone();
        ((0..profile.locations.len()).map(name).collect(), symbols.notes().to_vec())
    }

    #[test]
    fn a_file_that_is_gone_has_names_also_if_its_code_is_mapped_in_pieces() {
        let directory = Directory::new("pieces");
        let functions = debug_information(&directory);
        let [first, middle, last] = functions;
        let (begin, end) = (first & !(PAGE - 1), (last & !(PAGE - 1)) + PAGE);
        let all = vec!["first".to_owned(), "middle".to_owned(), "last".to_owned()];
        let whole = (all.clone(), Vec::new());
        let cut = |at: &[u64]| {
            let ends: Vec<u64> = [&[begin], at, &[end]].concat();
            ends.windows(2).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>()
        };
        for at in [&[][..], &[middle], &[last], &[middle, last]] {
            assert_eq!(names(&directory, functions, &cut(at)), whole, "{at:x?}");
        }
        let outer = [begin..middle, last..end];
        assert_eq!(names(&directory, functions, &outer).0, ["first", "last"]);
        let note = format!(
            "{}: it is gone or was replaced, and the profile does not have all mappings of its \
             code; its addresses have no names",
            directory.0.join("libx.so").display()
        );
        for missing in [&[middle..last, last..end][..], &[begin..middle, middle..last]] {
            let (names, notes) = names(&directory, functions, missing);
            assert!(names.iter().all(|name| name.starts_with("libx.so+0x")), "{names:?}");
            assert_eq!(notes, [note.as_str()]);
        }
    }
}
