//! Extent hooks over a buffer, a file or other hooks, which record their calls, refuse on demand,
//! and check their arguments.

use lumalloc::control::arenas::{self, ExtentHooks};
use lumalloc::control::{ARENAS_ALL, purge};
use lumalloc::observe::totals;
use lumalloc::raw;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of a hook call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Op {
    Alloc,
    Dalloc,
    Destroy,
    Commit,
    Decommit,
    PurgeLazy,
    PurgeForced,
    Split,
    Merge,
}

/// The source of the memory.
pub(crate) enum Source {
    Buffer { base: usize, size: usize, file: Option<File> },
    Hooks(usize),
}

pub(crate) struct State {
    /// The runs that the allocator has: length, and whether they are committed.
    pub(crate) runs: BTreeMap<usize, (usize, bool)>,
    /// Bytes of the buffer from this address on were never handed out.
    pub(crate) next: usize,
    /// The pieces of the buffer that were given back.
    pub(crate) free: Vec<(usize, usize)>,
    ops: Vec<Op>,
    refused: Vec<Op>,
    meddles: bool,
    pub(crate) gives_uncommitted: bool,
}

/// The hooks and their memory.
#[repr(C)]
pub(crate) struct Recording {
    /// The first field, so that its address is also that of the recording.
    table: ExtentHooks,
    pub(crate) source: Source,
    state: Mutex<State>,
    meddled: AtomicUsize,
    inside: Mutex<Option<Arc<Inside>>>,
}

/// A function that a test runs inside hooks.
type Inside = dyn Fn(Op) + Send + Sync;

/// Other tables, each with the recording that serves it.
static ALIASES: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

