//! Regions through the functions of `liblumalloc.so`, as C programs use them.

use crate::heaps::Heap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::mem::transmute;
use std::ptr::NonNull;
use std::sync::OnceLock;

type Open = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> *mut c_void;
type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
type Alloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int;
type Resize = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> *mut c_void;

/// Functions of the library.
struct Library {
    open: Open,
    close: Close,
    alloc: Alloc,
    free: Free,
    resize: Resize,
    handle: Loaded,
}

/// A library that stays loaded.
struct Loaded(*mut c_void);

// SAFETY: the loader's functions take the pointer from any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW` of Linux.
const NOW: c_int = 2;

/// `VM_RSCOPY | VM_RSMOVE`.
const MOVE: c_int = 3;

impl Loaded {
    fn find(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is loaded, and the name is a C string.
        let place = unsafe { dlsym(self.0, name.as_ptr()) };
        assert!(!place.is_null(), "{name:?} is not in the library");
        place
    }

    /// Returns the pointer in a variable.
    fn variable(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the variables that are asked for hold pointers.
        unsafe { self.find(name).cast::<*mut c_void>().read() }
    }
}

/// Loads the library that lies beside this program, at the first call.
fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = std::env::current_exe().expect("the path of this program");
        let path = program.with_file_name("liblumalloc.so\0").into_os_string();
        let path = path.into_encoded_bytes();
        // SAFETY: the path ends with a zero byte.
        let handle = Loaded(unsafe { dlopen(path.as_ptr().cast(), NOW) });
        assert!(!handle.0.is_null(), "liblumalloc.so does not lie beside this program");
        Library {
            // SAFETY: vmalloc.h declares the function so.
            open: unsafe { transmute::<*mut c_void, Open>(handle.find(c"vmopen")) },
            // SAFETY: vmalloc.h declares the function so.
            close: unsafe { transmute::<*mut c_void, Close>(handle.find(c"vmclose")) },
            // SAFETY: vmalloc.h declares the function so.
            alloc: unsafe { transmute::<*mut c_void, Alloc>(handle.find(c"vmalloc")) },
            // SAFETY: vmalloc.h declares the function so.
            free: unsafe { transmute::<*mut c_void, Free>(handle.find(c"vmfree")) },
            // SAFETY: vmalloc.h declares the function so.
            resize: unsafe { transmute::<*mut c_void, Resize>(handle.find(c"vmresize")) },
            handle,
        }
    })
}

/// The method and the discipline of a region.
pub(crate) trait Names {
    const METHOD: &'static CStr;
    const DISCIPLINE: &'static CStr;
}

/// A region.
pub(crate) struct Handle<N>(NonNull<c_void>, &'static Library, PhantomData<N>);

impl<N: Names> Heap for Handle<N> {
    const DROPS: bool = true;

    fn open() -> Self {
        let library = library();
        let disc = library.handle.variable(N::DISCIPLINE);
        let method = library.handle.variable(N::METHOD);
        // SAFETY: the library's own discipline and method.
        let region = unsafe { (library.open)(disc, method, 0) };
        Handle(NonNull::new(region).expect("out of memory"), library, PhantomData)
    }

    #[inline]
    fn alloc(&self, size: usize) -> NonNull<u8> {
        // SAFETY: the region is open.
        let block = unsafe { (self.1.alloc)(self.0.as_ptr(), size) };
        NonNull::new(block.cast()).expect("out of memory")
    }

    #[inline]
    fn free(&self, block: NonNull<u8>, _size: usize) {
        // SAFETY: the region is open.
        let failed = unsafe { (self.1.free)(self.0.as_ptr(), block.as_ptr().cast()) };
        assert!(failed == 0, "a block of the region");
    }

    fn resize(&self, block: NonNull<u8>, _size: usize, new_size: usize) -> NonNull<u8> {
        let (region, block) = (self.0.as_ptr(), block.as_ptr().cast());
        // SAFETY: the region is open.
        let moved = unsafe { (self.1.resize)(region, block, new_size, MOVE) };
        NonNull::new(moved.cast()).expect("out of memory")
    }
}

impl<N> Drop for Handle<N> {
    fn drop(&mut self) {
        // SAFETY: the region is open, and not used any more.
        unsafe { (self.1.close)(self.0.as_ptr()) };
    }
}

/// `Vmbest` over `Vmdcsystem`.
pub(crate) enum Vmbest {}

/// `Vmlast` over `Vmdcheap`.
pub(crate) enum Vmlast {}

/// `Vmpool` over `Vmdcsystem`.
pub(crate) enum Vmpool {}

impl Names for Vmbest {
    const METHOD: &'static CStr = c"Vmbest";
    const DISCIPLINE: &'static CStr = c"Vmdcsystem";
}

impl Names for Vmlast {
    const METHOD: &'static CStr = c"Vmlast";
    const DISCIPLINE: &'static CStr = c"Vmdcheap";
}

impl Names for Vmpool {
    const METHOD: &'static CStr = c"Vmpool";
    const DISCIPLINE: &'static CStr = c"Vmdcsystem";
}
