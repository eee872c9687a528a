//! The exporter's own memory is an arena named `exporter`. Its reserve is ready from the start, so
//! that the exporter can say what is wrong when no memory is left.
//!
//! Rust ends a process that has no memory for a small block. Therefore nothing here allocates
//! before it has checked that it can: before the exporter takes in a connection or begins a job, it
//! maps as many bytes as may be needed, and unmaps them at once. The bounds of the system decide on
//! that, and the allocator counts none of it.
use crate::namespace::walk::{arenas, initialized_arenas};
use crate::namespace::{Namespace, Target};
use crate::route_names::RouteNames;
use lumalloc_ctl::Value;
use std::ptr;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The name of the arena.
pub(crate) const NAME: &str = "exporter";
const C_NAME: &std::ffi::CStr = c"exporter";
/// Bytes of unused pages that stay, and have their memory from the start. With the memory in use,
/// most of which is one slab for each size, the arena of an idle exporter holds less than 2 MiB.
pub(crate) const RESERVE: usize = 128 << 10;
/// Bytes of a block that takes about the reserve.
const BLOCK: usize = RESERVE / 8 * 7;
/// Bytes of addresses that the arena has from the start: enough for slabs of every length that
/// connections need, and for as many as may be open. A block of 4 MiB would lie on huge pages.
const ADDRESSES: usize = (4 << 20) / 8 * 7;
/// Bytes beside which the memory of one connection does not matter.
const PLENTY: usize = 128 << 10;
/// The lengths of the blocks that one connection needs: buffers, its task, a request, a short
/// answer. Blocks that another connection has freed are ready in these lengths.
const CONNECTION: [usize; 8] = [32 << 10, 16 << 10, 8 << 10, 8 << 10, 4 << 10, 2 << 10, 1024, 512];
/// The least bytes that a job may need.
const JOB: usize = 4 << 20;
/// How many times the longest answer of its kind so far a job may need. The answer grows by
/// doubling, is compressed, and is made from what was read.
const TIMES: usize = 5;

/// How many times its bytes an answer may need that grows by doubling, and is not compressed.
const GROWS: usize = 3;
/// Answers with a part for each arena have one for all arenas together, and one for those that were
/// destroyed.
const OTHER_PARTS: usize = 2;

/// What a job makes. A long answer of one kind says nothing about the other kinds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// An answer of the route with this number.
    Answer(usize),
    /// A snapshot that is kept.
    Kept,
}

/// The longest answer of each kind. The last cell is for snapshots that are kept.
struct Longest(Box<[AtomicUsize]>);

impl Longest {
    fn new(routes: &RouteNames) -> Longest {
        Longest((0..=routes.count()).map(|_| AtomicUsize::new(0)).collect())
    }

    fn of(&self, kind: Kind) -> &AtomicUsize {
        let last = self.0.len() - 1;
        match kind {
            Kind::Answer(route) => &self.0[route.min(last - 1)],
            Kind::Kept => &self.0[last],
        }
    }

    fn note(&self, kind: Kind, length: usize) {
        self.of(kind).fetch_max(length, Relaxed);
    }

    /// Returns how many bytes a job may need. It must not use the reserve.
    fn need(&self, kind: Kind) -> usize {
        let job = self.of(kind).load(Relaxed).saturating_mul(TIMES).max(JOB);
        job.saturating_add(RESERVE)
    }
}

/// The exporter's arena in an allocator.
pub(crate) struct OwnMemory {
    namespace: &'static dyn Namespace,
    arena: Option<u32>,
    /// The key of the arena's reserve. Keys are looked up once, because a lookup takes memory.
    reserve: Option<Target>,
    /// The key of the arena's own limit, which only the program can set.
    limit: Option<Target>,
    flush: Option<Target>,
    /// The key of the calling thread's arena.
    thread_arena: Option<Target>,
    longest: Longest,
    /// An answer to `/metrics`.
    scrape: Kind,
}

