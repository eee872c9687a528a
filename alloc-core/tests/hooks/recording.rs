//! Extent hooks over a buffer, a file or other hooks, which note what they are asked for, refuse on
//! demand, and judge what they are told.

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

/// What a hook was asked for.
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

/// Where memory comes from.
pub(crate) enum Source {
    Buffer { base: usize, size: usize, file: Option<File> },
    Hooks(usize),
}

pub(crate) struct State {
    /// Runs that the allocator has: length, and whether they are committed.
    pub(crate) runs: BTreeMap<usize, (usize, bool)>,
    /// Bytes of the buffer that were never handed out begin here.
    pub(crate) next: usize,
    /// Pieces of the buffer that came back.
    pub(crate) free: Vec<(usize, usize)>,
    ops: Vec<Op>,
    refused: Vec<Op>,
    meddles: bool,
}

/// The hooks and their memory.
#[repr(C)]
pub(crate) struct Recording {
    /// First, so that its address is this one's.
    table: ExtentHooks,
    pub(crate) source: Source,
    state: Mutex<State>,
    meddled: AtomicUsize,
    inside: Mutex<Option<Arc<Inside>>>,
}

/// What a test does inside hooks.
type Inside = dyn Fn(Op) + Send + Sync;

/// Tables that another recording answers for.
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

    /// Over memory of the program's own.
    pub(crate) fn of_buffer(size: usize) -> &'static Recording {
        Recording::new(Source::Buffer { base: map(size, None), size, file: None })
    }

    /// Over a file without a name.
    pub(crate) fn of_file(size: usize) -> &'static Recording {
        let name = std::env::temp_dir().join(format!("lumalloc-hooks-{}", std::process::id()));
        let file = File::options().read(true).write(true).create_new(true).open(&name).unwrap();
        std::fs::remove_file(name).unwrap();
        file.set_len(size as u64).unwrap();
        Recording::new(Source::Buffer { base: map(size, Some(&file)), size, file: Some(file) })
    }

    /// Over other hooks.
    pub(crate) fn of_hooks(hooks: *mut ExtentHooks) -> &'static Recording {
        Recording::new(Source::Hooks(hooks.expose_provenance()))
    }

    pub(crate) fn hooks(&'static self) -> &'static ExtentHooks {
        &self.table
    }

    /// Makes another table with some of these functions known.
    pub(crate) fn answer_for(&'static self, table: &'static ExtentHooks) {
        let alias =
            (std::ptr::from_ref(table).addr(), std::ptr::from_ref(self).expose_provenance());
        ALIASES.lock().unwrap().push(alias);
    }

    /// Whose hooks these are.
    pub(crate) fn of(table: *mut ExtentHooks) -> &'static Recording {
        let aliases = ALIASES.lock().unwrap();
        let alias = aliases.iter().find(|(alias, _)| *alias == table.addr());
        let real: *const Recording = match alias {
            Some((_, real)) => std::ptr::with_exposed_provenance(*real),
            None => table.cast(),
        };
        // SAFETY: the table is the first field of a recording that stays.
        unsafe { &*real }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn refuse(&self, ops: &[Op]) {
        self.state().refused = ops.to_vec();
    }

    /// From now on hooks allocate, free, ask and purge.
    pub(crate) fn meddle(&self) {
        self.state().meddles = true;
    }

    /// From now on hooks do this, before anything else and under no lock.
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

    /// What the file holds where an address is mapped.
    pub(crate) fn file_at(&self, address: usize, length: usize) -> Vec<u8> {
        let Source::Buffer { base, file: Some(file), .. } = &self.source else { panic!() };
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, (address - base) as u64).unwrap();
        bytes
    }

    /// Notes a call; answers whether it is to be refused.
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
            // While it lives: past all caches it may be the only one, and its slab goes with it.
            assert!(totals().active > 0);
            // SAFETY: a block of ours, freed once.
            unsafe { raw::free(block) };
            if self.meddled().is_multiple_of(50) {
                assert!(purge(ARENAS_ALL));
            }
        }
        refused
    }

    /// Takes a range out of the runs, parts of runs included.
    pub(crate) fn take(&self, base: usize, size: usize, committed: bool) {
        let mut state = self.state();
        let run = state.runs.range(..=base).next_back().map(|(begin, run)| (*begin, *run));
        let (begin, (length, is_committed)) = run.expect("a run of ours");
        assert_eq!((begin, length), (base, size), "cut by split alone");
        assert_eq!(is_committed, committed);
        state.runs.remove(&base);
        let at = state.free.partition_point(|(other, _)| *other < base);
        state.free.insert(at, (base, size));
        // One behind the other are one.
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
    // SAFETY: new memory anywhere.
    let base = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, kind, fd, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    base.expose_provenance()
}

pub(crate) fn zero(base: usize, size: usize) {
    // SAFETY: free memory of the recording's.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(base).write_bytes(0, size) };
}
