//! With the feature `probes`, tracers find the places where a Rust program allocates and frees.
#![allow(unsafe_code)]

use lumalloc::Lumalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ops::Range;
use std::process::Command;

const LAYOUT: Layout = Layout::new::<[u64; 4]>();

#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn probed_alloc() -> *mut u8 {
    // SAFETY: the size of the layout is not zero.
    unsafe { Lumalloc.alloc(LAYOUT) }
}

#[unsafe(no_mangle)]
#[inline(never)]
unsafe extern "C" fn probed_free(block: *mut u8) {
    // SAFETY: the caller's block is of this layout.
    unsafe { Lumalloc.dealloc(block, LAYOUT) }
}

/// The output of a tool about this program.
fn told(tool: &str, options: &[&str]) -> String {
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(tool).args(options).arg(program).output().expect("it starts");
    String::from_utf8(output.stdout).expect("text")
}

fn number(digits: &str) -> u64 {
    u64::from_str_radix(digits.trim_start_matches("0x"), 16).expect("a number")
}

/// The addresses of a function.
fn addresses(symbols: &str, name: &str) -> Range<u64> {
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("a symbol");
    let fields: Vec<&str> = line.split(' ').collect();
    number(fields[0])..number(fields[0]) + number(fields[1])
}

#[test]
fn the_inlined_calls_have_probes() {
    let block = probed_alloc();
    // SAFETY: the block was just allocated, and is not used afterwards.
    unsafe { probed_free(block) };
    let (symbols, notes) = (told("nm", &["-S"]), told("readelf", &["-n", "-W"]));
    for (function, probe, arguments) in [("probed_alloc", "alloc", 2), ("probed_free", "free", 1)] {
        let within = addresses(&symbols, function);
        let found = notes.split("Provider: lumalloc").filter(|note| {
            let field = |name: &str| note.lines().find_map(|line| line.trim().strip_prefix(name));
            let place = field("Location: ").and_then(|text| text.split(',').next()).map(number);
            field("Name: ") == Some(probe)
                && place.is_some_and(|place| within.contains(&place))
                && field("Arguments: ").is_some_and(|all| all.split(' ').count() == arguments)
        });
        assert_eq!(found.count(), 1, "{function}: {within:x?}");
    }
}
