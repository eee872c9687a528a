//! All keys, one after the other, through `mallctl`'s untyped buffers: each is found by name and by
//! MIB, reads with its type, and refuses other lengths and what its access forbids.
#![allow(unsafe_code)]

use lumalloc_namespace::key_table::rows;
use lumalloc_namespace::tree;
use lumalloc_namespace::{Access, Buffers, Entry, Error, Mib, Row, Type, access, by_name};
use lumalloc_region::{Best, Heap, Region};
use std::ffi::CString;
use std::ptr;
use std::sync::Once;

/// The names of a row with each index that exists among these: the first, the second, all arenas,
/// and the destroyed ones.
fn concrete(row: &Row) -> Vec<(String, Mib)> {
    let mut names = vec![String::new()];
    for component in row.name().split('.') {
        let texts: &[&str] =
            if component.starts_with('<') { &["0", "1", "4096", "4097"] } else { &[component] };
        let longer = |name: &String| {
            let dot = if name.is_empty() { "" } else { "." };
            texts.iter().map(|text| format!("{name}{dot}{text}")).collect::<Vec<_>>()
        };
        names = names.iter().flat_map(longer).collect();
    }
    let found = |name: String| {
        let mib = tree::complete(name.as_bytes()).ok()?;
        // `EFAULT`: settings of an arena that has not been made, or of all arenas at once.
        let read = row.access.reader().map(|read| read(mib.as_slice()));
        (read != Some(Err(Error::Fault))).then_some((name, mib))
    };
    let found: Vec<_> = names.into_iter().filter_map(found).collect();
    assert!(!found.is_empty(), "no index of {} exists", row.name());
    found
}

/// Publishes a region, so that the keys of regions have values.
fn publish_a_region() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let region: Region<Best, Heap> = Region::open(Heap).expect("memory");
        std::mem::forget(region.publish("a region").expect("memory"));
    });
}

/// Every key, under each of its names.
fn all() -> impl Iterator<Item = (&'static Row, String, Mib)> {
    publish_a_region();
    let named =
        |row: &'static Row| concrete(row).into_iter().map(move |(name, mib)| (row, name, mib));
    rows().iter().flat_map(named)
}

/// Room for any value, and the bytes in it before a read.
const ROOM: usize = 16;
const BEFORE: u8 = 0xee;

/// Reads with a buffer of a length. Returns the outcome, the bytes and the length afterwards.
fn read(mib: &Mib, length: usize) -> (Result<(), Error>, [u8; ROOM], usize) {
    let (mut bytes, mut after) = ([BEFORE; ROOM], length);
    let buffers = Buffers {
        oldp: bytes.as_mut_ptr().cast(),
        oldlenp: &raw mut after,
        newp: ptr::null(),
        newlen: 0,
    };
    // SAFETY: the buffer is longer than any `length` of these tests.
    let outcome = unsafe { access(mib.as_slice(), buffers) };
    (outcome, bytes, after)
}

/// Writes bytes without reading.
fn write(mib: &Mib, bytes: &[u8]) -> Result<(), Error> {
    let buffers = Buffers {
        oldp: ptr::null_mut(),
        oldlenp: ptr::null_mut(),
        newp: bytes.as_ptr().cast(),
        newlen: bytes.len(),
    };
    // SAFETY: `newlen` is the length of the bytes; no text is given.
    unsafe { access(mib.as_slice(), buffers) }
}

fn is_read(row: &Row) -> bool {
    row.access.reader().is_some()
}

/// Whether a key may have no value, depending on the process: an option string that was not given,
/// and what only the heap profiler has, which is off here.
fn may_have_none(row: &Row) -> bool {
    const NAMES: [&str; 3] =
        ["thread.prof.name", "experimental.prof_recent.alloc_max", "mprof.autosave"];
    row.name().starts_with("opt.malloc_conf.") || NAMES.contains(&row.name())
}

/// Whether the key cannot be written while the heap profiler is off, as here.
fn is_of_profiler(row: &Row) -> bool {
    const SWITCHES: [&str; 3] = ["thread.prof.active", "prof.thread_active_init", "prof.gdump"];
    may_have_none(row)
        || SWITCHES.contains(&row.name())
        || row.name().starts_with("experimental.hooks.prof_")
}

/// Whether a name stands for all arenas or the destroyed ones. Settings of single arenas have no
/// value there.
fn is_many(name: &str) -> bool {
    name.split('.').any(|component| component == "4096" || component == "4097")
}

