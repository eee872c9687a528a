//! From addresses to functions, files and lines.

mod demangle;
mod functions;
mod overloads;
mod image;
mod scopes;
mod library;
mod dwarf;
mod types;
mod module;
mod text;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::block_type::Function;
use crate::library_names::SYSTEM_LIBRARIES;
use crate::path_text;
use crate::profile::{Line, Location, Mapping, Profile};
pub(crate) use crate::terminal::printable;
pub use demangle::demangle;
use demangle::is_rest;
pub(crate) use demangle::type_name;
use dwarf::Place;
use functions::Functions;
use module::Module;
pub use module::Search;
pub(crate) use overloads::Exact;
use overloads::{KnownBy, Overloads};
use text::texts;

/// What the system adds to the path of a file that was replaced or removed.
const DELETED: &str = " (deleted)";

/// A function at a place of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Index into [`Symbols::functions`].
    pub function: usize,
    /// The number of the function among all, also of one name.
    pub(crate) exact: usize,
    /// The source file; may be empty. A place of many stacks has many frames.
    pub file: Rc<str>,
    /// The number of the line; 0 if it is not known.
    pub line: u32,
    /// How far the return address is from the beginning of the function that contains the code.
    pub offset: u64,
    /// Whether the code is in the C library, or in that of C++.
    pub of_system: bool,
    /// Whether the code is the rest of a function that GCC split, whose head calls it.
    pub(crate) is_rest: bool,
}

/// The frames of all locations of a profile.
#[derive(Default)]
pub struct Symbols {
    functions: Functions,
    overloads: Overloads,
    /// The frames of all locations; those of one follow each other.
    frames: Vec<Frame>,
    /// Where those of each location end.
    ends: Vec<u32>,
    notes: Vec<String>,
    files: Files,
}

/// Why no address of a profile by lumalloc has a name.
const NO_MAPPINGS: &str = "the list of mapped files is missing, because /proc/self/maps could not \
    be read when the file was written; addresses have no names";

impl Symbols {
    /// Finds the names of all locations.
    pub fn of(profile: &Profile, search: &Search) -> Symbols {
        let mut symbols = Symbols::default();
        symbols.files = Files::find(profile, search, &mut symbols.notes);
        let is_own = profile.comment("lumalloc").is_some();
        let is_bare = profile.locations.iter().any(|at| at.lines.is_empty());
        if is_own && is_bare && profile.mappings.is_empty() {
            symbols.notes.push(NO_MAPPINGS.to_owned());
        }
        let mut known = Known::default();
        for location in &profile.locations {
            let mut frames: Vec<Frame> = match location.lines.as_slice() {
                [] => symbols.frames(location, &profile.mappings),
                lines => lines.iter().map(|line| symbols.frame(line, &mut known)).collect(),
            };
            let mapping = location.mapping.and_then(|index| profile.mappings.get(index));
            let of_system = mapping.is_some_and(|mapping| is_system_library(&mapping.file));
            frames.iter_mut().for_each(|frame| frame.of_system = of_system);
            symbols.frames.append(&mut frames);
            symbols.ends.push(symbols.frames.len() as u32);
        }
        symbols.notes = std::mem::take(&mut symbols.notes).into_iter().map(printable).collect();
        symbols
    }

    /// The names of all functions.
    pub fn functions(&self) -> &[String] {
        self.functions.names()
    }

    /// All functions, told apart where several have one name.
    pub(crate) fn exact(&self) -> Exact {
        self.overloads.told_apart(self.functions.names())
    }

