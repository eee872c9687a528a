//! Settings of each arena, and the ones that new arenas begin with. Source: jemalloc(3),
//! `arena.<i>.dirty_decay_ms` and its neighbours.

use super::arena::Arena;
use super::arena_name::Name;
use crate::ground::options::{self, Dss};
use crate::ground::size_class::{page_class_floor, page_class_pages};
use crate::ground::units::{LG_PAGE, PAGE};
use crate::profile::sampler;
use core::sync::atomic::{AtomicIsize, AtomicU8, Ordering::Relaxed};

/// A kind of unused pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Aging {
    /// Pages that still have memory.
    Dirty,
    /// Pages whose memory the system may have taken.
    Muzzy,
}

const UNSET: isize = isize::MIN;
static DIRTY: AtomicIsize = AtomicIsize::new(UNSET);
static MUZZY: AtomicIsize = AtomicIsize::new(UNSET);
/// The shortest decay time of dirty pages of all arenas at the last pass, or one set since then.
static SHORTEST: AtomicIsize = AtomicIsize::new(UNSET);

const DSS_UNSET: u8 = u8::MAX;
static DSS: AtomicU8 = AtomicU8::new(DSS_UNSET);

/// The decay time in milliseconds that new arenas begin with.
pub(crate) fn default_decay_ms(aging: Aging) -> isize {
    let (place, option) = match aging {
        Aging::Dirty => (&DIRTY, options::current().dirty_decay_ms),
        Aging::Muzzy => (&MUZZY, options::current().muzzy_decay_ms),
    };
    match place.load(Relaxed) {
        UNSET => option,
        millis => millis,
    }
}

/// Sets the decay time that new arenas begin with. `false`: it is below -1.
pub(crate) fn set_default_decay_ms(aging: Aging, millis: isize) -> bool {
    if millis < -1 {
        return false;
    }
    match aging {
        Aging::Dirty => DIRTY.store(millis, Relaxed),
        Aging::Muzzy => MUZZY.store(millis, Relaxed),
    }
    true
}

/// The decay time that decides how often passes run.
pub(crate) fn shortest_decay_ms() -> isize {
    match SHORTEST.load(Relaxed) {
        UNSET => options::current().dirty_decay_ms,
        millis => millis,
    }
}

/// Sets the decay time that decides how often passes run. A shorter one that is set at the same
/// moment counts from the next pass on.
pub(in crate::middle) fn set_shortest_decay_ms(millis: isize) {
    SHORTEST.store(millis, Relaxed);
}

fn note_decay_ms(millis: isize) {
    let shortest = shortest_decay_ms();
    if millis > 0 && (shortest <= 0 || millis < shortest) {
        set_shortest_decay_ms(millis);
    }
}

/// When new arenas take addresses from the data segment.
pub(crate) fn default_dss() -> Dss {
    const SETTINGS: [Dss; 3] = [Dss::Disabled, Dss::Primary, Dss::Secondary];
    let set = SETTINGS.get(usize::from(DSS.load(Relaxed))).copied();
    set.unwrap_or(options::current().dss)
}

/// Sets when new arenas take addresses from the data segment.
pub(crate) fn set_default_dss(dss: Dss) {
    DSS.store(dss as u8, Relaxed);
}

/// Gives a new arena, or one that begins another life, the present settings.
pub(in crate::middle) fn begin_with_defaults(arena: &Arena) {
    let dirty = default_decay_ms(Aging::Dirty);
    arena.forget_hooks();
    arena.forget_reserve();
    set_profiled(arena, true);
    {
        let mut pages = arena.pages.lock();
        pages.name = Name::of_arena(arena.id(), arena.is_created());
        pages.allocator.begin_anew(dirty, default_decay_ms(Aging::Muzzy), default_dss());
        if arena.is_created() {
            pages.allocator.list_active();
        }
    }
    arena.note_decay_ms(dirty);
    note_decay_ms(dirty);
}

/// Brings a destroyed arena back to life. `false`: it was not destroyed. Called under the lock of
/// the list.
pub(in crate::middle) fn revive(arena: &Arena) -> bool {
    let is_dead = arena.is_dead();
    if is_dead {
        // First: once the arena is live, another thread may change its settings, and use it.
        begin_with_defaults(arena);
        arena.revive();
    }
    is_dead
}

/// The decay time of an arena in milliseconds: -1 never, 0 at once.
pub(crate) fn decay_ms(arena: &Arena, aging: Aging) -> isize {
    arena.pages.lock().allocator.aging().millis(aging == Aging::Dirty)
}

