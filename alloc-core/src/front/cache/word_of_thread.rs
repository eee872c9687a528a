//! Where a thread's word is, and whether the thread is still there.

use crate::front::bins::tls;
use crate::ground::process::KernelThread;
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The address of the word of a record's thread. All but [`WordOfThread::note_thread`] is called
/// under the registry's lock, and that in a forked child.
pub(super) struct WordOfThread {
    /// Null if no thread has the record.
    address: AtomicPtr<AtomicPtr<u8>>,
    thread: Cell<KernelThread>,
}

impl WordOfThread {
    /// Of no thread.
    pub(super) const fn new() -> WordOfThread {
        WordOfThread {
            address: AtomicPtr::new(core::ptr::null_mut()),
            thread: Cell::new(KernelThread::NONE),
        }
    }

    /// Begins with the word of the calling thread.
    pub(super) fn begin(&self, word: NonNull<AtomicPtr<u8>>) {
        self.note_thread();
        self.address.store(word.as_ptr(), Relaxed);
    }

    /// Notes how the kernel names the calling thread, whose record this is.
    pub(super) fn note_thread(&self) {
        self.thread.set(KernelThread::current());
    }

    /// Forgets the word, whose thread ends or has ended.
    pub(super) fn forget(&self) {
        self.address.store(core::ptr::null_mut(), Relaxed);
    }

    /// Returns the word's address. `None` if no thread has the record.
    pub(super) fn address(&self) -> Option<NonNull<AtomicPtr<u8>>> {
        NonNull::new(self.address.load(Relaxed))
    }

    /// Returns whether the thread has ended without its exit call.
    pub(super) fn is_lost(&self) -> bool {
        match self.address() {
            None => false,
            // The calling thread's word, or that of one whose stack it has.
            Some(word) if word == tls::address() => self.thread.get().is_former(),
            Some(_) => self.thread.get().is_gone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_lost_once_it_has_ended() {
        // Records are shared between threads under the registry's lock.
        struct Shared(WordOfThread);
        // SAFETY: one thread at a time uses it here.
        unsafe impl Sync for Shared {}
        static WORD: Shared = Shared(WordOfThread::new());
        assert!(!WORD.0.is_lost() && WORD.0.address().is_none());
        let word = &WORD;
        std::thread::spawn(move || {
            word.0.begin(tls::address());
            assert!(!word.0.is_lost());
        })
        .join()
        .expect("the thread");
        // It is joined a moment before the kernel forgets it.
        while !WORD.0.is_lost() {
            std::thread::yield_now();
        }
        WORD.0.begin(tls::address());
        assert!(!WORD.0.is_lost());
        WORD.0.forget();
        assert!(!WORD.0.is_lost() && WORD.0.address().is_none());
    }
}
