//! The names of functions and types.

use std::collections::HashMap;
use std::rc::Rc;

use super::decoder::{Event, Kind};
use super::old::OldBlock;
use super::recording::Recording;
use crate::block_type::{Function, of_deletion, of_functions};
use crate::calls;
use crate::error::Result;
use crate::profile::{Location, Profile};
use crate::ranges;
use crate::report::NO_STACK;
use crate::rtti::Rtti;
use crate::symbols::{Search, Symbols, printable};
use crate::views::place;

/// The type of a block whose first word is nil.
pub(super) const NO_VTABLE: &str = "novtbl";
/// The type of other blocks of which it is not known.
const NO_TYPE: &str = "notype";

/// The names of a recording.
pub struct Names<'a> {
    recording: &'a Recording,
    symbols: Symbols,
    /// Of each stack, the indices of its locations.
    locations: Vec<Vec<usize>>,
    /// Of each stack, the functions that are shown, innermost first.
    functions: Vec<Box<[u32]>>,
    /// The names of functions as a stack has them.
    escaped: Vec<String>,
    types: Types,
}

/// What is known of types so far.
struct Types {
    rtti: Rtti,
    /// By the first word, and the number of parts with mappings before.
    classes: HashMap<(u64, u32), Option<Rc<str>>>,
    by_allocation: HashMap<u32, Option<Rc<str>>>,
    by_deletion: HashMap<u32, Option<Rc<str>>>,
    no_vtable: Rc<str>,
    no_type: Rc<str>,
}

impl<'a> Names<'a> {
    /// Finds the names of all functions. Missing names are no error.
    ///
    /// # Errors
    ///
    /// The program that `search` names cannot be read.
    pub fn new(recording: &'a Recording, search: &Search) -> Result<Names<'a>> {
        search.check()?;
        let profile = profile(recording);
        let symbols = Symbols::of(&profile, search);
        let functions = |stack: &Vec<usize>| {
            let frames = calls::frames(stack, &symbols);
            let shown = calls::below_main(&frames, &symbols).iter();
            shown.map(|frame| symbols.numbered(*frame).function as u32).collect()
        };
        let functions = profile.stacks.iter().map(functions).collect();
        let escaped = symbols.functions().iter().map(|name| escaped(name)).collect();
        let types = Types {
            rtti: Rtti::new(&profile.mappings, search),
            classes: HashMap::new(),
            by_allocation: HashMap::new(),
            by_deletion: HashMap::new(),
            no_vtable: Rc::from(NO_VTABLE),
            no_type: Rc::from(NO_TYPE),
        };
        Ok(Names { recording, symbols, locations: profile.stacks, functions, escaped, types })
    }

    /// The recording.
    pub(super) fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// An old block, by its index.
    pub(super) fn old_block(&self, index: usize) -> OldBlock {
        self.recording.old_blocks()[index]
    }

    /// What stands for a type that is not known, by the first word of the block.
    pub(super) fn unknown(&self, word: u64) -> Rc<str> {
        Rc::clone(if word == 0 { &self.types.no_vtable } else { &self.types.no_type })
    }

    /// What the user should know: files that are missing or have changed.
    pub fn notes(&self) -> &[String] {
        self.symbols.notes()
    }

    /// A stack as a line has it: the names, innermost first, with bars between them.
    pub(super) fn stack(&self, stack: u32) -> String {
        let mut text = String::new();
        self.add_stack(stack, &mut text);
        text
    }

    /// Adds a stack to a text.
    pub(super) fn add_stack(&self, stack: u32, text: &mut String) {
        for (place, function) in self.functions[stack as usize].iter().enumerate() {
            if place > 0 {
                text.push('|');
            }
            text.push_str(&self.escaped[*function as usize]);
        }
    }

    /// The number of stacks.
    pub(super) fn stack_count(&self) -> u32 {
        self.functions.len() as u32
    }

    /// The names of a stack, innermost first.
    pub(super) fn functions(&self, stack: u32) -> impl Iterator<Item = &str> {
        self.functions_of(stack).map(|function| function.name)
    }

    fn functions_of(&self, stack: u32) -> impl Iterator<Item = Function<'_>> {
        let functions = self.functions[stack as usize].iter();
        functions.map(|function| self.symbols.function(*function as usize))
    }