    /// A function, by its number.
    pub(crate) fn function(&self, number: usize) -> Function<'_> {
        self.functions.of(number)
    }

    /// Whether a frame is only the head of a function that GCC split, which calls the rest of it.
    pub(crate) fn is_head(&self, frame: &Frame, called: &Frame) -> bool {
        let is_rest = called.is_rest && !frame.is_rest;
        is_rest && self.overloads.are_alike(frame.exact, called.exact)
    }

    /// The frames of a location, innermost first. There is at least one.
    pub fn location(&self, location: usize) -> &[Frame] {
        let numbers = self.numbers(location);
        &self.frames[numbers.start as usize..numbers.end as usize]
    }

    /// The numbers of the frames of a location.
    pub(crate) fn numbers(&self, location: usize) -> Range<u32> {
        location.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[location]
    }

    /// A frame, by its number.
    pub(crate) fn numbered(&self, number: u32) -> &Frame {
        &self.frames[number as usize]
    }

    /// What the user should know: files that are missing or have changed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The types of the program that are larger than 64 bytes: size and name.
    pub fn types(&self) -> Vec<(u64, String)> {
        let program = self.files.program.and_then(|program| self.files.of_mapping(program));
        program.and_then(Module::debug).map(types::of).unwrap_or_default()
    }

    /// Whether a mapping is of the program and not of a library.
    pub(crate) fn is_program(&self, mapping: usize) -> bool {
        self.files.is_program.get(mapping).copied().unwrap_or(false)
    }

    /// The frame of a line that the profile has.
    fn frame<'a>(&mut self, line: &'a Line, known: &mut Known<'a>) -> Frame {
        let mangled = line.function.as_str();
        let number = || self.functions.demangled(mangled, &line.file);
        let function = known.functions.entry(mangled).or_insert_with(number);
        let file = known.files.entry(&line.file);
        let file = file.or_insert_with(|| printable(line.file.clone()).into());
        let number = u32::try_from(line.line).unwrap_or(0);
        let exact = KnownBy { name: *function, mangled, begin: None, file };
        let exact = self.overloads.number(exact);
        let file = Rc::clone(file);
        let (function, is_rest) = (*function, is_rest(mangled));
        Frame { function, exact, file, line: number, offset: 0, of_system: false, is_rest }
    }

    /// The frames of a location without lines.
    fn frames(&mut self, location: &Location, mappings: &[Mapping]) -> Vec<Frame> {
        let (mut places, mut offset): (Vec<Place>, u64) = (Vec::new(), 0);
        let module = location.mapping.and_then(|index| self.files.of_mapping(index));
        if let Some((module, index)) = module.zip(location.mapping) {
            let mapping = &mappings[index];
            let found = module.places(location.address, mapping, &self.files.texts[index]);
            let file = present_path(&mapping.file);
            let reason = module.reason(&found, file, self.is_program(index));
            (places, offset) = (found.places, found.offset);
            if let Some(reason) = reason.filter(|reason| !self.notes.contains(reason)) {
                self.notes.push(reason);
            }
        }
        if places.is_empty() {
            let function = Some(format!("{:#x}", location.address));
            places.push(Place { function, ..Place::default() });
        }
        let module = location.mapping.and_then(|mapping| self.files.number(mapping));
        let frame = |place: Place| {
            let function =
                self.functions.number(place.function.unwrap_or_default(), place.may_be_rust);
            let file: Rc<str> = printable(place.file).into();
            let begin = module.zip(place.start);
            let known = KnownBy { name: function, mangled: &place.mangled, begin, file: &file };
            let exact = self.overloads.number(known);
            let (line, is_rest) = (place.line, place.is_rest);
            Frame { function, exact, file, line, offset, of_system: false, is_rest }
        };
        places.into_iter().map(frame).collect()
    }
}

/// What is known of the names that a profile has, so that each is looked at once.
#[derive(Default)]
struct Known<'a> {
    functions: HashMap<&'a str, usize>,
    files: HashMap<&'a str, Rc<str>>,
}

/// The files of all mappings.
#[derive(Default)]
struct Files {
    modules: Vec<Module>,
    /// The module of each mapping that a location belongs to.
    of: Vec<Option<usize>>,
    /// The mapping of the program.
    program: Option<usize>,
    /// For each mapping, whether it is of the program's file.
    is_program: Vec<bool>,
    /// For each mapping, where all code of its file lies.
    texts: Vec<Range<u64>>,
}

