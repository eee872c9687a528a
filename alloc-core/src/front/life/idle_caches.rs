//! The search for caches of threads that do nothing. Their blocks are taken back after a decay time
//! ([`emptying`]), so that what sleeping threads hold is given back without their help.

use super::give_back;
use crate::front::cache::emptying;
use crate::front::cache::real_cache::RealCache;
use crate::front::cache::registry::{self, REGISTRY};
use crate::ground::options;
use crate::ground::units::PAGE;
use crate::middle::arenas::arena_settings;
use crate::middle::passes::decay_pass::{self, PASS};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Caches that are emptied while the registry is locked once.
const AT_ONCE: usize = 16;
/// Looks at a cache in one decay time.
const LOOKS: u64 = 4;
/// A cache with fewer bytes to take is left alone, because a façade costs memory too.
const FEW: usize = PAGE;

/// The time before which none is emptied, because the system has refused a membarrier. It may have
/// had no memory for it.
static TRY_AT: AtomicU64 = AtomicU64::new(0);
/// Decay times until the next try.
const TRY_AGAIN: u64 = 16;

/// Caches that are to be emptied together.
struct Chosen {
    caches: [Option<&'static RealCache>; AT_ONCE],
    count: usize,
}

/// Empties the caches of all threads that did nothing for a decay time, at `now`. Returns when to
/// look again. `None`: not before a thread takes a slow path. The caller holds no lock.
pub(super) fn pass(now: u64) -> Option<u64> {
    give_back::of_lost_threads();
    let (mut caches, mut next) = (registry::all(), None);
    loop {
        let _pass = PASS.lock();
        if !step(&mut caches, now, &mut next) {
            return next;
        }
    }
}

/// As [`pass`], but empties a few caches only, for a thread that has other work, and none while
/// another thread makes a pass or walks over the heap.
pub(super) fn pass_few(now: u64) {
    if let Some(_pass) = PASS.try_lock_unless_awaited() {
        step(&mut registry::all(), now, &mut None);
    }
}

/// Empties a few of these caches. Returns `false` if there are no more. The caller holds the lock
/// of the pass, because a walk over the heap must not see blocks leave caches.
fn step(
    caches: &mut impl Iterator<Item = &'static RealCache>,
    now: u64,
    next: &mut Option<u64>,
) -> bool {
    if !is_possible() {
        return false;
    }
    let again = TRY_AT.load(Relaxed);
    if now < again {
        note_next(next, again);
        return false;
    }
    let registry = REGISTRY.lock();
    let mut chosen = Chosen { caches: [None; AT_ONCE], count: 0 };
    let are_more = chosen.fill(caches, now, next);
    if chosen.empty(&registry) {
        return are_more;
    }
    let again = now + TRY_AGAIN * decay_pass::decay_time();
    TRY_AT.store(again, Relaxed);
    note_next(next, again);
    false
}

/// Notes that there is something to do at this time, if not before.
fn note_next(next: &mut Option<u64>, at: u64) {
    *next = Some(next.map_or(at, |next| next.min(at)));
}

fn is_possible() -> bool {
    let options = options::current();
    options.tcache && arena_settings::shortest_decay_ms() >= 0
}

impl Chosen {
    /// Chooses the next caches. Returns `false` if all were looked at.
    fn fill(
        &mut self,
        caches: &mut impl Iterator<Item = &'static RealCache>,
        now: u64,
        next: &mut Option<u64>,
    ) -> bool {
        while let Some(place) = self.caches.get_mut(self.count) {
            let Some(cache) = caches.next() else { return false };
            match look(cache, now) {
                Look::Idle => {
                    *place = Some(cache);
                    self.count += 1;
                }
                Look::Again(at) => note_next(next, at),
                Look::Nothing => {}
            }
        }
        true
    }

    /// Empties the chosen caches. Returns `false` if the system cannot do it.
    fn empty(&self, registry: &registry::Locked<'_>) -> bool {
        let empty = || emptying::empty(registry, || self.caches.iter().copied().flatten());
        self.count == 0 || decay_pass::give_back_old(empty)
    }
}

/// What is to be done with a cache.
enum Look {
    /// Its thread did nothing for a decay time.
    Idle,
    /// It is to be looked at again at this time.
    Again(u64),
    /// There is nothing to take.
    Nothing,
}

/// Looks at a cache. The registry is locked.
fn look(cache: &'static RealCache, now: u64) -> Look {
    if cache.thread().is_none() || cache.emptied.has_gone() {
        return Look::Nothing;
    }
    let between = decay_pass::decay_time() / LOOKS;
    let mut rest = cache.emptied.rest();
    if now >= rest.looked + between {
        rest = rest.seen(emptying::print(cache), now);
        cache.emptied.set_rest(rest);
    }
    if rest.looked - rest.since < between * LOOKS {
        return Look::Again(rest.looked + between);
    }
    // The last look may have been some time ago.
    rest = rest.seen(emptying::print(cache), now);
    cache.emptied.set_rest(rest);
    if rest.since == now {
        return Look::Again(now + between);
    }
    if emptying::bytes(cache) < FEW { Look::Nothing } else { Look::Idle }
}
