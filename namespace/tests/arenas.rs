//! `arena.<i>.*` and `arenas.*` through `mallctl`'s untyped buffers: values, and the exact errors.
#![allow(unsafe_code)]

mod door;

use door::{alone, call};
use lumalloc::control::arenas::ExtentHooks;
use lumalloc::control::narenas;
use lumalloc::raw::{self, Flags};
use lumalloc_namespace::Error;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;

fn read<T: Default>(name: &str) -> Result<T, Error> {
    let mut value = T::default();
    call::<T, T>(name, Some(&mut value), None).map(|()| value)
}

fn write<T>(name: &str, value: &T) -> Result<(), Error> {
    call::<T, T>(name, None, Some(value))
}

fn act(name: &str) -> Result<(), Error> {
    call::<u8, u8>(name, None, None)
}

fn create() -> u32 {
    read("arenas.create").expect("an arena")
}

fn text(name: &str) -> Result<&'static CStr, Error> {
    let mut text: *const c_char = ptr::null();
    call::<_, u8>(name, Some(&mut text), None)?;
    // SAFETY: the key returns a text that stays valid.
    Ok(unsafe { CStr::from_ptr(text) })
}

#[test]
fn creating_arenas_changes_no_option() {
    let _alone = alone();
    let before = read::<u32>("opt.narenas").unwrap();
    let arena = create();
    assert!(arena >= before && read::<u32>("arenas.narenas").unwrap() > before);
    assert_eq!(read("opt.narenas"), Ok(before));
    // SAFETY: no blocks of the arena are in use.
    assert!(unsafe { lumalloc::control::arenas::destroy(arena) });
}

#[test]
fn an_arena_is_created_used_and_destroyed() {
    let _alone = alone();
    let arena = create();
    assert_eq!(read::<u32>("arenas.narenas"), Ok(narenas()));
    assert_eq!(read(&format!("arena.{arena}.initialized")), Ok(true));
    let block = raw::allocate(1000, Flags::NONE.arena(arena));
    let mut found = 0u32;
    assert_eq!(call("arenas.lookup", Some(&mut found), Some(&block)), Ok(()));
    assert_eq!(found, arena);
    let foreign: *const u32 = &raw const found;
    assert_eq!(call("arenas.lookup", Some(&mut 0u32), Some(&foreign)), Err(Error::Invalid));
    assert_eq!(read::<u32>("arenas.lookup"), Err(Error::Invalid));
    assert_eq!(act(&format!("arena.{arena}.reset")), Ok(()));
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
    assert_eq!(read(&format!("arena.{arena}.initialized")), Ok(false));
    assert_eq!(read("arena.4096.initialized"), Ok(true));
    assert_eq!(read("arena.4097.initialized"), Ok(true));
    for action in ["reset", "destroy"] {
        assert_eq!(act(&format!("arena.{arena}.{action}")), Err(Error::Fault));
        assert_eq!(act(&format!("arena.0.{action}")), Err(Error::Fault), "automatic");
        assert_eq!(act(&format!("arena.4096.{action}")), Err(Error::Fault));
    }
    assert_eq!(create(), arena, "the index comes again");
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
}

#[test]
fn all_arenas_have_two_indices() {
    let _alone = alone();
    for index in [0, narenas(), 4096] {
        for action in ["purge", "decay"] {
            assert_eq!(act(&format!("arena.{index}.{action}")), Ok(()), "{index}");
        }
        assert!(text(&format!("arena.{index}.dss")).is_ok());
    }
    for index in [narenas() + 1, 4095, 4098] {
        assert_eq!(act(&format!("arena.{index}.purge")), Err(Error::NoEntry), "{index}");
    }
}

