//! The allocator that this process was started on: `liblumalloc.so`, called by its C interface.
use super::Namespace;
use super::collected::{self, Collected};
use lumalloc_ctl::{Buffers, Error};
use lumalloc_namespace::heap_map::Part;
use lumalloc_namespace::self_description::NAMES;
use lumalloc_namespace::writer::WriteCallback;
use lumalloc_namespace::{MAX_DEPTH, VERSION};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::mem::transmute;
use std::ptr;

type NameToMib = unsafe extern "C" fn(*const c_char, *mut usize, *mut usize) -> c_int;
type ByMib =
    unsafe extern "C" fn(*const usize, usize, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;
type Print = unsafe extern "C" fn(Option<WriteCallback>, *mut c_void, *const c_char);

type Map =
    unsafe extern "C" fn(Option<WriteCallback>, *mut c_void, c_uint, *const c_void, usize) -> c_int;
type MapAt = unsafe extern "C" fn(Option<WriteCallback>, *mut c_void, *const c_void) -> c_int;

/// The index of all arenas. Source: jemalloc(3), `MALLCTL_ARENAS_ALL`.
const ALL: c_uint = 4096;

/// The functions of the shared object.
#[derive(Clone, Copy, Debug)]
pub struct Preloaded {
    name_to_mib: NameToMib,
    by_mib: ByMib,
    print: Print,
    map: Map,
    map_at: MapAt,
}

/// Why the exporter cannot use the allocator of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsuited {
    /// `malloc` is not the function of lumalloc.
    OtherAllocator,
    /// The process runs on another version of lumalloc.
    Version {
        /// The version that the allocator reports.
        found: String,
    },
    /// The version is equal, but the keys differ, because the sources differ.
    OtherKeys,
}

impl fmt::Display for Unsuited {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ours = VERSION.to_string_lossy();
        match self {
            Unsuited::OtherAllocator => write!(
                to,
                "this process does not run on lumalloc: liblumalloc.so must stand first in \
                 LD_PRELOAD"
            ),
            Unsuited::Version { found } => {
                write!(to, "it is of lumalloc {ours}, and this process runs on lumalloc {found}")
            }
            Unsuited::OtherKeys => write!(
                to,
                "this process runs on a lumalloc {ours} with other keys: liblumalloc.so and \
                 liblumalloc_exporter.so must come from one build"
            ),
        }
    }
}

impl std::error::Error for Unsuited {}

impl Preloaded {
    /// Finds the functions among the symbols of the process, and checks that they belong to the
    /// lumalloc whose rows are compiled in.
    ///
    /// # Errors
    /// [`Unsuited`] if they do not.
    pub fn find() -> Result<Preloaded, Unsuited> {
        let symbol = |name: &CStr| {
            // SAFETY: the name is NUL-terminated.
            let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            if address.is_null() { Err(Unsuited::OtherAllocator) } else { Ok(address) }
        };
        let name_to_mib = symbol(c"mallctlnametomib")?;
        let by_mib = symbol(c"mallctlbymib")?;
        let print = symbol(c"malloc_stats_print")?;
        let map = symbol(c"lumalloc_map")?;
        let map_at = symbol(c"lumalloc_map_at")?;
        let preloaded = Preloaded {
            // SAFETY: every allocator that exports `mallctlnametomib` has it with this type.
            name_to_mib: unsafe { transmute::<*mut c_void, NameToMib>(name_to_mib) },
            // SAFETY: as for `mallctlnametomib`.
            by_mib: unsafe { transmute::<*mut c_void, ByMib>(by_mib) },
            // SAFETY: as for `mallctlnametomib`.
            print: unsafe { transmute::<*mut c_void, Print>(print) },
            // SAFETY: only lumalloc has the function, with this type.
            map: unsafe { transmute::<*mut c_void, Map>(map) },
            // SAFETY: as for `lumalloc_map`.
            map_at: unsafe { transmute::<*mut c_void, MapAt>(map_at) },
        };
        preloaded.check()?;
        Ok(preloaded)
    }

    /// Compares the allocator's version and names with those that are compiled in.
    fn check(&self) -> Result<(), Unsuited> {
        // jemalloc does not have the key `ctl.names`.
        let names = self.text("ctl.names").ok_or(Unsuited::OtherAllocator)?;
        let version = self.text("version").ok_or(Unsuited::OtherAllocator)?;
        if version != VERSION {
            return Err(Unsuited::Version { found: version.to_string_lossy().into_owned() });
        }
        if names == NAMES { Ok(()) } else { Err(Unsuited::OtherKeys) }
    }

