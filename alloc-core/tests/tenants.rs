//! Arenas as values: tenants of an async program, and collections in an arena.
//!
//! The tests take turns, because the next arena that is made gets the index of one that was
//! destroyed.
#![allow(unsafe_code)]

mod common;

use allocator_api2::alloc::{Allocator, Layout};
use common::alone;
use lumalloc::control::{arenas, thread};
use lumalloc::{Arena, Lumalloc};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

#[global_allocator]
static ALLOCATOR: Lumalloc = Lumalloc;

fn tenant(name: &str) -> Arena {
    Arena::named(name).expect("an arena")
}

#[test]
fn a_task_s_memory_is_its_tenant_s_across_await() {
    let _alone = alone();
    // The runtime sometimes frees in one task what it allocated in another. The next block of that
    // length then belongs to the other tenant.
    let astray = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let tenants: Vec<Arena> = (0..4).map(|n| tenant(&format!("tenant-{n}"))).collect();
    let tasks: Vec<_> = (0..40)
        .map(|n| {
            let (tenant, astray) = (tenants[n % tenants.len()], astray.clone());
            runtime.spawn(tenant.wrap(async move {
                let mut kept: Vec<Vec<u8>> = Vec::new();
                for round in 0..200usize {
                    kept.push(vec![round as u8; 1 + (round * 97 + n) % 40_000]);
                    tokio::task::yield_now().await;
                    let last = kept.last().unwrap();
                    if arenas::lookup(last.as_ptr()) != Some(tenant.index()) {
                        astray.fetch_add(1, Relaxed);
                    }
                    if round % 3 == 0 {
                        kept.swap_remove(round % kept.len());
                    }
                }
                kept.iter().map(Vec::len).sum::<usize>()
            }))
        })
        .collect();
    for task in tasks {
        assert!(runtime.block_on(task).unwrap() > 0);
    }
    assert!(tenants.iter().all(|tenant| tenant.held() > 0));
    let astray = astray.load(Relaxed);
    assert!(astray * 100 < 40 * 200, "{astray} of {} blocks", 40 * 200);
}

#[test]
fn what_is_freed_in_a_scope_serves_its_next_request() {
    let _alone = alone();
    let (one, two) = (tenant("from"), tenant("to"));
    let elsewhere = one.run(|| lumalloc::raw::malloc(72)).unwrap();
    let again = two.run(|| {
        let first = lumalloc::raw::malloc(72);
        assert_eq!(arenas::lookup(first), Some(two.index()));
        // SAFETY: the block came from `malloc`, and is freed once.
        unsafe { lumalloc::raw::free(first) };
        // SAFETY: the block came from `malloc`, and is freed once.
        unsafe { lumalloc::raw::free(elsewhere) };
        lumalloc::raw::malloc(72)
    });
    assert_eq!(again, Ok(elsewhere));
    assert_eq!(arenas::lookup(elsewhere), Some(one.index()), "it is charged where its slab is");
    // SAFETY: the block came from `malloc`, and is freed once.
    unsafe { lumalloc::raw::free(elsewhere) };
}

#[test]
fn a_tenant_s_bound_is_its_own() {
    let _alone = alone();
    let (small, large) = (tenant("small"), tenant("large"));
    assert!(small.set_limit(8 << 20));
    let reserve = || Vec::<u8>::new().try_reserve_exact(16 << 20).is_ok();
    assert_eq!(small.run(reserve), Ok(false));
    assert_eq!(large.run(reserve), Ok(true));
    assert!(reserve());
}

#[test]
fn scopes_nest_and_end() {
    let _alone = alone();
    let (one, two) = (tenant("one"), tenant("two"));
    let home = thread::arena();
    let outer = one.enter().unwrap();
    assert_eq!(two.run(thread::arena), Ok(two.index()));
    assert_eq!(thread::arena(), one.index());
    drop(outer);
    assert_eq!(thread::arena(), home);
}

#[test]
fn a_scope_does_not_end_in_an_arena_that_is_gone() {
    let _alone = alone();
    let inner = tenant("inner");
    let run = move || {
        let gone = arenas::create().expect("an arena");
        assert_eq!(thread::set_arena(gone), Ok(()));
        let scope = inner.enter().expect("a cache");
        assert_eq!(thread::set_arena(0), Ok(()));
        // SAFETY: no block of the arena is in use.
        assert!(unsafe { arenas::destroy(gone) });
        drop(scope);
        assert_eq!(thread::arena(), 0);
        assert_eq!(arenas::lookup(lumalloc::raw::malloc(100)), Some(0));
    };
    std::thread::spawn(run).join().expect("no panic");
}

#[test]
fn an_arena_is_an_allocator() {
    let _alone = alone();
    let arena = tenant("collections");
    let (short, long) = (Layout::array::<u64>(100).unwrap(), Layout::array::<u64>(9999).unwrap());
    let block = arena.allocate_zeroed(short).unwrap().cast::<u8>();
    assert_eq!(arenas::lookup(block.as_ptr()), Some(arena.index()));
    // SAFETY: a block of the arena, of this layout.
    let block = unsafe { arena.grow_zeroed(block, short, long) }.unwrap();
    assert_eq!(block.len(), long.size());
    // SAFETY: the block is that long, and was asked for as zeros.
    assert!(unsafe { block.as_ref() }.iter().all(|byte| *byte == 0));
    assert_eq!(arenas::lookup(block.cast::<u8>().as_ptr()), Some(arena.index()));
    // SAFETY: a block of the arena, of this layout.
    unsafe { arena.deallocate(block.cast(), long) };
    let aligned = Layout::from_size_align(3, 4096).unwrap();
    let block = arena.allocate(aligned).unwrap().cast::<u8>();
    assert!(block.as_ptr().addr().is_multiple_of(4096));
    // SAFETY: the blocks of the arena are no longer used.
    assert!(unsafe { arena.destroy() });
    assert!(arena.name().is_none() && arena.enter().is_err());
    assert!(arena.allocate(short).is_err());
}

#[test]
fn names_are_text() {
    let _alone = alone();
    assert_eq!(tenant("a tenant").name().unwrap().as_str(), "a tenant");
    let cut = tenant("größer als ein Name sein kann: ä");
    assert!(cut.name().unwrap().as_str().starts_with("größer als ein Name"));
}

#[test]
fn a_wrapped_future_answers_what_it_does() {
    let _alone = alone();
    let arena = tenant("future");
    let mut future = pin!(arena.wrap(async { thread::arena() }));
    let mut context = Context::from_waker(Waker::noop());
    assert_eq!(future.as_mut().poll(&mut context), Poll::Ready(arena.index()));
}