#[test]
fn decay_times_have_exact_errors() {
    let _alone = alone();
    let arena = create();
    for kind in ["dirty", "muzzy"] {
        let key = format!("arena.{arena}.{kind}_decay_ms");
        assert_eq!(write(&key, &-2isize), Err(Error::Fault));
        assert_eq!(write(&key, &1u32), Err(Error::Invalid), "another length");
        assert_eq!(write(&key, &1234isize), Ok(()));
        assert_eq!(read(&key), Ok(1234isize));
        assert_eq!(read::<isize>(&format!("arena.4096.{kind}_decay_ms")), Err(Error::Fault));
        let key = format!("arenas.{kind}_decay_ms");
        let before: isize = read(&key).unwrap();
        assert_eq!(write(&key, &-2isize), Err(Error::Fault));
        assert_eq!(write(&key, &777isize), Ok(()));
        let later = create();
        assert_eq!(read(&format!("arena.{later}.{kind}_decay_ms")), Ok(777isize));
        assert_eq!(act(&format!("arena.{later}.destroy")), Ok(()));
        assert_eq!(write(&key, &before), Ok(()));
    }
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
    assert_eq!(read::<isize>(&format!("arena.{arena}.dirty_decay_ms")), Err(Error::Fault));
}

#[test]
fn the_data_segment_s_place_is_a_word() {
    let _alone = alone();
    let arena = create();
    let key = format!("arena.{arena}.dss");
    assert_eq!(text(&key), Ok(c"secondary"));
    let mut old: *const c_char = ptr::null();
    assert_eq!(call(&key, Some(&mut old), Some(&c"primary".as_ptr())), Ok(()));
    // SAFETY: the key returns a text that stays valid.
    assert_eq!(unsafe { CStr::from_ptr(old) }, c"secondary", "from before the write");
    assert_eq!(text(&key), Ok(c"primary"));
    assert_eq!(write(&key, &c"sometimes".as_ptr()), Err(Error::Invalid));
    assert_eq!(text("arena.4096.dss"), Ok(c"secondary"));
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
}

#[test]
fn names_pass_by_pointer() {
    let _alone = alone();
    let arena = create();
    let key = format!("arena.{arena}.name");
    let read_name = |key: &str| {
        let mut bytes = [0u8; 32];
        let mut place: *mut u8 = bytes.as_mut_ptr();
        call::<_, u8>(key, Some(&mut place), None)?;
        Ok(CStr::from_bytes_until_nul(&bytes).unwrap().to_owned())
    };
    assert_eq!(read_name(&key).unwrap().to_str().unwrap(), format!("manual_{arena}"));
    assert_eq!(read_name("arena.0.name").unwrap().as_c_str(), c"auto_0");
    assert_eq!(write(&key, &c"tenant-7".as_ptr()), Ok(()));
    assert_eq!(read_name(&key).unwrap().as_c_str(), c"tenant-7");
    assert_eq!(write(&key, &ptr::null::<c_void>()), Err(Error::Invalid));
    assert_eq!(write(&key, &1u32), Err(Error::Invalid));
    assert_eq!(call::<u32, u8>(&key, Some(&mut 0), None), Err(Error::Invalid));
    assert_eq!(read_name("arena.4096.name"), Err(Error::Invalid));
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
    assert_eq!(read_name(&key), Err(Error::Fault));
}

#[test]
fn growth_and_oversize() {
    let _alone = alone();
    let arena = create();
    let grow = format!("arena.{arena}.retain_grow_limit");
    assert_eq!(read(&grow), Ok(1usize << 30));
    assert_eq!(write(&grow, &100usize), Err(Error::Fault), "less than a page");
    assert_eq!(write(&grow, &((3usize << 20) + 1)), Ok(()));
    assert_eq!(read(&grow), Ok(3usize << 20));
    let oversize = format!("arena.{arena}.oversize_threshold");
    assert_eq!(read(&oversize), Ok(0usize));
    assert_eq!(write(&oversize, &(8usize << 20)), Ok(()));
    assert_eq!(read(&oversize), Ok(8usize << 20));
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
}

