//! Which arena a thread takes pages from, and when a new one is made.
//!
//! There is one arena at the start. A thread that finds a lock of its arena taken (that of the
//! pages, or of a bin whose slabs are shared) tries the others once, and its own for a few
//! microseconds more. If all stay taken, the thread waits. If threads wait there often and fewer
//! arenas than the limit exist, it then makes a new one, which becomes its home. Source:
//! vmalloc(3), "regions for malloc".
//!
//! A thread without caches uses a bin for each block, and for a moment only. It moves to another
//! arena when it has met other threads there often.

use super::arena::Arena;
use super::arena_list;
use super::arena_pages::ArenaPages;
use super::bin::BinSlabs;
use super::entries::Entries;
use super::home_arena::HomeArena;
use crate::back::page_allocator::Memory;
use crate::ground::counters::SharedCount;
use crate::ground::cpu_quota;
use crate::ground::options::{self, PercpuArena};
use crate::ground::os;
use crate::ground::sync::lock::{Guard, RankedMutex, SPINS};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use crossbeam_utils::Backoff;

/// How many arenas beside the first there may be unless [`set_regmax`] sets another number. Source:
/// vmalloc(3).
const DEFAULT_REGMAX: u32 = 64;
const UNSET: u32 = u32::MAX;

/// Entries that searched for an arena, and entries that waited for one.
pub(crate) static PROBES: SharedCount = SharedCount::new();
pub(crate) static WAITS: SharedCount = SharedCount::new();

/// The number of arenas that `opt.narenas` or the CPUs allow; 0 until asked.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// How many arenas the CPUs share under `opt.percpu_arena`; 0 until asked.
static OF_CPUS: AtomicU32 = AtomicU32::new(0);
static REGMAX: AtomicU32 = AtomicU32::new(UNSET);

/// The largest number of automatic arenas. The first call asks the system.
pub(crate) fn limit() -> u32 {
    let explicit = options::current().narenas;
    let limit = match REGMAX.load(Relaxed) {
        _ if is_percpu() => wanted(),
        UNSET if explicit != 0 => explicit,
        UNSET => wanted().min(1 + DEFAULT_REGMAX),
        regmax => wanted().min(regmax.saturating_add(1)),
    };
    limit.min(arena_list::reserved().unwrap_or(u32::MAX))
}

/// Makes an arena for the program, beyond the automatic ones. `None`: no index is left, or no
/// memory.
pub(crate) fn create() -> Option<&'static Arena> {
    arena_list::create(limit())
}

/// How many arenas beside the first there may be, if the CPUs allow as many.
pub(crate) fn regmax() -> u32 {
    match REGMAX.load(Relaxed) {
        UNSET => DEFAULT_REGMAX,
        regmax => regmax,
    }
}

/// Sets how many arenas beside the first there may be, and returns the number before. Existing
/// arenas stay.
pub(crate) fn set_regmax(regmax: u32) -> u32 {
    match REGMAX.swap(regmax.min(UNSET - 1), Relaxed) {
        UNSET => DEFAULT_REGMAX,
        before => before,
    }
}

fn wanted() -> u32 {
    let known = WANTED.load(Relaxed);
    if known != 0 {
        return known;
    }
    // The system is asked for its CPUs only if nothing else says how many arenas there may be.
    let wanted = match options::current().narenas {
        explicit if is_percpu() => percpu_arenas().max(explicit),
        0 => arenas_by_cpus(),
        explicit => explicit,
    };
    WANTED.store(wanted, Relaxed);
    wanted
}

fn arenas_by_cpus() -> u32 {
    match cpu_quota::cpus() {
        1 => 1,
        cpus => {
            let ratio = u64::from(options::current().narenas_ratio);
            ((u64::from(cpus) * ratio) >> 16).max(1) as u32
        }
    }
}

/// Whether threads find their arena by the CPU they run on.
#[inline]
pub(crate) fn is_percpu() -> bool {
    options::current().percpu_arena != PercpuArena::Disabled
}

/// How many arenas the CPUs have, for [`PercpuArena::Phycpu`] half of those that are online. CPUs
/// that come online later share them.
fn percpu_arenas() -> u32 {
    let known = OF_CPUS.load(Relaxed);
    if known != 0 {
        return known;
    }
    let arenas = match options::current().percpu_arena {
        PercpuArena::Phycpu => os::online_cpus().div_ceil(2),
        _ => cpu_quota::possible(),
    };
    OF_CPUS.store(arenas, Relaxed);
    arenas
}

/// The index of the arena of a CPU. As a rule, and in jemalloc, the hyper-threads of one core are
/// half of all CPUs apart.
fn arena_of_cpu(cpu: u32, arenas: u32) -> u32 {
    cpu % arenas.max(1)
}

