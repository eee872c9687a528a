//! A program or a library of the profile: its file, and where its debug information is.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::demangle::{demangle, is_legacy_rust, is_rest, may_be_rust};
use super::dwarf::{Debug, Place, with_arguments};
use super::image::{Image, Symbol};
use super::library::qualified;
use crate::error::Result;
use crate::profile::Mapping;

/// Where files are looked for.
#[derive(Clone, Debug)]
pub struct Search {
    /// The file to use in place of the program's own.
    pub program: Option<PathBuf>,
    /// Directories with debug information of other files.
    pub debug_directories: Vec<PathBuf>,
}

impl Default for Search {
    fn default() -> Search {
        Search { program: None, debug_directories: vec![PathBuf::from("/usr/lib/debug")] }
    }
}

impl Search {
    /// Checks that the named program is one.
    pub(crate) fn check(&self) -> Result<()> {
        self.program.as_deref().map_or(Ok(()), |program| Image::read(program).map(drop))
    }
}

/// What is found at an address of the process.
pub(super) struct Found {
    /// The functions, innermost first.
    pub(super) places: Vec<Place>,
    /// How far the return address is from the beginning of the last one.
    pub(super) offset: u64,
    /// Whether a function has no name.
    pub(super) is_bare: bool,
    /// Whether the reason is that the profile lacks mappings of the code.
    pub(super) lacks_text: bool,
}

/// The files of one mapping.
pub(super) struct Module {
    /// What stands before the offset of an address without a name.
    label: String,
    own: Option<Image>,
    debug_image: Option<Image>,
    debug: Option<Debug>,
}

impl Module {
    /// Finds the files of a mapping; `path` is that of its own. What cannot be used is said in
    /// `notes`.
    pub(super) fn find(
        mapping: &Mapping,
        path: &Path,
        search: &Search,
        notes: &mut Vec<String>,
    ) -> Module {
        let label = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let mut module = Module { label, own: None, debug_image: None, debug: None };
        match Image::read(path) {
            Ok(own) => module.take(own, mapping, search, notes),
            Err(error) => notes.push(format!("{error}; its addresses have no names")),
        }
        if module.own.is_none() {
            module.debug_image = by_build_id(&mapping.build_id, search);
            if module.debug_image.is_some() {
                notes.pop();
            }
        }
        module.debug = module.debug_image.as_ref().or(module.own.as_ref()).and_then(|image| {
            let shared = shared(image, search);
            let debug = image.has_debug().then(|| Debug::new(image, shared.as_ref())).flatten();
            debug.map(|debug| debug.with_package(package(image, path).as_ref()))
        });
        module
    }

    /// What the user should know if addresses have no names: that mappings of the code are missing,
    /// or what [`advice`](Module::advice) says.
    pub(super) fn reason(&self, found: &Found, file: &str, is_program: bool) -> Option<String> {
        let lacks_text = found.lacks_text.then(|| {
            format!(
                "{file}: it is gone or was replaced, and the profile does not have all mappings of \
                 its code; its addresses have no names"
            )
        });
        lacks_text.or_else(|| found.is_bare.then(|| self.advice(is_program)).flatten())
    }

    /// What the user can do if the file's symbols were removed. Libraries of distributions have
    /// those of their interface, which is no reason for a message.
    fn advice(&self, is_program: bool) -> Option<String> {
        let own = self.own.as_ref().filter(|own| is_program || !own.has_symbols())?;
        let file = match own.build_id().split_at_checked(2) {
            Some((first, rest)) if !rest.is_empty() => {
                format!("/usr/lib/debug/.build-id/{first}/{rest}.debug")
            }
            _ => "a file that .gnu_debuglink names".to_owned(),
        };
        Some(format!(
            "{}: it has no symbols for some addresses; debug information would be in {file}",
            own.path().display()
        ))
    }

    /// Memory that belongs to no file, as the kernel's own code.
    pub(super) fn without_file(label: &str) -> Module {
        let label = if label.is_empty() { "anonymous".to_owned() } else { label.to_owned() };
        Module { label, own: None, debug_image: None, debug: None }
    }

    fn take(&mut self, own: Image, mapping: &Mapping, search: &Search, notes: &mut Vec<String>) {
        let (before, now) = (mapping.build_id.as_str(), own.build_id());
        if !before.is_empty() && before != now {
            let now = if now.is_empty() { "none" } else { now };
            let path = own.path().display();
            notes.push(format!(
                "{path}: it is another file than when the profile was written (build-id {before}, \
                 now {now}); its addresses have no names"
            ));
            return;
        }
        if !own.has_debug() {
            let debug_image = by_build_id(now, search);
            self.debug_image = debug_image.or_else(|| by_link(&own, search));
        }
        self.own = Some(own);
    }

