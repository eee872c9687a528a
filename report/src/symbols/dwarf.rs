//! Functions and lines from debug information, with those that were inlined.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    AttributeValue, DW_AT_abstract_origin, DW_AT_decl_column, DW_AT_decl_line, DW_AT_low_pc,
    DW_AT_name, DW_AT_specification, DebugInfoOffset, DebuggingInformationEntry, DwAt, Dwarf,
    DwarfPackage, DwoId, Unit, UnitOffset, UnitRef,
};

use super::demangle::{demangle, is_legacy_rust};
use super::image::{Image, Slice};
use super::library::qualified;
use super::scopes::Scopes;

/// References between entries are not followed further than this.
const REFERENCES_MAX: usize = 16;

/// A function at a place in the code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Its name, demangled.
    pub(super) function: Option<String>,
    /// Its name in the object file; empty if it is not known.
    pub(super) mangled: String,
    /// The source file.
    pub(super) file: String,
    /// The number of the line; 0 if it is not known.
    pub(super) line: u32,
    /// The first address of the function, if it is not inlined.
    pub(super) start: Option<u64>,
    /// Whether it may be written in Rust.
    pub(super) may_be_rust: bool,
    /// Whether its code is the rest of a function that GCC split, whose head calls it.
    pub(super) is_rest: bool,
}

/// An entry of a unit.
type Entry = DebuggingInformationEntry<Slice>;

/// The name of an entry, and what stands before it.
struct EntryName {
    name: String,
    scope: String,
}

/// The debug information of one file.
pub(super) struct Debug {
    context: Context<Slice>,
    dwarf: Arc<Dwarf<Slice>>,
    /// Units that entries of other units refer to, by the place where they begin.
    units: RefCell<HashMap<usize, Rc<Unit<Slice>>>>,
    begins: Vec<usize>,
    scopes: Scopes,
    /// The file into which `dwp` puts those of `-gsplit-dwarf`.
    package: Option<DwarfPackage<Slice>>,
}