    /// The innermost function of the program in a stack, with its line.
    pub(super) fn site(&self, stack: u32) -> String {
        let site = calls::site(self.program_calls(stack).into_iter(), &self.symbols);
        site.map_or(NO_STACK.to_owned(), |frame| place(&self.symbols, frame))
    }

    /// The functions of a stack with their lines, without the inner workings of libraries.
    pub(super) fn calls(&self, stack: u32) -> Vec<String> {
        let line = |frame| place(&self.symbols, self.symbols.numbered(frame));
        let lines: Vec<String> = self.program_calls(stack).into_iter().map(line).collect();
        if lines.is_empty() { vec![NO_STACK.to_owned()] } else { lines }
    }

    fn program_calls(&self, stack: u32) -> Vec<u32> {
        let frames = calls::frames(&self.locations[stack as usize], &self.symbols);
        let below_main = calls::below_main(&frames, &self.symbols);
        calls::program_calls(below_main, &self.symbols).map(|place| below_main[place]).collect()
    }

    /// The type of the blocks that a stack allocates.
    pub(super) fn of_allocation(&mut self, stack: u32) -> Option<Rc<str>> {
        if let Some(known) = self.types.by_allocation.get(&stack) {
            return known.clone();
        }
        let found = of_functions(self.functions_of(stack)).map(Rc::from);
        self.types.by_allocation.insert(stack, found.clone());
        found
    }

    /// The type of a block that is deleted, if something tells it.
    pub(super) fn of_deletion(&mut self, event: &Event) -> Option<Rc<str>> {
        let Kind::Deletion(word) = event.kind else { return None };
        if let Some(class) = self.class(word, event.seen) {
            return Some(class);
        }
        if let Some(known) = self.types.by_deletion.get(&event.stack) {
            return known.clone();
        }
        let found = of_deletion(self.functions_of(event.stack)).map(Rc::from);
        self.types.by_deletion.insert(event.stack, found.clone());
        found
    }

    /// The class of an object, by its first word.
    pub(super) fn class(&mut self, word: u64, seen: u32) -> Option<Rc<str>> {
        if word <= 1 {
            return None;
        }
        let mappings = self.recording.mappings();
        let Types { rtti, classes, .. } = &mut self.types;
        // Each block may have another first word: those that cannot be v-tables are not kept.
        if !rtti.is_in_a_file(word, mappings.all()) {
            return None;
        }
        let class = classes.entry((word, seen)).or_insert_with(|| {
            let class = rtti.class(word, mappings.all(), mappings.order(seen));
            class.map(|class| Rc::from(printable(class)))
        });
        class.clone()
    }
}

/// The stacks of a recording with their places.
fn profile(recording: &Recording) -> Profile {
    let mappings = recording.mappings();
    let mut profile = Profile { mappings: mappings.all().to_vec(), ..Profile::default() };
    // Each address with the mappings that were known, in the order in which they come.
    let (mut places, mut asked) = (HashMap::new(), Vec::new());
    let mut stacks: Vec<Vec<usize>> = Vec::new();
    for (addresses, seen) in recording.stacks().iter() {
        let known = mappings.known(seen);
        let place = |address: &u64| {
            // The call stands before its return address.
            let one = (address.saturating_sub(1), known);
            *places.entry(one).or_insert_with(|| {
                asked.push(one);
                asked.len() - 1
            })
        };
        stacks.push(addresses.iter().map(place).collect());
    }
    let mut known = HashMap::new();
    let location = |((address, _), mapping): (&ranges::Asked, Option<usize>)| {
        *known.entry((*address, mapping)).or_insert_with(|| {
            let lines = Vec::new();
            profile.locations.push(Location { address: *address, mapping, lines });
            profile.locations.len() - 1
        })
    };
    let found = ranges::find(mappings.all(), &asked);
    let locations: Vec<usize> = asked.iter().zip(found).map(location).collect();
    stacks.iter_mut().flatten().for_each(|place| *place = locations[*place]);
    profile.stacks = stacks;
    profile
}

