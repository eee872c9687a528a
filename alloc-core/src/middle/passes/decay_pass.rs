//! The decay pass. The thread that takes a slow path when a pass is due runs it, one thread at a
//! time; or a thread that does nothing else (`front/life/background.rs`), or any thread that is
//! lent for it.
//!
//! A pass takes in the remotely freed blocks of idle owners, gives up empty slabs, and ages each
//! arena's unused pages. So a producer that sleeps does not pin what its consumers freed, as long
//! as any thread allocates.

use super::hole_pass::{self, Look};
use super::idle_owner;
use crate::back::aging::growth_purge;
use crate::back::metadata;
use crate::back::runs::source;
use crate::ground::callback;
use crate::ground::options;
use crate::ground::os;
use crate::ground::sync::lock::RankedMutex;
use crate::ground::sync::lock_rank::LockRank;
use crate::ground::sync::wait::{self, Deadline};
use crate::ground::units::LG_PAGE;
use crate::middle::arenas::arena::Arena;
use crate::middle::arenas::arena_list;
use crate::middle::arenas::{arena_hooks, arena_purge, arena_settings};
use crate::middle::blocks::tidy_bins;
use crate::middle::owners::owner;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// Passes in one decay time. An owner that is idle for a whole decay time gives up its slabs.
const PASSES: u64 = 40;

/// The lock of the pass: one pass at a time.
pub(crate) static PASS: RankedMutex<()> = RankedMutex::new(LockRank::Pass, ());
static NEXT: AtomicU64 = AtomicU64::new(0);
static NEXT_LOOK: AtomicU64 = AtomicU64::new(0);
static IS_WAITING: AtomicBool = AtomicBool::new(false);
/// Guards whose locks were held at the last look for holes. Many, before the first look.
static HELD: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Whether a [`tick`] would do anything.
#[inline]
pub(crate) fn is_due() -> bool {
    os::coarse_millis() >= NEXT.load(Relaxed) || growth_purge::is_due()
}

/// Runs a pass if one is due. Returns whether it did. No lock is held by the caller.
pub(crate) fn tick() -> bool {
    let now = os::coarse_millis();
    let has_run = now >= NEXT.load(Relaxed) && run_due(now);
    if growth_purge::is_due() {
        purge_growth();
    }
    has_run
}

/// Purges the pages that arenas are to give back for their growth: see [`growth_purge`].
#[cold]
#[inline(never)]
fn purge_growth() {
    if let Some(_pass) = PASS.try_lock_unless_awaited() {
        purge_all_growth();
    }
}

fn purge_all_growth() {
    for arena in arena_list::all() {
        let keep = arena.pages.try_lock().and_then(|mut pages| pages.allocator.take_growth());
        // Hooks run under no lock. An arena may have got them after growth was counted.
        if let Some(keep) = keep {
            arena.purge_unless_hooked(keep, usize::MAX);
        }
    }
}

#[cold]
#[inline(never)]
fn run_due(now: u64) -> bool {
    {
        let Some(_pass) = PASS.try_lock_unless_awaited() else { return false };
        let due = NEXT.load(Relaxed);
        if now < due {
            return false;
        }
        count_sleep(due, now);
        run(now);
    }
    arena_hooks::decay(now);
    true
}

/// Lets unused pages age from when the pass was due, if none was made for long. All threads slept
/// since then, because the first slow path would have made it. What the slow path that makes the
/// pass has freed counts as unused for as long too.
fn count_sleep(due: u64, now: u64) {
    if due == 0 || now - due < period() {
        return;
    }
    for arena in arena_list::all() {
        // The holder of the lock may be stuck. A pass waits for no arena.
        if let Some(mut pages) = arena.pages.try_lock() {
            let counts = pages.allocator.counts();
            pages.allocator.aging().note_unused_at(due, counts.dirty, counts.muzzy);
        }
    }
}