impl Debug {
    /// Reads the debug information of a file. `shared` is the file that its references lead to.
    pub(super) fn new(image: &Image, shared: Option<&Image>) -> Option<Debug> {
        let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(image.section(id.name()));
        let mut dwarf = Dwarf::load(load).ok()?;
        if let Some(shared) = shared {
            let load = |id: gimli::SectionId| Ok::<_, gimli::Error>(shared.section(id.name()));
            dwarf.load_sup(load).ok()?;
        }
        let dwarf = Arc::new(dwarf);
        let mut begins = Vec::new();
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            begins.extend(header.debug_info_offset().map(|offset| offset.0));
        }
        let context = Context::from_arc_dwarf(Arc::clone(&dwarf)).ok()?;
        let (units, scopes) = (RefCell::default(), Scopes::default());
        Some(Debug { context, dwarf, units, begins, scopes, package: None })
    }

    /// Takes the units of `-gsplit-dwarf` from a package too, as `dwp` makes one.
    pub(super) fn with_package(mut self, package: Option<&Image>) -> Debug {
        self.package = package.and_then(|image| {
            let load = |id: gimli::SectionId| {
                Ok::<_, gimli::Error>(image.section(id.dwo_name().unwrap_or("")))
            };
            DwarfPackage::load(load, image.section("")).ok()
        });
        self
    }

    /// Calls a function with each unit, or with the one in the file that `-gsplit-dwarf` puts
    /// beside the object file. So with those of the file that several share parts of, and with
    /// those that `-fdebug-types-section` puts apart.
    pub(super) fn for_each_unit(&self, mut read: impl FnMut(UnitRef<'_, Slice>)) {
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = self.dwarf.unit(header) else { continue };
            let unit = UnitRef::new(&self.dwarf, &unit);
            let Some(split) = self.split(unit) else {
                read(unit);
                continue;
            };
            let first = split.units().next().ok().flatten();
            if let Some(Ok(unit)) = first.map(|header| split.unit(header)) {
                read(UnitRef::new(&split, &unit));
            }
        }
        let mut headers = self.dwarf.type_units();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = self.dwarf.unit(header) {
                read(UnitRef::new(&self.dwarf, &unit));
            }
        }
        let Some(shared) = self.dwarf.sup() else { return };
        let mut headers = shared.units();
        while let Ok(Some(header)) = headers.next() {
            if let Ok(unit) = shared.unit(header) {
                read(UnitRef::new(shared, &unit));
            }
        }
    }

    fn split(&self, unit: UnitRef<'_, Slice>) -> Option<Dwarf<Slice>> {
        let id = unit.dwo_id?;
        let name = unit.attr_string(unit.dwo_name().ok()??).ok()?;
        self.split_file(unit.comp_dir.as_ref(), Some(&name), id, &self.dwarf)
    }

    /// The file of one unit, or its part of the package.
    fn split_file(
        &self,
        directory: Option<&Slice>,
        name: Option<&Slice>,
        id: DwoId,
        parent: &Dwarf<Slice>,
    ) -> Option<Dwarf<Slice>> {
        let file = name.and_then(|name| split_file(directory, name, id, parent));
        file.or_else(|| self.package.as_ref()?.find_cu(id, parent).ok()?)
    }

    /// Ends a look-up, with the files that `-gsplit-dwarf` puts beside the object files.
    fn with_split_files<L>(&self, mut lookup: LookupResult<L>) -> L::Output
    where
        L: LookupContinuation<Buf = Slice>,
    {
        loop {
            match lookup {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    let SplitDwarfLoad { dwo_id, comp_dir, path, parent } = &load;
                    let (directory, name) = (comp_dir.as_ref(), path.as_ref());
                    let file = self.split_file(directory, name, *dwo_id, parent);
                    lookup = continuation.resume(file.map(Arc::new));
                }
            }
        }
    }

    /// The functions at an address, innermost first. A function that GCC split and put together
    /// again is one.
    pub(super) fn places(&self, address: u64) -> Vec<Place> {
        let mut out = Vec::new();
        let Ok(mut frames) = self.with_split_files(self.context.find_frames(address)) else {
            return out;
        };
        let unit = self.with_split_files(self.context.find_dwarf_and_unit(address));
        while let Ok(Some(frame)) = frames.next() {
            let entry = frame.dw_die_offset;
            let raw = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let function = raw.as_ref().map(|raw| self.name(raw, unit, entry));
            let mangled = raw.map(|raw| raw.into_owned()).unwrap_or_default();
            let start = unit.zip(entry).and_then(|(unit, entry)| start(unit, entry));
            let location = frame.location.as_ref();
            let file = location.and_then(|location| location.file).unwrap_or("").to_owned();
            let line = location.and_then(|location| location.line).unwrap_or(0);
            let column = location.and_then(|location| location.column).unwrap_or(0);
            let mut place = Place { function, mangled, file, line, start, ..Place::default() };
            match out.last_mut() {
                Some(rest)
                    if is_same(rest, &place) && self.calls_rest(unit, entry, (line, column)) =>
                {
                    (place.file, place.line) = (std::mem::take(&mut rest.file), rest.line);
                    *rest = place;
                }
                _ => out.push(place),
            }
        }
        // Only the last one is a function of its own; the others are inlined into it.
        let count = out.len();
        for place in out.iter_mut().take(count.saturating_sub(1)) {
            place.start = None;
            place.function = place.function.take().map(|name| qualified(name, &place.file));
        }
        out
    }

    /// The name of a function. Rust's older names have no type arguments; they are taken from the
    /// entry: `alloc::boxed::Box<T>::new::<Widget>`.
    fn name(
        &self,
        raw: &str,
        unit: Option<UnitRef<'_, Slice>>,
        entry: Option<UnitOffset>,
    ) -> String {
        let name = demangle(raw);
        let is_legacy = is_legacy_rust(raw);
        if name != raw && !is_legacy {
            return name;
        }
        let own = unit.zip(entry).and_then(|(unit, entry)| self.entry_name(unit, entry));
        match own {
            None => name,
            Some(own) if is_legacy => with_arguments(name, &own.name),
            Some(own) => own.scope + &own.name,
        }
    }

    /// Whether the call at this line and column of a function is that of its own rest, which GCC
    /// split off: it has the place of the function's name in its declaration. Where columns are
    /// missing, recursion in one line would look alike.
    fn calls_rest(
        &self,
        unit: Option<UnitRef<'_, Slice>>,
        entry: Option<UnitOffset>,
        (line, column): (u32, u32),
    ) -> bool {
        let Some((unit, entry)) = unit.zip(entry).filter(|_| line > 0 && column > 0) else {
            return false;
        };
        let number = |what: DwAt| {
            let value = |_: UnitRef<'_, Slice>, entry: &Entry| entry.attr(what)?.udata_value();
            self.of_entry(unit, entry, 0, &value)
        };
        number(DW_AT_decl_line) == Some(line.into())
            && number(DW_AT_decl_column) == Some(column.into())
    }

    /// The name of an entry, or of the one that it is a copy of.
    fn entry_name(&self, unit: UnitRef<'_, Slice>, offset: UnitOffset) -> Option<EntryName> {
        self.of_entry(unit, offset, 0, &|unit, entry| {
            let name = unit.attr_string(entry.attr_value(DW_AT_name)?).ok()?;
            let name = String::from_utf8_lossy(&name).into_owned();
            Some(EntryName { name, scope: self.scopes.prefix(unit, entry.offset()) })
        })
    }

    /// What is read of an entry, or of the one that it is a copy of.
    fn of_entry<T>(
        &self,
        unit: UnitRef<'_, Slice>,
        offset: UnitOffset,
        depth: usize,
        read: &dyn Fn(UnitRef<'_, Slice>, &Entry) -> Option<T>,
    ) -> Option<T> {
        if depth == REFERENCES_MAX {
            return None;
        }
        let entry = unit.entry(offset).ok()?;
        if let Some(found) = read(unit, &entry) {
            return Some(found);
        }
        let origin = entry.attr_value(DW_AT_abstract_origin);
        match origin.or_else(|| entry.attr_value(DW_AT_specification))? {
            AttributeValue::UnitRef(entry) => self.of_entry(unit, entry, depth + 1, read),
            AttributeValue::DebugInfoRef(offset) => {
                let (other, entry) = self.unit_of(offset)?;
                self.of_entry(UnitRef::new(&self.dwarf, &other), entry, depth + 1, read)
            }
            _ => None,
        }
    }

    /// The unit that contains an entry.
    fn unit_of(&self, offset: DebugInfoOffset) -> Option<(Rc<Unit<Slice>>, UnitOffset)> {
        let behind = self.begins.partition_point(|begin| *begin <= offset.0);
        let begin = *self.begins[..behind].last()?;
        let known = self.units.borrow().get(&begin).cloned();
        let unit = match known {
            Some(unit) => unit,
            None => {
                let header = self.dwarf.unit_header(DebugInfoOffset(begin)).ok()?;
                let unit = Rc::new(self.dwarf.unit(header).ok()?);
                self.units.borrow_mut().insert(begin, Rc::clone(&unit));
                unit
            }
        };
        Some((unit, UnitOffset(offset.0 - begin)))
    }
}

