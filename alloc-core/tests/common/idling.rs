//! What an idle process is measured by, without the allocator's help.

use lumalloc::{observe, raw};
use std::time::{Duration, Instant};

pub(crate) const MIB: usize = 1 << 20;

/// The bytes of this process in physical memory, counted page by page.
pub(crate) fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").expect("smaps_rollup");
    let line = text.lines().find(|line| line.starts_with("Rss:")).expect("Rss");
    let kib = line.split_whitespace().nth(1).and_then(|word| word.parse::<usize>().ok());
    kib.expect("a number") << 10
}

/// The names of this process's threads.
pub(crate) fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        let comm = task.ok()?.path().join("comm");
        Some(std::fs::read_to_string(comm).ok()?.trim_end().to_owned())
    };
    tasks.filter_map(name).collect()
}

pub(crate) fn background_threads() -> usize {
    threads().iter().filter(|name| *name == "lumalloc_bg").count()
}

/// Waits for an event that must come, without large allocations meanwhile.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(300), "no {what}: {:#?}", observe::totals());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits as an idle process does: in the kernel, without a call of the allocator.
pub(crate) fn doze(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// Allocates and writes small and large blocks, frees them all, and returns the RSS from before.
pub(crate) fn dirty(bytes: usize) -> usize {
    let before = resident();
    let large = raw::malloc(bytes / 2);
    // SAFETY: a live block, this long.
    unsafe { large.write_bytes(1, bytes / 2) };
    let small: Vec<Box<[u8; 200]>> = (0..bytes / 2 / 208).map(|_| Box::new([1; 200])).collect();
    assert!(resident() > bytes / 2, "written memory is resident");
    drop(small);
    // SAFETY: a live block, freed once.
    unsafe { raw::free(large) };
    before
}

/// The RSS, read by system calls alone.
pub(crate) fn rss_without_allocating(text: &mut [u8]) -> usize {
    // SAFETY: the path is a C string.
    let fd = unsafe { libc::open(c"/proc/self/smaps_rollup".as_ptr(), libc::O_RDONLY) };
    // SAFETY: the buffer is writable for its length.
    let length = unsafe { libc::read(fd, text.as_mut_ptr().cast(), text.len()) };
    // SAFETY: `fd` is open.
    unsafe { libc::close(fd) };
    let text = std::str::from_utf8(&text[..length as usize]).expect("text");
    let at = text.find("Rss:").expect("Rss") + 4;
    let number = text[at..].trim_start().split(' ').next().expect("a number");
    number.parse::<usize>().expect("a number") << 10
}

pub(crate) fn forked(f: impl FnOnce()) {
    // SAFETY: no other threads run, or only those of this library.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    let mut status = 0;
    // SAFETY: the call waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    assert_eq!(status, 0, "the child's status");
}

/// From here on no thread can be made, because the user may have no more of them.
pub(crate) fn no_more_threads() {
    no_threads_for_now();
}

/// As [`no_more_threads`], until [`threads_again`] gets what this returns.
pub(crate) fn no_threads_for_now() -> libc::rlimit {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place is writable.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NPROC, &raw mut before) }, 0);
    threads_again(libc::rlimit { rlim_cur: 0, ..before });
    // SAFETY: the call takes only numbers. Root would not be bound by the limit.
    if unsafe { libc::geteuid() } == 0 {
        // SAFETY: the call takes only numbers.
        assert_eq!(unsafe { libc::setuid(65_534) }, 0);
    }
    before
}

/// Sets how many threads the user may have.
pub(crate) fn threads_again(limit: libc::rlimit) {
    // SAFETY: the limit is readable.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NPROC, &raw const limit) }, 0);
}
