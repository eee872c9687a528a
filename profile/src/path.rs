//! Names of files, and those that files get without one.

use crate::decimal::Decimal;
use crate::process::{pid_namespace, process_id};
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use lumalloc::{control, options};

/// The longest path that is used.
pub(crate) const LONGEST_PATH: usize = 4096;

/// A path in a buffer of its own.
#[derive(Clone)]
pub struct Path {
    bytes: [u8; LONGEST_PATH],
    length: usize,
}

impl Path {
    /// Creates an empty path.
    #[must_use]
    pub const fn new() -> Path {
        Path { bytes: [0; LONGEST_PATH], length: 0 }
    }

    /// Makes the path empty.
    pub(crate) fn clear(&mut self) {
        self.bytes.fill(0);
        self.length = 0;
    }

    /// Appends bytes. Returns `None`, and changes nothing, if the path would be too long.
    pub fn push(&mut self, bytes: &[u8]) -> Option<&mut Path> {
        // The last byte stays zero.
        let room = self.bytes.get_mut(self.length..LONGEST_PATH - 1)?.get_mut(..bytes.len())?;
        room.copy_from_slice(bytes);
        self.length += bytes.len();
        Some(self)
    }

    /// Appends a decimal number.
    pub fn push_number(&mut self, number: u64) -> Option<&mut Path> {
        self.push(Decimal::of(number).as_bytes())
    }

    /// Appends what tells the process from others, between dots: its number, and before it with
    /// `opt.prof_pid_namespace` the namespace of that.
    pub(crate) fn push_process(&mut self) -> Option<&mut Path> {
        let mut path = self.push(b".")?;
        if options::current().prof_pid_namespace {
            path = path.push_number(pid_namespace().unwrap_or(0))?.push(b".")?;
        }
        path.push_number(u64::from(process_id()))?.push(b".")
    }

    /// Returns the path as a C string.
    #[must_use]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

impl Default for Path {
    fn default() -> Path {
        Path::new()
    }
}

/// The numbers of files of one kind whose names are made here.
pub(crate) struct Numbered {
    ending: &'static str,
    next: AtomicU64,
}

impl Numbered {
    /// Creates a kind of files whose names end so.
    pub(crate) const fn new(ending: &'static str) -> Numbered {
        Numbered { ending, next: AtomicU64::new(0) }
    }

    /// Returns the path of that name, or without a name `<prefix>.<pid>.<number>` and the ending,
    /// where the prefix is that of profiles (`prof.prefix`). `None` if the name or the prefix is
    /// empty, or longer than any path.
    pub(crate) fn path(&self, name: Option<&CStr>) -> Option<Path> {
        let prefix = control::profile::prefix();
        let base = name.unwrap_or(prefix.as_c_str());
        let mut path = Path::new();
        path.push(base.to_bytes()).filter(|_| !base.is_empty())?;
        if name.is_none() {
            path.push_process()?
                .push_number(self.next.fetch_add(1, Relaxed))?
                .push(self.ending.as_bytes())?;
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn a_path_is_never_longer_than_its_room() {
        let mut path = Path::new();
        assert!(path.push(b"name.").and_then(|path| path.push_number(1203)).is_some());
        assert_eq!(path.as_c_str(), c"name.1203");
        assert!(path.push(&[b'x'; LONGEST_PATH]).is_none());
        assert!(path.push(&[b'y'; LONGEST_PATH - 10]).is_some());
        assert!(path.push(b"z").is_none() && path.push_number(0).is_none());
        assert_eq!(path.as_c_str().to_bytes().len(), LONGEST_PATH - 1);
    }

    #[test]
    fn a_name_that_is_missing_is_made_and_an_empty_one_is_refused() {
        let kind = Numbered::new(".kind");
        let named = |name| kind.path(name).map(|path| CString::from(path.as_c_str()));
        assert_eq!(named(Some(c"a name")).as_deref(), Some(c"a name"));
        assert_eq!(named(Some(c"")), None);
        for number in 0..2 {
            let expected = std::format!("jeprof.{}.{number}.kind", std::process::id());
            assert_eq!(named(None).expect("a name").to_str(), Ok(&expected[..]));
        }
    }
}
