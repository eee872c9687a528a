//! `opt.percpu_arena`, in children: a thread's slow paths use the arena of its CPU.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::control::arenas;
use lumalloc::options::{PercpuArena, current};
use lumalloc::raw::Flags;
use lumalloc::{control, observe, raw};

#[test]
#[ignore = "the scenario of the test here"]
fn child() {
    if let Some(name) = scenario() {
        assert_eq!(name, "by_cpu", "no such scenario");
        by_cpu();
    }
}

fn large_and_free() -> observe::Totals {
    let ptr = raw::malloc(10 << 20);
    // SAFETY: a live block, this long.
    unsafe { ptr.write_bytes(1, 10 << 20) };
    // SAFETY: a live block, freed once.
    unsafe { raw::free(ptr) };
    observe::totals()
}

/// Allocates slabs and large blocks in a thread that begins on this CPU.
fn begin_here() {
    let blocks: Vec<*mut u8> = (1..300).map(|n| raw::malloc(n * 500)).collect();
    assert!(blocks.iter().all(|block| !block.is_null()));
    for block in blocks {
        // SAFETY: a live block, freed once.
        unsafe { raw::free(block) };
    }
}

/// Keeps the calling thread on one CPU. Returns `false` if it may not run there.
fn pin(cpu: usize) -> bool {
    // SAFETY: an all-zero `cpu_set_t` is a valid (empty) set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a live set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is readable for its size.
    unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) == 0 }
}

/// Whether a block is freed into `arena`. No page is purged by age, so `arena.<i>.purge` tells.
fn is_freed_into(arena: u32) -> bool {
    let before = large_and_free().dirty;
    assert!(control::purge(arena));
    observe::totals().dirty + (10 << 20) <= before
}

fn by_cpu() {
    let [cpus, online] = [libc::_SC_NPROCESSORS_CONF, libc::_SC_NPROCESSORS_ONLN].map(|name| {
        // SAFETY: the call takes only numbers.
        (unsafe { libc::sysconf(name) }) as u32
    });
    let phycpu = current().percpu_arena == PercpuArena::Phycpu;
    let count = if phycpu { online.div_ceil(2) } else { cpus };
    assert_eq!(control::narenas(), count.max(7), "the greater of the two");
    for round in 0..3 {
        for cpu in 0..cpus {
            if !pin(cpu as usize) {
                continue;
            }
            let past = raw::allocate(100, Flags::NONE.uncached());
            assert_eq!(arenas::lookup(past), Some(cpu % count), "past the caches");
            // SAFETY: a live block, freed once.
            unsafe { raw::deallocate(past, Flags::NONE.uncached()) };
            assert!(is_freed_into(cpu % count), "CPU {cpu} in round {round}");
            if count > 1 {
                assert!(!is_freed_into((cpu + 1) % count), "CPU {cpu} in round {round}");
                assert!(control::purge(control::ARENAS_ALL));
            }
            std::thread::spawn(begin_here).join().expect("a thread");
            assert!(control::purge(control::ARENAS_ALL));
        }
    }
    assert!(observe::totals().arenas_open <= count);
}

#[test]
fn threads_use_the_arena_of_their_cpu() {
    for mode in ["percpu", "phycpu"] {
        play_well("by_cpu", &format!("percpu_arena:{mode},dirty_decay_ms:-1,narenas:7"));
    }
}
