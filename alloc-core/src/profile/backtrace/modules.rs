//! Which part of the program an address belongs to, and where its unwind tables are.
//!
//! `_dl_find_object` (glibc 2.35) takes no lock and allocates nothing. Without it no tables are
//! found, and walks follow frame pointers only.

use crate::ground::process;
use crate::ground::weak::weak_symbol;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A loaded file: the program, or a shared object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    /// The first address, by which modules are told apart. If there are gaps between the module's
    /// segments, it is that of the segment with the code.
    pub(super) begin: usize,
    /// The table `.eh_frame_hdr`. 0 if the file has none.
    pub(super) tables: usize,
    /// Whether the module is known to stay until the process ends. Else `dlclose` may unload it,
    /// and then another one may take its addresses.
    pub(super) stays: bool,
}

/// `struct dl_find_object` of glibc.
#[repr(C)]
struct Found {
    flags: u64,
    begin: *mut c_void,
    end: *mut c_void,
    link: *const Link,
    tables: *mut c_void,
    reserved: [u64; 7],
}

impl Found {
    fn contains(&self, address: usize) -> bool {
        (self.begin.addr()..self.end.addr()).contains(&address)
    }
}

/// The part of `struct link_map` of glibc that programs may read: a module in the list of modules.
#[repr(C)]
struct Link {
    base: usize,
    name: *const c_char,
    dynamic: *const c_void,
    next: *const Link,
    before: *const Link,
}

/// The most modules of a program's start that are looked through.
const MOST_AT_START: usize = 4096;

weak_symbol!(finder, "_dl_find_object");
// The C interface has this variable.
weak_symbol!(variable, "malloc_conf");

/// Whether the C library has begun to call the functions that are to run before `main`.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// Notes that the C library has begun to call the functions that are to run before `main`.
pub(super) fn begin() {
    HAS_BEGUN.store(true, Relaxed);
}

/// Whether modules can be found. If this allocator is the C library's in a static program, which
/// has no loader, then the C library allocates while it makes the list of modules, and must not be
/// asked for one.
fn is_ready() -> bool {
    if HAS_BEGUN.load(Relaxed) {
        return true;
    }
    process::loader() != 0 || variable() == 0
}

/// Returns the module that contains an address, or `None` if none does.
pub(super) fn find(address: usize) -> Option<Module> {
    let found = ask(address)?;
    Some(Module {
        begin: found.begin.expose_provenance(),
        tables: found.tables.expose_provenance(),
        stays: stays(&found),
    })
}

/// A loaded file.
pub(super) struct LoadedFile<'a> {
    /// What is added to addresses in the file.
    pub(super) base: usize,
    /// Its path, which is empty for the program.
    pub(super) path: &'a [u8],
}

/// Returns the file that the code at an address was loaded from. The path is there as long as the
/// file is loaded.
pub(super) fn loaded_file<'a>(address: usize) -> Option<LoadedFile<'a>> {
    let found = ask(address)?;
    // SAFETY: a module that was just found has such a place in the list.
    let link = unsafe { found.link.as_ref() }?;
    if link.name.is_null() {
        return Some(LoadedFile { base: link.base, path: b"" });
    }
    // SAFETY: the loader keeps the name as long as the module.
    let path = unsafe { CStr::from_ptr(link.name) }.to_bytes();
    Some(LoadedFile { base: link.base, path })
}

/// Asks the C library for the module that contains an address.
fn ask(address: usize) -> Option<Found> {
    let finder = finder();
    if finder == 0 || !is_ready() {
        return None;
    }
    type Finder = unsafe extern "C" fn(*mut c_void, *mut Found) -> i32;
    // SAFETY: the symbol is this function of glibc.
    let finder: Finder = unsafe { core::mem::transmute(finder) };
    let nothing = core::ptr::null_mut();
    let mut found = Found {
        flags: 0,
        begin: nothing,
        end: nothing,
        link: core::ptr::null(),
        tables: nothing,
        reserved: [0; 7],
    };
    let address = core::ptr::without_provenance_mut(address);
    // SAFETY: any address may be asked for, and the record is of the length that glibc writes.
    let status = unsafe { finder(address, &raw mut found) };
    (status == 0).then_some(found)
}

/// Returns whether a module is known to stay: the program, the allocator, and those that the list
/// of modules has from the program to the loader. These were loaded with the program, because
/// modules that are opened later come to the end of the list, and they are never unloaded. Others
/// that were loaded with the program may stand behind the loader. They cannot be told from opened
/// ones.
fn stays(found: &Found) -> bool {
    // SAFETY: any value may be asked for.
    let of_system = |what| unsafe { libc::getauxval(what) } as usize;
    let entry = of_system(libc::AT_ENTRY);
    if found.contains(entry) || found.contains(stays as *const () as usize) {
        return true;
    }
    let (Some(program), Some(loader)) = (ask(entry), ask(of_system(libc::AT_BASE))) else {
        return false;
    };
    let mut link = program.link;
    for _ in 0..MOST_AT_START {
        if link.is_null() || link == found.link {
            break;
        }
        if link == loader.link {
            return false;
        }
        // SAFETY: up to the loader modules stay, and so do their places in the list.
        link = unsafe { (*link).next };
    }
    link == found.link && !link.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_a_module_with_tables_and_a_block_in_none() {
        let own = find(find as *const () as usize).expect("the program");
        assert!(own.begin != 0 && own.begin <= find as *const () as usize && own.tables != 0);
        let of_c = find(libc::abort as *const () as usize).expect("the C library");
        assert!(of_c.begin != own.begin && of_c.tables != 0);
        let block = std::boxed::Box::new(0u8);
        assert!(find(core::ptr::from_ref(&*block) as usize).is_none());
        assert!(find(0).is_none() && find(usize::MAX).is_none());
    }
    #[test]
    fn only_what_was_loaded_with_the_program_is_known_to_stay() {
        let stays = |address| find(address).expect("a module").stays;
        assert!(stays(find as *const () as usize), "the program");
        assert!(stays(libc::abort as *const () as usize), "the C library");
        // Nothing but this test needs this library of glibc.
        let name = c"libBrokenLocale.so.1";
        // SAFETY: the library runs no code of its own.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null());
        // SAFETY: a handle of glibc is the module in the list.
        let inside = unsafe { (*handle.cast::<Link>()).dynamic }.addr();
        assert!(!stays(inside), "a library that was opened");
        // SAFETY: the handle is open.
        assert_eq!(unsafe { libc::dlclose(handle) }, 0);
        assert!(find(inside).is_none());
    }
}
