//! `vm.*`, compared with a known pattern of allocations.
#![allow(unsafe_code)]

use lumalloc::raw;
use lumalloc_namespace::{Entry, Value, tree};

fn read(name: &str) -> u64 {
    let mib = tree::complete(name.as_bytes()).expect("a key");
    match Entry::find(mib.as_slice()).expect("a key").read() {
        Ok(Value::U64(value)) => value,
        Ok(Value::Unsigned(value)) => value.into(),
        Ok(Value::Size(value)) => value as u64,
        other => panic!("{name}: {other:?}"),
    }
}

fn write(name: &str, value: Value<'_>) {
    let mib = tree::complete(name.as_bytes()).expect("a key");
    Entry::find(mib.as_slice()).expect("a key").write(value).expect("a good value");
}

fn free_all(blocks: impl IntoIterator<Item = (usize, *mut u8)>) {
    for (_, block) in blocks {
        // SAFETY: each block is live, and is freed once.
        unsafe { raw::free(block) };
    }
}

/// This is one test, because all of it is about the whole process.
#[test]
fn blocks_and_bytes_are_counted_and_regmax_is_kept() {
    write("epoch", Value::U64(0));
    let (blocks, bytes) = (read("vm.stat.n_busy"), read("vm.stat.s_busy"));
    let held: Vec<*mut u8> =
        (0..1000).map(|at| raw::malloc(if at % 2 == 0 { 48 } else { 5000 })).collect();
    write("epoch", Value::U64(0));
    assert_eq!(read("vm.stat.n_busy"), blocks + 1000);
    assert_eq!(read("vm.stat.s_busy"), bytes + 500 * 48 + 500 * 5120);
    assert_eq!(read("vm.stat.extent"), read("vm.stat.s_busy") + read("vm.stat.s_free"));
    assert_eq!(read("vm.stat.m_busy"), 5120);
    assert_eq!(read("vm.stat.n_region"), 1);
    assert!((1..100).contains(&read("vm.stat.n_seg")));
    assert_eq!(read("vm.stat.mode"), 0o110);
    assert!(read("vm.stat.n_open") > 0);
    assert_eq!(read("vm.stat.n_lock"), 0, "nobody else was there");
    // Frees every other block of 48 bytes, so that all their slabs stay.
    let free = read("vm.stat.n_free");
    let (some, rest): (Vec<_>, Vec<_>) =
        held.into_iter().enumerate().partition(|(at, _)| at % 4 == 0);
    free_all(some);
    let large = raw::malloc(33 << 20);
    write("epoch", Value::U64(0));
    assert!((free + 240..free + 260).contains(&read("vm.stat.n_free")), "but for a run or two");
    assert_eq!(read("vm.stat.m_busy"), 40 << 20, "rounded up to its class");
    free_all([(0, large)]);
    free_all(rest);
    write("epoch", Value::U64(0));
    assert_eq!(read("vm.stat.n_busy"), blocks);
    assert_eq!(read("vm.stat.s_busy"), bytes);
    let largest = read("vm.stat.m_free");
    assert!(largest >= 33 << 20 && largest <= read("vm.stat.s_free"), "{largest}");

    assert_eq!(read("vm.regmax"), 64);
    write("vm.regmax", Value::Unsigned(2));
    assert_eq!(read("vm.regmax"), 2);
}
