//! The rule about limits, on snapshots made up for it, with the exact words.

use crate::doctor::tests::{GIB, healthy, one};
use crate::doctor::{MIB, examine};
use crate::snapshot::Arena;

#[test]
fn a_limit_is_near() {
    let (what, help) = one("limit", |snapshot| {
        snapshot.settings.soft_limit = Some(2 * GIB);
        snapshot.settings.hard_limit = Some(GIB + 100 * MIB);
    });
    assert_eq!(what, "1.0 GiB of the 1.1 GiB that limit.hard allows are held (95 %).");
    assert_eq!(
        help,
        "Do arena.4096.purge, which gives back up to 40.0 MiB; raise limit.hard; or see what holds \
         the 900.0 MiB that are allocated."
    );
    let (what, help) = one("limit", |snapshot| snapshot.settings.soft_limit = Some(GIB));
    assert_eq!(what, "1.0 GiB of the 1.0 GiB that limit.soft allows are held (104 %).");
    assert_eq!(
        help,
        "Do arena.4096.purge, which gives back up to 40.0 MiB, and free pages inside slabs; raise \
         limit.soft, or the container's memory where it is 95 % of that; or see what holds the \
         900.0 MiB that are allocated."
    );
}

#[test]
fn the_nearest_limit_is_told() {
    let (what, _) = one("limit", |snapshot| {
        snapshot.settings.soft_limit = Some(GIB);
        snapshot.settings.hard_limit = Some(4 * GIB);
    });
    assert_eq!(what, "1.0 GiB of the 1.0 GiB that limit.soft allows are held (104 %).");
    let (what, _) = one("limit", |snapshot| {
        snapshot.settings.soft_limit = Some(GIB);
        snapshot.settings.hard_limit = Some(GIB);
    });
    assert_eq!(what, "1.0 GiB of the 1.0 GiB that limit.hard allows are held (104 %).");
    let mut with_holes = healthy();
    with_holes.settings.held = 2 * GIB;
    with_holes.settings.soft_limit = Some(2 * GIB);
    assert_eq!(examine(&with_holes), [], "the soft limit leaves holes out");
}

/// Holes in slabs have no memory, but the hard limit counts them.
#[test]
fn a_limit_is_near_because_of_holes() {
    let (what, help) = one("limit", |snapshot| {
        snapshot.settings.hard_limit = Some(2 * GIB);
        snapshot.settings.held = 2 * GIB - 50 * MIB;
    });
    assert_eq!(what, "2.0 GiB of the 2.0 GiB that limit.hard allows are held (97 %).");
    assert_eq!(
        help,
        "Do arena.4096.purge, which gives back up to 40.0 MiB; raise limit.hard; or see what holds \
         the 900.0 MiB that are allocated, and the 924.0 MiB of holes in slabs, which count as held."
    );
}

/// The pages of an arena count for its limit, holes in its slabs too, its records do not.
#[test]
fn the_limit_of_an_arena_is_near() {
    let arena = |active: usize, dirty: usize| {
        let mut arena = Arena { index: 9, limit: Some(100 * MIB), ..Arena::default() };
        (arena.space.pactive, arena.space.pdirty) = (active * MIB / 4096, dirty * MIB / 4096);
        arena.space.base = 20 * MIB;
        arena.small.allocated = 30 * MIB;
        arena
    };
    let mut far = healthy();
    far.arenas.push(arena(70, 10));
    assert_eq!(examine(&far), []);
    let (what, help) = one("limit", |snapshot| {
        snapshot.settings.hard_limit = Some(2 * GIB);
        snapshot.arenas.push(arena(90, 8));
    });
    assert_eq!(what, "98.0 MiB of the 100.0 MiB that arena.9.limit allows are held (98 %).");
    assert_eq!(
        help,
        "Do arena.9.purge, which gives back up to 8.0 MiB; raise arena.9.limit; or see what holds \
         the 30.0 MiB that are allocated."
    );
    let (what, help) = one("limit", |snapshot| {
        let mut arena = arena(50, 0);
        arena.space.slab_bytes = 95 * MIB;
        snapshot.arenas.push(arena);
    });
    assert_eq!(what, "95.0 MiB of the 100.0 MiB that arena.9.limit allows are held (95 %).");
    assert!(help.ends_with("and the 45.0 MiB of holes in slabs, which count as held."), "{help}");
}
