//! The allocator of this executable.
use super::{Namespace, Target};
use lumalloc_ctl::{Access, Error, Value};
use lumalloc_namespace::MAX_DEPTH;
use lumalloc_namespace::entry::Entry;
use lumalloc_namespace::print::{self, Choice};
use lumalloc_namespace::tree;
use lumalloc_namespace::writer::Writer;
use std::ffi::{CStr, c_char, c_void};

/// The allocator that this executable was linked with, as a `#[global_allocator]` or beside.
pub struct Linked;

impl Namespace for Linked {
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error> {
        tree::name_to_mib(name.as_bytes(), mib)
    }

    fn read(&self, target: &Target) -> Result<Value<'static>, Error> {
        Entry::find(target.mib())?.read()
    }

    fn write(&self, target: &Target, value: Value<'_>) -> Result<(), Error> {
        Entry::find(target.mib())?.write(value)
    }

    fn act(&self, target: &Target) -> Result<(), Error> {
        let entry = Entry::find(target.mib())?;
        match entry.row.access {
            Access::Trigger(act) => act(entry.mib),
            _ => Err(Error::NotPermitted),
        }
    }

    fn create(&self, target: &Target) -> Result<u32, Error> {
        let entry = Entry::find(target.mib())?;
        let Access::Create(_, create) = entry.row.access else { return Err(Error::NotPermitted) };
        match create(entry.mib, None)? {
            Value::Unsigned(index) => Ok(index),
            _ => Err(Error::Invalid),
        }
    }

    fn print(&self, letters: &CStr) -> Vec<u8> {
        let mut text = Vec::new();
        // SAFETY: `append` takes any text and is given the vector, which outlives the writer.
        let mut writer = unsafe { Writer::new(append, (&raw mut text).cast()) };
        print::print(&mut writer, Choice::from_letters(letters.to_bytes()));
        drop(writer);
        text
    }
}

/// Appends a piece of text to the vector behind `to`.
///
/// # Safety
/// `to` must be a `Vec<u8>` that nobody else uses, `piece` NUL-terminated.
unsafe extern "C" fn append(to: *mut c_void, piece: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { &mut *to.cast::<Vec<u8>>() };
    // SAFETY: as above.
    let piece = unsafe { CStr::from_ptr(piece) };
    text.extend_from_slice(piece.to_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_written_and_triggered() {
        let namespace: &dyn Namespace = &Linked;
        let epoch = namespace.find("epoch").unwrap();
        namespace.write(&epoch, Value::U64(1)).unwrap();
        let first = namespace.read(&epoch).unwrap();
        namespace.write(&epoch, Value::U64(1)).unwrap();
        assert_ne!(namespace.read(&epoch).unwrap(), first);
        let purge = namespace.find("arena.4096.purge").unwrap();
        assert_eq!(namespace.act(&purge), Ok(()));
        assert_eq!(namespace.act(&epoch), Err(Error::NotPermitted));
        assert_eq!(namespace.find("arena.4000.purge").err(), Some(Error::NoEntry));
    }

    #[test]
    fn statistics_are_printed() {
        let text = Linked.print(c"Jmdablxe");
        assert_eq!(text.first(), Some(&b'{'));
        assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
    }
}