/// A name in which a bar and a backslash have a backslash before them.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::testing::{File, Happens};
    use super::*;
    use crate::rtti::testing::{Directory, mapping, number, tool};
    use std::path::Path;

    #[test]
    fn separators_in_names_are_escaped() {
        assert_eq!(escaped(r"a::operator|(b\c)"), r"a::operator\|(b\\c)");
        assert_eq!(escaped("f<int>"), "f<int>");
    }

    #[test]
    fn addresses_without_names_are_those_of_their_files() {
        let file = File::default()
            .mapping([0x1000, 0x2000, 0x400], "a|b", "")
            .stack(1, &[0x1011, 0x9001])
            .events(1, &[(1, Happens::New(1, 1), 1)]);
        let recording = Recording::of(&file);
        let names = Names::new(&recording, &Search::default()).expect("names");
        assert_eq!(names.stack(1), r"a\|b+0x410|0x9000");
        assert_eq!(names.stack(0), "");
        assert_eq!(names.functions(1).collect::<Vec<_>>(), ["a|b+0x410", "0x9000"]);
        assert_eq!(names.site(1), "a|b+0x410");
        assert_eq!(names.site(0), "(no stack)");
        assert_eq!(names.notes(), [""; 0]);
    }

    /// The stack has one number, because its addresses are the same.
    #[test]
    fn a_stack_has_the_names_of_what_was_mapped_at_its_events() {
        let one = |time| [(time, Happens::New(time, 1), 1)];
        let file = File::default()
            .mapping([0x1000, 0x2000, 0], "a", "")
            .stack(1, &[0x1011])
            .events(1, &one(1))
            .mapping([0x1000, 0x2000, 0x500], "b", "")
            .events(1, &one(2))
            .mapping([0x1000, 0x2000, 0], "a", "")
            .events(1, &one(3));
        let recording = Recording::of(&file);
        let names = Names::new(&recording, &Search::default()).expect("names");
        let stacks = recording.events().map(|event| names.stack(event.expect("it").stack));
        assert_eq!(stacks.collect::<Vec<_>>(), ["a+0x10", "b+0x510", "a+0x10"]);
    }

    #[test]
    fn words_that_are_in_no_file_are_not_kept() {
        let program = std::env::current_exe().expect("the program");
        let program = program.to_str().expect("text");
        let file = File::default().mapping([0x40_0000, 0x50_0000, 0], program, "");
        let recording = Recording::of(&file);
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        for word in (0x7000_0000_0000u64..).step_by(16).take(1000) {
            assert_eq!(names.class(word, 1), None);
        }
        assert_eq!(names.types.classes.len(), 0);
    }

    #[test]
    fn a_program_that_is_named_must_be_one() {
        let recording = Recording::of(&File::default());
        let search = Search { program: Some("/nowhere/x".into()), ..Search::default() };
        let error = Names::new(&recording, &search).err().expect("an error");
        assert_eq!(error.to_string(), "/nowhere/x: no such file or directory");
    }

    /// Writes the stack of each allocation and each deletion, then what is mapped.
    const PROGRAM: &str = r#"
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

unsafe extern "C" {
    fn backtrace(stack: *mut *mut c_void, size: c_int) -> c_int;
}
static IS_ON: AtomicBool = AtomicBool::new(false);
struct Recorder;

fn record(what: &str) {
    if IS_ON.swap(false, Relaxed) {
        let mut stack = [std::ptr::null_mut(); 60];
        let depth = unsafe { backtrace(stack.as_mut_ptr(), 60) };
        // The first two are this function and the allocator's.
        let stack = stack[2..depth as usize].iter().map(|at| format!("{:x}", *at as usize));
        println!("{what} {}", stack.collect::<Vec<_>>().join(","));
        IS_ON.store(true, Relaxed);
    }
}