/// Runs a pass now, due or not, and purges what growth calls for. Returns when the next pass should
/// be, in milliseconds of [`os::coarse_millis`]. `None`: not before a thread takes a slow path.
pub(crate) fn pass(now: u64) -> Option<u64> {
    let next = {
        let _pass = PASS.lock();
        let next = run(now);
        if growth_purge::is_due() {
            purge_all_growth();
        }
        next
    };
    [next, arena_hooks::decay(now)].into_iter().flatten().min()
}

/// Runs `look` while no pass runs. So no pass moves a free block between two steps of `look`.
/// Within an extent hook, which may be called under the lock, `look` runs beside passes.
pub(crate) fn between_passes<T>(look: impl FnOnce() -> T) -> T {
    let _pass = (!callback::is_in_hook()).then(|| PASS.lock());
    look()
}

/// As [`between_passes`], but does nothing if a pass or another look takes longer than some 50 ms.
pub(crate) fn between_passes_if_soon(look: impl FnOnce()) {
    if callback::is_in_hook() {
        look();
    } else if let Some(_pass) = wait::within_a_time(Deadline::of_all(), || PASS.try_lock()) {
        look();
    }
}

/// Does work that gives back what nobody has used for a decay time. The pages that become unused
/// by it may go at once. The caller holds no lock of an owner, a bin or an arena.
pub(crate) fn give_back_old<T>(work: impl FnOnce() -> T) -> T {
    for arena in arena_list::all() {
        let allocator = &mut arena.pages.lock().allocator;
        let dirty = allocator.counts().dirty;
        allocator.aging().begin_old(dirty);
    }
    let result = work();
    for arena in arena_list::all() {
        tidy_bins::tidy(arena);
        let allocator = &mut arena.pages.lock().allocator;
        let dirty = allocator.counts().dirty;
        allocator.aging().end_old(dirty);
    }
    result
}

/// Milliseconds between passes while any thread is active.
pub(crate) fn period() -> u64 {
    interval(decay_time())
}

/// Milliseconds after which an owner that was idle gives up its slabs.
pub(crate) fn decay_time() -> u64 {
    time_of_idling(arena_settings::shortest_decay_ms())
}

/// Milliseconds between passes, for a [`decay_time`].
fn interval(decay_time: u64) -> u64 {
    (decay_time / PASSES).clamp(10, 1000)
}

/// The [`decay_time`] if the shortest decay time of dirty pages is `dirty_decay_ms`.
fn time_of_idling(dirty_decay_ms: isize) -> u64 {
    match dirty_decay_ms {
        ..=-1 => 40_000,
        0 => 4000,
        millis => (millis as u64).max(400),
    }
}

/// The shortest of the decay times of arenas: of those above 0, or 0, or -1 if all are. `None`:
/// there is none.
fn shortest(times: impl Iterator<Item = isize>) -> Option<isize> {
    let order = |millis: &isize| (*millis <= 0, millis.unsigned_abs());
    times.min_by_key(order)
}

fn run(now: u64) -> Option<u64> {
    let begin = os::coarse_millis();
    source::note_changed_limit();
    let live = arena_list::all().filter(|arena| arena.is_live());
    if let Some(shortest) = shortest(live.map(Arena::decay_ms)) {
        arena_settings::set_shortest_decay_ms(shortest);
    }
    let (period, decay_time) = (period(), decay_time());
    NEXT.store(now + period, Relaxed);
    let mut next = u64::MAX;
    for owner in owner::all() {
        let again = idle_owner::pass(owner, now, period, decay_time);
        next = next.min(again.unwrap_or(u64::MAX));
    }
    for arena in arena_list::all() {
        tidy_bins::tidy(arena);
        if !arena.is_hooked() {
            next = next.min(arena.decay_unless_hooked(now).unwrap_or(u64::MAX));
        }
    }
    next = next.min(look_for_holes(now, decay_time).unwrap_or(u64::MAX));
    #[cfg(feature = "checks")]
    super::check_pass::check_all();
    let took = os::coarse_millis().saturating_sub(begin);
    NEXT.fetch_max(earliest_next(now, took, decay_time), Relaxed);
    (next != u64::MAX).then_some(next)
}

