//! Which part of the program an address belongs to, and where its unwind tables are.
//!
//! `_dl_find_object` (glibc 2.35) takes no lock and allocates nothing. Without it no tables are
//! found, and walks follow frame pointers only.

use crate::ground::weak::weak_symbol;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A loaded file: the program, or a shared object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Module {
    /// The first address, by which modules are told apart.
    pub(super) begin: usize,
    /// The table `.eh_frame_hdr`. 0 if the file has none.
    pub(super) tables: usize,
}

/// `struct dl_find_object` of glibc.
#[repr(C)]
struct Found {
    flags: u64,
    begin: *mut c_void,
    end: *mut c_void,
    link_map: *mut c_void,
    tables: *mut c_void,
    reserved: [u64; 7],
}

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
    // SAFETY: any value may be asked for.
    let loader = unsafe { libc::getauxval(libc::AT_BASE) };
    loader != 0 || variable() == 0
}

/// Returns the module that contains an address, or `None` if none does.
pub(super) fn find(address: usize) -> Option<Module> {
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
        link_map: nothing,
        tables: nothing,
        reserved: [0; 7],
    };
    let address = core::ptr::without_provenance_mut(address);
    // SAFETY: any address may be asked for, and the record is of the length that glibc writes.
    let status = unsafe { finder(address, &raw mut found) };
    (status == 0).then(|| Module {
        begin: found.begin.expose_provenance(),
        tables: found.tables.expose_provenance(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_a_module_with_tables_and_a_block_in_none() {
        let own = find(find as *const () as usize).expect("the program");
        assert!(own.begin != 0 && own.tables > own.begin);
        let of_c = find(libc::abort as *const () as usize).expect("the C library");
        assert!(of_c.begin != own.begin && of_c.tables != 0);
        let block = std::boxed::Box::new(0u8);
        assert!(find(core::ptr::from_ref(&*block) as usize).is_none());
        assert!(find(0).is_none() && find(usize::MAX).is_none());
    }
}
