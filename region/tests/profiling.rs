//! What the method `Profile` counts.
#![allow(unsafe_code, reason = "blocks are raw memory")]

mod common;

use common::{free, resize};
use lumalloc_region::{Best, Heap, Profile, Region, Resize, summary};

/// Returns the lines of the region whose core data lies at an address, without the line numbers.
fn lines(wanted: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let show = |region| (region == wanted).then_some((1, 4096));
    assert!(summary(&show, &mut |line| lines.push(String::from_utf8_lossy(line).into())));
    lines
}

fn core_data(region: &mut Region<Profile, Heap>) -> usize {
    let first = region.segments().last().unwrap().0.as_ptr() as usize;
    first.next_multiple_of(16)
}

#[test]
fn calls_are_counted_by_region_and_line() {
    let mut region: Region<Profile, Heap> = Region::open(Heap).unwrap();
    let data = core_data(&mut region);
    let blocks: Vec<_> = (0..10).map(|_| region.alloc(100).unwrap()).collect();
    let other = region.alloc(7).unwrap();
    assert_eq!((region.size(blocks[0]), region.size(other)), (Some(100), Some(7)));
    free(&region, blocks[0]).unwrap();
    assert!(free(&region, blocks[0]).is_err());
    let found = lines(data);
    assert_eq!(found.len(), 5, "{found:?}");
    let sum = "n_alloc=11:n_free=1:s_alloc=1007:s_free=100:";
    assert_eq!(found[0], format!("ALLOCATION USAGE SUMMARY:{sum}\n"));
    assert_eq!(found[1], format!("region=1:{sum}max_busy=1007:extent=4096:\n"));
    assert!(found[2].starts_with("file=") && found[2].ends_with(&format!("profiling.rs:{sum}\n")));
    assert!(found[3].ends_with(":region=1:n_alloc=10:n_free=1:s_alloc=1000:s_free=100:\n"));
    assert!(found[4].ends_with(":region=1:n_alloc=1:n_free=0:s_alloc=7:s_free=0:\n"));
}

/// A resize is counted as a free of the old line, and an allocation of the new one.
#[test]
fn a_resize_is_a_free_and_an_allocation() {
    let mut region: Region<Profile, Heap> = Region::open(Heap).unwrap();
    let data = core_data(&mut region);
    let block = region.alloc(10).unwrap();
    let block = resize(&region, block, 20, Resize::MOVE).unwrap();
    let block = resize(&region, block, 5000, Resize::MOVE).unwrap();
    assert_eq!(region.size(block), Some(5000));
    let found = lines(data);
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found[0].ends_with(":n_alloc=3:n_free=2:s_alloc=5030:s_free=30:\n"));
    assert!(found[3].ends_with(":n_alloc=1:n_free=1:s_alloc=10:s_free=10:\n"));
    assert!(found[4].ends_with(":n_alloc=1:n_free=1:s_alloc=20:s_free=20:\n"));
    assert!(found[5].ends_with(":n_alloc=1:n_free=0:s_alloc=5000:s_free=0:\n"));
    region.clear();
    assert!(lines(data)[0].ends_with(":n_alloc=3:n_free=3:s_alloc=5030:s_free=5030:\n"));
}

#[test]
fn what_a_closed_region_counted_is_forgotten() {
    let mut region: Region<Profile, Heap> = Region::open(Heap).unwrap();
    let data = core_data(&mut region);
    region.alloc(10).unwrap();
    assert_eq!(lines(data).len(), 4);
    drop(region);
    assert_eq!(lines(data).len(), 1);
}

#[test]
fn other_methods_count_nothing() {
    let mut region: Region<Best, Heap> = Region::open(Heap).unwrap();
    region.alloc(10).unwrap();
    let first = region.segments().last().unwrap().0.as_ptr() as usize;
    assert_eq!(lines(first).len(), 1);
}