#[test]
fn hooks_are_read_written_and_given_at_birth() {
    let _alone = alone();
    let arena = create();
    let key = format!("arena.{arena}.extent_hooks");
    let read_hooks = |key: &str| {
        let mut hooks: *mut ExtentHooks = ptr::null_mut();
        call::<_, u8>(key, Some(&mut hooks), None).map(|()| hooks)
    };
    let default = read_hooks(&key).unwrap();
    assert_eq!(read_hooks("arena.0.extent_hooks"), Ok(default));
    // SAFETY: the default table.
    let mine: *mut ExtentHooks = Box::leak(Box::new(unsafe { *default }));
    let mut before: *mut ExtentHooks = ptr::null_mut();
    assert_eq!(call(&key, Some(&mut before), Some(&mine)), Ok(()));
    assert_eq!((before, read_hooks(&key)), (default, Ok(mine)));
    let block = raw::allocate(1 << 20, Flags::NONE.arena(arena));
    assert!(!block.is_null());
    assert_eq!(write(&key, &ptr::null_mut::<ExtentHooks>()), Err(Error::Fault));
    assert_eq!(write("arena.4096.extent_hooks", &mine), Err(Error::Fault));
    assert_eq!(act(&format!("arena.{arena}.destroy")), Ok(()));
    let mut with = 0u32;
    assert_eq!(call("arenas.create", Some(&mut with), Some(&mine)), Ok(()));
    assert_eq!(read_hooks(&format!("arena.{with}.extent_hooks")), Ok(mine));
    assert_eq!(act(&format!("arena.{with}.destroy")), Ok(()));
    let config = (mine, true);
    let key = "experimental.arenas_create_ext";
    assert_eq!(call(key, Some(&mut with), Some(&config)), Ok(()));
    assert_eq!(read_hooks(&format!("arena.{with}.extent_hooks")), Ok(mine));
    assert_eq!(call(key, Some(&mut with), Some(&1u32)), Err(Error::Invalid));
    assert_eq!(act(&format!("arena.{with}.destroy")), Ok(()));
    let plain: u32 = read(key).unwrap();
    assert_eq!(read_hooks(&format!("arena.{plain}.extent_hooks")), Ok(default));
    assert_eq!(act(&format!("arena.{plain}.destroy")), Ok(()));
}

#[test]
fn limits_are_read_and_written() {
    let _alone = alone();
    for key in ["limit.soft", "limit.hard", "arena.0.limit"] {
        let before: usize = read(key).unwrap();
        assert_eq!(write(key, &(1usize << 40)), Ok(()));
        assert_eq!(read(key), Ok(1usize << 40), "{key}");
        assert_eq!(write(key, &1u32), Err(Error::Invalid));
        assert_eq!(write(key, &before), Ok(()));
    }
    assert!(read::<usize>("limit.held").unwrap() > 0);
    assert_eq!(write("limit.hard", &4096usize), Err(Error::Busy));
    assert_eq!(read("limit.hard"), Ok(0usize));
    assert_eq!(write("limit.hard_forced", &4096usize), Ok(()));
    assert_eq!(read("limit.hard"), Ok(4096usize));
    assert_eq!(read::<usize>("limit.hard_forced"), Err(Error::NotPermitted));
    assert_eq!(write("limit.hard", &0usize), Ok(()));
    assert_eq!(read("arena.0.limit_exempt"), Ok(false));
    assert_eq!(write("arena.0.limit_exempt", &true), Ok(()));
    assert_eq!(read("arena.0.limit_exempt"), Ok(true));
    assert_eq!(write("arena.0.limit_exempt", &false), Ok(()));
    assert_eq!(read("arena.0.profiled"), Ok(true));
    assert_eq!(write("arena.0.profiled", &false), Ok(()));
    assert_eq!(read("arena.0.profiled"), Ok(false));
    assert_eq!(write("arena.0.profiled", &true), Ok(()));
    assert_eq!(write("arena.3000.profiled", &true), Err(Error::NoEntry));
    assert_eq!(write("limit.held", &1usize), Err(Error::NotPermitted));
    let mut before = (1usize, 1usize);
    assert_eq!(call::<_, u8>("limit.callback", Some(&mut before), None), Ok(()));
    assert_eq!(before, (0, 0));
    assert_eq!(write("limit.callback", &(0usize, 7usize)), Ok(()));
    assert_eq!(write("limit.callback", &1u32), Err(Error::Invalid));
    assert_eq!(call::<u32, u8>("limit.callback", Some(&mut 0), None), Err(Error::Invalid));
}
