//! Threads that do one step at a time, and the shadow map of their blocks.

use super::super::common::block::{Block, assert_zero, errno, keeps_errno, set_errno};
use super::super::common::{hardened_class, hardened_large, rest};
use super::map::Map;
use super::op::{How, Op, THREADS};
use lumalloc::observe::Run;
use lumalloc::raw::{self, Flags};
use lumalloc::{MAX_SIZE, control, observe};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A live block.
#[derive(Debug)]
struct Live {
    block: Block,
    /// The requested size.
    size: usize,
    align: usize,
}

impl Live {
    fn usable(&self) -> usize {
        self.block.length
    }

    /// The bytes of a large block of the hardened tier.
    fn large(&self) -> Option<usize> {
        hardened_large(self.block.ptr(), self.usable(), self.align)
    }
}

/// The whole state of the program.
pub(crate) struct World {
    state: State,
    threads: Vec<Worker>,
    /// What was there before: nothing, unless an earlier program failed.
    baseline: [usize; 5],
}

impl Drop for World {
    fn drop(&mut self) {
        for Worker { jobs, thread, .. } in self.threads.drain(..) {
            drop(jobs);
            thread.join().expect("a worker");
        }
    }
}

#[derive(Default)]
struct State {
    map: Map,
    live: Vec<Live>,
    next_id: u64,
    /// Whether the system refuses memory now and then.
    is_short: bool,
}

type Job = Box<dyn FnOnce(&mut State) + Send>;
type Answer = (State, std::thread::Result<()>);

struct Worker {
    jobs: Sender<(State, Job)>,
    answers: Receiver<Answer>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new() -> Worker {
        let (jobs, to_do) = channel::<(State, Job)>();
        let (done, answers) = channel();
        let thread = std::thread::spawn(move || {
            for (mut state, job) in to_do {
                let result = catch_unwind(AssertUnwindSafe(|| job(&mut state)));
                if done.send((state, result)).is_err() {
                    break;
                }
            }
        });
        Worker { jobs, answers, thread }
    }

    /// Runs `job` on the thread, and waits for it.
    fn run(&self, state: &mut State, job: impl FnOnce(&mut State) + Send + 'static) {
        let sent = self.jobs.send((std::mem::take(state), Box::new(job)));
        assert!(sent.is_ok(), "a worker is gone");
        let (after, result) = self.answers.recv().expect("a worker");
        *state = after;
        if let Err(panic) = result {
            resume_unwind(panic);
        }
    }
}

impl World {
    /// A world with nothing allocated. The allocator has started.
    pub(crate) fn new() -> World {
        let _started = lumalloc::options::current();
        let baseline = rest();
        let threads = (0..THREADS).map(|_| Worker::new()).collect();
        World { state: State::default(), threads, baseline }
    }

    /// As [`World::new`], over a system that refuses memory now and then.
    pub(crate) fn short_of_memory() -> World {
        let mut world = World::new();
        world.state.is_short = true;
        world
    }

    /// Does one step, by one thread.
    pub(crate) fn step(&mut self, thread: usize, op: &Op) {
        let (op, baseline) = (op.clone(), self.baseline[0]);
        self.threads[thread].run(&mut self.state, move |state| state.step(&op, baseline));
    }

    /// Frees everything, each block by another thread than the block before. Nothing may be left.
    pub(crate) fn end(mut self) {
        for n in 0..self.state.live.len() {
            self.step(n % THREADS, &Op::Free(n));
        }
        self.step(0, &Op::Totals);
        assert_eq!(observe::blocks(None).next(), None);
        for thread in 0..THREADS {
            self.step(thread, &Op::Flush);
        }
        let baseline = self.baseline;
        drop(self);
        assert_eq!(rest(), baseline, "{:#?}", observe::totals());
    }
}

