//! The data of an ELF file as they are once it is loaded: words and texts at addresses.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile, FileHeader, Rela, SectionHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, ReadCache, SegmentFlags};

use crate::profile::Mapping;
use crate::program_file;

/// A longer name of a class is not read.
const NAME_MAX: usize = 1 << 16;
/// What the symbols of v-tables, `type_info` and its names begin with.
const RTTI: &str = "_ZT";
/// What the symbols of v-tables begin with.
pub(super) const VTABLE: &str = "_ZTV";
/// What those of `type_info` begin with.
pub(super) const TYPE_INFO: &str = "_ZTI";
/// What those of the names in `type_info` begin with.
pub(super) const TYPE_NAME: &str = "_ZTS";

/// A part of the file that is loaded.
struct Part {
    address: u64,
    offset: u64,
    file_size: u64,
    memory_size: u64,
    is_code: bool,
}

impl Part {
    fn contains(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.memory_size
    }
}

/// A pointer that the dynamic linker fills in.
enum Target {
    /// An address in the file's own numbering.
    Address(u64),
    /// The index of the name of a symbol.
    Symbol(usize),
    /// The word in the file is the address.
    InPlace,
    /// Something else.
    Other,
}

/// A word of eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// A number.
    Constant(u64),
    /// An address in the file's own numbering.
    Address(u64),
    /// The address of a symbol.
    Symbol(&'a str),
    /// An address that is not known.
    Unknown,
}

/// The symbol of a v-table or a `type_info`.
struct Symbol {
    address: u64,
    size: u64,
    name: String,
}

/// An ELF file.
pub(super) struct Image {
    file: File,
    endian: Endianness,
    build_id: String,
    /// Whether words without a pointer of the linker may be addresses.
    is_fixed: bool,
    parts: Vec<Part>,
    /// Sorted by their places.
    pointers: Vec<(u64, Target)>,
    names: Vec<String>,
    /// Sorted by their addresses.
    symbols: Vec<Symbol>,
}

type Header = FileHeader64<Endianness>;
type Elf<'a> = ElfFile<'a, Header, &'a ReadCache<File>>;

impl Image {
    /// Reads the heads, the pointers and the symbols of v-tables of a file.
    pub(super) fn read(path: &Path) -> Result<Image, String> {
        let say = |error: &dyn std::fmt::Display| error.to_string();
        let file = program_file::open(path)?;
        let cache = ReadCache::new(file.try_clone().map_err(|error| say(&error))?);
        let elf = Elf::parse(&cache).map_err(|error| say(&error))?;
        let endian = elf.endian();
        let build_id = elf.build_id().ok().flatten().unwrap_or_default();
        let mut image = Image {
            file,
            endian,
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            is_fixed: elf.elf_header().e_type(endian) == elf::ET_EXEC,
            parts: parts(&elf),
            pointers: Vec::new(),
            names: Vec::new(),
            symbols: Vec::new(),
        };
        image.read_pointers(&elf).map_err(|error| say(&error))?;
        image.symbols = symbols(&elf);
        Ok(image)
    }

    /// Its build-id in hexadecimal digits; may be empty.
    pub(super) fn build_id(&self) -> &str {
        &self.build_id
    }

    /// How far the addresses of a process are from the file's own numbering.
    pub(super) fn bias(&self, mapping: &Mapping) -> Option<u64> {
        let length = mapping.limit - mapping.start;
        let overlaps = |part: &&Part| {
            let from = part.offset.max(mapping.offset);
            let part_end = part.offset.saturating_add(part.file_size);
            part.is_code && from < part_end.min(mapping.offset.saturating_add(length))
        };
        let part = self.parts.iter().find(overlaps)?;
        let start = mapping.start.wrapping_sub(mapping.offset);
        Some(start.wrapping_add(part.offset).wrapping_sub(part.address))
    }

    /// From the first address to the end of the last part.
    pub(super) fn range(&self) -> std::ops::Range<u64> {
        let begin = self.parts.iter().map(|part| part.address).min().unwrap_or(0);
        let ends = self.parts.iter().map(|part| part.address.saturating_add(part.memory_size));
        begin..ends.max().unwrap_or(0)
    }

