//! Arenas as values: a tenant of its own, with a name, a bound and a count of what it holds.

use super::arenas::{self, ExtentHooks, NAME_BYTES};
use super::thread::{self, MoveError, Scope};
use crate::front::raw::{self, Flags};
use allocator_api2::alloc::{AllocError, Allocator};
use core::alloc::Layout;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

/// A created arena. A copy is the same arena; dropping one destroys nothing.
///
/// It is an allocator of its own (past the caches of threads), and a place where threads and tasks
/// may allocate by the ordinary ways for a while:
///
/// ```
/// use lumalloc::Arena;
/// use lumalloc::control::arenas;
///
/// let tenant = Arena::named("tenant-7").unwrap();
/// assert!(tenant.set_limit(64 << 20));
/// let block = tenant.run(|| lumalloc::raw::malloc(100)).unwrap();
/// assert_eq!(arenas::lookup(block), Some(tenant.index()));
/// assert!(tenant.held() >= 100);
/// # // SAFETY: came from malloc, freed once.
/// # unsafe { lumalloc::raw::free(block) };
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Arena(u32);

impl Arena {
    /// A new arena. `None`: no memory, or 4095 arenas.
    #[must_use]
    pub fn new() -> Option<Arena> {
        arenas::create().map(Arena)
    }

    /// A new arena with a name, of which up to 31 bytes count.
    #[must_use]
    pub fn named(name: &str) -> Option<Arena> {
        let arena = Arena::new()?;
        arenas::set_name(arena.0, name.as_bytes());
        Some(arena)
    }

    /// A new arena whose pages these functions supply.
    ///
    /// # Safety
    /// As [`arenas::create_with`].
    #[must_use]
    pub unsafe fn with_hooks(hooks: *mut ExtentHooks) -> Option<Arena> {
        // SAFETY: the caller's promise.
        unsafe { arenas::create_with(hooks) }.map(Arena)
    }

    /// Its index, for [`arenas`] and the namespace.
    #[must_use]
    pub fn index(self) -> u32 {
        self.0
    }

    /// Its name. `None`: it was destroyed.
    #[must_use]
    pub fn name(self) -> Option<ArenaName> {
        arenas::name(self.0).map(ArenaName)
    }

    /// Bytes of pages with memory that it holds, in use or not.
    #[must_use]
    pub fn held(self) -> usize {
        arenas::held(self.0).unwrap_or(0)
    }

    /// Bounds what it may hold, in bytes; 0: no bound. Beyond it allocations fail, after a purge
    /// and the callback of [`limits`](super::limits). `false`: it was destroyed.
    #[must_use]
    pub fn set_limit(self, bytes: usize) -> bool {
        arenas::set_limit(self.0, bytes)
    }

    /// The calling thread allocates here until the answer is dropped.
    ///
    /// A block of another arena that is freed meanwhile stays charged to that arena, and may serve
    /// the thread's next request here: the cache is asked first, and does not look where its blocks
    /// come from. Where each block must be this arena's, allocate through the handle itself (its
    /// `Allocator`), past all caches.
    ///
    /// # Errors
    /// [`MoveError`], when the arena was destroyed or there is no memory for a cache.
    pub fn enter(self) -> Result<Scope, MoveError> {
        thread::enter(self.0)
    }

    /// Runs a function; what it allocates on this thread comes from here.
    ///
    /// # Errors
    /// As [`Arena::enter`]; the function did not run.
    pub fn run<T>(self, function: impl FnOnce() -> T) -> Result<T, MoveError> {
        let _scope = self.enter()?;
        Ok(function())
    }

    /// A future that allocates here whenever it is polled, on whichever thread, across `await`; but
    /// for what [`Arena::enter`] says, which is rare: what the runtime frees while it polls.
    pub fn wrap<F: Future>(self, future: F) -> InArena<F> {
        InArena { arena: self, future }
    }

    /// Discards every block of the arena. `false`: it was destroyed.
    ///
    /// # Safety
    /// As [`arenas::reset`].
    #[must_use]
    pub unsafe fn reset(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { arenas::reset(self.0) }
    }

    /// Discards every block, gives the memory back and ends the arena. `false`: it was destroyed,
    /// or threads are bound to it.
    ///
    /// # Safety
    /// As [`arenas::destroy`]; no copy of this is used any more.
    #[must_use]
    pub unsafe fn destroy(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { arenas::destroy(self.0) }
    }

    fn allocate_by(self, layout: Layout, flags: Flags) -> Result<NonNull<[u8]>, AllocError> {
        let flags = flags.align(layout.align()).arena(self.0);
        let block = NonNull::new(raw::allocate(layout.size(), flags)).ok_or(AllocError)?;
        Ok(NonNull::slice_from_raw_parts(block, layout.size()))
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Arena").field(&self.0).finish()
    }
}

// SAFETY: blocks are the arena's until they are freed (or it is reset, which is unsafe), fit their
// layouts, and may be freed by any copy: they tell whose they are.
unsafe impl Allocator for Arena {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.allocate_by(layout, Flags::NONE)
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.allocate_by(layout, Flags::NONE.zeroed())
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, _layout: Layout) {
        // SAFETY: a block of this allocator's, freed once (the caller's promise).
        unsafe { raw::deallocate(ptr.as_ptr(), Flags::NONE.uncached()) };
    }
}

/// The name of an arena.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArenaName([u8; NAME_BYTES]);

impl ArenaName {
    /// The name, as far as it is text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let bytes = self.0.split(|c| *c == 0).next().unwrap_or_default();
        match core::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                core::str::from_utf8(valid).unwrap_or_default()
            }
        }
    }
}

impl fmt::Debug for ArenaName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A future that allocates in an arena: see [`Arena::wrap`]. Where the arena cannot be entered it
/// allocates as its thread does.
#[must_use = "futures do nothing unless polled"]
#[derive(Debug)]
pub struct InArena<F> {
    arena: Arena,
    future: F,
}

impl<F: Future> Future for InArena<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let _scope = self.arena.enter();
        // SAFETY: the future is pinned as this is, and never moved out.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        future.poll(context)
    }
}