impl OwnMemory {
    /// Finds the arena, or makes it. If none can be made, the exporter runs without an arena.
    pub(crate) fn of(namespace: &'static dyn Namespace, routes: &RouteNames) -> OwnMemory {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let arena = find(namespace).or_else(|| make(namespace));
        OwnMemory {
            namespace,
            arena,
            reserve: arena.and_then(|arena| key_of(namespace, arena, "reserve")),
            limit: arena.and_then(|arena| key_of(namespace, arena, "limit")),
            flush: arena.and_then(|_| namespace.find("thread.tcache.flush").ok()),
            thread_arena: namespace.find("thread.arena").ok(),
            longest: Longest::new(routes),
            scrape: Kind::Answer(routes.of_path("/metrics")),
        }
    }

    /// Makes the calling thread allocate from the arena from now on, which heap profiles leave out.
    pub(crate) fn enter(&self) {
        let Some(arena) = self.arena else { return };
        if let Some(target) = &self.thread_arena {
            let _ = self.namespace.write(target, Value::Unsigned(arena));
        }
    }

    /// Makes the reserve ready. Only for a thread that has [entered](Self::enter).
    pub(crate) fn fill(&self) {
        if self.arena.is_none() {
            return;
        }
        has_block(ADDRESSES);
        self.trim();
        let mut reserve = Vec::new();
        if reserve.try_reserve_exact(BLOCK).is_ok() {
            // Not zero, because fresh pages read as zero without being touched.
            reserve.resize(BLOCK, 1u8);
            std::hint::black_box(&reserve);
        }
    }

    /// Whether connections may be taken in without closing others first. Only for a thread that has
    /// [entered](Self::enter).
    pub(crate) fn has_plenty(&self) -> bool {
        self.has(PLENTY)
    }

    /// Whether one connection can be served. Only for a thread that has [entered](Self::enter).
    pub(crate) fn has_for_connection(&self) -> bool {
        let blocks = CONNECTION.map(|bytes| {
            let mut block: Vec<u8> = Vec::new();
            block.try_reserve_exact(bytes).is_ok().then_some(block)
        });
        std::hint::black_box(&blocks).iter().all(Option::is_some)
    }

    /// Whether a job can be done. Only for a thread that has [entered](Self::enter). The reading
    /// thread calls [`trim`](Self::trim) afterwards.
    pub(crate) fn has_for_job(&self, kind: Kind) -> bool {
        self.has(self.longest.need(kind))
    }

    /// Whether a job can have so many bytes. Only for a thread that has [entered](Self::enter).
    pub(crate) fn has_for(&self, bytes: usize) -> bool {
        self.arena.is_none() || self.has(bytes.saturating_add(RESERVE))
    }

    /// Whether there is memory for an answer with so many bytes for each arena that exists. Only
    /// for a thread that has [entered](Self::enter).
    pub(crate) fn has_for_arenas(&self, bytes: usize) -> bool {
        let parts = initialized_arenas(self.namespace) + OTHER_PARTS;
        self.has_for(parts.saturating_mul(bytes).saturating_mul(GROWS))
    }

    /// Whether so many bytes can be allocated. If the system gives no more, or the arena has a
    /// limit of its own, the arena itself is asked, whose unused addresses may be enough.
    fn has(&self, bytes: usize) -> bool {
        let is_limited = || {
            let limit = self.limit.as_ref().map(|limit| self.namespace.read(limit));
            !matches!(limit, None | Some(Ok(Value::Size(0))))
        };
        (can_map(bytes) && !is_limited()) || has_block(bytes)
    }

    /// Whether there is memory for an answer to `/metrics` now. On a thread of the program, as of a
    /// server that has the routes, nothing is allocated, and only the system is asked.
    pub(crate) fn has_for_scrape(&self) -> bool {
        let arena = self.thread_arena.as_ref().and_then(|key| self.namespace.read(key).ok());
        let has_entered = self.arena.is_some_and(|own| arena == Some(Value::Unsigned(own)));
        if has_entered {
            self.has_for_job(self.scrape)
        } else {
            can_map(self.longest.need(self.scrape))
        }
    }

    /// Returns the index of the arena, or `None` if none could be made.
    pub(crate) fn arena(&self) -> Option<u32> {
        self.arena
    }

    /// Notes the length of what a job made.
    pub(crate) fn note(&self, kind: Kind, length: usize) {
        self.longest.note(kind, length);
    }

