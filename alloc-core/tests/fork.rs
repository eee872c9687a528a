//! Forks of a process whose other threads are in the middle of operations. This program allocates
//! by lumalloc. All runs in a child with an alarm, so that a deadlock is a failure.
#![allow(unsafe_code)]

mod common;

use common::block::Block;
use common::child::{play_well, scenario};
use common::random::Random;
use lumalloc::control::arenas;
use lumalloc::{control, observe, raw};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// The number of forks in one scenario.
const FORKS: usize = 100;

#[test]
fn a_threaded_process_forks_under_traffic() {
    for conf in ["", "dirty_decay_ms:0", "tcache:false", "narenas:1,dirty_decay_ms:10"] {
        play_well("traffic", conf);
    }
}

#[test]
fn what_the_parent_had_is_whole_in_the_child() {
    play_well("contents", "");
}

#[test]
fn a_child_counts_what_other_threads_caches_held() {
    play_well("abandoned", "");
}

#[test]
fn a_callback_of_the_program_may_fork() {
    play_well("in_a_callback", "");
}

#[test]
fn a_child_ends_an_arena_that_another_thread_purged() {
    play_well("decay", "");
}

#[test]
#[ignore = "a scenario of the tests above"]
fn child() {
    match scenario().as_deref() {
        Some("traffic") => traffic(),
        Some("contents") => contents(),
        Some("abandoned") => abandoned(),
        Some("in_a_callback") => in_a_callback(),
        Some("decay") => decay(),
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

/// Seconds after which a child that has not ended counts as hanging. `GRANDCHILD` is less, because
/// the parent of the grandchild must still be there to end it.
const CHILD: u64 = 40;
const GRANDCHILD: u64 = 15;

/// Runs `f` in a forked child and panics unless it returns.
fn forked(patience: u64, f: impl FnOnce()) {
    // SAFETY: the allocator is what is tested. `f` avoids locks of the standard library that
    // another thread may hold.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
        // SAFETY: the call ends the process without cleanup for the parent's threads.
        unsafe { libc::_exit(i32::from(!well)) };
    }
    assert_eq!(wait(pid, Duration::from_secs(patience)), 0, "the child's status");
}

/// Runs `f` on a new thread in a child. Threads of the standard library take a lock as they begin
/// and end, which a thread of the parent may have held at the fork.
fn on_a_thread<F: FnOnce() + Send>(f: F) {
    extern "C" fn run<F: FnOnce()>(f: *mut c_void) -> *mut c_void {
        // SAFETY: the box that was leaked for this thread.
        let f = unsafe { Box::from_raw(f.cast::<F>()) };
        f();
        std::ptr::null_mut()
    }
    let mut thread = 0;
    let f = Box::into_raw(Box::new(f)).cast();
    // SAFETY: the thread owns the closure, and is joined before what it borrows ends.
    let made = unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), run::<F>, f) };
    assert_eq!(made, 0, "a thread in the child");
    // SAFETY: the thread was just made, and is joined once.
    assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
}