impl Files {
    /// Reads each file once. Another file may have had the same path before, as a module that is
    /// built anew and opened again: the build-id tells them apart.
    fn find(profile: &Profile, search: &Search, notes: &mut Vec<String>) -> Files {
        let bare = profile.locations.iter().filter(|location| location.lines.is_empty());
        let used: HashSet<usize> = bare.filter_map(|location| location.mapping).collect();
        let (program, texts) = (program(&profile.mappings), texts(&profile.mappings));
        let mut files = Files { program, texts, ..Files::default() };
        let mut known: HashMap<(PathBuf, &str), usize> = HashMap::new();
        for (index, mapping) in profile.mappings.iter().enumerate() {
            let is_program = is_same_file(mapping, files.program, &profile.mappings);
            files.is_program.push(is_program);
            let path = path(mapping, is_program, search);
            let module = used.contains(&index).then(|| {
                let file = (path, mapping.build_id.as_str());
                *known.entry(file).or_insert_with_key(|(path, _)| {
                    files.modules.push(find_module(mapping, path, search, notes));
                    files.modules.len() - 1
                })
            });
            files.of.push(module);
        }
        files
    }

    /// The number of the module of a mapping.
    fn number(&self, mapping: usize) -> Option<usize> {
        self.of.get(mapping).copied().flatten()
    }

    fn of_mapping(&self, mapping: usize) -> Option<&Module> {
        self.number(mapping).map(|module| &self.modules[module])
    }
}