impl State {
    fn step(&mut self, op: &Op, baseline: usize) {
        match *op {
            Op::Malloc(size) => self.born(size, 1, false, || raw::malloc(size.max(1))),
            Op::Calloc(size) => self.born(size, 1, true, || raw::malloc_zeroed(size.max(1))),
            Op::Aligned { size, lg_align, zero: false } => {
                self.born(size, 1 << lg_align, false, || raw::malloc_aligned(size, 1 << lg_align));
            }
            Op::Aligned { size, lg_align, zero: true } => {
                let make = || raw::malloc_aligned_zeroed(size, 1 << lg_align);
                self.born(size, 1 << lg_align, true, make);
            }
            Op::Allocate(size, how) => {
                self.born(size, how.align(), how.zero, || raw::allocate(size, how.flags()));
            }
            Op::Realloc { which, size } => self.resized(which, size, 1, false, |ptr| {
                // SAFETY: a live block, not used after success.
                unsafe { raw::realloc(ptr, size.max(1)) }
            }),
            Op::ReallocAligned { which, size, lg_align } => {
                let align = 1 << lg_align;
                self.resized(which, size, align, false, |ptr| {
                    // SAFETY: a live block, not used after success.
                    unsafe { raw::realloc_aligned(ptr, size, align) }
                });
            }
            Op::Reallocate { which, size, how } => {
                self.resized(which, size, how.align(), how.zero, |ptr| {
                    // SAFETY: a live block, not used after success.
                    unsafe { raw::reallocate(ptr, size, how.flags()) }
                });
            }
            Op::Resize { which, size, extra, zero } => self.resize(which, size, extra, zero),
            Op::Free(which) => self.free(which, |live| {
                // SAFETY: a live block, not used afterwards.
                unsafe { raw::free(live.block.ptr()) };
            }),
            Op::FreeSized(which, part) => self.free(which, |live| free_sized(live, part)),
            Op::FreeUncached(which) => self.free(which, |live| {
                // SAFETY: a live block, not used afterwards.
                unsafe { raw::deallocate(live.block.ptr(), Flags::NONE.uncached()) };
            }),
            Op::Purge(index) => assert!(control::purge(index) || index >= control::narenas()),
            Op::Flush => drop(control::flush_thread_cache()),
            Op::Totals => self.totals(baseline),
        }
    }

    /// Checks a new block: aligned, zero if requested, of the announced size, overlapping no other.
    fn born(&mut self, size: usize, align: usize, zero: bool, make: impl FnOnce() -> *mut u8) {
        set_errno(0);
        let ptr = make();
        if ptr.is_null() {
            assert_eq!(errno(), libc::ENOMEM);
            assert!(self.is_short || size > 1 << 40, "no memory for {size} bytes");
            return;
        }
        assert_eq!(errno(), 0, "success changed errno");
        assert!(size < MAX_SIZE);
        self.enter(ptr, size, align);
        if zero {
            // SAFETY: a live block of at least this size.
            unsafe { assert_zero(ptr, size) };
        }
        self.live.last().expect("just entered").block.fill();
    }

    fn enter(&mut self, ptr: *mut u8, size: usize, align: usize) {
        let address = ptr.expose_provenance();
        // SAFETY: a live block.
        let length = unsafe { raw::usable_size(ptr) };
        assert!(length >= size && raw::is_ours(ptr));
        assert_eq!(length, raw::good_size(size, align), "good_size({size}, {align})");
        let natural = if length >= 16 { 16 } else { 8 };
        assert!(address.is_multiple_of(align.max(natural)), "{address:#x} for {align}");
        self.map.insert(address, length);
        self.next_id += 1;
        let block = Block { address, length, id: self.next_id };
        self.live.push(Live { block, size, align });
    }

    fn take(&mut self, which: usize) -> Option<Live> {
        if self.live.is_empty() {
            return None;
        }
        let live = self.live.swap_remove(which % self.live.len());
        live.block.check(live.usable());
        Some(live)
    }

    fn resized(
        &mut self,
        which: usize,
        size: usize,
        align: usize,
        zero: bool,
        change: impl FnOnce(*mut u8) -> *mut u8,
    ) {
        let Some(live) = self.take(which) else { return };
        set_errno(0);
        let ptr = change(live.block.ptr());
        if ptr.is_null() {
            assert_eq!(errno(), libc::ENOMEM);
            assert!(self.is_short || size > 1 << 40, "no memory for {size} bytes");
            live.block.check(live.usable());
            self.live.push(live);
            return;
        }
        assert_eq!(errno(), 0, "success changed errno");
        self.map.remove(live.block.address);
        self.enter(ptr, size, align);
        let new = &self.live.last().expect("just entered").block;
        // The new place holds the old contents, up to the smaller length.
        let old = Block { address: new.address, ..live.block };
        old.check(old.length.min(size));
        if zero && size > old.length {
            // SAFETY: inside the live block.
            unsafe { assert_zero(ptr.wrapping_add(old.length), size - old.length) };
        }
        new.fill();
    }