unsafe impl GlobalAlloc for Recorder {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record("new");
        unsafe { System.alloc(layout) }
    }
    #[inline(never)]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        record("delete");
        unsafe { System.dealloc(block, layout) }
    }
}
#[global_allocator]
static RECORDER: Recorder = Recorder;

pub struct Widget([u64; 4]);
pub trait Shape {}
impl Shape for Widget {}

#[inline(never)]
fn work() {
    drop(black_box(Box::new(Widget([1; 4]))));
    let mut widgets = Vec::new();
    widgets.push(black_box(Widget([2; 4])));
    drop(black_box(widgets));
    drop(black_box(Box::new(Widget([3; 4])) as Box<dyn Shape>));
    drop(black_box("text".to_owned()));
}

fn main() {
    println!("");
    unsafe { backtrace([std::ptr::null_mut()].as_mut_ptr(), 1) };
    IS_ON.store(true, Relaxed);
    work();
    IS_ON.store(false, Relaxed);
    println!("{}", std::fs::read_to_string("/proc/self/maps").unwrap());
}
"#;

    /// The types of the allocations and of the deletions of the program, and the sites.
    fn rust_types(name: &str, flags: &[&str]) -> Vec<(String, String)> {
        let directory = Directory::new(name);
        let [source, program] = ["x.rs", "x"].map(|file| directory.0.join(file));
        std::fs::write(&source, PROGRAM).expect("written");
        let fixed = ["--edition", "2024", "-Copt-level=3", "-o"].map(Path::new);
        let flags: Vec<&Path> = flags.iter().map(Path::new).collect();
        tool("rustc", &[&flags[..], &fixed, &[&program, &source]].concat());
        let mut file = File::default();
        let text = tool(&program.display().to_string(), &[]);
        for mapping in text.lines().filter_map(mapping).flatten() {
            file = file.mapping([mapping.start, mapping.limit, mapping.offset], &mapping.file, "");
        }
        let stacks = text.lines().filter_map(|line| line.split_once(' '));
        let stacks = stacks.filter(|(what, _)| ["new", "delete"].contains(what));
        let mut events = Vec::new();
        for (place, (what, stack)) in (1u64..).zip(stacks) {
            let stack: Vec<u64> = stack.split(',').map(number).collect();
            file = file.stack(place, &stack);
            let is_new = what == "new";
            let happens = if is_new { Happens::New(1, 8) } else { Happens::Delete(1, 1) };
            events.push((place, happens, place));
        }
        let recording = Recording::of(&file.events(1, &events));
        let mut names = Names::new(&recording, &Search::default()).expect("names");
        let mut found = Vec::new();
        for event in recording.events() {
            let event = event.expect("an event");
            let kind = match event.is_allocation() {
                true => names.of_allocation(event.stack),
                false => names.of_deletion(&event),
            };
            let site = names.site(event.stack);
            let site = site.split(' ').next().unwrap_or("").to_owned();
            found.push((kind.as_deref().unwrap_or("-").to_owned(), site));
        }
        found
    }

    #[test]
    fn blocks_of_rust_have_types_with_each_kind_of_debug_information() {
        let expected = [
            "Box<x::Widget>",
            "Box<x::Widget>",
            "Vec<x::Widget>",
            "Vec<x::Widget>",
            "Box<x::Widget>",
            "Box<dyn x::Shape>",
            "String",
            "String",
        ];
        let expected = expected.map(|kind| (kind.to_owned(), "x::work".to_owned()));
        for (name, flags) in [
            ("rust-lines", &["-Cdebuginfo=line-tables-only"][..]),
            ("rust-lines-v0", &["-Cdebuginfo=line-tables-only", "-Csymbol-mangling-version=v0"]),
            ("rust-full", &["-Cdebuginfo=2"]),
        ] {
            assert_eq!(rust_types(name, flags), expected, "{name}");
        }
    }
}
