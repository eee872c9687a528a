//! What the doctor says of this process. It depends on all that the process allocates, so this file
//! has one test.
#![allow(unsafe_code, reason = "blocks are raw memory")]
mod client;

use client::{any, body, get};
use lumalloc::control::arenas;
use lumalloc::raw::{self, Flags};
use lumalloc_exporter::Exporter;
use lumalloc_region::{Best, Region, System};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

const FREE: &str = "region-fragments: Of the region documents 96.1 MiB are free, 99 % of its 96.1 \
                    MiB.\n    Have the program call vmcompact (in Rust Region::compact) or do \
                    vm.region.0.compact: it gives back what is free at the ends of segments, not \
                    what is between blocks in use.\n";

#[test]
fn the_doctor_says_what_stands_out_and_that_nothing_does() {
    let exporter = Exporter::builder().listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    assert_eq!(body(&get(address, "/doctor")), "no problem was found\n");
    assert_eq!(body(&get(address, "/doctor?format=json")), "{\"findings\":[]}\n");

    let region: Region<Best, System> = Region::open(System).unwrap();
    let region = region.publish("documents").unwrap();
    let block = region.alloc(96 << 20).unwrap();
    assert_eq!(body(&get(address, "/doctor")), "no problem was found\n");
    // SAFETY: the block is used no more.
    unsafe { region.free(block) }.unwrap();
    assert_eq!(body(&get(address, "/doctor")), FREE);
    let json: serde_json::Value =
        serde_json::from_str(body(&get(address, "/doctor?format=json"))).unwrap();
    let finding = &json["findings"][0];
    let [rule, what, help] = ["rule", "what", "help"].map(|part| finding[part].as_str().unwrap());
    assert_eq!(format!("{rule}: {what}\n    {help}\n"), FREE);

    drop(region);
    assert_eq!(body(&get(address, "/doctor")), "no problem was found\n");
    the_limit_of_an_arena_is_told(address);
}

fn the_limit_of_an_arena_is_told(address: std::net::SocketAddr) {
    let arena = arenas::create().unwrap();
    assert!(arenas::set_limit(arena, 10 << 20));
    let flags = Flags::NONE.arena(arena).uncached();
    let block = raw::allocate(10 << 20, flags);
    assert!(!block.is_null() && raw::allocate(1 << 20, flags).is_null());
    let said = get(address, "/doctor");
    let what = "limit: 10.0 MiB of the 10.0 MiB that arena.N.limit allows are held (100 %).";
    let what = what.replace('N', &arena.to_string());
    assert!(body(&said).starts_with(&what), "{said}");
    // SAFETY: the block is used no more.
    unsafe { raw::free(block) };
}
