//! The allocator's names. The allocator is in this executable ([`Linked`]), or in the shared object
//! that this process was started with ([`Preloaded`]).
//!
//! The facts of the namespace (type, unit, access, help) are equal in both cases, and compiled in.
//! Only reading, writing and the question which indices exist go to the allocator.
mod branch_text;
mod collected;
mod linked;
mod preloaded;
pub(crate) mod walk;

pub(crate) use branch_text::word;
pub use linked::Linked;
pub use preloaded::{Preloaded, Unsuited};

use lumalloc_ctl::{Buffers, Error, Type, Value};
use lumalloc_namespace::heap_map::Part;
use lumalloc_namespace::{Door, Fact, MAX_DEPTH, facts};
use std::ffi::CStr;
use std::ptr;

/// A key that was found: its facts, and its MIB with the indices of the name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The type, unit, access and help of the key.
    pub row: &'static Fact,
    mib: [usize; MAX_DEPTH],
    depth: usize,
}

impl Target {
    /// Returns the MIB of the key.
    #[must_use]
    pub fn mib(&self) -> &[usize] {
        &self.mib[..self.depth]
    }

    /// Returns this key with another number at a component, counted from 0: 1 in `arena.<i>.name`.
    #[must_use]
    pub fn with(mut self, place: usize, index: usize) -> Target {
        assert!(place < self.depth, "{} has no component {place}", self.row.name);
        self.mib[place] = index;
        self
    }
}

/// An allocator that is accessed by names.
pub trait Namespace: Send + Sync {
    /// Translates a name, or its beginning, into a MIB. Returns how many components were written.
    ///
    /// # Errors
    /// [`Error::NoEntry`] if a component or an index does not exist.
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error>;

    /// Accesses a key by its MIB, as `mallctlbymib(3)`.
    ///
    /// # Errors
    /// The error of the key.
    ///
    /// # Safety
    /// As for [`lumalloc_namespace::access()`].
    unsafe fn call(&self, mib: &[usize], buffers: Buffers) -> Result<(), Error>;

    /// Returns the text of `malloc_stats_print` for its option letters.
    ///
    /// # Errors
    /// [`Error::NoMemory`] if there is none for the text.
    fn print(&self, letters: &CStr) -> Result<Vec<u8>, Error>;

    /// Returns a part of the heap as a map, in JSON.
    ///
    /// # Errors
    /// [`Error::NoEntry`] if there is no such arena, [`Error::NoMemory`] if there is none for the
    /// text.
    fn map(&self, part: Part) -> Result<Vec<u8>, Error>;

    /// Returns the run around an address and the sites that hold it, in JSON.
    ///
    /// # Errors
    /// [`Error::NoMemory`] if there is none for the text.
    fn map_at(&self, address: usize) -> Result<Vec<u8>, Error>;

    /// Reads the value of a key.
    ///
    /// # Errors
    /// The error of the key, or [`Error::NotPermitted`] if the key has no value.
    fn read(&self, target: &Target) -> Result<Value<'static>, Error> {
        match target.row.door {
            Door::Read | Door::ReadWrite => {}
            Door::Absent => return Err(Error::NoEntry),
            _ => return Err(Error::NotPermitted),
        }
        let mut word = [0u8; WORD];
        let mut length = target.row.kind.size();
        let buffers = into(&mut word, &mut length);
        // SAFETY: no value is longer than the word, and `length` is the length of the value.
        unsafe { self.call(target.mib(), buffers) }?;
        decode(target.row.kind, &word)
    }

    /// Writes a value of the key's type.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a value of another type, otherwise the error of the key.
    fn write(&self, target: &Target, value: Value<'_>) -> Result<(), Error> {
        let kind = target.row.kind;
        if target.row.door == Door::Absent {
            return Err(Error::NoEntry);
        }
        if !target.row.is_written() {
            return Err(Error::NotPermitted);
        }
        if !kind.holds(value) {
            return Err(Error::Invalid);
        }
        let mut word = [0u8; WORD];
        let mut length = kind.size();
        // SAFETY: no value is longer than the word, and `length` is the length of the value.
        unsafe { into(&mut word, &mut length).answer(kind, value) }?;
        // SAFETY: the word holds a value of the key's type, and texts are NUL-terminated.
        unsafe { self.call(target.mib(), from(&word, length)) }
    }

    /// Triggers a `void` key.
    ///
    /// # Errors
    /// The error of the key.
    fn act(&self, target: &Target) -> Result<(), Error> {
        match target.row.door {
            Door::Trigger => {}
            Door::Absent => return Err(Error::NoEntry),
            _ => return Err(Error::NotPermitted),
        }
        // SAFETY: there are no buffers.
        unsafe { self.call(target.mib(), NO_BUFFERS) }
    }

    /// Makes what a key makes (`arenas.create`), and returns its index.
    ///
    /// # Errors
    /// The error of the key.
    fn create(&self, target: &Target) -> Result<u32, Error> {
        if !matches!(target.row.door, Door::Create(_)) || target.row.kind != Type::Unsigned {
            return Err(Error::NotPermitted);
        }
        let mut word = [0u8; WORD];
        let mut length = target.row.kind.size();
        // SAFETY: the word is longer than an `unsigned`, whose length is given.
        unsafe { self.call(target.mib(), into(&mut word, &mut length)) }?;
        let [a, b, c, d, ..] = word;
        Ok(u32::from_ne_bytes([a, b, c, d]))
    }

    /// Returns the name of an arena. Automatic arenas without a name are called `auto_0` and so on.
    ///
    /// # Errors
    /// The error of `arena.<i>.name`.
    fn arena_name(&self, index: u32) -> Result<String, Error> {
        let mut mib = [0; MAX_DEPTH];
        mib[..3].copy_from_slice(&arena_name_mib(self, index)?);
        let row = row_of("arena.0.name").ok_or(Error::NoEntry)?;
        self.text(&Target { row, mib, depth: 3 })
    }

    /// Reads a text that the key copies to a buffer.
    ///
    /// # Errors
    /// The error of the key, or [`Error::NotPermitted`] for another key.
    fn text(&self, target: &Target) -> Result<String, Error> {
        let room = text_room(target.row).ok_or(Error::NotPermitted)?;
        let mut text = vec![0u8; room];
        let mut place = text.as_mut_ptr().expose_provenance().to_ne_bytes();
        let mut length = WORD;
        // SAFETY: the word holds the address of as many bytes as the key writes.
        unsafe { self.call(target.mib(), into(&mut place, &mut length)) }?;
        let text = CStr::from_bytes_until_nul(&text).map_err(|_| Error::Fault)?;
        Ok(text.to_string_lossy().into_owned())
    }

    /// Names an arena.
    ///
    /// # Errors
    /// The error of `arena.<i>.name`.
    fn set_arena_name(&self, index: u32, name: &CStr) -> Result<(), Error> {
        let word = name.as_ptr().expose_provenance().to_ne_bytes();
        let mib = arena_name_mib(self, index)?;
        // SAFETY: the word holds the address of a NUL-terminated text.
        unsafe { self.call(&mib, from(&word, WORD)) }
    }
}