#[test]
fn each_is_found_by_name_and_by_mib() {
    let mut count = 0;
    for (row, name, mib) in all() {
        let entry = Entry::find(mib.as_slice()).expect("a MIB of its own");
        assert!(ptr::eq(entry.row, row), "{name} leads to {}", entry.row.name());
        let mut longer = mib.as_slice().to_vec();
        longer.push(0);
        assert!(matches!(Entry::find(&longer), Err(Error::NoEntry)), "{name} goes on");
        let mut shorter = longer;
        shorter.truncate(mib.as_slice().len() - 1);
        assert!(matches!(Entry::find(&shorter), Err(Error::NoEntry)), "{name} ends before");
        count += 1;
    }
    assert!(count >= rows().len());
}

#[test]
fn each_reads_at_its_length_by_name_as_by_mib() {
    for (row, name, mib) in all().filter(|(row, ..)| is_read(row)) {
        let size = row.kind.size();
        let (outcome, bytes, after) = read(&mib, size);
        if outcome == Err(Error::NoEntry) && may_have_none(row) {
            continue;
        }
        if outcome == Err(Error::Fault) && is_many(&name) {
            continue;
        }
        assert_eq!((outcome, after), (Ok(()), size), "{name}");
        assert!(bytes[size..].iter().all(|&byte| byte == BEFORE), "{name} writes too much");
        let c_name = CString::new(name.as_str()).unwrap();
        let (mut again, mut length) = ([BEFORE; ROOM], size);
        let buffers = Buffers {
            oldp: again.as_mut_ptr().cast(),
            oldlenp: &raw mut length,
            newp: ptr::null(),
            newlen: 0,
        };
        // SAFETY: the buffer is longer than `length`.
        assert_eq!(unsafe { by_name(&c_name, buffers) }, Ok(()), "{name}");
        if row.name().starts_with("opt.") || row.name().starts_with("config.") {
            assert_eq!(again, bytes, "{name}");
        }
    }
}

#[test]
fn each_refuses_another_length_and_copies_what_fits() {
    for (row, name, mib) in all().filter(|(row, ..)| is_read(row)) {
        let size = row.kind.size();
        let (good, whole, _) = read(&mib, size);
        for length in [0, 1, 4, 7, 8, 9, ROOM].into_iter().filter(|&length| length != size) {
            let (outcome, bytes, after) = read(&mib, length);
            if matches!(good, Err(Error::NoEntry | Error::Fault)) {
                assert_eq!(outcome, good, "{name}");
                continue;
            }
            let copied = size.min(length);
            assert_eq!((outcome, after), (Err(Error::Invalid), copied), "{name}: {length}");
            assert!(bytes[copied..].iter().all(|&byte| byte == BEFORE), "{name}: {length}");
            if row.name().starts_with("opt.") {
                assert_eq!(bytes[..copied], whole[..copied], "{name}: {length}");
            }
        }
    }
}

#[test]
fn each_refuses_what_its_access_forbids() {
    for (row, name, mib) in all() {
        let value = [0; ROOM];
        let refused = match row.access {
            Access::Read(_) | Access::Trigger(_) | Access::UnsafeTrigger(_) => Error::NotPermitted,
            Access::ReadWrite(..)
            | Access::ReadOrWrite(..)
            | Access::WriteThenRead(..)
            | Access::Write(_)
            | Access::WriteOr(..)
            | Access::UnsafeReadWrite(..) => Error::Invalid,
            Access::Absent(_) => Error::NoEntry,
            _ => continue,
        };
        let outcome = write(&mib, &value);
        let has_no_value = outcome == Err(Error::Fault) && is_many(&name);
        assert!(outcome == Err(refused) || has_no_value, "{name}: {outcome:?}");
        let write_only = row.access.notation() == c"--" || row.access.notation() == c"-w";
        if write_only {
            assert_eq!(read(&mib, 8).0, Err(Error::NotPermitted), "{name}");
        }
        if matches!(row.access, Access::Read(_)) {
            assert_eq!(write(&mib, &value[..row.kind.size()]), Err(Error::NotPermitted), "{name}");
        }
    }
}

/// A value that was read can be written, and that changes nothing.
#[test]
fn what_was_read_can_be_written() {
    for (row, name, mib) in all() {
        let is_written = matches!(row.access, Access::ReadWrite(..) | Access::UnsafeReadWrite(..));
        let is_written = is_written && !is_of_profiler(row);
        if !is_written || row.kind == Type::Str {
            continue;
        }
        let size = row.kind.size();
        let (outcome, bytes, _) = read(&mib, size);
        if outcome == Err(Error::Fault) && is_many(&name) {
            continue;
        }
        assert_eq!(outcome, Ok(()), "{name}");
        assert_eq!(write(&mib, &bytes[..size]), Ok(()), "{name}");
        assert_eq!(read(&mib, size).1, bytes, "{name}");
    }
}

#[test]
fn what_comes_in_must_have_its_length() {
    for (row, name, mib) in all() {
        if row.access.input().is_some() {
            assert_eq!(write(&mib, &[0; 3]), Err(Error::Invalid), "{name}");
        }
    }
}