    /// Reads a text by its name, without the compiled-in rows.
    fn text(&self, name: &str) -> Option<&'static CStr> {
        let mut mib = [0; MAX_DEPTH];
        let depth = self.mib(name, &mut mib).ok()?;
        let mut text: *const c_char = ptr::null();
        let mut length = size_of_val(&text);
        let buffers = Buffers {
            oldp: (&raw mut text).cast(),
            oldlenp: &raw mut length,
            newp: ptr::null(),
            newlen: 0,
        };
        // SAFETY: there is room for a pointer, and `length` is the size of a pointer.
        unsafe { self.call(mib.get(..depth)?, buffers) }.ok()?;
        // SAFETY: both keys return a text that stays valid.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    }
}

impl Namespace for Preloaded {
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error> {
        let name = CString::new(name).map_err(|_| Error::NoEntry)?;
        let mut depth = mib.len();
        // SAFETY: the name is NUL-terminated, and the array has `depth` elements.
        let outcome = unsafe { (self.name_to_mib)(name.as_ptr(), mib.as_mut_ptr(), &mut depth) };
        result(outcome).map(|()| depth)
    }

    unsafe fn call(&self, mib: &[usize], buffers: Buffers) -> Result<(), Error> {
        let Buffers { oldp, oldlenp, newp, newlen } = buffers;
        let call = self.by_mib;
        // SAFETY: the C function has the contract of this method, which the caller keeps.
        result(unsafe { call(mib.as_ptr(), mib.len(), oldp, oldlenp, newp.cast_mut(), newlen) })
    }

    fn print(&self, letters: &CStr) -> Result<Vec<u8>, Error> {
        let mut text = Collected::default();
        let to = (&raw mut text).cast();
        // SAFETY: `add` takes any text and is given one that outlives the call.
        unsafe { (self.print)(Some(collected::add), to, letters.as_ptr()) };
        text.whole()
    }

    fn map(&self, part: Part) -> Result<Vec<u8>, Error> {
        let mut text = Collected::default();
        let (to, add) = ((&raw mut text).cast(), Some(collected::add as WriteCallback));
        // The library takes this and what lies above for sets of arenas.
        if part.arena.is_some_and(|arena| arena >= ALL) {
            return Err(Error::NoEntry);
        }
        let (arena, from) = (part.arena.unwrap_or(ALL), ptr::without_provenance(part.from));
        // SAFETY: `add` takes any text and is given one that outlives the call.
        result(unsafe { (self.map)(add, to, arena, from, part.most) })?;
        text.whole()
    }

    fn map_at(&self, address: usize) -> Result<Vec<u8>, Error> {
        let mut text = Collected::default();
        let (to, add) = ((&raw mut text).cast(), Some(collected::add as WriteCallback));
        // SAFETY: `add` takes any text and is given one that outlives the call. With a callback
        // the function cannot fail.
        unsafe { (self.map_at)(add, to, ptr::without_provenance(address)) };
        text.whole()
    }
}