/// Sets the decay time of an arena. Pages that are unused now count as fully decayed. `false`: the
/// time is below -1.
pub(crate) fn set_decay_ms(arena: &Arena, aging: Aging, millis: isize) -> bool {
    if millis < -1 {
        return false;
    }
    {
        let mut pages = arena.pages.lock();
        pages.allocator.aging().set_millis(aging == Aging::Dirty, millis);
        if aging == Aging::Dirty {
            // Under the lock, so that both are the time of one of two threads that set it.
            arena.note_decay_ms(millis);
        }
    }
    if aging == Aging::Dirty {
        note_decay_ms(millis);
    }
    match aging {
        _ if millis < 0 => {}
        Aging::Dirty => arena.purge_by_hand(0, usize::MAX),
        Aging::Muzzy => arena.purge_by_hand(usize::MAX, 0),
    }
    true
}

/// When an arena takes addresses from the data segment.
pub(crate) fn dss(arena: &Arena) -> Dss {
    arena.pages.lock().allocator.source().dss()
}

/// Sets when an arena takes addresses from the data segment.
pub(crate) fn set_dss(arena: &Arena, dss: Dss) {
    arena.pages.lock().allocator.source().set_dss(dss);
}

/// The name of an arena.
pub(crate) fn name(arena: &Arena) -> Name {
    arena.pages.lock().name
}

/// Sets the name of an arena.
pub(crate) fn set_name(arena: &Arena, name: Name) {
    arena.pages.lock().name = name;
}

/// Bytes up to which an arena's reservations in advance grow.
pub(crate) fn grow_limit(arena: &Arena) -> usize {
    arena.pages.lock().allocator.source().growth().limit() << LG_PAGE
}

/// Sets [`grow_limit`], rounded down to a page class. `false`: less than a page.
pub(crate) fn set_grow_limit(arena: &Arena, bytes: usize) -> bool {
    if bytes < PAGE {
        return false;
    }
    let pages = page_class_pages(page_class_floor(bytes >> LG_PAGE));
    arena.pages.lock().allocator.source().growth().set_limit(pages);
    true
}

/// Bytes of an arena's pages with memory.
pub(crate) fn held(arena: &Arena) -> usize {
    arena.pages.lock().allocator.held() << LG_PAGE
}

/// Bytes that an arena may hold; 0: any.
pub(crate) fn limit(arena: &Arena) -> usize {
    arena.pages.lock().allocator.bounds().own()
}

/// Sets how many bytes an arena may hold; 0: any.
pub(crate) fn set_limit(arena: &Arena, bytes: usize) {
    arena.pages.lock().allocator.bounds().set_own(bytes);
}

/// Whether the bound of all arenas together does not apply to an arena.
pub(crate) fn is_limit_exempt(arena: &Arena) -> bool {
    arena.pages.lock().allocator.bounds().is_exempt()
}

/// Sets whether the bound of all arenas together does not apply to an arena.
pub(crate) fn set_limit_exempt(arena: &Arena, is_exempt: bool) {
    arena.pages.lock().allocator.bounds().set_exempt(is_exempt);
}

/// Sets whether allocations of an arena are in heap profiles. If it had allocations that were
/// judged otherwise, the profiler's counts no longer tell what its samples are estimates of.
pub(crate) fn set_profiled(arena: &Arena, is_profiled: bool) {
    let was_profiled = arena.note_profiled(is_profiled);
    if was_profiled != is_profiled && arena.pages.lock().allocator.counts().taken > 0 {
        sampler::note_left_out();
    }
}

/// Bytes from which on a freed run is given back at once; 0: no run is.
pub(crate) fn oversize(arena: &Arena) -> usize {
    arena.pages.lock().allocator.aging().oversize()
}

/// Sets from how many bytes on a freed run is given back at once; 0: no run is.
pub(crate) fn set_oversize(arena: &Arena, bytes: usize) {
    arena.pages.lock().allocator.aging().set_oversize(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::back::system::provider::system::system;
    use core::sync::atomic::AtomicBool;

    #[test]
    fn an_arena_lives_again_when_its_settings_are_in_place() {
        static MAY_REVIVE: AtomicBool = AtomicBool::new(false);
        // In no list, so that no other test brings it back to life.
        let arena = Arena::new_at(4000, true, system()).expect("memory");
        begin_with_defaults(arena);
        arena.note_profiled(false);
        assert!(arena.life().begin_end());
        arena.complete_end();
        let reviving = std::thread::spawn(|| {
            while !MAY_REVIVE.load(Relaxed) {
                std::thread::yield_now();
            }
            revive(arena)
        });
        let pages = arena.pages.lock();
        MAY_REVIVE.store(true, Relaxed);
        // What is set next needs the lock.
        while !arena.is_profiled() {
            std::thread::yield_now();
        }
        assert!(!arena.is_live());
        drop(pages);
        assert!(reviving.join().expect("the other thread") && arena.is_live());
    }
}
