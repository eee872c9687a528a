//! A Rust program on lumalloc: collections, strings, threads, channels, panics, and thread-local
//! destructors that allocate and free.
#![allow(unsafe_code)]

mod common;

use common::child::{play_well, scenario};
use lumalloc::{Lumalloc, raw};
use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

#[global_allocator]
static ALLOCATOR: Lumalloc = Lumalloc;

#[test]
fn the_program_lives_on_lumalloc() {
    let boxed = Box::new(7u64);
    assert!(raw::is_ours((&raw const *boxed).cast()));
    let local = 7u64;
    assert!(!raw::is_ours((&raw const local).cast()));
}

#[test]
fn collections_keep_what_they_hold() {
    let mut map = HashMap::new();
    let mut tree = BTreeMap::new();
    let mut queue = VecDeque::new();
    for n in 0..50_000u64 {
        map.insert(n, n.to_string());
        tree.insert(n.wrapping_mul(0x9e37_79b9_7f4a_7c15), vec![n; (n % 50) as usize]);
        queue.push_back(Box::new([n; 9]));
        if n % 3 == 0 {
            map.remove(&(n / 2));
            queue.pop_front();
        }
    }
    assert!(map.iter().all(|(n, text)| *text == n.to_string()));
    for (key, numbers) in &tree {
        let same = |n: &u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) == *key;
        assert!(numbers.iter().all(same));
    }
    let first = queue[0][0];
    assert!(queue.iter().zip(first..).all(|(boxed, n)| **boxed == [n; 9]));
}

/// Reallocates from 1 byte to 64 MiB, through every class and into runs that grow in place.
#[test]
fn strings_and_vectors_grow_and_shrink() {
    let mut text = String::new();
    for n in 0..200_000 {
        text.push(char::from(b'a' + (n % 26) as u8));
        if n % 1000 == 0 {
            text.shrink_to_fit();
        }
    }
    assert!(text.bytes().enumerate().all(|(n, byte)| byte == b'a' + (n % 26) as u8));
    let mut numbers: Vec<u64> = Vec::new();
    numbers.extend(0..8 << 20);
    assert!(numbers.iter().zip(0..).all(|(n, expected)| *n == expected));
    while numbers.len() > 10 {
        numbers.truncate(numbers.len() / 3);
        numbers.shrink_to_fit();
        assert!(numbers.iter().zip(0..).all(|(n, expected)| *n == expected));
    }
    assert!(vec![0u8; 3 << 20].iter().all(|byte| *byte == 0));
}

/// The four functions of the trait, for layouts that collections do not ask for: alignments beyond
/// a page, and sizes from one byte on.
#[test]
fn layouts_of_every_kind_are_reallocated() {
    let sizes = [1, 8, 100, 4000, 4096, 5000, 32_768, 32_769, 70_000, 300_000];
    for align in (0..=21).map(|lg| 1usize << lg) {
        for size in sizes {
            for new_size in sizes {
                reallocated(Layout::from_size_align(size, align).expect("a layout"), new_size);
            }
        }
        // A flush notices blocks that a thread's cache must not hold.
        lumalloc::control::flush_thread_cache();
    }
}

fn reallocated(layout: Layout, new_size: usize) {
    // SAFETY: the size is not zero.
    let ptr = unsafe { ALLOCATOR.alloc_zeroed(layout) };
    assert!(!ptr.is_null() && (ptr as usize).is_multiple_of(layout.align()));
    // SAFETY: a fresh block of this size.
    unsafe { common::block::assert_zero(ptr, layout.size()) };
    let block = common::block::Block::filled(ptr, layout.size(), 5).expect("not null");
    // SAFETY: a live block of this layout.
    let ptr = unsafe { ALLOCATOR.realloc(ptr, layout, new_size) };
    assert!(!ptr.is_null() && (ptr as usize).is_multiple_of(layout.align()));
    let moved = common::block::Block { address: ptr.expose_provenance(), ..block };
    moved.check(new_size);
    let layout = Layout::from_size_align(new_size, layout.align()).expect("a layout");
    // SAFETY: a live block of the new layout.
    unsafe { ALLOCATOR.dealloc(ptr, layout) };
}

