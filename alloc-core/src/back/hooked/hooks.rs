//! Extent hooks: functions of the program that supply an arena's pages. Source: jemalloc(3),
//! `arena.<i>.extent_hooks`.
//!
//! Unlike the system's calls, hooks run under no lock at all (see [`super::hooked_pages`]). So a
//! hook may allocate, and read and write the namespace. Only the hooks of its own arena are called
//! for a run, wherever the call comes from, because hooks keep records of runs.

use crate::back::system::page_provider::{PageProvider, Purged, Reserved};
use crate::back::system::provider::mmap;
use crate::back::system::provider::system::system;
use crate::ground::callback::{self, Callback};
use crate::ground::options;
use core::ffi::{c_uint, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, Ordering};

/// `extent_alloc_t`: hooks, wanted address or NULL, size, alignment, zeroed, committed, arena.
pub type ExtentAlloc = unsafe extern "C" fn(
    *mut ExtentHooks,
    *mut c_void,
    usize,
    usize,
    *mut bool,
    *mut bool,
    c_uint,
) -> *mut c_void;
/// `extent_dalloc_t`: hooks, address, size, committed, arena. Returns `true` to refuse.
pub type ExtentDalloc =
    unsafe extern "C" fn(*mut ExtentHooks, *mut c_void, usize, bool, c_uint) -> bool;
/// `extent_destroy_t`: hooks, address, size, committed, arena.
pub type ExtentDestroy = unsafe extern "C" fn(*mut ExtentHooks, *mut c_void, usize, bool, c_uint);
/// `extent_commit_t`, `extent_decommit_t`, `extent_purge_t`: hooks, address, size, offset, length,
/// arena. Returns `true` to refuse.
pub type ExtentRange =
    unsafe extern "C" fn(*mut ExtentHooks, *mut c_void, usize, usize, usize, c_uint) -> bool;
/// `extent_split_t`: hooks, address, size, both sizes, committed, arena. Returns `true` to refuse.
pub type ExtentSplit =
    unsafe extern "C" fn(*mut ExtentHooks, *mut c_void, usize, usize, usize, bool, c_uint) -> bool;
/// `extent_merge_t`: hooks, address and size twice, committed, arena. Returns `true` to refuse.
pub type ExtentMerge = unsafe extern "C" fn(
    *mut ExtentHooks,
    *mut c_void,
    usize,
    *mut c_void,
    usize,
    bool,
    c_uint,
) -> bool;

/// `extent_hooks_t`: the functions that supply an arena's pages. A hook that is `None` refuses.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ExtentHooks {
    /// Returns memory.
    pub alloc: Option<ExtentAlloc>,
    /// Takes memory back, or refuses.
    pub dalloc: Option<ExtentDalloc>,
    /// Takes back what `dalloc` refused, when the arena is destroyed.
    pub destroy: Option<ExtentDestroy>,
    /// Gives memory again to pages that were decommitted. They read zero.
    pub commit: Option<ExtentRange>,
    /// Takes the memory of pages away until they are committed again.
    pub decommit: Option<ExtentRange>,
    /// Lets the system take the memory of pages when it likes.
    pub purge_lazy: Option<ExtentRange>,
    /// Gives the memory of pages back now. They read zero after that.
    pub purge_forced: Option<ExtentRange>,
    /// May forbid cutting a run in two.
    pub split: Option<ExtentSplit>,
    /// May forbid making one run of two.
    pub merge: Option<ExtentMerge>,
}

/// The hooks that arenas begin with. They work by address alone, on any memory that came from them,
/// so other hooks may call them.
pub(crate) static DEFAULT: ExtentHooks = ExtentHooks {
    alloc: Some(default_alloc),
    dalloc: Some(default_dalloc),
    destroy: Some(default_destroy),
    commit: Some(default_commit),
    decommit: Some(default_commit),
    purge_lazy: Some(default_purge_lazy),
    purge_forced: Some(default_purge_forced),
    split: Some(default_split),
    merge: Some(default_merge),
};

/// A pointer to the default hooks.
pub(crate) fn default_hooks() -> *mut ExtentHooks {
    core::ptr::from_ref(&DEFAULT).cast_mut()
}

unsafe extern "C" fn default_alloc(
    _hooks: *mut ExtentHooks,
    wanted: *mut c_void,
    size: usize,
    align: usize,
    zero: *mut bool,
    commit: *mut bool,
    _arena: c_uint,
) -> *mut c_void {
    let got = match NonNull::new(wanted.cast::<u8>()) {
        Some(wanted) => mmap::map_there(wanted, size).then_some(wanted),
        None => system().reserve(size, align).map(|got| got.base),
    };
    let Some(base) = got else { return core::ptr::null_mut() };
    for flag in [zero, commit].into_iter().filter(|flag| !flag.is_null()) {
        // SAFETY: the caller's place for the result.
        unsafe { flag.write(true) };
    }
    base.as_ptr().cast()
}