/// Waits for a child and returns its status. A child that hangs, perhaps in `fork`, is killed.
fn wait(pid: libc::pid_t, patience: Duration) -> i32 {
    let hang = Instant::now() + patience;
    let mut status = 0;
    // SAFETY: the call waits for the child just made.
    while unsafe { libc::waitpid(pid, &raw mut status, libc::WNOHANG) } == 0 {
        if Instant::now() > hang {
            // SAFETY: the child was made here and has not been waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    status
}

/// Allocates, checks and frees many blocks.
fn busy(seed: u64, steps: usize) {
    let mut random = Random::new(seed);
    let mut live: Vec<Block> = Vec::new();
    for id in 0..steps as u64 {
        let size = random.size();
        live.extend(Block::filled(raw::malloc(size), size, id));
        if live.len() > 100 {
            free(live.swap_remove(random.below(100)));
        }
    }
    live.into_iter().for_each(free);
}

fn free(block: Block) {
    block.check(block.length);
    // SAFETY: a live block, not used afterwards.
    unsafe { raw::free(block.ptr()) };
}

/// Allocates one block of each class, so that a new cache makes and gives back all its arrays.
fn every_class() {
    for lg in 3..16 {
        for step in 0..4 {
            let size = (1 << lg) + step * (1 << lg) / 4;
            free(Block::filled(raw::malloc(size), size, size as u64).expect("memory"));
        }
    }
}

/// Threads that allocate, free each other's blocks, begin and end, until `stop`.
struct Traffic {
    stop: Arc<AtomicBool>,
    steps: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Traffic {
    fn start() -> Traffic {
        let stop = Arc::new(AtomicBool::new(false));
        let steps = Arc::new(AtomicU64::new(0));
        let (sender, receiver) = sync_channel::<Block>(64);
        let producer = {
            let (stop, steps) = (Arc::clone(&stop), Arc::clone(&steps));
            std::thread::spawn(move || produce(&stop, &steps, &sender))
        };
        let consumer = std::thread::spawn(move || consume(&receiver));
        let spawner = {
            let (stop, steps) = (Arc::clone(&stop), Arc::clone(&steps));
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::thread::spawn(every_class).join().expect("a short-lived thread");
                    control::purge(control::ARENAS_ALL);
                    steps.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        Traffic { stop, steps, threads: vec![producer, consumer, spawner] }
    }

    /// Waits until the threads have made some progress.
    fn wait(&self) {
        let before = self.steps.load(Ordering::Relaxed);
        while self.steps.load(Ordering::Relaxed) < before + 3 {
            std::thread::yield_now();
        }
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a thread of the traffic");
        }
    }
}

fn produce(stop: &AtomicBool, steps: &AtomicU64, to: &SyncSender<Block>) {
    let mut random = Random::new(1);
    let mut id = 0;
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..20 {
            id += 1;
            let size = random.size();
            let block = Block::filled(raw::malloc(size), size, id).expect("memory");
            to.send(block).expect("a consumer");
        }
        steps.fetch_add(1, Ordering::Relaxed);
    }
}

fn consume(from: &Receiver<Block>) {
    from.iter().for_each(free);
}

fn traffic() {
    let traffic = Traffic::start();
    for round in 0..FORKS as u64 {
        traffic.wait();
        forked(CHILD, || {
            busy(round, 300);
            on_a_thread(move || busy(round + 1, 300));
            control::purge(control::ARENAS_ALL);
            let totals = observe::totals();
            assert!(totals.allocated <= totals.active && totals.active <= totals.resident);
            assert_eq!((totals.dirty, totals.muzzy), (0, 0), "pages that nobody has");
            forked(GRANDCHILD, || {
                busy(round + 2, 200);
                on_a_thread(|| busy(9, 100));
            });
            busy(round + 3, 100);
        });
        busy(round, 50);
    }
    traffic.end();
}

/// Blocks of all sizes, some from another thread, keep their contents and can be freed on either
/// side of the fork.
fn contents() {
    let mut random = Random::new(5);
    let mut make = |from: u64| -> Vec<Block> {
        (from..from + 2000)
            .map(|id| {
                let size = random.size();
                Block::filled(raw::malloc(size), size, id).expect("memory")
            })
            .collect()
    };
    let mine = make(0);
    let theirs = std::thread::scope(|scope| scope.spawn(|| make(10_000)).join().expect("a thread"));
    let parked = Traffic::start();
    parked.wait();
    forked(CHILD, || {
        for block in mine.iter().chain(&theirs) {
            block.check(block.length);
            // SAFETY: the child's copy of a live block, freed once there.
            unsafe { raw::free(block.ptr()) };
        }
        control::flush_thread_cache();
        control::purge(control::ARENAS_ALL);
        busy(1, 1000);
    });
    parked.end();
    mine.into_iter().chain(theirs).for_each(free);
}

/// The child drops a waiting thread's cached blocks and counts them. The parent's counts stay.
fn abandoned() {
    let (ready, is_ready) = sync_channel::<()>(0);
    let (go_on, may_go_on) = sync_channel::<()>(0);
    let waiting = std::thread::spawn(move || {
        busy(4, 500);
        ready.send(()).expect("the test");
        may_go_on.recv().expect("the test");
        busy(4, 500);
    });
    is_ready.recv().expect("the thread");
    let before = observe::totals();
    forked(CHILD, || {
        let after = observe::totals();
        assert!(after.fork_abandoned > before.fork_abandoned);
        assert_eq!(after.thread_caches, 1, "one thread is left");
        busy(5, 500);
        // A thread of the child takes over the cache of the dead thread.
        on_a_thread(|| busy(6, 500));
    });
    assert_eq!(observe::totals().fork_abandoned, before.fork_abandoned);
    go_on.send(()).expect("the thread");
    waiting.join().expect("the thread");
}

/// What [`fork_if_wanted`] is to do: nothing, fork, or what its fork returned.
static FORK: AtomicI32 = AtomicI32::new(NOTHING);
const NOTHING: i32 = -1;
const WANTED: i32 = -2;

extern "C" fn fork_if_wanted(_: *const c_void, _: usize) {
    if FORK.compare_exchange(WANTED, NOTHING, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        // SAFETY: the allocator is what is tested.
        FORK.store(unsafe { libc::fork() }, Ordering::Relaxed);
    }
}

/// In the child the callback returns into the allocator, and the thread goes on with its cache.
fn in_a_callback() {
    busy(1, 500);
    assert!(control::profile::set_hooks(Some(fork_if_wanted), None));
    FORK.store(WANTED, Ordering::Relaxed);
    free(Block::filled(raw::malloc(100), 100, 7).expect("a block"));
    let pid = FORK.load(Ordering::Relaxed);
    if pid == 0 {
        let well = std::panic::catch_unwind(|| {
            assert!(control::profile::set_hooks(None, None));
            assert_eq!(observe::totals().thread_caches, 1, "that of this thread");
            busy(2, 500);
            on_a_thread(|| busy(3, 500));
            assert_eq!(observe::totals().thread_caches, 1);
        });
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(i32::from(well.is_err())) };
    }
    assert!(pid > 0, "{pid}");
    assert_eq!(wait(pid, Duration::from_secs(CHILD)), 0, "the child's status");
    assert!(control::profile::set_hooks(None, None));
}

/// A thread gives an arena's pages back by hand while another one forks.
fn decay() {
    // It takes the system some milliseconds to take so much.
    const BYTES: usize = 64 << 20;
    let arena = arenas::create().expect("an arena");
    assert!(arenas::set_decay_ms(arena, arenas::Pages::Dirty, 1));
    let purger = std::thread::spawn(move || {
        let flags = raw::Flags::NONE.arena(arena).uncached();
        for _ in 0..FORKS / 2 {
            let block = raw::allocate(BYTES, flags);
            // SAFETY: a live block, this long.
            unsafe { block.write_bytes(1, BYTES) };
            // SAFETY: a live block, not used afterwards.
            unsafe { raw::deallocate(block, flags) };
            std::thread::sleep(Duration::from_millis(15));
            assert!(arenas::decay(arena));
        }
    });
    while !purger.is_finished() {
        forked(CHILD, || {
            // SAFETY: a call without pointers. A child that hangs is killed.
            unsafe { libc::alarm(GRANDCHILD as u32) };
            // SAFETY: no thread of the child uses the arena.
            assert!(unsafe { arenas::destroy(arena) });
        });
    }
    purger.join().expect("a thread");
}
