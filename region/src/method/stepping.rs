//! Processes that end after any of their instructions, for tests of what is made whole then.

use crate::discipline::{Discipline, Resized};
use core::ptr::NonNull;
use std::vec::Vec;

/// Bytes for the region, and behind them as many for what the child says.
pub(crate) const ROOM: usize = 64 << 10;

/// A segment that grows and shrinks in steps of 1 KiB.
pub(crate) struct Buffer(pub(crate) usize);

// SAFETY: the buffer belongs to the region alone.
unsafe impl Discipline for Buffer {
    fn round(&self) -> usize {
        1024
    }

    fn obtain(&mut self, size: usize) -> Option<NonNull<u8>> {
        let start = core::ptr::with_exposed_provenance_mut(self.0);
        NonNull::new(start).filter(|_| size <= 4096)
    }

    unsafe fn resize(&mut self, _segment: NonNull<u8>, _: usize, new_size: usize) -> Resized {
        if new_size <= ROOM { Resized::InPlace } else { Resized::Refused }
    }

    unsafe fn release(&mut self, _segment: NonNull<u8>, _size: usize) -> bool {
        false
    }
}

/// Maps memory for a region and for what is said, which children share.
pub(crate) fn map() -> usize {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (size, flags) = (2 * ROOM, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: the mapping is new.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), size, protection, flags, -1, 0) };
    assert_ne!(start, libc::MAP_FAILED);
    start.expose_provenance()
}

/// What lies there.
fn bytes(memory: usize) -> &'static mut [u8] {
    let start = core::ptr::with_exposed_provenance_mut(memory);
    // SAFETY: the memory is mapped, and one process uses it at a time.
    unsafe { core::slice::from_raw_parts_mut(start, 2 * ROOM) }
}

/// Runs the work on a region at `memory` in a child. After each instruction that changed what lies
/// there, calls `look` with a copy of it, as if the child had ended then, and with the number of
/// the change. A region works at any address. Returns how many changes there were.
pub(crate) fn after_each_change(
    memory: usize,
    work: impl FnOnce(usize),
    mut look: impl FnMut(usize, usize),
) -> usize {
    let copy = map();
    let mut before = Vec::new();
    let mut changes = 0;
    let see = || {
        let now = bytes(memory);
        if now != before.as_slice() {
            before = now.to_vec();
            changes += 1;
            bytes(copy).copy_from_slice(now);
            look(copy, changes);
        }
    };
    step_by_step(|| work(memory), see);
    changes
}

/// Runs the work in a child, and calls `look` after each of its instructions.
fn step_by_step(work: impl FnOnce(), mut look: impl FnMut()) {
    let nothing = core::ptr::null_mut::<core::ffi::c_void>();
    // SAFETY: the child calls nothing but the region and the system.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // SAFETY: the call takes no memory.
        unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, nothing, nothing) };
        // SAFETY: the call takes no memory.
        unsafe { libc::raise(libc::SIGSTOP) };
        work();
        // SAFETY: the child ends.
        unsafe { libc::_exit(0) };
    }
    loop {
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        if libc::WIFEXITED(status) {
            assert_eq!(libc::WEXITSTATUS(status), 0);
            return;
        }
        assert!(libc::WIFSTOPPED(status), "the child was killed: {status:x}");
        let signal = libc::WSTOPSIG(status);
        assert!([libc::SIGSTOP, libc::SIGTRAP].contains(&signal), "signal {signal}");
        look();
        // SAFETY: the call takes no memory.
        let step = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, nothing, nothing) };
        assert_eq!(step, 0);
    }
}