    fn resize(&mut self, which: usize, size: usize, extra: usize, zero: bool) {
        let Some(mut live) = self.take(which) else { return };
        let flags = How { lg_align: 0, zero, uncached: false, arena: None }.flags();
        let ptr = live.block.ptr();
        // SAFETY: a live block.
        let now = keeps_errno(|| unsafe { raw::resize_in_place(ptr, size, extra, flags) });
        // SAFETY: a live block.
        assert_eq!(now, unsafe { raw::usable_size(ptr) });
        let old = live.usable();
        live.block.check(old.min(now));
        // The block was changed towards the requested size, or not at all.
        let most = raw::good_size(size.saturating_add(extra), 1);
        assert!(now == old || now >= size && (most == 0 || now <= most), "{old} to {now}");
        if zero && now > old {
            // SAFETY: inside the live block.
            unsafe { assert_zero(ptr.wrapping_add(old), now - old) };
        }
        self.map.remove(live.block.address);
        self.map.insert(live.block.address, now);
        live.block.length = now;
        if now != old {
            // From here on the block counts as requested with its new size.
            live.size = now;
        }
        live.block.fill();
        self.live.push(live);
    }

    fn free(&mut self, which: usize, give_back: impl FnOnce(&Live)) {
        let Some(live) = self.take(which) else { return };
        self.map.remove(live.block.address);
        keeps_errno(|| give_back(&live));
    }

    fn totals(&self, baseline: usize) {
        // A hardened block has slack and a canary beside its usable bytes.
        let beside = |live: &Live| {
            let of_class = hardened_class(live.size, live.align);
            of_class.or_else(|| live.large()).map_or(0, |bytes| bytes - live.usable())
        };
        let beside: usize = self.live.iter().map(beside).sum();
        let expected = baseline + self.map.bytes() + beside;
        let mut totals = observe::totals();
        // A background thread may give back a kept run between the looks at a cache and an arena.
        let mut looks = if totals.background_threads > 0 { 20 } else { 0 };
        while totals.allocated != expected && looks > 0 {
            std::thread::sleep(std::time::Duration::from_millis(looks));
            (totals, looks) = (observe::totals(), looks - 1);
        }
        assert_eq!(totals.allocated, expected, "{totals:#?}");
        assert!(totals.allocated + totals.cached <= totals.active, "{totals:#?}");
        assert!(totals.active + totals.dirty + totals.metadata <= totals.resident, "{totals:#?}");
        assert!(totals.resident <= totals.mapped, "{totals:#?}");
        assert!(totals.arenas_open >= 1 && totals.arenas_open <= control::narenas());
        let is_muzzy = lumalloc::options::current().muzzy_decay_ms != 0;
        assert!(is_muzzy || totals.muzzy == 0, "muzzy_decay_ms is 0");
        self.blocks_and_runs();
    }

    /// Compares the walk over live blocks with the shadow map, and the runs of the heap with both.
    fn blocks_and_runs(&self) {
        let blocks = observe::blocks(None).map(|block| (block.address, block.usable));
        let blocks: Vec<(usize, usize)> = blocks.collect();
        let class = |live: &Live| hardened_class(live.size, live.align).map(|class| class - 8);
        let usable = |live: &Live| class(live).or_else(|| live.large()).unwrap_or(live.usable());
        let mut own: Vec<(usize, usize)> =
            self.live.iter().map(|live| (live.block.address, usable(live))).collect();
        own.sort_unstable();
        assert!(own == blocks, "{blocks:x?} {own:x?}");
        let runs: Vec<Run> = observe::heap_map().collect();
        assert!(runs.windows(2).all(|two| two[0].base + two[0].bytes <= two[1].base), "{runs:?}");
        for (address, usable) in blocks {
            let around = runs.partition_point(|run| run.base <= address) - 1;
            let run = &runs[around];
            let is_whole = (address - run.base).is_multiple_of(run.block);
            assert!(is_whole && usable <= run.block && run.used > 0, "{address:#x} in {run:?}");
            assert!(address + usable <= run.base + run.bytes, "{address:#x} in {run:?}");
        }
    }
}

fn free_sized(live: &Live, part: usize) {
    let (ptr, slack) = (live.block.ptr(), live.usable() - live.size);
    let size = live.size + (slack / 256 * part).min(slack);
    match (live.align, part % 2) {
        // SAFETY: a live block, not used afterwards. The size is between the two that are allowed.
        (1, 0) => unsafe { raw::free_sized(ptr, size) },
        (align, 1) => {
            let flags = Flags::NONE.align(align);
            // SAFETY: a live block, not used afterwards, with an allowed size and its alignment.
            unsafe { raw::deallocate_sized(ptr, size, flags) };
        }
        // SAFETY: a live block, not used afterwards, with an allowed size and its alignment.
        (align, _) => unsafe { raw::free_sized_aligned(ptr, size, align) },
    }
}