    /// The address in the numbering of the file, all of whose code lies at `text`.
    fn file_address(&self, address: u64, mapping: &Mapping, text: &Range<u64>) -> Option<u64> {
        match (&self.own, &self.debug_image) {
            (Some(own), _) => {
                own.address_of(address.checked_sub(mapping.start)?.checked_add(mapping.offset)?)
            }
            (None, Some(debug)) => {
                let code = debug.code()?;
                // Of less than the whole code the beginning may be missing.
                let is_whole = text.end.checked_sub(text.start)? >= code.end - code.start;
                address.checked_sub(text.start).filter(|_| is_whole)?.checked_add(code.start)
            }
            (None, None) => None,
        }
    }

    /// The functions at an address of the process. All code of the file lies at `text`.
    pub(super) fn places(&self, address: u64, mapping: &Mapping, text: &Range<u64>) -> Found {
        let Some(inside) = self.file_address(address, mapping, text) else {
            let offset = address.wrapping_sub(mapping.start).wrapping_add(mapping.offset);
            let lacks_text = self.own.is_none() && self.debug_image.is_some();
            return Found { places: vec![self.bare(offset)], offset: 0, is_bare: true, lacks_text };
        };
        let images = [self.debug_image.as_ref(), self.own.as_ref()];
        let symbols = images.into_iter().flatten().filter_map(|image| image.symbol(inside));
        // A file without most of its symbols may have one far before the address.
        let symbol = symbols.max_by_key(|symbol| (symbol.address <= inside, symbol.address));
        let mut places = self.debug.as_ref().map(|debug| debug.places(inside)).unwrap_or_default();
        if places.is_empty() {
            places.push(Place::default());
        }
        let last = places.len() - 1;
        let begin = places[last].start.unwrap_or(0);
        let symbol = symbol.filter(|symbol| symbol.address >= begin);
        let start = symbol.map(|symbol| symbol.address).or(places[last].start);
        if let Some(place) = places.last_mut() {
            place.function = not_inlined(place, symbol);
            place.start = place.start.or(start);
            place.is_rest = symbol.is_some_and(|symbol| is_rest(&symbol.name));
            if let Some(symbol) = symbol.filter(|_| place.mangled.is_empty()) {
                place.mangled = symbol.name.clone();
            }
        }
        let is_bare = symbol.is_none() && places.iter().any(|place| place.function.is_none());
        for place in &mut places {
            // What is inlined may be of another language than the function around it.
            let raw = symbol.filter(|_| place.file.is_empty()).map_or("", |it| it.name.as_str());
            place.may_be_rust = may_be_rust(raw, &place.file);
            if place.function.is_none() {
                let name = symbol.map(|symbol| demangle(&symbol.name));
                place.function =
                    Some(name.unwrap_or_else(|| format!("{}+{inside:#x}", self.label)));
            }
        }
        let offset = start.map_or(0, |start| (inside + 1).saturating_sub(start));
        Found { places, offset, is_bare, lacks_text: false }
    }

    /// An address without a name.
    fn bare(&self, offset: u64) -> Place {
        Place { function: Some(format!("{}+{offset:#x}", self.label)), ..Place::default() }
    }

    /// The debug information.
    pub(super) fn debug(&self) -> Option<&Debug> {
        self.debug.as_ref()
    }
}

/// The name of a function that is not inlined, which may have a symbol.
fn not_inlined(place: &Place, symbol: Option<&Symbol>) -> Option<String> {
    match (place.function.clone(), symbol) {
        // Lambdas have no linkage name in their debug information.
        (Some(own), Some(symbol)) if is_bare(&own) => {
            let name = demangle(&symbol.name);
            let is_legacy = is_legacy_rust(&symbol.name);
            Some(if is_legacy { with_arguments(name, &own) } else { name })
        }
        (Some(own), None) => Some(qualified(own, &place.file)),
        (own, _) => own,
    }
}

/// Whether a name lacks its namespace or class, or may lack it.
fn is_bare(name: &str) -> bool {
    let before = name.split('<').next().unwrap_or(name);
    let has_scope = before.contains("::") || name.starts_with('<');
    !has_scope || name.ends_with("operator()")
}

