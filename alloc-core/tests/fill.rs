//! Junk and zero fill (`opt.junk`, `opt.zero`), through every function that allocates, in children.
#![allow(unsafe_code)]

mod common;

use common::child::{play, play_well, scenario, tell};
use lumalloc::Lumalloc;
use lumalloc::options::{Junk, current};
use lumalloc::raw::{self, Flags};
use std::alloc::{GlobalAlloc, Layout};

/// Small sizes, sizes at the borders, large sizes.
const SIZES: [usize; 12] = [1, 8, 16, 100, 128, 1000, 4096, 14336, 32760, 32768, 40_000, 3_000_000];

const ALLOCATED: u8 = 0xa5;
const FREED: u8 = 0x5a;

fn usable(ptr: *mut u8) -> usize {
    // SAFETY: a live block.
    unsafe { raw::usable_size(ptr) }
}

fn bytes<'a>(ptr: *mut u8, from: usize, to: usize) -> &'a [u8] {
    assert!(!ptr.is_null() && from <= to);
    // SAFETY: mapped memory of the allocator, to which no thread writes meanwhile.
    unsafe { std::slice::from_raw_parts(ptr.wrapping_add(from), to - from) }
}

#[track_caller]
fn all(ptr: *mut u8, from: usize, to: usize, byte: u8) {
    let wrong = bytes(ptr, from, to).iter().position(|b| *b != byte);
    assert_eq!(wrong, None, "of {from}..{to}");
}

/// The byte that a fresh block reads under these options, or `None` for any.
fn fresh() -> Option<u8> {
    let options = current();
    match (options.zero, options.junk.alloc) {
        (true, _) => Some(0),
        (_, true) => Some(ALLOCATED),
        _ => None,
    }
}

/// Allocates by each function, each time after the memory was written full and freed.
fn every_door() {
    type Door = fn(usize) -> *mut u8;
    let doors: [Door; 6] = [
        raw::malloc,
        |size| raw::malloc_aligned(size, 256),
        |size| raw::allocate(size, Flags::NONE.uncached()),
        |size| raw::allocate(size, Flags::NONE.arena(0).align(64)),
        // SAFETY: a layout of this size, which is not 0.
        |size| unsafe { Lumalloc.alloc(Layout::from_size_align(size, 16).expect("a layout")) },
        // SAFETY: a live block, not used afterwards.
        |size| unsafe { raw::realloc(raw::malloc(20), size) },
    ];
    for size in SIZES {
        for (number, door) in doors.iter().enumerate() {
            for _ in 0..3 {
                let ptr = door(size);
                let usable = usable(ptr);
                // The old contents of the reallocated block stay.
                let from = if number == 5 { usable.min(24) } else { 0 };
                if let Some(byte) = fresh().filter(|_| from < usable) {
                    all(ptr, from, usable, byte);
                }
                // SAFETY: a live block, this long.
                unsafe { ptr.write_bytes(0x77, usable) };
                // SAFETY: a live block, freed once.
                unsafe { raw::free(ptr) };
            }
        }
        for zeroed in [raw::malloc_zeroed(size), raw::allocate(size, Flags::NONE.zeroed())] {
            all(zeroed, 0, size, 0);
            // SAFETY: a live block, freed once.
            unsafe { raw::free(zeroed) };
        }
    }
}

/// Freed memory reads 0x5a. The slab stays mapped after its last block, a large block dirty.
fn freed() {
    let is_filled = current().junk.free;
    for size in SIZES {
        for way in 0..4 {
            let neighbours = [raw::malloc(size), raw::malloc(size), raw::malloc(size)];
            let ptr = neighbours[1];
            let usable = usable(ptr);
            // SAFETY: a live block, this long.
            unsafe { ptr.write_bytes(0x77, usable) };
            match way {
                // SAFETY: a live block, freed once.
                0 => unsafe { raw::free(ptr) },
                // SAFETY: a live block, freed once.
                1 => unsafe { raw::free_sized(ptr, size) },
                // SAFETY: a live block, freed once.
                2 => unsafe { raw::deallocate(ptr, Flags::NONE.uncached()) },
                _ => {
                    // SAFETY: a live block, not used afterwards, because it moves.
                    let moved = unsafe { raw::realloc_aligned(ptr, size * 5, 8192) };
                    // SAFETY: a live block, freed once.
                    unsafe { raw::free(moved) };
                }
            }
            // In the hardened tier nobody may read a freed large block.
            let is_readable = !current().hardened || usable < 32 << 10;
            // A large block may have moved with its pages or may have been purged.
            if is_readable && is_filled && (way < 3 || usable <= 32 << 10) {
                all(ptr, 0, usable, FREED);
            } else if !is_filled && !current().hardened && way < 3 {
                assert!(bytes(ptr, 0, usable).contains(&0x77));
            }
            for neighbour in [neighbours[0], neighbours[2]] {
                // SAFETY: a live block, freed once.
                unsafe { raw::free(neighbour) };
            }
        }
    }
}