/// Moves `home` to the arena of the CPU that the thread runs on, and returns that arena.
fn follow_cpu(home: &HomeArena) -> &'static Arena {
    let arena = os::current_cpu().and_then(|cpu| automatic(arena_of_cpu(cpu, percpu_arenas())));
    match arena {
        Some(arena) => {
            home.set(arena);
            arena
        }
        None => home.get(),
    }
}

/// The arena for requests past the caches.
pub(crate) fn at_home(home: &HomeArena) -> &'static Arena {
    if is_percpu() && !home.is_bound() { follow_cpu(home) } else { home.get() }
}

/// The index of the arena that the next thread moves to, in turn.
static NEXT_HOME: AtomicU32 = AtomicU32::new(1);

/// Notes that a thread found a bin of the arena `met_in` taken by another thread, past the caches.
/// If that arena is its home and this happens often, the thread moves to the next arena, which is
/// made if needed. There are no more arenas for this than `threads`, because two threads also meet
/// where one frees the other's blocks. Called under no lock of an arena.
#[cold]
#[inline(never)]
pub(crate) fn note_meeting(home: &HomeArena, met_in: &Arena, threads: u32) {
    if is_percpu() || home.is_bound() || !core::ptr::eq(home.get(), met_in) {
        return;
    }
    if !home.meets_often() {
        return;
    }
    let next = || NEXT_HOME.fetch_add(1, Relaxed).checked_rem(limit().min(threads));
    let other = next().filter(|next| *next != met_in.id()).or_else(next);
    if let Some(arena) = other.and_then(automatic) {
        home.set(arena);
    }
}

/// The arenas whose unused memory may be taken before new memory in `arena`. A thread that is bound
/// to `arena` has none, nor has one with an arena by CPU. A reserve is for its arena's threads.
pub(in crate::middle) fn others(
    home: &HomeArena,
    arena: &'static Arena,
) -> impl Iterator<Item = &'static Arena> {
    let count = if is_percpu() || home.is_bound() { 0 } else { usize::MAX };
    let is_other = move |other: &&Arena| !core::ptr::eq(*other, arena) && !other.has_reserve();
    arena_list::automatic().filter(is_other).take(count)
}

/// The automatic arena with index `id`, made now if needed.
pub(crate) fn automatic(id: u32) -> Option<&'static Arena> {
    if id >= limit() {
        return None;
    }
    while arena_list::count() <= id && arena_list::make_next(limit()).is_some() {}
    // None is made if there is no memory, or if another thread has made the last one meanwhile.
    if id < arena_list::count() { arena_list::by_id(id) } else { None }
}

/// Whether the arena with this index is one of those that threads spread over by themselves.
pub(crate) fn is_automatic(id: u32) -> bool {
    arena_list::reserved().is_none_or(|reserved| id < reserved)
}

/// Calls `take` on the pages of arenas until it returns a value: for unused memory, and at last for
/// new memory. So no arena grows while another keeps unused memory.
pub(crate) fn with_pages<R>(
    home: &HomeArena,
    mut take: impl FnMut(&mut ArenaPages, Memory) -> Option<R>,
) -> Option<R> {
    with_unused_pages(home, &mut take).or_else(|| with_new_pages(home, take))
}

/// Calls `take` for unused memory on the pages of the arena that [`enter`] finds, and then of the
/// others whose lock is free, until it returns a value.
pub(crate) fn with_unused_pages<R>(
    home: &HomeArena,
    mut take: impl FnMut(&mut ArenaPages, Memory) -> Option<R>,
) -> Option<R> {
    let (arena, mut pages) = enter(home, |arena| &arena.pages);
    if let Some(found) = take(&mut pages, Memory::Resident) {
        return Some(found);
    }
    drop(pages);
    for other in others(home, arena) {
        let Some(mut pages) = other.pages.try_lock() else { continue };
        if let Some(found) = take(&mut pages, Memory::Resident) {
            return Some(found);
        }
    }
    None
}

/// Calls `take` for new memory on the pages of the arena that [`enter`] finds.
pub(crate) fn with_new_pages<R>(
    home: &HomeArena,
    mut take: impl FnMut(&mut ArenaPages, Memory) -> Option<R>,
) -> Option<R> {
    let (_, mut pages) = enter(home, |arena| &arena.pages);
    take(&mut pages, Memory::Any)
}

/// What a thread enters an arena for.
pub(in crate::middle) trait Entered {
    /// The entries so far.
    fn entries(&mut self) -> &mut Entries;
}