/// Returns when the next pass may be. After one that took long, as on a busy machine, others have
/// the lock for as long. But where the whole process was stopped meanwhile, the next one is soon.
fn earliest_next(now: u64, took: u64, decay_time: u64) -> u64 {
    now + 2 * took.min(decay_time)
}

/// Looks for holes in slabs if it is time. Returns when the next look should be. `None`: not before
/// something is freed.
fn look_for_holes(now: u64, decay_time: u64) -> Option<u64> {
    let decay = arena_settings::shortest_decay_ms();
    if decay < 0 {
        return None;
    }
    let between = decay_time / hole_pass::LOOKS;
    let (number, due) = (now / between, NEXT_LOOK.load(Relaxed));
    if now < due {
        return IS_WAITING.load(Relaxed).then_some(due);
    }
    let mut look = Look::new(number, decay == 0, &|arena| !arena.keeps_unused());
    look.wait_where_few_were_held(HELD.load(Relaxed));
    owner::all().for_each(|owner| hole_pass::look_in_owner(owner, &mut look));
    arena_list::all().for_each(|arena| hole_pass::look_in_bins(arena, &mut look));
    let due = (number + 1) * between;
    NEXT_LOOK.store(due, Relaxed);
    IS_WAITING.store(look.is_waiting(), Relaxed);
    HELD.store(look.held(), Relaxed);
    look.is_waiting().then_some(due)
}

/// Drains every owner and every bin, idle or not, and frees what can be freed. Where addresses are
/// not to be kept (`retain` is off), unused ones go back, so that the system can join them.
pub(crate) fn settle() {
    if !options::current().retain {
        purge(|_| true);
        return;
    }
    let _pass = PASS.lock();
    settle_all();
}

/// As [`settle`], but also gives as many unused addresses back as records need, whatever `retain`
/// says. Other addresses stay, because the system gives what it takes from the middle of a
/// reservation to others, and blocks that are larger than the rest no longer fit.
pub(crate) fn give_addresses_for_records() {
    let _pass = PASS.lock();
    settle_all();
    let mut wanted = metadata::CHUNK >> LG_PAGE;
    for arena in arena_list::all() {
        let reserve = arena.reserved_bytes() >> LG_PAGE;
        let gone = arena_purge::give_addresses_back(&arena.pages, wanted, reserve);
        wanted = wanted.saturating_sub(gone);
    }
}

/// Purges all unused pages of the arenas in which a block of `bytes` may then have room: runs in
/// different states are not joined, and without memory all are in the same one. In a process with
/// a limit of addresses it purges all arenas, because most of their addresses go back then, and
/// others may fit. Returns whether it purged any. Arenas that have hooks are left out.
pub(crate) fn join_unused(bytes: usize) -> bool {
    let _pass = PASS.lock();
    let is_limited = source::are_addresses_limited();
    let mut any = false;
    for arena in arena_list::all() {
        let counts = arena.pages.lock().allocator.counts();
        let with_memory = counts.dirty + counts.muzzy;
        let has_room = with_memory + counts.retained >= bytes >> LG_PAGE;
        if with_memory > 0 && (has_room || is_limited) {
            arena.purge_unless_hooked(0, 0);
            any = true;
        }
    }
    any
}

/// As [`settle`], but also purges all unused pages of the `wanted` arenas.
pub(crate) fn purge(wanted: impl Fn(&Arena) -> bool) {
    purge_locked(&wanted);
    // Hooks run under no lock.
    arena_hooks::purge(wanted);
}

fn purge_locked(wanted: &dyn Fn(&Arena) -> bool) {
    let _pass = PASS.lock();
    settle_all();
    give_holes(wanted);
    for arena in arena_list::all().filter(|arena| wanted(arena)) {
        arena.purge_unless_hooked(0, 0);
    }
}