unsafe extern "C" fn default_dalloc(
    _hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    _committed: bool,
    _arena: c_uint,
) -> bool {
    // With `retain`, addresses are not given back, and only memory is.
    options::current().retain || !release(base, size)
}

fn release(base: *mut c_void, size: usize) -> bool {
    // SAFETY: the caller owns the range, and does not use it any more.
    NonNull::new(base.cast()).is_some_and(|base| unsafe { system().release(base, size) })
}

unsafe extern "C" fn default_destroy(
    _hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    _committed: bool,
    _arena: c_uint,
) {
    release(base, size);
}

/// Refuses to commit and decommit, because the system backs pages when they are touched.
unsafe extern "C" fn default_commit(
    _hooks: *mut ExtentHooks,
    _base: *mut c_void,
    _size: usize,
    _offset: usize,
    _length: usize,
    _arena: c_uint,
) -> bool {
    true
}

unsafe extern "C" fn default_purge_lazy(
    _hooks: *mut ExtentHooks,
    base: *mut c_void,
    _size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    let Some(base) = NonNull::new(base.cast::<u8>().wrapping_add(offset)) else { return true };
    // SAFETY: the caller owns the range, and its contents are not needed.
    !unsafe { system().purge_lazily(base, length) }
}

unsafe extern "C" fn default_purge_forced(
    _hooks: *mut ExtentHooks,
    base: *mut c_void,
    _size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    let Some(base) = NonNull::new(base.cast::<u8>().wrapping_add(offset)) else { return true };
    // SAFETY: the caller owns the range, and its contents are not needed.
    unsafe { system().purge(base, length) != Purged::Zeroed }
}

unsafe extern "C" fn default_split(
    _hooks: *mut ExtentHooks,
    _base: *mut c_void,
    _size: usize,
    _first: usize,
    _second: usize,
    _committed: bool,
    _arena: c_uint,
) -> bool {
    false
}

unsafe extern "C" fn default_merge(
    _hooks: *mut ExtentHooks,
    _base_a: *mut c_void,
    _size_a: usize,
    _base_b: *mut c_void,
    _size_b: usize,
    _committed: bool,
    _arena: c_uint,
) -> bool {
    false
}

/// The hooks of one arena.
pub(crate) struct Hooks {
    table: AtomicPtr<ExtentHooks>,
    arena: u32,
}

impl Hooks {
    /// Creates the default hooks of an arena.
    pub(crate) const fn new(arena: u32) -> Hooks {
        Hooks { table: AtomicPtr::new(core::ptr::null_mut()), arena }
    }

    /// The table that was set, or the default one.
    pub(crate) fn table(&self) -> *mut ExtentHooks {
        // Acquire: pairs with the Release in `set`.
        let table = self.table.load(Ordering::Acquire);
        if table.is_null() { default_hooks() } else { table }
    }

    /// Sets the table, and returns the one before. Null sets the default one.
    pub(crate) fn set(&self, table: *mut ExtentHooks) -> *mut ExtentHooks {
        // Release: pairs with the Acquire in `table`. Acquire: with the Release of another writer.
        let before = self.table.swap(table, Ordering::AcqRel);
        if before.is_null() { default_hooks() } else { before }
    }

    /// Calls a hook, under no lock. Returns `None` if the table does not have it.
    fn call<F: Copy, T>(
        &self,
        hook: impl Fn(&ExtentHooks) -> Option<F>,
        call: impl FnOnce(F, *mut ExtentHooks) -> T,
    ) -> Option<T> {
        let table = self.table();
        // SAFETY: the program keeps the table that it set as long as the arena has it.
        let hook = hook(unsafe { &*table })?;
        Some(callback::run(Callback::Hook, || call(hook, table)))
    }

