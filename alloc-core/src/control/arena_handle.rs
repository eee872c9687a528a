//! Arenas as values, for example one for each tenant, each with a name, a bound and a count of what
//! it holds.

use super::arenas::{self, ExtentHooks, NAME_BYTES};
use super::thread::{self, MoveError, Scope};
use crate::front::raw::{self, Flags};
use crate::observe;
use allocator_api2::alloc::{AllocError, Allocator};
use core::alloc::Layout;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};

/// A handle of a created arena. A copy names the same arena, and dropping one destroys nothing.
///
/// The handle is an allocator (past the caches of threads), and threads and tasks may allocate from
/// its arena by the ordinary ways for a while:
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
    /// Creates an arena. Returns `None` if there is no memory, or there are 4095 arenas.
    #[must_use]
    pub fn new() -> Option<Arena> {
        arenas::create().map(Arena)
    }

    /// As [`Arena::new`], but with a name, of which up to 31 bytes count.
    #[must_use]
    pub fn named(name: &str) -> Option<Arena> {
        let arena = Arena::new()?;
        arenas::set_name(arena.0, name.as_bytes());
        Some(arena)
    }

    /// As [`Arena::new`], but these functions supply the arena's pages.
    ///
    /// # Safety
    /// As [`arenas::create_with`].
    #[must_use]
    pub unsafe fn with_hooks(hooks: *mut ExtentHooks) -> Option<Arena> {
        // SAFETY: the caller's promise.
        unsafe { arenas::create_with(hooks) }.map(Arena)
    }

    /// Returns the arena's index, for [`arenas`] and the namespace.
    #[must_use]
    pub fn index(self) -> u32 {
        self.0
    }

    /// Returns the arena's name, or `None` if the arena was destroyed.
    #[must_use]
    pub fn name(self) -> Option<ArenaName> {
        arenas::name(self.0).map(ArenaName)
    }

    /// Returns the bytes of pages with memory that the arena holds, in use or not.
    #[must_use]
    pub fn held(self) -> usize {
        arenas::held(self.0).unwrap_or(0)
    }

    /// Returns the live blocks of the arena: see [`observe::blocks`].
    ///
    /// ```
    /// use lumalloc::Arena;
    ///
    /// let tenant = Arena::new().unwrap();
    /// let block = tenant.run(|| lumalloc::raw::malloc(100)).unwrap();
    /// assert_eq!(tenant.blocks().next().unwrap().address, block as usize);
    /// # // SAFETY: came from malloc, freed once.
    /// # unsafe { lumalloc::raw::free(block) };
    /// assert_eq!(tenant.blocks().next(), None);
    /// ```
    #[must_use]
    pub fn blocks(self) -> observe::Blocks {
        observe::blocks(Some(self.0))
    }

    /// Sets the most bytes that the arena may hold, where 0 means any. Beyond it allocations fail,
    /// after a purge and the callback of [`limits`](super::limits). Returns `false` if the arena
    /// was destroyed.
    #[must_use]
    pub fn set_limit(self, bytes: usize) -> bool {
        arenas::set_limit(self.0, bytes)
    }

    /// Makes the calling thread allocate from the arena until the returned [`Scope`] is dropped.
    ///
    /// A block of another arena that is freed meanwhile stays charged to that arena. It may serve
    /// the thread's next request, because a cache does not look at which arena its blocks come
    /// from. If each block must belong to this arena, allocate through the handle itself (its
    /// `Allocator`), past all caches.
    ///
    /// # Errors
    /// Returns a [`MoveError`] if the arena was destroyed, or there is no memory for a cache.
    pub fn enter(self) -> Result<Scope, MoveError> {
        thread::enter(self.0)
    }

    /// Runs a function, whose allocations on this thread come from the arena.
    ///
    /// # Errors
    /// As [`Arena::enter`]. The function did not run then.
    pub fn run<T>(self, function: impl FnOnce() -> T) -> Result<T, MoveError> {
        let _scope = self.enter()?;
        Ok(function())
    }

    /// Wraps a future, so that it allocates from the arena whenever it is polled, on any thread and
    /// across `await`. The exception that [`Arena::enter`] names is rare here: it applies to what
    /// the runtime frees while it polls.
    pub fn wrap<F: Future>(self, future: F) -> InArena<F> {
        InArena { arena: self, future }
    }

    /// Discards every block of the arena. Returns `false` if the arena was destroyed.
    ///
    /// # Safety
    /// As [`arenas::reset`].
    #[must_use]
    pub unsafe fn reset(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe { arenas::reset(self.0) }
    }

    /// Discards every block of the arena, gives its memory back and destroys it. Returns `false` if
    /// it was destroyed before, or threads are bound to it.
    ///
    /// # Safety
    /// As [`arenas::destroy`]. No copy of this handle is used any more.
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

// SAFETY: blocks stay the arena's until they are freed (or the arena is reset, which is unsafe).
// They fit their layouts, and may be freed by any copy, because their address leads to their arena.
unsafe impl Allocator for Arena {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.allocate_by(layout, Flags::NONE)
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        self.allocate_by(layout, Flags::NONE.zeroed())
    }

    unsafe fn deallocate(&self, ptr: NonNull<u8>, _layout: Layout) {
        // SAFETY: a block of this allocator, freed once (the caller's promise).
        unsafe { raw::deallocate(ptr.as_ptr(), Flags::NONE.uncached()) };
    }
}

/// The name of an arena.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ArenaName([u8; NAME_BYTES]);

impl ArenaName {
    /// Returns the name, as far as it is UTF-8.
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

/// A future that allocates from an arena, made by [`Arena::wrap`]. If the arena cannot be entered,
/// the future allocates as its thread does.
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
        // SAFETY: the future is pinned because `self` is, and it is never moved out.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        future.poll(context)
    }
}