/// Gives back the pages of each arena that have been unused longest, until all arenas together
/// have at most `spare` unused ones, and then the free pages inside slabs. Ends when `most` pages
/// have gone; with those inside slabs it may be more. Returns how many have. Arenas that keep their
/// unused pages, or have hooks, are left out. Does nothing, and returns `None`, while a pass runs.
pub(crate) fn trim(spare: usize, most: usize) -> Option<usize> {
    let _pass = PASS.try_lock()?;
    settle_all();
    let (mut gone, mut may_stay) = (0, spare);
    for arena in arena_list::all().filter(|arena| !arena.keeps_unused()) {
        let dirty = || arena.pages.lock().allocator.counts().dirty;
        let before = dirty();
        let left = most.saturating_sub(gone);
        arena.purge_unless_hooked(may_stay.max(before.saturating_sub(left)), usize::MAX);
        let now = dirty();
        gone += before.saturating_sub(now);
        may_stay = may_stay.saturating_sub(now);
    }
    if gone < most {
        gone += give_holes(&|arena| !arena.keeps_unused());
    }
    Some(gone)
}

/// Gives back the free pages inside slabs of the `wanted` arenas. Returns how many.
fn give_holes(wanted: &dyn Fn(&Arena) -> bool) -> usize {
    let mut look = Look::new(0, true, wanted);
    owner::all().for_each(|owner| hole_pass::look_in_owner(owner, &mut look));
    arena_list::all().for_each(|arena| hole_pass::look_in_bins(arena, &mut look));
    look.given()
}

fn settle_all() {
    for owner in owner::all() {
        idle_owner::settle(owner);
    }
    for arena in arena_list::all() {
        tidy_bins::tidy(arena);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::middle::arenas::arena_settings::Aging;
    use crate::middle::arenas::choose_arena;

    #[test]
    fn a_pass_that_took_long_is_followed_by_a_pause_of_a_decay_time_or_two_at_most() {
        assert_eq!(earliest_next(5000, 10, 1000), 5020);
        assert_eq!(earliest_next(5000, 700, 1000), 6400);
        // The process was stopped for a day.
        assert_eq!(earliest_next(5000, 86_400_000, 1000), 7000);
    }

    #[test]
    fn passes_are_neither_rare_nor_a_burden() {
        let interval = |dirty_decay_ms| interval(time_of_idling(dirty_decay_ms));
        assert_eq!(interval(10_000), 250);
        assert_eq!(interval(100), 10);
        assert_eq!(interval(1_000_000), 1000);
        assert_eq!(interval(0), 100);
        assert_eq!(interval(-1), 1000);
    }

    #[test]
    fn a_trim_beside_a_pass_is_told_from_one_that_finds_nothing() {
        let pass = PASS.lock();
        let beside = std::thread::scope(|scope| scope.spawn(|| trim(usize::MAX, 0)).join());
        drop(pass);
        assert_eq!(beside.expect("no panic"), None);
    }

    #[test]
    fn what_is_idle_waits_for_the_whole_of_a_long_decay_time() {
        assert_eq!([-1, 0, 7, 3_600_000].map(time_of_idling), [40_000, 4000, 400, 3_600_000]);
    }

    #[test]
    fn the_shortest_decay_time_is_one_above_0_if_there_is_one() {
        let of = |times: &[isize]| shortest(times.iter().copied());
        assert_eq!(
            [of(&[0, -1, 20, 10]), of(&[-1, 0]), of(&[-1]), of(&[])],
            [Some(10), Some(0), Some(-1), None]
        );
    }

    /// A time that no other test sets.
    #[test]
    fn a_short_decay_time_that_was_set_for_a_moment_is_forgotten() {
        let arena = choose_arena::create().expect("an arena");
        assert!(arena_settings::set_decay_ms(arena, Aging::Dirty, 1));
        assert!(arena_settings::set_decay_ms(arena, Aging::Dirty, 10_000));
        pass(os::coarse_millis());
        assert_ne!(arena_settings::shortest_decay_ms(), 1);
    }
}
