//! Which part of the program an address belongs to, and where its unwind tables are.
//!
//! `_dl_find_object` (glibc 2.35) takes no lock and allocates nothing. Without it no tables are
//! found, and walks follow frame pointers only.
//!
//! The list of modules begins with the program and what was loaded with it, which is never
//! unloaded. Modules that are opened later come to its end. The loader itself was loaded with the
//! program, so all up to it stay. Others may stand behind it: [`note_start`] finds the last.

use crate::ground::process;
use crate::ground::weak::weak_symbol;
use core::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use core::sync::atomic::Ordering::{self, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicPtr};

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

/// `struct r_debug` of the C library, by which debuggers find modules.
#[repr(C)]
struct Debugged {
    version: c_int,
    first: *const Link,
    called: usize,
    state: c_int,
    loader: usize,
}

/// The most modules of a program's start that are looked through.
const MOST_AT_START: usize = 4096;

weak_symbol!(finder, "_dl_find_object");
weak_symbol!(debugged, "_r_debug");
// The C interface has this variable.
weak_symbol!(variable, "malloc_conf");

/// Whether the C library has begun to call the functions that are to run before `main`.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

/// The modules that were loaded with the program, in the order of the list of modules.
struct Start {
    first: AtomicPtr<Link>,
    /// Null: not known.
    last: AtomicPtr<Link>,
}

static START: Start = Start {
    first: AtomicPtr::new(core::ptr::null_mut()),
    last: AtomicPtr::new(core::ptr::null_mut()),
};

/// A module that was found not to be among them, so that those need not be looked through for each
/// frame of a stack.
static OPENED: AtomicPtr<Link> = AtomicPtr::new(core::ptr::null_mut());

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

/// Returns whether a module is known to stay: the program, the allocator, and those from the
/// program to the last that was loaded with it, or if that is not known, to the loader.
fn stays(found: &Found) -> bool {
    if found.contains(of_system(libc::AT_ENTRY)) || found.contains(stays as *const () as usize) {
        return true;
    }
    // Relaxed: the address alone counts. Places of modules that stay are never given back, so an
    // address that was none of theirs will never be. One that was stored before the last of them
    // was known only makes walks slower.
    if OPENED.load(Relaxed).cast_const() == found.link {
        return false;
    }
    let Some((mut link, last)) = known_start().or_else(start_to_loader) else { return false };
    for _ in 0..MOST_AT_START {
        if link.is_null() {
            return false;
        }
        if link == found.link {
            return true;
        }
        if link == last {
            OPENED.store(found.link.cast_mut(), Relaxed);
            return false;
        }
        // SAFETY: up to `last` modules stay, and so do their places in the list.
        link = unsafe { (*link).next };
    }
    false
}

/// Returns the places of the program and of the last module that was loaded with it, if
/// [`note_start`] has found that one.
fn known_start() -> Option<(*const Link, *const Link)> {
    // Acquire: pairs with the Release in `note_start`, which has stored `first` before.
    let last = START.last.load(Ordering::Acquire);
    (!last.is_null()).then(|| (START.first.load(Relaxed).cast_const(), last.cast_const()))
}

/// Returns the places of the program and of the loader.
fn start_to_loader() -> Option<(*const Link, *const Link)> {
    let program = ask(of_system(libc::AT_ENTRY))?.link;
    Some((program, ask(loader())?.link))
}

/// Returns the address of the loader, or 0 if there is none. Of a loader that was started itself,
/// with the program as its argument, the system does not tell it. Then debuggers are told.
fn loader() -> usize {
    let told = process::loader();
    if told != 0 {
        return told;
    }
    let debugged = core::ptr::with_exposed_provenance::<Debugged>(debugged());
    if debugged.is_null() {
        return 0;
    }
    // SAFETY: the record of the C library, which has this number before any other code is called.
    unsafe { (*debugged).loader }
}

fn of_system(what: c_ulong) -> usize {
    // SAFETY: any value may be asked for.
    unsafe { libc::getauxval(what) as usize }
}

/// What [`note_start`] needs to know of the heap.
#[derive(Clone, Copy)]
pub(crate) struct Heap {
    /// Whether the loader's `calloc` is this allocator's. Called under no lock.
    pub(crate) serves_loader: fn() -> bool,
    /// Whether a block of this allocator begins at an address.
    pub(crate) is_ours: fn(*const u8) -> bool,
}

/// Finds the last module that was loaded with the program. Called once, when the library is loaded.
/// It takes the loader's lock.
///
/// The list of modules has those first that were loaded with the program. The loader allocates
/// their places itself, before it has `calloc` of the program. A place of a module that is opened
/// later is a block of `calloc`. So if that is this allocator's, the first place that is such a
/// block is the first of those, even where a constructor has opened modules already.
///
/// If the allocator itself was opened, or lies in another list of modules, nothing is found.
pub(crate) fn note_start(heap: Heap) {
    let own = ask(note_start as *const () as usize);
    let (Some((first, loader)), Some(own)) = (start_to_loader(), own) else { return };
    // A static program has neither.
    if first == loader || !is_between(first, own.link, loader) || !(heap.serves_loader)() {
        return;
    }
    let mut walk = Walk { first, is_ours: heap.is_ours, last: core::ptr::null() };
    // SAFETY: the function takes what it is called with here.
    unsafe { libc::dl_iterate_phdr(Some(find_last), (&raw mut walk).cast()) };
    START.first.store(first.cast_mut(), Relaxed);
    // Release: pairs with the Acquire in `known_start`.
    START.last.store(walk.last.cast_mut(), Ordering::Release);
    OPENED.store(core::ptr::null_mut(), Relaxed);
}

/// Returns whether a place comes before the loader's, from the program's on.
fn is_between(first: *const Link, place: *const Link, loader: *const Link) -> bool {
    let mut link = first;
    for _ in 0..MOST_AT_START {
        if link.is_null() || link == loader || link == place {
            break;
        }
        // SAFETY: up to the loader modules stay, and so do their places in the list.
        link = unsafe { (*link).next };
    }
    link == place
}

/// The argument of [`find_last`].
struct Walk {
    first: *const Link,
    is_ours: fn(*const u8) -> bool,
    /// The last module that was loaded with the program, once it is found.
    last: *const Link,
}

/// Walks through the list of modules, which nobody changes meanwhile: the C library calls this
/// under its lock, and for the first module only.
unsafe extern "C" fn find_last(_: *mut libc::dl_phdr_info, _: usize, walk: *mut c_void) -> c_int {
    // SAFETY: the argument that `note_start` passes.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    let mut last = walk.first;
    for _ in 0..MOST_AT_START {
        // SAFETY: a module in the list, under the lock.
        let next = unsafe { (*last).next };
        if next.is_null() || (walk.is_ours)(next.cast()) {
            walk.last = last;
            break;
        }
        last = next;
    }
    1
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
