//! What the C and the C++ library keep until the process ends: what is written and not yet sent,
//! and the memory for it.

use core::arch::asm;
use core::ffi::c_void;
use core::{mem, ptr};

unsafe extern "C" {
    static stdin: *mut libc::FILE;
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> i32;
    fn funlockfile(stream: *mut libc::FILE);
}

/// The buffered streams that the C library opens itself: that of input, and the others.
fn streams() -> (*mut libc::FILE, [*mut libc::FILE; 2]) {
    // SAFETY: the C library has set these, and a program may set other streams.
    unsafe { (stdin, [stdout, stderr]) }
}

/// Calls `work` with the stream if it is open, while no other thread uses it. Returns `false` if
/// one does, which may take for ever, and does nothing.
fn alone(stream: *mut libc::FILE, work: impl FnOnce(*mut libc::FILE)) -> bool {
    // SAFETY: a stream. One that was closed has no number.
    if unsafe { libc::fileno(stream) } < 0 {
        return true;
    }
    // SAFETY: an open stream.
    if unsafe { ftrylockfile(stream) } != 0 {
        return false;
    }
    work(stream);
    // SAFETY: this thread has locked it.
    unsafe { funlockfile(stream) };
    true
}

/// Sends what was written to all streams. If another thread waits for input, only what was written
/// to the standard streams.
pub(crate) fn flush() {
    let (input, outputs) = streams();
    // SAFETY: NULL stands for all streams.
    let flush_all = || _ = unsafe { libc::fflush(ptr::null_mut()) };
    // SAFETY: a stream.
    let flush_one = |stream| _ = unsafe { libc::fflush(stream) };
    if alone(input, |_| ()) {
        flush_all();
    } else {
        outputs.into_iter().for_each(|stream| _ = alone(stream, flush_one));
    }
}

/// Gives the memory back that programs have without having asked for it: the buffers of the
/// standard streams, which stay usable, and what libstdc++ keeps for exceptions without memory.
pub(crate) fn give_memory_back() {
    flush();
    let (input, [output, errors]) = streams();
    for stream in [input, output, errors] {
        // SAFETY: a stream that was flushed.
        let free = |stream| _ = unsafe { libc::setvbuf(stream, ptr::null_mut(), libc::_IONBF, 0) };
        alone(stream, free);
    }
    if let Some(give_back) = freeres() {
        // SAFETY: libstdc++ lets tools that look for leaks call this at the end of a process.
        unsafe { give_back() };
    }
}

type Freeres = unsafe extern "C" fn();

/// `__gnu_cxx::__freeres` of libstdc++, by a weak reference: where it is not, `dlsym` would leave a
/// message allocated, which would count as a leak of the program.
fn freeres() -> Option<Freeres> {
    let address: *mut c_void;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a weak reference reads as null if the symbol is not defined.
    unsafe {
        asm!(
            ".weak _ZN9__gnu_cxx9__freeresEv",
            "mov {}, qword ptr [rip + _ZN9__gnu_cxx9__freeresEv@GOTPCREL]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        asm!(
            ".weak _ZN9__gnu_cxx9__freeresEv",
            "adrp {0}, :got:_ZN9__gnu_cxx9__freeresEv",
            "ldr {0}, [{0}, :got_lo12:_ZN9__gnu_cxx9__freeresEv]",
            out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    // SAFETY: an Option of a function pointer has the layout of a C function pointer, NULL being
    // None, and this function of libstdc++ takes and returns nothing.
    unsafe { mem::transmute::<*mut c_void, Option<Freeres>>(address) }
}
