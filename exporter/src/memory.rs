//! The exporter's own memory: an arena named `exporter`, with a reserve that is ready from the
//! start, so that it can say what is wrong when there is no memory left.
//!
//! Rust ends a process that has no memory for a small block. So nothing here allocates before it
//! knows that it can: a connection is taken in, and a job begun, when a block of what it may need
//! can be had from the arena; the block is given back at once, and its pages wait in the arena,
//! which nobody else allocates from.
use crate::namespace::{Namespace, Target};
use lumalloc_ctl::Value;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The arena's name.
pub(crate) const NAME: &str = "exporter";
const C_NAME: &std::ffi::CStr = c"exporter";
/// Bytes of unused pages that stay, and have their memory from the start. With what is in use, most
/// of which is a slab for each size, the arena of an idle exporter holds less than 2 MiB.
pub(crate) const RESERVE: usize = 128 << 10;
/// A block of about the reserve.
const BLOCK: usize = RESERVE / 8 * 7;
/// Bytes of addresses that are there from the start: slabs of every length that connections need,
/// and as many as may be open. A block of 4 MiB would lie on huge pages.
const ADDRESSES: usize = (4 << 20) / 8 * 7;
/// Bytes beside which a connection does not matter.
const PLENTY: usize = 128 << 10;
/// What one connection needs, in the lengths that it needs it in: buffers, its task, a request, a
/// short answer. What another connection has left lies ready in these lengths.
const CONNECTION: [usize; 8] = [16 << 10, 8 << 10, 8 << 10, 8 << 10, 4 << 10, 2 << 10, 1024, 512];
/// Bytes that a job may need at least.
const JOB: usize = 4 << 20;
/// A job may need so many times the longest answer so far: it grows by doubling, is compressed, and
/// is made from what was read.
const TIMES: usize = 5;

/// The arena of an allocator.
pub(crate) struct OwnMemory {
    namespace: &'static dyn Namespace,
    arena: Option<u32>,
    /// The arena's reserve. Names are looked up once, because a name takes memory.
    reserve: Option<Target>,
    flush: Option<Target>,
    longest: AtomicUsize,
    is_short: AtomicBool,
}

impl OwnMemory {
    /// Finds the arena, or makes it. Where none can be made, the exporter goes on without.
    pub(crate) fn of(namespace: &'static dyn Namespace) -> OwnMemory {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let arena = find(namespace).or_else(|| make(namespace));
        OwnMemory {
            namespace,
            arena,
            reserve: arena.and_then(|arena| reserve_of(namespace, arena)),
            flush: arena.and_then(|_| namespace.find("thread.tcache.flush").ok()),
            longest: AtomicUsize::new(0),
            is_short: AtomicBool::new(false),
        }
    }

    /// The calling thread allocates from the arena from now on.
    pub(crate) fn enter(&self) {
        let Some(arena) = self.arena else { return };
        if let Ok(target) = self.namespace.find("thread.arena") {
            let _ = self.namespace.write(&target, Value::Unsigned(arena));
        }
    }

    /// Makes the reserve ready. By a thread that has entered.
    pub(crate) fn fill(&self) {
        if self.arena.is_none() {
            return;
        }
        has(ADDRESSES);
        self.trim();
        let mut reserve = Vec::new();
        if reserve.try_reserve_exact(BLOCK).is_ok() {
            // Not zero, which fresh pages are without being touched.
            reserve.resize(BLOCK, 1u8);
            std::hint::black_box(&reserve);
        }
    }

    /// Whether connections may be taken in without a look at those that are there. By a thread that
    /// has entered.
    pub(crate) fn has_plenty(&self) -> bool {
        has(PLENTY)
    }

    /// Whether one connection can be served. By a thread that has entered.
    pub(crate) fn has_for_connection(&self) -> bool {
        let blocks = CONNECTION.map(|bytes| {
            let mut block: Vec<u8> = Vec::new();
            block.try_reserve_exact(bytes).is_ok().then_some(block)
        });
        std::hint::black_box(&blocks).iter().all(Option::is_some)
    }

    /// Whether a job can be done. By a thread that has entered; the reading one trims afterwards.
    pub(crate) fn has_for_job(&self) -> bool {
        let job = self.longest.load(Relaxed).saturating_mul(TIMES).max(JOB);
        // Not out of the reserve.
        let has = has(job.saturating_add(RESERVE));
        self.is_short.store(!has, Relaxed);
        has
    }

    /// Whether there was no memory for the last job, and is none now. Where there was, nothing is
    /// asked of the allocator.
    pub(crate) fn is_short(&self) -> bool {
        if !self.is_short.load(Relaxed) {
            return false;
        }
        !self.has_for_job()
    }

    /// The arena, unless none could be made.
    pub(crate) fn arena(&self) -> Option<u32> {
        self.arena
    }

    /// Notes the length of an answer.
    pub(crate) fn note(&self, length: usize) {
        self.longest.fetch_max(length, Relaxed);
    }

    /// Gives back what this thread's cache keeps: a few blocks of many sizes keep a slab for each.
    /// By a thread that has entered.
    pub(crate) fn flush(&self) {
        if let Some(flush) = &self.flush {
            let _ = self.namespace.act(flush);
        }
    }

    /// Gives back what the reading thread's cache keeps, and what is unused beyond the reserve. The
    /// pages of the arena do not age, because nobody would purge them in an idle process. By the
    /// reading thread, after whatever may have used memory.
    pub(crate) fn trim(&self) {
        self.flush();
        if let Some(target) = &self.reserve {
            let _ = self.namespace.write(target, Value::Size(RESERVE));
        }
    }
}

/// Whether so many bytes can be had.
fn has(bytes: usize) -> bool {
    let mut block: Vec<u8> = Vec::new();
    let can = block.try_reserve_exact(bytes).is_ok();
    // Without this the compiler may leave both out.
    std::hint::black_box(&block);
    can
}

fn reserve_of(namespace: &'static dyn Namespace, arena: u32) -> Option<Target> {
    namespace.find(&format!("arena.{arena}.reserve")).ok()
}

/// The arena with the name, of an exporter that was here before.
fn find(namespace: &'static dyn Namespace) -> Option<u32> {
    let count = namespace.find("arenas.narenas").ok()?;
    let Ok(Value::Unsigned(count)) = namespace.read(&count) else { return None };
    (0..count).find(|&arena| namespace.arena_name(arena).is_ok_and(|name| name == NAME))
}

fn make(namespace: &'static dyn Namespace) -> Option<u32> {
    let arena = namespace.create(&namespace.find("arenas.create").ok()?).ok()?;
    let _ = namespace.set_arena_name(arena, C_NAME);
    for kind in ["dirty", "muzzy"] {
        if let Ok(target) = namespace.find(&format!("arena.{arena}.{kind}_decay_ms")) {
            let _ = namespace.write(&target, Value::Ssize(-1));
        }
    }
    // Who is at the limit must be able to raise it.
    if let Ok(target) = namespace.find(&format!("arena.{arena}.limit_exempt")) {
        let _ = namespace.write(&target, Value::Bool(true));
    }
    let sizes = [("oversize_threshold", 0), ("reserve", RESERVE)];
    for (key, bytes) in sizes {
        if let Ok(target) = namespace.find(&format!("arena.{arena}.{key}")) {
            let _ = namespace.write(&target, Value::Size(bytes));
        }
    }
    Some(arena)
}
