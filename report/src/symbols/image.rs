//! What is read from one ELF file: where its parts are loaded, its symbols and its sections.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gimli::{EndianArcSlice, RunTimeEndian, SectionId};
use object::{File, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

use crate::error::{Error, Result};
use crate::program_file;

/// The bytes of a section.
pub(super) type Slice = EndianArcSlice<RunTimeEndian>;

/// Functions whose beginning is put on a stack as a return address, though no call is before it: as
/// the caller of a signal handler, and of the first function of a coroutine.
const TRAMPOLINES: [&str; 3] = ["__restore_rt", "__restore", "__start_context"];

/// A part of the file that is loaded.
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
    /// Its bytes in memory. In a file of debug information alone it has fewer in the file.
    memory: u64,
    is_code: bool,
}

/// A function of the symbol table.
pub(super) struct Symbol {
    /// Its first address.
    pub(super) address: u64,
    size: u64,
    /// Its name, not demangled.
    pub(super) name: String,
}

impl Symbol {
    /// Makes a symbol.
    pub(super) fn new(address: u64, size: u64, name: &str) -> Symbol {
        Symbol { address, size, name: name.to_owned() }
    }
}

/// An ELF file.
pub(super) struct Image {
    path: PathBuf,
    bytes: Vec<u8>,
    build_id: String,
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
}

impl Image {
    /// Reads a file.
    pub(super) fn read(path: &Path) -> Result<Image> {
        let bytes = program_file::read(path).map_err(|what| Error::of_file(path, what))?;
        let image = {
            let file = File::parse(bytes.as_slice())
                .map_err(|error| Error::of_file(path, format!("it is no ELF file ({error})")))?;
            let build_id = file.build_id().ok().flatten().unwrap_or_default();
            let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
            let (segments, symbols) = (segments(&file), symbols(&file));
            Image { path: path.to_owned(), bytes: Vec::new(), build_id, segments, symbols }
        };
        Ok(Image { bytes, ..image })
    }

    /// The path that it was read from.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its build-id in hexadecimal digits; may be empty.
    pub(super) fn build_id(&self) -> &str {
        &self.build_id
    }

    /// Where the address of a byte of the file is in the file's own numbering.
    pub(super) fn address_of(&self, offset: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|segment| offset >= segment.offset && offset - segment.offset < segment.size)?;
        segment.address.checked_add(offset - segment.offset)
    }

    /// The addresses of the code, the first one rounded down to a page: for a file that has only
    /// debug information, in which parts have no places. None if the code has several parts.
    pub(super) fn code(&self) -> Option<Range<u64>> {
        let mut code = self.segments.iter().filter(|segment| segment.is_code);
        let only = code.next().filter(|_| code.next().is_none())?;
        Some(only.address & !0xfff..only.address.checked_add(only.memory)?)
    }

    /// Whether it has any symbols of functions.
    pub(super) fn has_symbols(&self) -> bool {
        !self.symbols.is_empty()
    }

    /// The function that contains an address. The byte before one of [`TRAMPOLINES`] belongs to it,
    /// if to no other.
    pub(super) fn symbol(&self, address: u64) -> Option<&Symbol> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        // Functions in assembly may have no size.
        let contains =
            |symbol: &&Symbol| symbol.size == 0 || address - symbol.address < symbol.size;
        let begins = |symbol: &&Symbol| {
            symbol.address - 1 == address && TRAMPOLINES.contains(&symbol.name.as_str())
        };
        let found = self.symbols[..behind].last().filter(contains);
        found.or_else(|| self.symbols.get(behind).filter(begins))
    }

    /// The contents of a section, unpacked. A section that is missing or damaged is empty.
    pub(super) fn section(&self, name: &str) -> Slice {
        let data = File::parse(self.bytes.as_slice()).ok().and_then(|file| {
            let section = file.section_by_name(name)?;
            section.uncompressed_data().ok().map(|data| Arc::<[u8]>::from(data.as_ref()))
        });
        EndianArcSlice::new(data.unwrap_or_else(|| Arc::from([])), self.endian())
    }

    fn endian(&self) -> RunTimeEndian {
        match self.bytes.get(5) {
            Some(2) => RunTimeEndian::Big,
            _ => RunTimeEndian::Little,
        }
    }

    /// Whether it has debug information.
    pub(super) fn has_debug(&self) -> bool {
        let file = File::parse(self.bytes.as_slice()).ok();
        file.is_some_and(|file| file.section_by_name(SectionId::DebugInfo.name()).is_some())
    }

    /// The name and the checksum of the file with its debug information.
    pub(super) fn debug_link(&self) -> Option<(String, u32)> {
        let file = File::parse(self.bytes.as_slice()).ok()?;
        let (name, checksum) = file.gnu_debuglink().ok()??;
        Some((String::from_utf8_lossy(name).into_owned(), checksum))
    }

    /// The name and the build-id of the file with what several debug files share.
    pub(super) fn shared_debug(&self) -> Option<(String, String)> {
        let file = File::parse(self.bytes.as_slice()).ok()?;
        let (name, build_id) = file.gnu_debugaltlink().ok()??;
        let build_id = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        Some((String::from_utf8_lossy(name).into_owned(), build_id))
    }

    /// The checksum of the file, as in a debug link.
    pub(super) fn checksum(&self) -> u32 {
        let mut checksum = flate2::Crc::new();
        checksum.update(&self.bytes);
        checksum.sum()
    }
}

fn segments(file: &File<'_>) -> Vec<Segment> {
    let segment = |segment: object::Segment<'_, '_>| {
        let (offset, size) = segment.file_range();
        let is_code = matches!(
            segment.flags(),
            object::SegmentFlags::Elf { p_flags, .. } if p_flags.contains(object::elf::PF_X)
        );
        let (address, memory) = (segment.address(), segment.size());
        Segment { offset, size, address, memory, is_code }
    };
    file.segments().map(segment).collect()
}

fn symbols(file: &File<'_>) -> Vec<Symbol> {
    let mut out = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
        if let Some(name) = symbol.name().ok().filter(|name| is_function && !name.is_empty()) {
            out.push(Symbol::new(symbol.address(), symbol.size(), name));
        }
    }
    // Of several names at one address the one with a size, then the shortest, is kept.
    out.sort_by_key(|symbol| {
        (symbol.address, symbol.size == 0, symbol.name.len(), symbol.name.clone())
    });
    out.dedup_by_key(|symbol| symbol.address);
    out
}