    /// Asks for new memory at a multiple of `align`. Returns whether it is committed, too. If it is
    /// not, hooks have refused to commit it and to take it back.
    pub(in crate::back) fn alloc(&self, size: usize, align: usize) -> Option<(Reserved, bool)> {
        let (mut zeroed, mut committed) = (false, true);
        let (zero, commit) = (&raw mut zeroed, &raw mut committed);
        let null = core::ptr::null_mut();
        // SAFETY: the arguments are as the manual demands.
        let call = |alloc: ExtentAlloc, table| unsafe {
            alloc(table, null, size, align, zero, commit, self.arena)
        };
        let base = NonNull::new(self.call(|hooks| hooks.alloc, call)?.cast::<u8>())?;
        let is_aligned = base.as_ptr().addr().is_multiple_of(align);
        let has_memory = committed || (is_aligned && self.commit(base.as_ptr(), size));
        if !is_aligned || !has_memory {
            let gone = self.dalloc(base.as_ptr(), size, committed);
            if gone || !is_aligned {
                return None;
            }
        }
        base.as_ptr().expose_provenance();
        Some((Reserved { base, zeroed }, has_memory))
    }

    /// Gives memory back. Returns `false` if refused.
    pub(in crate::back) fn dalloc(&self, base: *mut u8, size: usize, committed: bool) -> bool {
        // SAFETY: the arguments are as the manual demands.
        let call = |dalloc: ExtentDalloc, table| unsafe {
            dalloc(table, base.cast(), size, committed, self.arena)
        };
        self.call(|hooks| hooks.dalloc, call) == Some(false)
    }

    /// Gives memory back for good.
    pub(in crate::back) fn destroy(&self, base: *mut u8, size: usize, committed: bool) {
        // SAFETY: the arguments are as the manual demands.
        let call = |destroy: ExtentDestroy, table| unsafe {
            destroy(table, base.cast(), size, committed, self.arena);
        };
        self.call(|hooks| hooks.destroy, call);
    }

    fn range(
        &self,
        hook: impl Fn(&ExtentHooks) -> Option<ExtentRange>,
        base: *mut u8,
        size: usize,
    ) -> bool {
        // SAFETY: the arguments are as the manual demands.
        let call = |range: ExtentRange, table| unsafe {
            range(table, base.cast(), size, 0, size, self.arena)
        };
        self.call(hook, call) == Some(false)
    }

    /// Gives decommitted pages memory. Returns `false` if refused.
    pub(in crate::back) fn commit(&self, base: *mut u8, size: usize) -> bool {
        self.range(|hooks| hooks.commit, base, size)
    }

    /// Takes memory away. Returns `false` if refused.
    pub(in crate::back) fn decommit(&self, base: *mut u8, size: usize) -> bool {
        self.range(|hooks| hooks.decommit, base, size)
    }

    /// Purges lazily. Returns `false` if refused.
    pub(in crate::back) fn purge_lazy(&self, base: *mut u8, size: usize) -> bool {
        self.range(|hooks| hooks.purge_lazy, base, size)
    }

    /// Purges now. Returns `false` if refused.
    pub(in crate::back) fn purge_forced(&self, base: *mut u8, size: usize) -> bool {
        self.range(|hooks| hooks.purge_forced, base, size)
    }

    /// Asks to cut a run in two. Returns `false` if refused.
    pub(in crate::back) fn split(
        &self,
        base: *mut u8,
        size: usize,
        first: usize,
        committed: bool,
    ) -> bool {
        // SAFETY: the arguments are as the manual demands.
        let call = |split: ExtentSplit, table| unsafe {
            split(table, base.cast(), size, first, size - first, committed, self.arena)
        };
        self.call(|hooks| hooks.split, call) == Some(false)
    }

    /// Asks to make one run of two. Returns `false` if refused.
    pub(in crate::back) fn merge(
        &self,
        base: *mut u8,
        size: usize,
        second: usize,
        committed: bool,
    ) -> bool {
        let next = base.wrapping_add(size).cast();
        // SAFETY: the arguments are as the manual demands.
        let call = |merge: ExtentMerge, table| unsafe {
            merge(table, base.cast(), size, next, second, committed, self.arena)
        };
        self.call(|hooks| hooks.merge, call) == Some(false)
    }
}

// SAFETY: the hooks supply memory (the program's promise), and all else is refused. Calls are made
// under no lock, as `hooked_pages` ensures.
unsafe impl PageProvider for Hooks {
    fn reserve(&self, size: usize, align: usize) -> Option<Reserved> {
        self.alloc(size, align).and_then(|(got, committed)| committed.then_some(got))
    }

    unsafe fn release(&self, base: NonNull<u8>, size: usize) -> bool {
        self.dalloc(base.as_ptr(), size, true)
    }

    unsafe fn purge(&self, base: NonNull<u8>, size: usize) -> Purged {
        if self.purge_forced(base.as_ptr(), size) { Purged::Zeroed } else { Purged::Refused }
    }

    unsafe fn purge_lazily(&self, base: NonNull<u8>, size: usize) -> bool {
        self.purge_lazy(base.as_ptr(), size)
    }
}
