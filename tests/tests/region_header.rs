//! `vmalloc.h`: layouts, numbers and types, in every language level, and the positions that its
//! macros record.

use lumalloc_tests::build::compile;
use lumalloc_tests::{Run, cc};

/// The ways in which `region_header.c` includes the header.
const WAYS: [[&str; 2]; 6] = [
    ["-DALONE", "-DPLAIN"],
    ["-DALONE", "-DVMFL"],
    ["-DFIRST", "-DPLAIN"],
    ["-DFIRST", "-DVMFL"],
    ["-DLAST", "-DPLAIN"],
    ["-DLAST", "-DVMFL"],
];

fn check_level(compiler: &str, source: &str, level: &str, way: [&str; 2]) {
    let level = format!("-std={level}");
    let flags = ["-c", "-pedantic", "-Wno-long-long", &level];
    compile(compiler, source, &[&flags[..], &way[..]].concat());
}

#[test]
fn the_header_suits_every_level_of_c() {
    for way in WAYS {
        for level in ["gnu89", "c89", "c99", "c11", "c17", "gnu17", "c2x"] {
            check_level("gcc", "region_header.c", level, way);
        }
        for level in ["c99", "c11", "gnu17", "c2x"] {
            check_level("clang", "region_header.c", level, way);
        }
    }
    // In lumalloc.h, clang warns of `bool` in C89.
    for way in &WAYS[..2] {
        check_level("clang", "region_header.c", "gnu89", *way);
    }
}

#[test]
fn the_header_suits_every_level_of_cxx() {
    for way in WAYS {
        for level in ["c++98", "c++11", "c++17", "c++20"] {
            check_level("g++", "region_header.cc", level, way);
            check_level("clang++", "region_header.cc", level, way);
        }
    }
}

/// Arguments are evaluated in any order.
#[test]
fn each_call_records_its_own_line() {
    let said = Run::plain(cc("region_lines.c", &[])).stdout();
    let mut lines: Vec<&str> = said.lines().collect();
    lines.sort_unstable();
    let expected =
        ["ok", "vmalign 3", "vmalloc 3", "vmfree 4", "vmnewof 1", "vmoldof 2", "vmresize 3"];
    assert_eq!(lines, expected);
}