/// `DIRECTORY/.build-id/ab/cdef….debug`.
fn by_build_id(build_id: &str, search: &Search) -> Option<Image> {
    let (first, rest) = build_id.split_at_checked(2).filter(|(_, rest)| !rest.is_empty())?;
    let is_hexadecimal = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let candidates = search
        .debug_directories
        .iter()
        .filter(|_| is_hexadecimal)
        .map(|directory| directory.join(".build-id").join(first).join(format!("{rest}.debug")));
    let mut images = candidates.filter_map(|path| Image::read(&path).ok());
    images.find(|image| image.build_id() == build_id)
}

/// The file that `.gnu_debuglink` names: beside the file, in `.debug` there, or in a directory of
/// debug information.
fn by_link(own: &Image, search: &Search) -> Option<Image> {
    let (name, checksum) = own.debug_link()?;
    let name = Path::new(&name).file_name()?;
    let whole = own.path().canonicalize().ok()?;
    let beside = whole.parent()?;
    let mut candidates = vec![beside.join(name), beside.join(".debug").join(name)];
    let relative = beside.strip_prefix("/").unwrap_or(beside);
    let elsewhere = search.debug_directories.iter();
    candidates.extend(elsewhere.map(|directory| directory.join(relative).join(name)));
    let candidates = candidates.iter().filter(|path| **path != whole);
    let mut images = candidates.filter_map(|path| Image::read(path).ok());
    images.find(|image| image.checksum() == checksum)
}

/// The package of split debug information: `PROGRAM.dwp`, beside the program or the file with its
/// debug information.
fn package(image: &Image, path: &Path) -> Option<Image> {
    let beside = |path: &Path| {
        let mut name = path.as_os_str().to_owned();
        name.push(".dwp");
        Image::read(Path::new(&name)).ok()
    };
    beside(image.path()).or_else(|| beside(path))
}

