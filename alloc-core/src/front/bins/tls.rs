//! The one word of thread-local storage: a pointer to the thread's cache.
//!
//! The word is an initial-exec symbol of this crate, because bins inside TLS were three times
//! slower and the standard library's `thread_local!` calls a function in shared objects. The word
//! begins with the address of the static empty cache, so that the fast path needs no "initialised?"
//! test. The relative relocation is applied before the loader copies the image. The symbol carries
//! the crate's version, so that two versions in one process do not clash.
//!
//! A program that is linked into one executable may be built with `--cfg lumalloc_executable`. The
//! read is then one instruction instead of two. Such code cannot become part of a shared object.
//!
//! The read must not be declared pure, because the pointer changes at a thread's first call, on
//! exit, and around re-entrance. Other threads may change it too: see `front/cache/switch.rs`.

use super::thread_cache::ThreadCache;
use core::ptr::NonNull;
use core::sync::atomic::AtomicPtr;

#[cfg(all(target_arch = "x86_64", not(feature = "dlopen")))]
mod word {
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tdata.lumalloc,\"awT\",@progbits",
        ".p2align 3",
        ".hidden LUMALLOC_CACHE_0_1",
        ".globl LUMALLOC_CACHE_0_1",
        ".type LUMALLOC_CACHE_0_1,@object",
        ".size LUMALLOC_CACHE_0_1,8",
        "LUMALLOC_CACHE_0_1: .quad {empty}",
        ".popsection",
        empty = sym super::super::thread_cache::EMPTY,
    );

    #[cfg(lumalloc_executable)]
    #[inline(always)]
    pub(super) fn load() -> *mut u8 {
        let cache;
        // SAFETY: reads this thread's word; the symbol is defined above with this size.
        unsafe {
            asm!(
                "mov {0}, qword ptr fs:[LUMALLOC_CACHE_0_1@TPOFF]",
                out(reg) cache,
                options(readonly, nostack, preserves_flags),
            );
        }
        cache
    }

    #[cfg(not(lumalloc_executable))]
    #[inline(always)]
    pub(super) fn load() -> *mut u8 {
        let cache;
        // SAFETY: reads this thread's word; the symbol is defined above with this size.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + LUMALLOC_CACHE_0_1@GOTTPOFF]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) cache,
                options(readonly, nostack, preserves_flags),
            );
        }
        cache
    }

    pub(super) fn address() -> *mut *mut u8 {
        let address;
        // SAFETY: forms the address of this thread's word. The symbol is defined above, and the
        // first word of a thread's block is its own address.
        unsafe {
            asm!(
                "mov {0}, qword ptr fs:[0]",
                "add {0}, qword ptr [rip + LUMALLOC_CACHE_0_1@GOTTPOFF]",
                out(reg) address,
                options(readonly, nostack),
            );
        }
        address
    }

    #[inline]
    pub(super) fn store(cache: *mut u8) {
        // SAFETY: writes this thread's word; the symbol is defined above with this size.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + LUMALLOC_CACHE_0_1@GOTTPOFF]",
                "mov qword ptr fs:[{0}], {1}",
                out(reg) _,
                in(reg) cache,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(feature = "dlopen")))]
mod word {
    use core::arch::{asm, global_asm};
    use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

    global_asm!(
        ".pushsection .tdata.lumalloc,\"awT\",@progbits",
        ".p2align 3",
        ".hidden LUMALLOC_CACHE_0_1",
        ".globl LUMALLOC_CACHE_0_1",
        ".type LUMALLOC_CACHE_0_1,@object",
        ".size LUMALLOC_CACHE_0_1,8",
        "LUMALLOC_CACHE_0_1: .quad {empty}",
        ".popsection",
        empty = sym super::super::thread_cache::EMPTY,
    );

    #[inline(always)]
    pub(super) fn address() -> *mut *mut u8 {
        let address;
        // SAFETY: forms the address of this thread's word; the symbol is defined above.
        unsafe {
            asm!(
                "adrp {0}, :gottprel:LUMALLOC_CACHE_0_1",
                "ldr {0}, [{0}, :gottprel_lo12:LUMALLOC_CACHE_0_1]",
                "mrs {1}, tpidr_el0",
                "add {0}, {0}, {1}",
                out(reg) address,
                out(reg) _,
                options(readonly, nostack, preserves_flags),
            );
        }
        address
    }

    #[inline(always)]
    fn word() -> &'static AtomicPtr<u8> {
        // SAFETY: this thread's own word, mapped while the thread runs; all accesses are atomic.
        unsafe { AtomicPtr::from_ptr(address()) }
    }

    // Relaxed: the word points to caches that live for ever. `switch` orders the stores of other
    // threads.
    #[inline(always)]
    pub(super) fn load() -> *mut u8 {
        word().load(Relaxed)
    }

    #[inline]
    pub(super) fn store(cache: *mut u8) {
        word().store(cache, Relaxed);
    }
}

#[cfg(any(feature = "dlopen", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod word {
    extern crate std;
    use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

    std::thread_local! {
        static CACHE: AtomicPtr<u8> = const {
            AtomicPtr::new((&raw const super::super::thread_cache::EMPTY).cast_mut().cast())
        };
    }

    // Relaxed: the word points to caches that live for ever. `switch` orders the stores of other
    // threads.
    #[inline(always)]
    pub(super) fn load() -> *mut u8 {
        CACHE.with(|cache| cache.load(Relaxed))
    }

    pub(super) fn address() -> *mut *mut u8 {
        CACHE.with(AtomicPtr::as_ptr)
    }

    #[inline]
    pub(super) fn store(cache: *mut u8) {
        CACHE.with(|word| word.store(cache, Relaxed));
    }
}

/// Returns the calling thread's cache, real or façade.
#[inline(always)]
pub(crate) fn current() -> &'static ThreadCache {
    named_by(word::load())
}

/// Returns the cache that a thread's word points to. `word` may have been read by another thread.
/// The words hold only what [`set_current`] stores, and their initial value.
#[inline(always)]
pub(crate) fn named_by(word: *mut u8) -> &'static ThreadCache {
    // SAFETY: the word points to a façade or to the front of a real cache; both live for ever.
    unsafe { &*word.cast::<ThreadCache>() }
}

/// Returns the value of a thread's word that points to this cache.
#[inline]
pub(crate) fn word_for(cache: &'static ThreadCache) -> *mut u8 {
    core::ptr::from_ref(cache).cast_mut().cast()
}

/// Makes `cache` the calling thread's cache.
#[inline]
pub(crate) fn set_current(cache: &'static ThreadCache) {
    word::store(word_for(cache));
}

/// Returns the address of the calling thread's word. While the thread lives, other threads may read
/// the word, and change it between two caches of that thread.
pub(crate) fn address() -> NonNull<AtomicPtr<u8>> {
    // SAFETY: the address of a thread-local object is not null.
    unsafe { NonNull::new_unchecked(word::address().cast()) }
}
