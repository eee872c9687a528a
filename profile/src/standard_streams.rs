//! What the C and the C++ library keep until the process ends: what is written and not yet sent,
//! and the memory for it.

#[cfg(target_env = "gnu")]
use core::ffi::CStr;
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

/// Gives the memory back that programs have without having asked for it: the buffers of the
/// standard streams, which stay usable, and what libstdc++ keeps for exceptions without memory.
///
/// No other stream is looked at: the C library would wait for one that another thread reads from.
pub(crate) fn give_memory_back() {
    flush();
    let (input, [output, errors]) = streams();
    for stream in [input, output, errors] {
        // SAFETY: a stream that was flushed.
        let free = |stream| _ = unsafe { libc::setvbuf(stream, ptr::null_mut(), libc::_IONBF, 0) };
        alone(stream, free);
    }
    let address = freeres();
    if address != 0 {
        let function = ptr::with_exposed_provenance::<()>(address);
        // SAFETY: this function of libstdc++ takes and returns nothing.
        let give_back = unsafe { mem::transmute::<*const (), extern "C" fn()>(function) };
        give_back();
    }
}

/// Sends what was written to the standard streams that no other thread uses.
fn flush() {
    // SAFETY: a stream.
    let flush_one = |stream| _ = unsafe { libc::fflush(stream) };
    streams().1.into_iter().for_each(|stream| _ = alone(stream, flush_one));
}

/// Ends the process, which exits already, with a failure. What was written to streams is sent as at
/// any exit, but where that would wait for a stream that another thread reads from: in a process
/// with threads, with glibc from 2.37 on. There what was written to the standard streams is sent.
/// The functions that a program's libraries have for the end, and that come later, are not called.
pub(crate) fn fail() -> ! {
    // A second exit goes on with the handlers that are left. Other C libraries refuse it.
    #[cfg(target_env = "gnu")]
    if has_one_thread() || !exit_waits() {
        // SAFETY: the handler that runs now is not called again.
        unsafe { libc::exit(libc::EXIT_FAILURE) }
    }
    flush();
    // SAFETY: ends the process.
    unsafe { libc::_exit(libc::EXIT_FAILURE) }
}

/// Whether the process never had a second thread, as far as the C library tells it.
#[cfg(target_env = "gnu")]
fn has_one_thread() -> bool {
    let address = single_threaded();
    // SAFETY: a variable of the C library, which exists for ever.
    address != 0 && unsafe { *ptr::with_exposed_provenance::<u8>(address) } != 0
}

/// Whether `exit` waits for streams that other threads use, as glibc does from 2.37 on.
#[cfg(target_env = "gnu")]
fn exit_waits() -> bool {
    // SAFETY: the call has no arguments.
    let version = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: a text that exists for ever.
    let version = unsafe { CStr::from_ptr(version) };
    let minor = version.to_bytes().strip_prefix(b"2.").unwrap_or_default();
    let digits = minor.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u32, digit| number * 10 + u32::from(digit - b'0')) > 36
}

// `__libc_single_threaded`, which glibc has from 2.32 on.
#[cfg(target_env = "gnu")]
lumalloc::weak_symbol!(single_threaded, "__libc_single_threaded");

// `__gnu_cxx::__freeres` of libstdc++. Where it is not, `dlsym` would leave a message allocated,
// which would count as a leak of the program.
lumalloc::weak_symbol!(freeres, "_ZN9__gnu_cxx9__freeresEv");
