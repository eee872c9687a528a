//! `__libc_start_main`: the only function between the loader and `main` that every dynamically
//! linked executable calls. All constructors have run when it calls `main`, and no other thread of
//! the program has to wait for what is done there.
use crate::start;
use std::ffi::{c_char, c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicPtr, Ordering};

// Not "C-unwind": a caller in Rust that is built to abort would then end the process when `main`
// calls `pthread_exit`, which unwinds through here.
type Main = unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;
type StartMain = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    *mut *mut c_char,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_void,
) -> c_int;

/// The program's `main`.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Calls the C library's function of this name. Starts the exporter before `main` if it is wished
/// for.
///
/// # Safety
/// As for the C library's function: the loader calls it once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    main: *mut c_void,
    argc: c_int,
    argv: *mut *mut c_char,
    init: *mut c_void,
    fini: *mut c_void,
    loader_fini: *mut c_void,
    stack_end: *mut c_void,
) -> c_int {
    // SAFETY: the name is NUL-terminated.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"__libc_start_main".as_ptr()) };
    if next.is_null() {
        start::say("the C library has no __libc_start_main");
        // SAFETY: `_exit` ends the process, which cannot be started.
        unsafe { libc::_exit(127) };
    }
    // SAFETY: the C library's function of this name has this type.
    let next = unsafe { transmute::<*mut c_void, StartMain>(next) };
    MAIN.store(main, Ordering::Relaxed);
    let main = if start::is_wished() { before_main as Main as *mut c_void } else { main };
    // SAFETY: these are the caller's arguments, with a `main` of the right type.
    unsafe { next(main, argc, argv, init, fini, loader_fini, stack_end) }
}

/// Starts the exporter, then the program.
unsafe extern "C" fn before_main(
    argc: c_int,
    argv: *mut *mut c_char,
    envp: *mut *mut c_char,
) -> c_int {
    start::start();
    // SAFETY: `__libc_start_main` got the program's `main`, and stored it.
    let main = unsafe { transmute::<*mut c_void, Main>(MAIN.load(Ordering::Relaxed)) };
    // SAFETY: these are the C library's arguments.
    unsafe { main(argc, argv, envp) }
}