/// A large block that grows in place is filled behind its old end. One that shrinks leaves junk
/// there.
fn in_place() {
    let ptr = raw::malloc(1 << 20);
    // SAFETY: a live block, this long.
    unsafe { ptr.write_bytes(0x77, 1 << 20) };
    // SAFETY: a live block.
    let less = unsafe { raw::resize_in_place(ptr, 512 << 10, 0, Flags::NONE) };
    assert_eq!(less, 512 << 10);
    all(ptr, 0, less, 0x77);
    if current().junk.free && !current().hardened {
        all(ptr, less, 1 << 20, FREED);
    }
    // SAFETY: a live block.
    let more = unsafe { raw::resize_in_place(ptr, 1 << 20, 0, Flags::NONE) };
    assert_eq!(more, 1 << 20, "nothing else took the pages");
    all(ptr, 0, less, 0x77);
    if let Some(byte) = fresh() {
        all(ptr, less, more, byte);
    }
    // SAFETY: a live block, whose contents stay.
    let less = unsafe { raw::resize_in_place(ptr, 256 << 10, 0, Flags::NONE) };
    // SAFETY: a live block.
    let more = unsafe { raw::resize_in_place(ptr, 1 << 20, 0, Flags::NONE.zeroed()) };
    all(ptr, 0, less, 0x77);
    all(ptr, less, more, 0);
    // SAFETY: a live block, freed once.
    unsafe { raw::free(ptr) };
    moved();
}

/// The bytes that a large block gains by moving are filled too.
fn moved() {
    for zeroed in [false, true] {
        let (ptr, _behind) = (raw::malloc(1 << 20), raw::malloc(1 << 20));
        // SAFETY: a live block, this long.
        unsafe { ptr.write_bytes(0x77, 1 << 20) };
        let flags = if zeroed { Flags::NONE.zeroed() } else { Flags::NONE };
        // SAFETY: a live block, not used afterwards.
        let longer = unsafe { raw::reallocate(ptr, 5 << 20, flags) };
        all(longer, 0, 1 << 20, 0x77);
        if let Some(byte) = if zeroed { Some(0) } else { fresh() } {
            all(longer, 1 << 20, 5 << 20, byte);
        }
        // SAFETY: a live block, freed once.
        unsafe { raw::free(longer) };
    }
}

#[test]
#[ignore = "the scenarios of the tests here"]
fn child() {
    match scenario().as_deref() {
        Some("fill") => {
            every_door();
            freed();
            in_place();
            std::thread::spawn(every_door).join().expect("a thread");
        }
        Some("show") => {
            let options = current();
            tell(&format!("{:?} {:?}", options.junk, options.zero));
        }
        Some(name) => panic!("no scenario {name}"),
        None => {}
    }
}

#[test]
fn values_arrive_and_bad_ones_are_reported() {
    for (conf, alloc, free, zero) in [
        ("", false, false, false),
        ("junk:true", true, true, false),
        ("junk:alloc", true, false, false),
        ("junk:free,zero:true", false, true, true),
        ("junk:true,junk:false", false, false, false),
    ] {
        let told = play_well("show", conf);
        assert_eq!(told, [format!("{:?} {zero}", Junk { alloc, free })], "{conf}");
    }
    for bad in ["junk:yes", "junk:", "zero:1", "hardened:on"] {
        let outcome = play("show", &[("LUMALLOC_CONF", bad)]);
        let expected = format!("<lumalloc>: Invalid conf value: {bad} (LUMALLOC_CONF)\n");
        assert_eq!(outcome.stderr, expected);
    }
}

#[test]
fn junk_and_zero_fill_what_the_manual_says() {
    for conf in ["junk:true", "junk:alloc", "junk:free", "zero:true", "zero:true,junk:true", ""] {
        play_well("fill", conf);
        let comma = if conf.is_empty() { "" } else { "," };
        play_well("fill", &format!("tcache:false{comma}{conf}"));
    }
}

#[test]
fn fill_and_hardening_go_together() {
    for conf in ["hardened:true,junk:true", "hardened:true,zero:true", "hardened:true"] {
        play_well("fill", conf);
    }
}