    /// Gives back what this thread's cache keeps, because a few blocks of many sizes keep a slab
    /// for each. Only for a thread that has [entered](Self::enter).
    pub(crate) fn flush(&self) {
        if let Some(flush) = &self.flush {
            let _ = self.namespace.act(flush);
        }
    }

    /// Gives back the blocks in the reading thread's cache, and the unused pages beyond the
    /// reserve. The pages of the arena do not age, because no thread would purge them in an idle
    /// process. The reading thread calls this after all work that may have used memory.
    pub(crate) fn trim(&self) {
        self.flush();
        if let Some(target) = &self.reserve {
            let _ = self.namespace.write(target, Value::Size(RESERVE));
        }
    }
}

/// Whether the system would map so many bytes. None of them gets memory, also where the process has
/// all its memory locked (`mlockall` with `MCL_FUTURE`): then the system fills what can be accessed
/// when it is mapped, and what is still locked when it can be accessed.
fn can_map(bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, where the system has room for it.
    let place = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
    if place == libc::MAP_FAILED {
        return false;
    }
    // SAFETY: the mapping is this function's own.
    unsafe { libc::munlock(place, bytes) };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the mapping is this function's own. From here on the system counts it as memory.
    let can = unsafe { libc::mprotect(place, bytes, access) } == 0;
    // SAFETY: the mapping is this function's own, and nothing refers to it.
    unsafe { libc::munmap(place, bytes) };
    can
}

/// Whether a block of so many bytes can be allocated.
fn has_block(bytes: usize) -> bool {
    let mut block: Vec<u8> = Vec::new();
    let can = block.try_reserve_exact(bytes).is_ok();
    // Without this, the compiler may remove both the allocation and the deallocation.
    std::hint::black_box(&block);
    can
}

fn key_of(namespace: &'static dyn Namespace, arena: u32, key: &str) -> Option<Target> {
    namespace.find(&format!("arena.{arena}.{key}")).ok()
}

/// Returns the arena with the name, which an earlier exporter of this process has made.
fn find(namespace: &'static dyn Namespace) -> Option<u32> {
    (0..arenas(namespace) as u32)
        .find(|&arena| namespace.arena_name(arena).is_ok_and(|name| name == NAME))
}

fn make(namespace: &'static dyn Namespace) -> Option<u32> {
    let arena = namespace.create(&namespace.find("arenas.create").ok()?).ok()?;
    let _ = namespace.set_arena_name(arena, C_NAME);
    for kind in ["dirty", "muzzy"] {
        if let Ok(target) = namespace.find(&format!("arena.{arena}.{kind}_decay_ms")) {
            let _ = namespace.write(&target, Value::Ssize(-1));
        }
    }
    // The arena is exempt, because a client must be able to raise a limit that is reached. Profiles
    // are of the program.
    for (key, is_on) in [("limit_exempt", true), ("profiled", false)] {
        if let Ok(target) = namespace.find(&format!("arena.{arena}.{key}")) {
            let _ = namespace.write(&target, Value::Bool(is_on));
        }
    }
    let sizes = [("oversize_threshold", 0), ("reserve", RESERVE)];
    for (key, bytes) in sizes {
        if let Ok(target) = namespace.find(&format!("arena.{arena}.{key}")) {
            let _ = namespace.write(&target, Value::Size(bytes));
        }
    }
    Some(arena)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route_names::RouteName;

    #[test]
    fn what_a_job_needs_depends_on_earlier_answers_of_its_kind_only() {
        let (heap, metrics) = (Kind::Answer(0), Kind::Answer(1));
        let names = ["/debug/pprof/heap", "/metrics"];
        let names = names.map(|path| RouteName { path, method: "GET" }).into_iter();
        let longest = Longest::new(&RouteNames::new(names));
        longest.note(heap, 200 << 20);
        longest.note(heap, 10);
        assert_eq!(longest.need(heap), (1000 << 20) + RESERVE);
        assert_eq!(longest.need(metrics), JOB + RESERVE);
        longest.note(Kind::Kept, 1 << 20);
        assert_eq!(longest.need(Kind::Kept), (5 << 20) + RESERVE);
        assert_eq!(longest.need(metrics), JOB + RESERVE);
    }
}