    /// Whether an address lies in the file.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.parts.iter().any(|part| part.contains(address))
    }

    /// Whether code lies at an address.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.parts.iter().any(|part| part.is_code && part.contains(address))
    }

    /// The word at an address.
    pub(super) fn word(&self, address: u64) -> Option<Word<'_>> {
        let pointer = self.pointers.binary_search_by_key(&address, |(place, _)| *place).ok();
        match pointer.map(|at| &self.pointers[at].1) {
            Some(Target::Address(address)) => return Some(Word::Address(*address)),
            Some(Target::Symbol(name)) => return Some(Word::Symbol(&self.names[*name])),
            Some(Target::Other) => return Some(Word::Unknown),
            Some(Target::InPlace) | None => {}
        }
        let mut bytes = [0; 8];
        (self.bytes(address, &mut bytes)? == 8).then_some(())?;
        let value = match self.endian {
            Endianness::Little => u64::from_le_bytes(bytes),
            Endianness::Big => u64::from_be_bytes(bytes),
        };
        let is_address = self.is_fixed || pointer.is_some();
        Some(if is_address { Word::Address(value) } else { Word::Constant(value) })
    }

    /// The text at an address, up to its nil.
    pub(super) fn text(&self, address: u64) -> Option<String> {
        let mut text = Vec::new();
        let mut piece = [0; 256];
        while text.len() < NAME_MAX {
            let count = self.bytes(address.checked_add(text.len() as u64)?, &mut piece)?;
            match piece[..count].iter().position(|byte| *byte == 0) {
                None if count == 0 => return None,
                None => text.extend_from_slice(&piece[..count]),
                Some(end) => {
                    text.extend_from_slice(&piece[..end]);
                    return String::from_utf8(text).ok();
                }
            }
        }
        None
    }

    /// The name of the symbol that contains an address, and how far it is from the first one.
    pub(super) fn symbol(&self, address: u64) -> Option<(&str, u64)> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols[..behind].last()?;
        let inside = address - symbol.address;
        (inside <= symbol.size).then_some((symbol.name.as_str(), inside))
    }

    /// Reads what the file has at an address, at most up to the end of the part.
    fn bytes(&self, address: u64, into: &mut [u8]) -> Option<usize> {
        let part = self
            .parts
            .iter()
            .find(|part| address >= part.address && address - part.address < part.file_size)?;
        let inside = address - part.address;
        let left = usize::try_from(part.file_size - inside).unwrap_or(usize::MAX);
        let count = into.len().min(left);
        self.file.read_at(&mut into[..count], part.offset.checked_add(inside)?).ok()
    }

    /// Reads the places that the dynamic linker fills in.
    fn read_pointers(&mut self, elf: &Elf<'_>) -> object::read::Result<()> {
        let (endian, data) = (self.endian, elf.data());
        let machine = elf.elf_header().e_machine(endian);
        let sections = elf.elf_section_table();
        let mut known = HashMap::new();
        for section in sections.iter() {
            // The others are for a linker that makes a program of this file.
            if !section.sh_flags(endian).contains(elf::SHF_ALLOC) {
                continue;
            }
            if let Some(places) = section.relr(endian, data)? {
                self.pointers.extend(places.map(|place| (place, Target::InPlace)));
            }
            let Some((relas, _)) = section.rela(endian, data)? else { continue };
            let symbols = elf.elf_dynamic_symbol_table();
            for rela in relas {
                let symbol = || {
                    let symbol = symbols.symbol(rela.symbol(endian, false)?).ok()?;
                    let name = symbols.symbol_name(endian, symbol).ok()?;
                    std::str::from_utf8(name).ok().filter(|name| name.starts_with(RTTI))
                };
                let target = match rela.r_type(endian, false) {
                    kind if is_relative(kind, machine) => {
                        Target::Address(rela.r_addend(endian) as u64)
                    }
                    kind if is_absolute(kind, machine) => symbol().map_or(Target::Other, |name| {
                        let names = &mut self.names;
                        Target::Symbol(*known.entry(name).or_insert_with(|| {
                            names.push(name.to_owned());
                            names.len() - 1
                        }))
                    }),
                    _ => Target::Other,
                };
                self.pointers.push((rela.r_offset(endian), target));
            }
        }
        self.pointers.sort_by_key(|(place, _)| *place);
        Ok(())
    }
}

/// Whether the linker fills in an address of the file itself.
fn is_relative(kind: elf::RelocationType, machine: elf::Machine) -> bool {
    match machine {
        elf::EM_X86_64 => kind == elf::R_X86_64_RELATIVE,
        elf::EM_AARCH64 => kind == elf::R_AARCH64_RELATIVE,
        _ => false,
    }
}

/// Whether the linker fills in the address of a symbol.
fn is_absolute(kind: elf::RelocationType, machine: elf::Machine) -> bool {
    match machine {
        elf::EM_X86_64 => kind == elf::R_X86_64_64,
        elf::EM_AARCH64 => kind == elf::R_AARCH64_ABS64,
        _ => false,
    }
}

fn parts(elf: &Elf<'_>) -> Vec<Part> {
    let parts = elf.segments().map(|segment| {
        let (offset, file_size) = segment.file_range();
        let flags = segment.flags();
        let is_code =
            matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.contains(elf::PF_X));
        let (address, memory_size) = (segment.address(), segment.size());
        Part { address, offset, file_size, memory_size, is_code }
    });
    parts.collect()
}

/// The symbols of v-tables and of `type_info`, sorted by their addresses.
fn symbols(elf: &Elf<'_>) -> Vec<Symbol> {
    let mut out = Vec::new();
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let name = symbol.name().unwrap_or("");
        let is_one = [VTABLE, TYPE_INFO].iter().any(|begin| name.starts_with(begin));
        if is_one && symbol.is_definition() {
            let (address, size) = (symbol.address(), symbol.size());
            out.push(Symbol { address, size, name: name.to_owned() });
        }
    }
    out.sort_by_key(|symbol| symbol.address);
    out
}
