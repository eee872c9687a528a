//! The functions of the recording hooks.

use super::recording::{Op, Recording, Source, zero};
use lumalloc::control::arenas::ExtentHooks;
use std::ffi::{c_uint, c_void};

/// The hooks behind a recording, and a copy of their table.
fn inner_hooks(address: usize) -> (*mut ExtentHooks, ExtentHooks) {
    let inner: *mut ExtentHooks = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: the default table stays valid.
    (inner, unsafe { *inner })
}

pub(crate) unsafe extern "C" fn alloc(
    hooks: *mut ExtentHooks,
    wanted: *mut c_void,
    size: usize,
    align: usize,
    zeroed: *mut bool,
    commit: *mut bool,
    arena: c_uint,
) -> *mut c_void {
    let recording = Recording::of(hooks);
    assert!(size.is_multiple_of(4096) && align.is_power_of_two() && align >= 4096);
    if recording.note(Op::Alloc) || !wanted.is_null() {
        return std::ptr::null_mut();
    }
    if let Source::Hooks(inner) = recording.source {
        let (inner, table) = inner_hooks(inner);
        let alloc = table.alloc.unwrap();
        // SAFETY: the caller's arguments are passed on.
        return unsafe { alloc(inner, wanted, size, align, zeroed, commit, arena) };
    }
    let Source::Buffer { base, size: room, .. } = recording.source else { unreachable!() };
    let mut state = recording.state();
    let fits = |(at, free): &(usize, usize)| at.next_multiple_of(align) + size <= at + free;
    let at = match state.free.iter().position(fits) {
        Some(index) => {
            let (begin, free) = state.free.remove(index);
            let at = begin.next_multiple_of(align);
            let (lead, tail) = (at - begin, begin + free - at - size);
            let rest = [(begin, lead), (at + size, tail)];
            rest.iter().rev().filter(|(_, size)| *size > 0).for_each(|rest| {
                state.free.insert(index, *rest);
            });
            at
        }
        None => {
            let at = state.next.next_multiple_of(align);
            if at + size > base + room {
                return std::ptr::null_mut();
            }
            let gap = (state.next, at - state.next);
            state.free.extend((gap.1 > 0).then_some(gap));
            state.next = at + size;
            at
        }
    };
    // Memory that was given back may hold anything.
    // SAFETY: `zeroed` is writable, as the caller promises.
    unsafe { zeroed.write(false) };
    let is_committed = !state.gives_uncommitted;
    // SAFETY: as above.
    unsafe { commit.write(is_committed) };
    state.runs.insert(at, (size, is_committed));
    std::ptr::with_exposed_provenance_mut(at)
}

pub(crate) unsafe extern "C" fn dalloc(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    committed: bool,
    arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    if recording.note(Op::Dalloc) {
        return true;
    }
    if let Source::Hooks(inner) = recording.source {
        let (inner, table) = inner_hooks(inner);
        let dalloc = table.dalloc.unwrap();
        // SAFETY: the caller's arguments are passed on.
        return unsafe { dalloc(inner, base, size, committed, arena) };
    }
    recording.take(base.addr(), size, committed);
    false
}

pub(crate) unsafe extern "C" fn destroy(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    committed: bool,
    arena: c_uint,
) {
    let recording = Recording::of(hooks);
    recording.note(Op::Destroy);
    if let Source::Hooks(inner) = recording.source {
        let (inner, table) = inner_hooks(inner);
        let destroy = table.destroy.unwrap();
        // SAFETY: the caller's arguments are passed on.
        return unsafe { destroy(inner, base, size, committed, arena) };
    }
    recording.take(base.addr(), size, committed);
}

/// Commits a run, or decommits it if `from` is true.
fn set_committed(recording: &Recording, base: *mut c_void, size: usize, from: bool) -> bool {
    let mut state = recording.state();
    let run = state.runs.get_mut(&base.addr()).expect("a run of ours");
    assert_eq!(*run, (size, from));
    run.1 = !from;
    zero(base.addr(), size);
    false
}

pub(crate) unsafe extern "C" fn commit(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    assert_eq!((offset, length), (0, size));
    recording.note(Op::Commit) || set_committed(recording, base, size, false)
}

pub(crate) unsafe extern "C" fn decommit(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    offset: usize,
    length: usize,
    _arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    assert_eq!((offset, length), (0, size));
    if recording.note(Op::Decommit) || matches!(recording.source, Source::Hooks(_)) {
        return true;
    }
    set_committed(recording, base, size, true)
}

pub(crate) unsafe extern "C" fn purge_lazy(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    offset: usize,
    length: usize,
    arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    if recording.note(Op::PurgeLazy) {
        return true;
    }
    if let Source::Hooks(inner) = recording.source {
        let (inner, table) = inner_hooks(inner);
        let purge_lazy = table.purge_lazy.unwrap();
        // SAFETY: the caller's arguments are passed on.
        return unsafe { purge_lazy(inner, base, size, offset, length, arena) };
    }
    // A lazy purge may take a part of the memory.
    zero(base.addr() + offset, length / 2);
    false
}

pub(crate) unsafe extern "C" fn purge_forced(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    offset: usize,
    length: usize,
    arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    if recording.note(Op::PurgeForced) {
        return true;
    }
    if let Source::Hooks(inner) = recording.source {
        let (inner, table) = inner_hooks(inner);
        let purge_forced = table.purge_forced.unwrap();
        // SAFETY: the caller's arguments are passed on.
        return unsafe { purge_forced(inner, base, size, offset, length, arena) };
    }
    zero(base.addr() + offset, length);
    false
}

pub(crate) unsafe extern "C" fn split(
    hooks: *mut ExtentHooks,
    base: *mut c_void,
    size: usize,
    first: usize,
    second: usize,
    committed: bool,
    _arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    assert_eq!(first + second, size);
    if recording.note(Op::Split) {
        return true;
    }
    if matches!(recording.source, Source::Buffer { .. }) {
        let mut state = recording.state();
        assert_eq!(state.runs.insert(base.addr(), (first, committed)), Some((size, committed)));
        state.runs.insert(base.addr() + first, (second, committed));
    }
    false
}

pub(crate) unsafe extern "C" fn merge(
    hooks: *mut ExtentHooks,
    base_a: *mut c_void,
    size_a: usize,
    base_b: *mut c_void,
    size_b: usize,
    committed: bool,
    _arena: c_uint,
) -> bool {
    let recording = Recording::of(hooks);
    assert_eq!(base_a.addr() + size_a, base_b.addr());
    if recording.note(Op::Merge) {
        return true;
    }
    if matches!(recording.source, Source::Buffer { .. }) {
        let mut state = recording.state();
        assert_eq!(state.runs.remove(&base_b.addr()), Some((size_b, committed)));
        let merged = (size_a + size_b, committed);
        assert_eq!(state.runs.insert(base_a.addr(), merged), Some((size_a, committed)));
    }
    false
}