/// The file that several debug files share parts of.
fn shared(image: &Image, search: &Search) -> Option<Image> {
    let (name, build_id) = image.shared_debug()?;
    let beside = image.path().canonicalize().ok()?.parent()?.join(name);
    let found = Image::read(&beside).ok().filter(|found| found.build_id() == build_id);
    found.or_else(|| by_build_id(&build_id, search))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtti::testing::{Directory, tool};

    const CODE: &str = "static int inner(int a) { return a * 3; }\n\
                        int (*const table)(int) = inner;\n\
                        int outer(int a) { return table(a) + 1; }\n";
    /// A function without a size, as those of assembly often are.
    const ASSEMBLY: &str = ".globl bare\n.type bare,@function\nbare: ret\n\
                            .section .note.GNU-stack,\"\",@progbits\n";

    /// The name at the second byte of `inner`, in a library without its own symbols but those of
    /// the interface.
    fn name_of_inner(directory: &Directory, flag: &str) -> String {
        let at = |name: &str| directory.0.join(name);
        let (code, assembly, library) = (at("code.c"), at("a.s"), at("libx.so"));
        std::fs::write(&code, CODE).expect("written");
        std::fs::write(&assembly, ASSEMBLY).expect("written");
        let flags = [flag, "-O1", "-shared", "-fPIC", "-o"].map(Path::new);
        tool("gcc", &[&flags[..], &[&library, &assembly, &code]].concat());
        let symbols = tool("nm", &[&library]);
        let line = symbols.lines().find(|line| line.ends_with(" t inner")).expect("inner");
        let address = u64::from_str_radix(&line[..16], 16).expect("an address");
        let debug = at("libx.debug");
        let path = Path::new;
        tool("objcopy", &[path("--only-keep-debug"), &library, &debug]);
        tool("strip", &[path("-s"), &library]);
        let link = format!("--add-gnu-debuglink={}", debug.display());
        tool("objcopy", &[path(&link), &library]);
        let mapping = Mapping { limit: 1 << 20, ..Mapping::default() };
        let mut notes = Vec::new();
        let module = Module::find(&mapping, &library, &Search::default(), &mut notes);
        assert_eq!(notes, [""; 0]);
        let found = module.places(address + 1, &mapping, &(0..0));
        assert_eq!(found.offset, 2);
        found.places.last().and_then(|place| place.function.clone()).expect("a name")
    }

    #[test]
    fn a_symbol_without_a_size_does_not_hide_the_function_behind_it() {
        let directory = Directory::new("bare-symbol");
        for flag in ["-g", "-g0"] {
            assert_eq!(name_of_inner(&directory, flag), "inner", "{flag}");
        }
    }

    #[test]
    fn functions_of_cpp_are_not_of_rust_with_and_without_debug_information() {
        let directory = Directory::new("languages");
        let (code, library) = (directory.0.join("code.cc"), directory.0.join("libx.so"));
        let text = "namespace core { int fill(int a) { return a * 3; } }";
        std::fs::write(&code, text).expect("written");
        for (flag, file) in [("-g", "code.cc"), ("-g0", "")] {
            let flags = [flag, "-O1", "-shared", "-fPIC", "-o"].map(Path::new);
            tool("g++", &[&flags[..], &[&library, &code]].concat());
            let symbols = tool("nm", &[&library]);
            let line = symbols.lines().find(|line| line.ends_with("fillEi")).expect("fill");
            let address = u64::from_str_radix(&line[..16], 16).expect("an address");
            let mapping = Mapping { limit: 1 << 20, ..Mapping::default() };
            let module = Module::find(&mapping, &library, &Search::default(), &mut Vec::new());
            let place = module.places(address + 1, &mapping, &(0..0)).places.remove(0);
            assert_eq!(place.function.as_deref(), Some("core::fill"), "{flag}");
            assert!(place.file.ends_with(file) && !place.may_be_rust, "{flag}: {place:?}");
        }
    }

    /// The first function of a coroutine has such a caller.
    #[test]
    fn the_byte_before_a_trampoline_is_of_it_if_of_no_other() {
        let directory = Directory::new("trampoline");
        let (code, library) = (directory.0.join("a.s"), directory.0.join("libx.so"));
        let function = |name: &str| {
            let body = format!("{name}: nop; ret\n.size {name},2\nnop\n");
            format!(".globl {name}\n.type {name},@function\n{body}")
        };
        let end = ".section .note.GNU-stack,\"\",@progbits\n";
        let text = ["before", "__start_context", "behind"].map(function).concat();
        std::fs::write(&code, text + end).expect("written");
        let flags = ["-shared", "-nostdlib", "-o"].map(Path::new);
        tool("gcc", &[&flags[..], &[&library, &code]].concat());
        let symbols = tool("nm", &[&library]);
        let line = symbols.lines().find(|line| line.ends_with(" T before")).expect("before");
        let address = u64::from_str_radix(&line[..16], 16).expect("an address");
        let mapping = Mapping { limit: 1 << 20, ..Mapping::default() };
        let module = Module::find(&mapping, &library, &Search::default(), &mut Vec::new());
        let name = |at| module.places(address + at, &mapping, &(0..0)).places[0].function.clone();
        let is = |at, expected: &str| name(at).as_deref() == Some(expected);
        assert!(is(1, "before") && (2..5).all(|at| is(at, "__start_context")));
        // The end of another function may be a call that does not return.
        assert!(name(5).is_some_and(|name| name.starts_with("libx.so+0x")) && is(6, "behind"));
    }

    #[test]
    fn split_debug_information_is_found_in_a_package() {
        let directory = Directory::new("package");
        let at = |name: &str| directory.0.join(name);
        let (code, object, library) = (at("code.c"), at("code.o"), at("libx.so"));
        let text = format!("{CODE}struct widget {{ char name[100]; }} one;\n");
        std::fs::write(&code, text).expect("written");
        // binutils' dwp knows DWARF 4 only.
        let flags = ["-gdwarf-4", "-gsplit-dwarf", "-O1", "-fPIC", "-c", "-o"].map(Path::new);
        tool("gcc", &[&flags[..], &[&object, &code]].concat());
        tool("gcc", &[Path::new("-shared"), Path::new("-o"), &library, &object]);
        tool("dwp", &[Path::new("-e"), &library, Path::new("-o"), &at("libx.so.dwp")]);
        std::fs::remove_file(at("code.dwo")).expect("removed");
        let symbols = tool("nm", &[&library]);
        let line = symbols.lines().find(|line| line.ends_with(" t inner")).expect("inner");
        let address = u64::from_str_radix(&line[..16], 16).expect("an address");
        let mapping = Mapping { limit: 1 << 20, ..Mapping::default() };
        let module = Module::find(&mapping, &library, &Search::default(), &mut Vec::new());
        let found = module.places(address + 1, &mapping, &(0..0));
        let place = found.places.last().expect("a place");
        assert_eq!((place.function.as_deref(), place.line), (Some("inner"), 1));
        let types = module.debug().map(super::super::types::of);
        assert_eq!(types, Some(vec![(100, "widget".to_owned())]));
    }

    /// The types of a library that is built with some flags, and perhaps given to `dwz`.
    fn types_of(directory: &Directory, flags: &[&str], is_shared: bool) -> Vec<(u64, String)> {
        let at = |name: &str| directory.0.join(name);
        let (code, one, other, shared) = (at("t.cc"), at("one.so"), at("other.so"), at("shared"));
        let text = "struct Widget { char name[100]; }; struct Gadget { double all[40]; };\n\
                    Widget *made(Gadget *from) { return from ? new Widget() : nullptr; }\n";
        std::fs::write(&code, text).expect("written");
        let fixed = ["-g", "-O1", "-shared", "-fPIC", "-o"];
        for library in [&one, &other] {
            let flags: Vec<&Path> = flags.iter().chain(&fixed).map(Path::new).collect();
            tool("g++", &[&flags[..], &[library, &code]].concat());
        }
        if is_shared {
            let name = shared.to_str().expect("text");
            tool(
                "dwz",
                &["-m", name, "-M", name]
                    .map(Path::new)
                    .into_iter()
                    .chain([one.as_path(), other.as_path()])
                    .collect::<Vec<_>>(),
            );
        }
        let mapping = Mapping { limit: 1 << 20, ..Mapping::default() };
        let module = Module::find(&mapping, &one, &Search::default(), &mut Vec::new());
        module.debug().map(super::super::types::of).unwrap_or_default()
    }

    #[test]
    fn types_are_found_wherever_they_stand() {
        let directory = Directory::new("types");
        let expected = [(100, "Widget".to_owned()), (320, "Gadget".to_owned())];
        for flags in [
            &["-gdwarf-5"][..],
            &["-gdwarf-4", "-fdebug-types-section"],
            &["-gdwarf-5", "-fdebug-types-section"],
        ] {
            assert_eq!(types_of(&directory, flags, false), expected, "{flags:?}");
        }
    }

    #[test]
    fn types_that_several_files_share_are_found() {
        let expected = [(100, "Widget".to_owned()), (320, "Gadget".to_owned())];
        assert_eq!(types_of(&Directory::new("shared-types"), &["-gdwarf-5"], true), expected);
    }

    #[test]
    fn a_bare_name_is_completed_by_the_symbol() {
        let file = "/rustc/x/library/alloc/src/raw_vec.rs".to_owned();
        let name = |own: &str, symbol: Option<&str>| {
            let function = Some(own.to_owned());
            let place = Place { function, file: file.clone(), ..Place::default() };
            let symbol = symbol.map(|name| Symbol::new(0, 1, name));
            not_inlined(&place, symbol.as_ref()).expect("a name")
        };
        let legacy = "_ZN5alloc7raw_vec19RawVec$LT$T$C$A$GT$8grow_one17h0123456789abcdefE";
        assert_eq!(
            name("grow_one<x::W>", Some(legacy)),
            "alloc::raw_vec::RawVec<T,A>::grow_one::<x::W>"
        );
        assert_eq!(name("grow_one<x::W>", None), "alloc::raw_vec::grow_one<x::W>");
        assert_eq!(name("f", Some("_ZN1x1fEv")), "x::f");
        assert_eq!(
            name("operator()", Some("_ZZ4mainENKUlvE_clEv")),
            demangle("_ZZ4mainENKUlvE_clEv")
        );
        for whole in ["x::f<int>", "<T as x::Shape>::f::<u8>"] {
            assert_eq!(name(whole, Some("_ZN1x1gEv")), whole);
        }
        assert_eq!(name("malloc", Some("malloc")), "malloc");
    }

    #[test]
    fn a_file_without_a_build_id_gets_its_symbols_by_its_link() {
        let directory = Directory::new("no-build-id");
        let (code, library) = (directory.0.join("code.c"), directory.0.join("libx.so"));
        std::fs::write(&code, CODE).expect("written");
        let flags = ["-shared", "-fPIC", "-Wl,--build-id=none", "-s", "-o"].map(Path::new);
        tool("gcc", &[&flags[..], &[&library, &code]].concat());
        let (mapping, search) = (Mapping::default(), Search::default());
        let module = Module::find(&mapping, &library, &search, &mut Vec::new());
        let expected = format!(
            "{}: it has no symbols for some addresses; debug information would be in a file that \
             .gnu_debuglink names",
            library.display()
        );
        assert_eq!(module.advice(true), Some(expected));
    }
}