impl Recording {
    fn new(source: Source) -> &'static Recording {
        let next = if let Source::Buffer { base, .. } = source { base } else { 0 };
        let state = State {
            runs: BTreeMap::new(),
            next,
            free: Vec::new(),
            ops: Vec::new(),
            refused: Vec::new(),
            meddles: false,
            gives_uncommitted: false,
        };
        use super::functions::{
            alloc, commit, dalloc, decommit, destroy, merge, purge_forced, purge_lazy, split,
        };
        let table = ExtentHooks {
            alloc: Some(alloc),
            dalloc: Some(dalloc),
            destroy: Some(destroy),
            commit: Some(commit),
            decommit: Some(decommit),
            purge_lazy: Some(purge_lazy),
            purge_forced: Some(purge_forced),
            split: Some(split),
            merge: Some(merge),
        };
        let (meddled, inside) = (AtomicUsize::new(0), Mutex::new(None));
        let state = Mutex::new(state);
        Box::leak(Box::new(Recording { table, source, state, meddled, inside }))
    }

    /// Hooks over new memory of the program.
    pub(crate) fn of_buffer(size: usize) -> &'static Recording {
        Recording::new(Source::Buffer { base: map(size, None), size, file: None })
    }

    /// Hooks over a file without a name.
    pub(crate) fn of_file(size: usize) -> &'static Recording {
        let name = std::env::temp_dir().join(format!("lumalloc-hooks-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&name).unwrap();
        std::fs::remove_file(name).unwrap();
        file.set_len(size as u64).unwrap();
        Recording::new(Source::Buffer { base: map(size, Some(&file)), size, file: Some(file) })
    }

    /// Hooks over other hooks.
    pub(crate) fn of_hooks(hooks: *mut ExtentHooks) -> &'static Recording {
        Recording::new(Source::Hooks(hooks.expose_provenance()))
    }

    pub(crate) fn hooks(&'static self) -> &'static ExtentHooks {
        &self.table
    }

    /// Makes this recording serve another table with some of its functions.
    pub(crate) fn answer_for(&'static self, table: &'static ExtentHooks) {
        let alias =
            (std::ptr::from_ref(table).addr(), std::ptr::from_ref(self).expose_provenance());
        ALIASES.lock().unwrap().push(alias);
    }

    /// The recording of a table.
    pub(crate) fn of(table: *mut ExtentHooks) -> &'static Recording {
        let aliases = ALIASES.lock().unwrap();
        let alias = aliases.iter().find(|(alias, _)| *alias == table.addr());
        let real: *const Recording = match alias {
            Some((_, real)) => std::ptr::with_exposed_provenance(*real),
            None => table.cast(),
        };
        // SAFETY: the table is the first field of a leaked recording.
        unsafe { &*real }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn refuse(&self, ops: &[Op]) {
        self.state().refused = ops.to_vec();
    }

    /// From now on `alloc` gives memory that is to be committed.
    #[allow(dead_code, reason = "not in every test program")]
    pub(crate) fn give_uncommitted(&self) {
        self.state().gives_uncommitted = true;
    }

    /// From now on hooks allocate, free, query and purge.
    pub(crate) fn meddle(&self) {
        self.state().meddles = true;
    }

    /// From now on hooks run `action` first, under no lock.
    #[allow(dead_code, reason = "not in every test program")]
    pub(crate) fn inside(&self, action: impl Fn(Op) + Send + Sync + 'static) {
        *self.inside.lock().unwrap() = Some(Arc::new(action));
    }

    pub(crate) fn meddled(&self) -> usize {
        self.meddled.load(Relaxed)
    }

    pub(crate) fn forget(&self) {
        self.state().ops.clear();
    }

    pub(crate) fn ops(&self) -> Vec<Op> {
        self.state().ops.clone()
    }

    pub(crate) fn count(&self, op: Op) -> usize {
        self.state().ops.iter().filter(|other| **other == op).count()
    }

    pub(crate) fn bytes_held(&self) -> usize {
        self.state().runs.values().map(|(size, _)| size).sum()
    }

    pub(crate) fn holds(&self, address: usize) -> bool {
        match self.source {
            Source::Buffer { base, size, .. } => (base..base + size).contains(&address),
            Source::Hooks(_) => false,
        }
    }

    /// The bytes of the file where `address` is mapped.
    pub(crate) fn file_at(&self, address: usize, length: usize) -> Vec<u8> {
        let Source::Buffer { base, file: Some(file), .. } = &self.source else { panic!() };
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, (address - base) as u64).unwrap();
        bytes
    }

    /// Records a call. Returns whether the hook must refuse it.
    pub(crate) fn note(&self, op: Op) -> bool {
        let inside = self.inside.lock().unwrap().clone();
        if let Some(inside) = inside {
            inside(op);
        }
        let (refused, meddles) = {
            let mut state = self.state();
            state.ops.push(op);
            (state.refused.contains(&op), state.meddles)
        };
        if meddles {
            self.meddled.fetch_add(1, Relaxed);
            let block = raw::malloc(100 + self.meddled() % 5000);
            assert!(arenas::lookup(block).is_some());
            // Asked before the free, because past all caches the slab may go with its only block.
            assert!(totals().active > 0);
            // SAFETY: a block of this allocator, freed once.
            unsafe { raw::free(block) };
            if self.meddled().is_multiple_of(50) {
                assert!(purge(ARENAS_ALL));
            }
        }
        refused
    }

    /// Takes a run back from the allocator. The range must be a whole run.
    pub(crate) fn take(&self, base: usize, size: usize, committed: bool) {
        let mut state = self.state();
        let run = state.runs.range(..=base).next_back().map(|(begin, run)| (*begin, *run));
        let (begin, (length, is_committed)) = run.expect("a run of ours");
        assert_eq!((begin, length), (base, size), "cut by split alone");
        assert_eq!(is_committed, committed);
        state.runs.remove(&base);
        let at = state.free.partition_point(|(other, _)| *other < base);
        state.free.insert(at, (base, size));
        // Merges adjacent pieces.
        let mut merged: Vec<(usize, usize)> = Vec::new();
        for (base, size) in state.free.drain(..) {
            match merged.last_mut() {
                Some((last, length)) if *last + *length == base => *length += size,
                _ => merged.push((base, size)),
            }
        }
        state.free = merged;
    }
}

fn map(size: usize, file: Option<&File>) -> usize {
    let kind =
        if file.is_some() { libc::MAP_SHARED } else { libc::MAP_PRIVATE | libc::MAP_ANONYMOUS };
    let fd = file.map_or(-1, AsRawFd::as_raw_fd);
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the call maps new memory anywhere.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, kind, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.expose_provenance()
}

pub(crate) fn zero(base: usize, size: usize) {
    // SAFETY: free memory of the recording.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(base).write_bytes(0, size) };
}