/// A name of Rust's older form with the type arguments that its entry has.
pub(super) fn with_arguments(name: String, own: &str) -> String {
    let arguments = own.find('<').filter(|at| *at > 0).map(|at| &own[at..]);
    match arguments.map(|arguments| arguments.replace(", alloc::alloc::Global>", ">")) {
        None => name,
        Some(arguments) if arguments == "<alloc::alloc::Global>" => name,
        // The older form of `drop_in_place<Widget>` has them.
        Some(_) if name.ends_with('>') => name,
        Some(arguments) => format!("{name}::{arguments}"),
    }
}

/// Whether two places are of one function.
fn is_same(one: &Place, other: &Place) -> bool {
    one.function.is_some() && one.function == other.function && one.mangled == other.mangled
}

fn start(unit: UnitRef<'_, Slice>, entry: UnitOffset) -> Option<u64> {
    let value = unit.entry(entry).ok()?.attr_value(DW_AT_low_pc)?;
    unit.attr_address(value).ok().flatten()
}

/// Reads the file of one unit. One of another build is not used.
fn split_file(
    directory: Option<&Slice>,
    name: &Slice,
    id: DwoId,
    parent: &Dwarf<Slice>,
) -> Option<Dwarf<Slice>> {
    let text = |slice: &Slice| PathBuf::from(String::from_utf8_lossy(slice).into_owned());
    let mut path = directory.map(text).unwrap_or_default();
    path.push(text(name));
    let image = Image::read(&path).ok()?;
    let mut dwarf = Dwarf::load(|id| {
        let name = id.dwo_name().unwrap_or("");
        Ok::<_, gimli::Error>(image.section(name))
    })
    .ok()?;
    let header = dwarf.units().next().ok()??;
    let is_it = dwarf.unit(header).ok()?.dwo_id == Some(id);
    dwarf.make_dwo(parent);
    is_it.then_some(dwarf)
}
