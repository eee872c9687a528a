//! The allocator of this executable.
use super::Namespace;
use super::collected::{self, Collected};
use lumalloc_ctl::{Buffers, Error};
use lumalloc_namespace::MAX_DEPTH;
use lumalloc_namespace::heap_map::{self, Part};
use lumalloc_namespace::print::{self, Choice};
use lumalloc_namespace::tree;
use lumalloc_namespace::writer::Writer;
use std::ffi::CStr;

/// The allocator that is linked into this executable, as its `#[global_allocator]` or beside it.
pub struct Linked;

impl Namespace for Linked {
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error> {
        tree::name_to_mib(name.as_bytes(), mib)
    }

    unsafe fn call(&self, mib: &[usize], buffers: Buffers) -> Result<(), Error> {
        // SAFETY: `access` has the contract of this function, which the caller keeps.
        unsafe { lumalloc_namespace::access(mib, buffers) }
    }

    fn print(&self, letters: &CStr) -> Result<Vec<u8>, Error> {
        written(|writer| print::print(writer, Choice::from_letters(letters.to_bytes())))
    }

    fn map(&self, part: Part) -> Result<Vec<u8>, Error> {
        if part.arena.is_some_and(|arena| self.arena_name(arena).is_err()) {
            return Err(Error::NoEntry);
        }
        written(|writer| heap_map::print(writer, part))
    }

    fn map_at(&self, address: usize) -> Result<Vec<u8>, Error> {
        written(|writer| heap_map::print_at(writer, address))
    }
}

fn written(write: impl FnOnce(&mut Writer)) -> Result<Vec<u8>, Error> {
    let mut text = Collected::default();
    // SAFETY: `add` takes any text, and gets one that outlives the writer.
    let mut writer = unsafe { Writer::new(collected::add, (&raw mut text).cast()) };
    write(&mut writer);
    drop(writer);
    text.whole()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lumalloc_ctl::Value;

    #[test]
    fn keys_are_read_written_and_triggered() {
        let namespace: &dyn Namespace = &Linked;
        let epoch = namespace.find("epoch").unwrap();
        namespace.write(&epoch, Value::U64(1)).unwrap();
        let first = namespace.read(&epoch).unwrap();
        namespace.write(&epoch, Value::U64(1)).unwrap();
        assert_ne!(namespace.read(&epoch).unwrap(), first);
        assert_eq!(namespace.write(&epoch, Value::Bool(true)), Err(Error::Invalid));
        let purge = namespace.find("arena.4096.purge").unwrap();
        assert_eq!(namespace.act(&purge), Ok(()));
        assert_eq!(namespace.read(&purge), Err(Error::NotPermitted));
        assert_eq!(namespace.act(&epoch), Err(Error::NotPermitted));
        assert_eq!(namespace.create(&epoch), Err(Error::NotPermitted));
        assert_eq!(namespace.find("arena.4000.purge").err(), Some(Error::NoEntry));
    }

    #[test]
    fn an_arena_is_made_and_named() {
        let namespace: &dyn Namespace = &Linked;
        let create = namespace.find("arenas.create").unwrap();
        let index = namespace.create(&create).unwrap();
        namespace.set_arena_name(index, c"a name").unwrap();
        assert_eq!(namespace.arena_name(index), Ok("a name".to_string()));
        let long = c"a name of more bytes than arenas keep";
        namespace.set_arena_name(index, long).unwrap();
        assert_eq!(namespace.arena_name(index), Ok("a name of more bytes than arena".to_string()));
        assert!(namespace.arena_name(4095).is_err());
    }

    #[test]
    fn texts_and_numbers_are_read() {
        let namespace: &dyn Namespace = &Linked;
        let read = |name: &str| namespace.read(&namespace.find(name).unwrap());
        assert_eq!(read("version"), Ok(Value::Str(lumalloc_namespace::VERSION)));
        assert_eq!(read("arenas.page"), Ok(Value::Size(4096)));
        assert_eq!(read("config.stats"), Ok(Value::Bool(true)));
        assert_eq!(read("thread.prof.name"), Err(Error::NoEntry));
        assert_eq!(read("prof.gdump"), Ok(Value::Bool(false)));
        let off = namespace.find("prof.gdump").unwrap();
        assert_eq!(namespace.write(&off, Value::Bool(true)), Err(Error::NoEntry));
        assert_eq!(namespace.act(&namespace.find("prof.log_stop").unwrap()), Err(Error::NoEntry));
        assert_eq!(read("arenas.lookup"), Err(Error::NotPermitted));
    }

    #[test]
    fn statistics_are_printed() {
        let text = Linked.print(c"Jmdablxe").unwrap();
        assert_eq!(text.first(), Some(&b'{'));
        assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
    }
}