/// Converts an error number into the error that it stands for.
fn result(code: c_int) -> Result<(), Error> {
    Err(match code {
        0 => return Ok(()),
        libc::ENOENT => Error::NoEntry,
        libc::EPERM => Error::NotPermitted,
        libc::EINVAL => Error::Invalid,
        libc::EAGAIN => Error::Again,
        libc::EBUSY => Error::Busy,
        libc::ENOMEM => Error::NoMemory,
        _ => Error::Fault,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocator_without_the_names_is_another_one() {
        assert_eq!(Preloaded::find().err(), Some(Unsuited::OtherAllocator));
    }

    #[test]
    fn error_numbers_are_the_errors_that_they_came_from() {
        assert_eq!(result(0), Ok(()));
        for error in [
            Error::NoEntry,
            Error::Busy,
            Error::NotPermitted,
            Error::Invalid,
            Error::Again,
            Error::Fault,
            Error::NoMemory,
        ] {
            assert_eq!(result(error.errno()), Err(error));
        }
    }

    #[test]
    fn each_reason_in_words() {
        let version = VERSION.to_str().unwrap();
        assert_eq!(
            Unsuited::OtherAllocator.to_string(),
            "this process does not run on lumalloc: liblumalloc.so must stand first in LD_PRELOAD"
        );
        assert_eq!(
            Unsuited::Version { found: "9.9.9".into() }.to_string(),
            format!("it is of lumalloc {version}, and this process runs on lumalloc 9.9.9")
        );
        assert_eq!(
            Unsuited::OtherKeys.to_string(),
            format!(
                "this process runs on a lumalloc {version} with other keys: liblumalloc.so and \
                 liblumalloc_exporter.so must come from one build"
            )
        );
    }

    /// The namespace of this executable behind C functions, as the shared object has it.
    mod c {
        use super::*;
        use crate::namespace::Linked;

        pub(super) unsafe extern "C" fn name_to_mib(
            name: *const c_char,
            mib: *mut usize,
            depth: *mut usize,
        ) -> c_int {
            // SAFETY: the callers give a NUL-terminated text.
            let name = unsafe { CStr::from_ptr(name) };
            // SAFETY: the callers give an array of this length.
            let mib = unsafe { &mut *mib.cast::<[usize; MAX_DEPTH]>() };
            match Linked.mib(name.to_str().unwrap(), mib) {
                Ok(used) => {
                    // SAFETY: the callers give a valid place.
                    unsafe { *depth = used };
                    0
                }
                Err(error) => error.errno(),
            }
        }

        pub(super) unsafe extern "C" fn by_mib(
            mib: *const usize,
            length: usize,
            oldp: *mut c_void,
            oldlenp: *mut usize,
            newp: *mut c_void,
            newlen: usize,
        ) -> c_int {
            // SAFETY: the callers give an array of this length.
            let mib = unsafe { std::slice::from_raw_parts(mib, length) };
            // SAFETY: the callers keep the contract of `call`.
            let outcome = unsafe { Linked.call(mib, Buffers { oldp, oldlenp, newp, newlen }) };
            outcome.err().map_or(0, Error::errno)
        }

        pub(super) unsafe extern "C" fn print(
            write: Option<WriteCallback>,
            to: *mut c_void,
            letters: *const c_char,
        ) {
            // SAFETY: the callers give a NUL-terminated text.
            let letters = unsafe { CStr::from_ptr(letters) };
            let text = CString::new(Linked.print(letters).unwrap()).unwrap();
            // SAFETY: the callers' callback takes any text.
            unsafe { write.unwrap()(to, text.as_ptr()) };
        }

        pub(super) unsafe extern "C" fn map(
            write: Option<WriteCallback>,
            to: *mut c_void,
            arena: c_uint,
            from: *const c_void,
            most: usize,
        ) -> c_int {
            let arena = (arena != ALL).then_some(arena);
            match Linked.map(Part { arena, from: from.addr(), most }) {
                Ok(text) => {
                    let text = CString::new(text).unwrap();
                    // SAFETY: the callers' callback takes any text.
                    unsafe { write.unwrap()(to, text.as_ptr()) };
                    0
                }
                Err(error) => error.errno(),
            }
        }

        pub(super) unsafe extern "C" fn map_at(
            write: Option<WriteCallback>,
            to: *mut c_void,
            address: *const c_void,
        ) -> c_int {
            let text = CString::new(Linked.map_at(address.addr()).unwrap()).unwrap();
            // SAFETY: the callers' callback takes any text.
            unsafe { write.unwrap()(to, text.as_ptr()) };
            0
        }
    }

    #[test]
    fn c_functions_answer_as_the_rust_ones() {
        use lumalloc_ctl::Value;
        let preloaded = Preloaded {
            name_to_mib: c::name_to_mib,
            by_mib: c::by_mib,
            print: c::print,
            map: c::map,
            map_at: c::map_at,
        };
        assert_eq!(preloaded.check(), Ok(()));
        let namespace: &dyn Namespace = &preloaded;
        let read = |name: &str| namespace.read(&namespace.find(name).unwrap());
        assert_eq!(read("version"), Ok(Value::Str(VERSION)));
        assert_eq!(read("arenas.bin.1.size"), Ok(Value::Size(16)));
        assert_eq!(read("thread.prof.name"), Err(Error::NoEntry));
        assert_eq!(namespace.find("stats.alocated").err(), Some(Error::NoEntry));
        let index = namespace.create(&namespace.find("arenas.create").unwrap()).unwrap();
        namespace.set_arena_name(index, c"mine").unwrap();
        assert_eq!(namespace.arena_name(index), Ok("mine".to_string()));
        assert_eq!(namespace.act(&namespace.find("arena.0.decay").unwrap()), Ok(()));
        let decay = namespace.find(&format!("arena.{index}.dirty_decay_ms")).unwrap();
        assert_eq!(namespace.write(&decay, Value::Ssize(1234)), Ok(()));
        assert_eq!(namespace.read(&decay), Ok(Value::Ssize(1234)));
        assert_eq!(namespace.write(&decay, Value::Ssize(-2)), Err(Error::Fault));
        assert_eq!(namespace.print(c"Jgmdablxe").unwrap().first(), Some(&b'{'));
        let part = Part { arena: None, from: 64, most: 1 };
        let text = String::from_utf8(namespace.map(part).unwrap()).unwrap();
        assert_eq!(text.matches("\"base\":").count(), 1, "{text}");
        for arena in [4000, ALL, ALL + 1] {
            let none = Part { arena: Some(arena), ..part };
            assert_eq!(namespace.map(none), Err(Error::NoEntry), "{arena}");
        }
        assert!(namespace.map_at(64).unwrap().starts_with(b"{\"page\":4096,\"run\":null,"));
    }
}