/// Bytes of the longest value.
const WORD: usize = 8;

/// Returns the bytes of the buffer to which a key copies its text; `None` for other keys. Source of
/// the first: jemalloc 5.3.1.
pub(crate) fn text_room(row: &Fact) -> Option<usize> {
    match row.name {
        "arena.<i>.name" | "vm.region.<i>.name" => Some(32),
        "vm.region.<i>.file" => Some(256),
        _ => None,
    }
}

const NO_BUFFERS: Buffers =
    Buffers { oldp: ptr::null_mut(), oldlenp: ptr::null_mut(), newp: ptr::null(), newlen: 0 };

/// Returns buffers to read into a word.
fn into(word: &mut [u8; WORD], length: &mut usize) -> Buffers {
    Buffers { oldp: word.as_mut_ptr().cast(), oldlenp: length, ..NO_BUFFERS }
}

/// Returns buffers to write from a word.
fn from(word: &[u8; WORD], length: usize) -> Buffers {
    Buffers { newp: word.as_ptr().cast(), newlen: length, ..NO_BUFFERS }
}

/// Decodes the value that a key wrote into a word.
fn decode(kind: Type, word: &[u8; WORD]) -> Result<Value<'static>, Error> {
    let lasting = |value: Option<Value<'_>>| match value {
        // SAFETY: a text that a key returns stays valid.
        Some(Value::Str(text)) => Ok(Value::Str(unsafe { CStr::from_ptr(text.as_ptr()) })),
        Some(Value::Bool(value)) => Ok(Value::Bool(value)),
        Some(Value::Unsigned(value)) => Ok(Value::Unsigned(value)),
        Some(Value::U32(value)) => Ok(Value::U32(value)),
        Some(Value::U64(value)) => Ok(Value::U64(value)),
        Some(Value::I64(value)) => Ok(Value::I64(value)),
        Some(Value::Size(value)) => Ok(Value::Size(value)),
        Some(Value::Ssize(value)) => Ok(Value::Ssize(value)),
        Some(Value::Pointer(value)) => Ok(Value::Pointer(value)),
        None => Err(Error::Fault),
    };
    // SAFETY: the word holds a value of that type.
    unsafe { from(word, kind.size()).given(kind, lasting) }
}

fn arena_name_mib<N: Namespace + ?Sized>(namespace: &N, index: u32) -> Result<[usize; 3], Error> {
    let mut mib = [0; MAX_DEPTH];
    namespace.mib("arena.0.name", &mut mib)?;
    Ok([mib[0], index as usize, mib[2]])
}

impl dyn Namespace + '_ {
    /// Finds the key of a name with its indices, as `arena.0.purge`.
    ///
    /// # Errors
    /// [`Error::NoEntry`] if there is no such key, or if an index does not exist.
    pub fn find(&self, name: &str) -> Result<Target, Error> {
        let row = row_of(name).ok_or(Error::NoEntry)?;
        let mut mib = [0; MAX_DEPTH];
        let depth = self.mib(name, &mut mib)?;
        Ok(Target { row, mib, depth })
    }
}

/// Returns the facts of a name, whether its indices exist or not.
#[must_use]
pub fn row_of(name: &str) -> Option<&'static Fact> {
    facts().iter().find(|row| matches(row.name, name))
}

/// Whether a name belongs to a row, with decimal numbers where the row has indices.
fn matches(row: &str, name: &str) -> bool {
    let mut parts = name.split('.');
    let all = row.split('.').all(|wanted| {
        let Some(part) = parts.next() else { return false };
        if wanted.starts_with('<') {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
        } else {
            part == wanted
        }
    });
    all && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_row_whatever_its_indices() {
        assert_eq!(row_of("stats.arenas.7.bins.3.curregs").unwrap().name.matches('<').count(), 2);
        assert_eq!(row_of("version").unwrap().name, "version");
        for wrong in ["", "stats", "stats.arenas.x.pactive", "stats.arenas..pactive", "version.0"] {
            assert!(row_of(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    #[should_panic(expected = "version has no component 1")]
    fn a_key_gets_no_number_behind_its_end() {
        let namespace: &dyn Namespace = &Linked;
        let _ = namespace.find("version").unwrap().with(1, 0);
    }
}