#[test]
fn threads_and_channels() {
    let (sender, receiver) = channel::<(u64, Vec<String>)>();
    let shared = Arc::new(Mutex::new(BTreeMap::new()));
    let threads: Vec<_> = (0..8u64)
        .map(|n| {
            let (sender, shared) = (sender.clone(), Arc::clone(&shared));
            std::thread::spawn(move || {
                for round in 0..300 {
                    let words = (0..round % 20).map(|word| format!("{n}/{round}/{word}")).collect();
                    sender.send((n, words)).expect("the test");
                    shared.lock().expect("no panic").insert((n, round), vec![n; round]);
                }
            })
        })
        .collect();
    drop(sender);
    let mut seen = 0;
    for (n, words) in receiver {
        assert!(words.iter().all(|word| word.starts_with(&n.to_string())));
        seen += 1;
    }
    threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
    assert_eq!(seen, 8 * 300);
    let shared = shared.lock().expect("no panic");
    assert!(shared.iter().all(|((n, round), list)| *list == vec![*n; *round]));
}

#[test]
fn panics_unwind_and_free() {
    for n in 0..200usize {
        let result = std::panic::catch_unwind(|| {
            let _kept = vec![n; n];
            let _boxed: Box<dyn Fn() -> usize> = Box::new(move || n);
            std::panic::resume_unwind(Box::new(format!("payload {n}")));
        });
        let payload = result.expect_err("a panic");
        assert_eq!(payload.downcast_ref::<String>(), Some(&format!("payload {n}")));
    }
    let joined = std::thread::spawn(|| std::panic::resume_unwind(Box::new(vec![1u8; 100]))).join();
    assert_eq!(joined.expect_err("a panic").downcast_ref::<Vec<u8>>(), Some(&vec![1u8; 100]));
}

/// Allocates and frees when its thread ends.
struct Last(Vec<String>);

impl Drop for Last {
    fn drop(&mut self) {
        let more: Vec<String> = self.0.iter().map(|text| text.repeat(3)).collect();
        assert!(more.iter().zip(&self.0).all(|(three, one)| three.len() == 3 * one.len()));
        // A second thread-local, made and destroyed while the first one is destroyed.
        LATE.with_borrow_mut(|late| late.push(vec![1; 100_000]));
    }
}

std::thread_local! {
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    static LATE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn thread_local_destructors_allocate_and_free() {
    for round in 0..200 {
        let thread = std::thread::spawn(move || {
            let texts = (0..round).map(|n| "x".repeat(n)).collect();
            LAST.with_borrow_mut(|last| *last = Some(Last(texts)));
        });
        thread.join().expect("a thread");
    }
}

/// Destructors of pthread keys allocate and free after the destructor of this allocator, when the
/// thread's cache is gone. The scenario runs alone, so that the totals are exact.
#[test]
fn destructors_after_the_last_word_go_past_the_caches() {
    play_well("late", "");
}

#[test]
#[ignore = "a scenario of the test above"]
fn child() {
    if let Some(name) = scenario() {
        assert_eq!(name, "late", "no such scenario");
        late();
    }
}

static KEY: std::sync::OnceLock<libc::pthread_key_t> = std::sync::OnceLock::new();

unsafe extern "C" fn destroy(value: *mut libc::c_void) {
    // SAFETY: a live block, freed once.
    unsafe { raw::free(value.cast()) };
    for size in [1, 100, 10_000, 100_000] {
        let ptr = raw::malloc_zeroed(size);
        assert!(!ptr.is_null());
        // SAFETY: a live block, freed once.
        unsafe { raw::free_sized(ptr, size) };
    }
    let rounds = value as usize;
    assert_ne!(rounds, 0);
}

fn late() {
    let mut key = 0;
    // The allocator made its key before this one, at the first allocation of the program.
    // SAFETY: `key` is writable.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(destroy)) }, 0);
    KEY.set(key).expect("once");
    let run = || {
        std::thread::spawn(|| {
            let value = raw::malloc(100);
            let key = *KEY.get().expect("the key");
            // SAFETY: the key is live.
            assert_eq!(unsafe { libc::pthread_setspecific(key, value.cast()) }, 0);
        })
        .join()
        .expect("a thread");
    };
    run();
    let before = lumalloc::observe::totals();
    (0..500).for_each(|_| run());
    let after = lumalloc::observe::totals();
    assert_eq!(after.thread_caches, before.thread_caches);
    let grown = after.allocated.saturating_sub(before.allocated);
    assert!(grown < 500 * 100, "{grown} bytes lost");
}