impl Entered for ArenaPages {
    fn entries(&mut self) -> &mut Entries {
        &mut self.entries
    }
}

impl Entered for BinSlabs {
    fn entries(&mut self) -> &mut Entries {
        &mut self.entries
    }
}

/// Takes the lock of `home`, or of another arena whose lock is free. If all are taken it waits, and
/// may make a new arena, which becomes the home.
pub(in crate::middle) fn enter<T: Entered>(
    home: &HomeArena,
    lock: impl Fn(&'static Arena) -> &'static RankedMutex<T>,
) -> (&'static Arena, Guard<'static, T>) {
    if is_percpu() || home.is_bound() {
        let arena = if home.is_bound() { home.get() } else { follow_cpu(home) };
        let entered = open(lock(arena)).unwrap_or_else(|| wait(lock(arena)));
        return (arena, entered);
    }
    let arena = home.get();
    if let Some(entered) = open(lock(arena)) {
        return (arena, entered);
    }
    PROBES.add(1);
    for other in arena_list::automatic().filter(|other| !other.has_reserve()) {
        if let Some(entered) = open(lock(other)) {
            return (other, entered);
        }
    }
    if let Some(entered) = open_soon(lock(arena)) {
        return (arena, entered);
    }
    let mut entered = wait(lock(arena));
    if !entered.entries().waits_often() {
        return (arena, entered);
    }
    // The limit may have to be read from files, and an arena is made under a lock of its own.
    drop(entered);
    if let Some(new) = arena_list::make_next(limit()) {
        home.set(new);
        if let Some(entered) = open(lock(new)) {
            return (new, entered);
        }
    }
    (arena, wait(lock(arena)))
}

fn wait<T>(lock: &'static RankedMutex<T>) -> Guard<'static, T> {
    WAITS.add(1);
    lock.lock()
}

/// Tries a little longer. A lock that is held for a moment is no reason for one more arena, which
/// would keep its own unused pages from then on.
fn open_soon<T: Entered>(lock: &'static RankedMutex<T>) -> Option<Guard<'static, T>> {
    let backoff = Backoff::new();
    for _ in 0..SPINS {
        backoff.spin();
        if let Some(entered) = open(lock) {
            return Some(entered);
        }
    }
    None
}

fn open<T: Entered>(lock: &'static RankedMutex<T>) -> Option<Guard<'static, T>> {
    let mut entered = lock.try_lock()?;
    entered.entries().note_open();
    Some(entered)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::map::page_map;
    use crate::ground::size_class::SizeClass;
    use crate::ground::sync::lock_rank::LockRank;
    use crate::middle::arenas::entries::OFTEN;
    use crate::middle::arenas::home_arena::PATIENCE;
    use crate::middle::blocks::shared_refill::fill_shared;
    use crate::middle::events::{Event, EventCounts};
    use crate::middle::slabs::slab::Slab;
    use core::cell::Cell;
    use std::sync::mpsc::channel;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread;

    /// At least three arenas of at most eight, however many CPUs there are. Until the guard is
    /// dropped no other test makes one. Arenas whose pages lie in a buffer would hinder other
    /// tests, so these take theirs from the system.
    fn arenas() -> (MutexGuard<'static, ()>, Vec<&'static Arena>) {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        set_regmax(7);
        WANTED.store(8, Relaxed);
        while arena_list::count() < 3 {
            arena_list::make_next(8).expect("memory");
        }
        (alone, arena_list::automatic().collect())
    }

    fn refill(home: &'static HomeArena, class: SizeClass) -> Vec<usize> {
        let mut blocks = Vec::new();
        let events = EventCounts::new();
        fill_shared(home, class, 2, &events, |block| blocks.push(block as usize));
        assert_eq!(events.get(Event::RefillShared), 1);
        blocks
    }

    fn arena_of(block: usize) -> u32 {
        Slab::of(page_map::lookup(block)).expect("a slab").arena()
    }

    #[test]
    fn who_finds_a_bin_taken_goes_elsewhere_and_who_finds_all_taken_waits() {
        let (_alone, all) = arenas();
        let class = SizeClass::of(5120);
        let home: &'static HomeArena = Box::leak(Box::new(HomeArena::new(all[0])));
        let (opens, probes) = (all[1].bin(class).slabs.lock().entries.open(), PROBES.get());
        let held = all[0].bin(class).slabs.lock();
        let blocks = thread::spawn(move || refill(home, class)).join().unwrap();
        drop(held);
        assert_eq!(blocks.len(), 2);
        assert!(blocks.iter().all(|block| arena_of(*block) == 1), "the next one");
        assert_eq!(home.get().id(), 0, "a moment's contention moves nobody");
        assert!(PROBES.get() > probes);
        assert_eq!(all[1].bin(class).slabs.lock().entries.open(), opens + 1);
    }

    impl Entered for Entries {
        fn entries(&mut self) -> &mut Entries {
            self
        }
    }

    /// All locks are taken when a thread comes. That of its home is released while it spins.
    #[test]
    fn a_lock_that_is_held_for_a_moment_makes_no_arena() {
        static HOME: RankedMutex<Entries> = RankedMutex::new(LockRank::Bin, Entries::new());
        static OTHERS: RankedMutex<Entries> = RankedMutex::new(LockRank::Bin, Entries::new());
        let (_alone, all) = arenas();
        let home = HomeArena::new(all[0]);
        let held = Cell::new(HOME.try_lock());
        let _others = OTHERS.try_lock().unwrap();
        let looks = Cell::new(0);
        let (arena, entered) = enter(&home, |arena| {
            if arena.id() != 0 {
                return &OTHERS;
            }
            // The home's lock is tried first, then among all, then for a moment more.
            looks.set(looks.get() + 1);
            if looks.get() == 3 {
                drop(held.take());
            }
            &HOME
        });
        assert_eq!((arena.id(), home.get().id(), looks.get()), (0, 0, 3));
        assert_eq!(entered.open(), 1, "an entry that did not wait");
    }

    #[test]
    fn who_meets_others_past_the_caches_all_the_time_moves_on() {
        let (_alone, all) = arenas();
        let home = HomeArena::new(all[0]);
        let meet = |times: u32| {
            let before = home.get();
            (0..times).for_each(|_| note_meeting(&home, before, u32::MAX));
            home.get().id() != before.id()
        };
        assert!(!meet(PATIENCE - 1), "now and then is not all the time");
        assert!(meet(1));
        assert!(home.get().id() < limit(), "among those that threads spread over");
        assert!(!meet(2 * PATIENCE - 1), "less soon each time");
        let alone = HomeArena::new(all[0]);
        (0..PATIENCE).for_each(|_| note_meeting(&alone, all[0], 1));
        assert_eq!(alone.get().id(), 0, "no more arenas than threads");
        let elsewhere = all.iter().find(|arena| arena.id() != home.get().id()).unwrap();
        note_meeting(&home, elsewhere, u32::MAX);
        assert_eq!(home.meetings.load(Relaxed), 2 * PATIENCE - 1, "not at home");
        assert!(meet(1));
        home.bind(true);
        assert!(!meet(8 * PATIENCE), "told to stay");
        home.bind(false);
        assert!(!meet(PATIENCE - 1));
        assert!(meet(1), "a new beginning");
    }

    /// Lets a thread refill while others hold this class's bins of all arenas, until it waits.
    fn refill_after_a_wait(home: &'static HomeArena, class: SizeClass) -> Vec<usize> {
        let waits = WAITS.get();
        // One thread for each lock: the witness of lock order lets no thread hold two bins.
        let holders = arena_list::automatic().map(|arena| {
            let (ready, is_ready) = channel();
            let (release, released) = channel::<()>();
            let thread = thread::spawn(move || {
                let _held = arena.bin(class).slabs.lock();
                ready.send(()).unwrap();
                released.recv().unwrap_err();
            });
            is_ready.recv().unwrap();
            (release, thread)
        });
        let holders: Vec<_> = holders.collect();
        let refill = thread::spawn(move || refill(home, class));
        while WAITS.get() == waits {
            thread::yield_now();
        }
        drop(holders);
        refill.join().unwrap()
    }

    #[test]
    fn who_finds_all_taken_waits_and_makes_an_arena_if_that_happens_often() {
        let (_alone, all) = arenas();
        let class = SizeClass::of(6144);
        let home: &'static HomeArena = Box::leak(Box::new(HomeArena::new(all[0])));
        let count = arena_list::count();
        for _ in 1..OFTEN {
            assert_eq!(refill_after_a_wait(home, class).len(), 2);
        }
        assert_eq!((arena_list::count(), home.get().id()), (count, 0), "not yet");
        while arena_list::count() < limit() {
            let (count, before) = (arena_list::count(), home.get().id());
            assert_eq!(refill_after_a_wait(home, class).len(), 2);
            let is_made = arena_list::count() > count;
            assert_eq!(arena_list::count(), count + u32::from(is_made));
            assert_eq!(home.get().id(), if is_made { count } else { before });
        }
        for _ in 0..2 * OFTEN {
            assert_eq!(refill_after_a_wait(home, class).len(), 2);
        }
        assert_eq!(arena_list::count(), limit(), "there may be no more");
    }
}