fn find_module(mapping: &Mapping, path: &Path, search: &Search, notes: &mut Vec<String>) -> Module {
    let is_named = search.program.as_deref() == Some(path);
    if mapping.file.ends_with(DELETED) && mapping.build_id.is_empty() && !is_named {
        let shown = path.display();
        notes.push(format!(
            "{shown}: it was replaced while the program ran, and the profile has no build-id; \
             its addresses have no names"
        ));
        let name = path.file_name().unwrap_or_default();
        return Module::without_file(&name.to_string_lossy());
    }
    if path.is_absolute() || is_named {
        Module::find(mapping, path, search, notes)
    } else {
        Module::without_file(&mapping.file)
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or("")
}

/// The path of a mapped file, also of one that was replaced while the process ran. If it has a
/// build-id, that tells whether the present file is the same.
fn present_path(file: &str) -> &str {
    file.strip_suffix(DELETED).unwrap_or(file)
}

/// The files of mappings; none for memory without a file, and for a file that was replaced and has
/// no build-id.
pub(crate) fn paths(mappings: &[Mapping], search: &Search) -> Vec<Option<PathBuf>> {
    let program = program(mappings);
    let of = |mapping: &Mapping| {
        let is_program = is_same_file(mapping, program, mappings);
        let path = path(mapping, is_program, search);
        let is_named = is_program && search.program.is_some();
        let is_known = !mapping.file.ends_with(DELETED) || !mapping.build_id.is_empty();
        (is_named || path.is_absolute() && is_known).then_some(path)
    };
    mappings.iter().map(of).collect()
}

/// The file of a mapping; the user may have named that of the program.
fn path(mapping: &Mapping, is_program: bool, search: &Search) -> PathBuf {
    match &search.program {
        Some(program) if is_program => program.clone(),
        _ => path_text::path(present_path(&mapping.file)),
    }
}

/// Whether a file is the C library, a part of it, or the library of C++.
fn is_system_library(file: &str) -> bool {
    let name = file_name(Path::new(present_path(file)));
    SYSTEM_LIBRARIES.iter().any(|begin| name.starts_with(begin))
}

/// Whether two mappings are of one file.
fn is_same_file(mapping: &Mapping, other: Option<usize>, mappings: &[Mapping]) -> bool {
    other.is_some_and(|other| mappings[other].file == mapping.file)
}

/// The mapping of the program: the first of a file that is no shared object.
fn program(mappings: &[Mapping]) -> Option<usize> {
    let is_program = |mapping: &Mapping| {
        let name = present_path(&mapping.file).rsplit('/').next().unwrap_or("");
        mapping.file.starts_with('/') && !name.ends_with(".so") && !name.contains(".so.")
    };
    mappings.iter().position(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Line;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    fn mapping(file: &str) -> Mapping {
        Mapping { start: 0x1000, limit: 0x9000, file: file.to_owned(), ..Mapping::default() }
    }

    fn profile(file: &str) -> Profile {
        let location = Location { address: 0x1234, mapping: Some(0), lines: Vec::new() };
        let mappings = vec![mapping(file)];
        Profile { mappings, locations: vec![location], ..Profile::default() }
    }

    fn names(profile: &Profile) -> (Vec<String>, Vec<String>) {
        let symbols = Symbols::of(profile, &Search::default());
        (symbols.functions().to_vec(), symbols.notes().to_vec())
    }

    #[test]
    fn the_program_is_the_first_file_that_is_no_library() {
        let of =
            |files: &[&str]| program(&files.iter().map(|file| mapping(file)).collect::<Vec<_>>());
        assert_eq!(of(&["/lib/ld-linux.so.2", "/lib/libx.so", "[vdso]", "/bin/x", "/y"]), Some(3));
        assert_eq!(of(&["", "[heap]"]), None);
    }

    #[test]
    fn memory_without_a_file_has_addresses() {
        assert_eq!(names(&profile("[vdso]")), (vec!["[vdso]+0x234".into()], vec![]));
        assert_eq!(names(&profile("")), (vec!["anonymous+0x234".into()], vec![]));
        let mut nowhere = profile("");
        nowhere.locations[0].mapping = None;
        assert_eq!(names(&nowhere), (vec!["0x1234".into()], vec![]));
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let note = "/nowhere/x: no such file or directory; its addresses have no names";
        assert_eq!(names(&profile("/nowhere/x")), (vec!["x+0x234".into()], vec![note.into()]));
        let note = "/proc/self/status: it is no ELF file (";
        let (_, notes) = names(&profile("/proc/self/status"));
        assert!(notes.len() == 1 && notes[0].starts_with(note), "{notes:?}");
    }

    #[test]
    fn a_path_may_have_bytes_that_are_written_as_numbers() {
        let directory = crate::rtti::testing::Directory::new("any-bytes");
        let file = directory.0.join(OsStr::from_bytes(b"\xffx\n"));
        std::fs::copy("/proc/self/exe", &file).expect("copied");
        let text = format!("{}/\\377x\\012", directory.0.display());
        let (_, notes) = names(&profile(&text));
        assert!(notes.iter().all(|note| !note.contains("no such file")), "{notes:?}");
        let note = "/nowhere/\u{fffd}x: no such file or directory; its addresses have no names";
        assert_eq!(names(&profile("/nowhere/\\012x")).1, [note]);
        let (replaced, _) = names(&profile("/nowhere/\\377x (deleted)"));
        assert_eq!(replaced, ["\u{fffd}x+0x234"]);
    }

    #[test]
    fn a_file_that_was_replaced_is_known_by_its_build_id() {
        let mut replaced = profile("/bin/sh (deleted)");
        let note = "/bin/sh: it was replaced while the program ran, and the profile has no build-id; \
                    its addresses have no names";
        assert_eq!(names(&replaced), (vec!["sh+0x234".into()], vec![note.into()]));
        replaced.mappings[0].build_id = "0011".to_owned();
        let (_, notes) = names(&replaced);
        assert!(notes[0].starts_with("/bin/sh: it is another file than when"), "{notes:?}");
    }

    #[test]
    fn a_file_that_has_changed_is_named() {
        let mut changed = profile("/bin/sh");
        changed.mappings[0].build_id = "0011".to_owned();
        let (names, notes) = names(&changed);
        assert_eq!(names, ["sh+0x234"]);
        let begin = "/bin/sh: it is another file than when the profile was written (build-id 0011, \
                     now ";
        let end = "); its addresses have no names";
        assert!(notes.len() == 1, "{notes:?}");
        assert!(notes[0].starts_with(begin) && notes[0].ends_with(end), "{notes:?}");
    }

    #[test]
    fn files_of_one_path_are_told_apart_by_their_build_ids() {
        let directory = crate::rtti::testing::Directory::new("one-path");
        let [source, file] = ["x.c", "x.so"].map(|name| directory.0.join(name));
        std::fs::write(&source, "int f(int a) { return a * 3; }").expect("written");
        let id = Path::new("-Wl,--build-id=0xabcd");
        let flags = ["-shared", "-fPIC", "-o"].map(Path::new);
        crate::rtti::testing::tool("gcc", &[&flags[..], &[&file, id, &source]].concat());
        let path = file.display().to_string();
        let symbols = crate::rtti::testing::tool("nm", &[&file]);
        let line = symbols.lines().find(|line| line.ends_with(" T f")).expect("f");
        let address = u64::from_str_radix(&line[..16], 16).expect("an address");
        let mapping = |start: u64, build_id: &str| Mapping {
            start,
            limit: start + 0x10_0000,
            offset: 0,
            file: path.clone(),
            build_id: build_id.to_owned(),
        };
        let location =
            |address, mapping| Location { address, mapping: Some(mapping), lines: Vec::new() };
        for (ids, expected) in [(["1234", "abcd"], [0, 1]), (["abcd", "1234"], [1, 0])] {
            let profile = Profile {
                mappings: vec![mapping(0x10_0000, ids[0]), mapping(0x50_0000, ids[1])],
                locations: vec![location(0x10_0000 + address, 0), location(0x50_0000 + address, 1)],
                ..Profile::default()
            };
            let symbols = Symbols::of(&profile, &Search::default());
            let bare = format!("x.so+{address:#x}");
            let name = |at: usize| &symbols.functions()[symbols.location(at)[0].function];
            let names = [name(expected[0]), name(expected[1])];
            assert_eq!(names, [&bare, "f"].map(str::to_owned).each_ref(), "{ids:?}");
        }
    }

    #[test]
    fn names_do_not_control_the_terminal() {
        let mut named = profile("/nowhere/x");
        let line = Line { function: "f\x1b[2J".into(), file: "a\n.c".into(), line: 7 };
        named.locations[0].lines = vec![line];
        let symbols = Symbols::of(&named, &Search::default());
        assert_eq!(symbols.functions(), ["f\u{fffd}[2J"]);
        assert_eq!(&*symbols.location(0)[0].file, "a\u{fffd}.c");
    }

    #[test]
    fn notes_do_not_control_the_terminal() {
        let note = "/nowhere/\u{fffd}[2Jx: no such file or directory; its addresses have no names";
        assert_eq!(names(&profile("/nowhere/\x1b[2Jx")).1, [note]);
    }

    #[test]
    fn a_profile_without_mappings_says_why_it_has_no_names() {
        let mut bare = profile("/nowhere/x");
        bare.mappings.clear();
        bare.locations.iter_mut().for_each(|location| location.mapping = None);
        assert_eq!(names(&bare).1, [""; 0], "another allocator may write none");
        bare.comments.push(("lumalloc".to_owned(), "0.1.0".to_owned()));
        let note = "the list of mapped files is missing, because /proc/self/maps could not be read \
                    when the file was written; addresses have no names";
        assert_eq!(names(&bare).1, [note]);
        bare.locations.clear();
        assert_eq!(names(&bare).1, [""; 0]);
    }

    #[test]
    fn names_in_the_profile_are_used() {
        let mut named = profile("/nowhere/x");
        let line = Line { function: "_ZN3foo3barEv".into(), file: "a.cc".into(), line: 7 };
        named.locations[0].lines = vec![line];
        let symbols = Symbols::of(&named, &Search::default());
        let file = "a.cc".into();
        let (offset, of_system, is_rest) = (0, false, false);
        let frame = Frame { function: 0, exact: 0, file, line: 7, offset, of_system, is_rest };
        assert_eq!(symbols.location(0), [frame]);
        assert_eq!((symbols.functions(), symbols.notes()), (&["foo::bar".to_owned()][..], &[][..]));
    }
}
