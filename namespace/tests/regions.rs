//! `vm.regions` and `vm.region.<i>.*`, compared with what regions say themselves.
#![allow(unsafe_code)]

use lumalloc_namespace::{Buffers, Entry, Error, Value, access, tree};
use lumalloc_region::{Best, Heap, Last, Pool, Region, Stat};
use std::ffi::CStr;

fn read(name: &str) -> Result<Value<'static>, Error> {
    Entry::find(tree::complete(name.as_bytes())?.as_slice())?.read()
}

fn number(name: &str) -> usize {
    match read(name) {
        Ok(Value::Size(number)) => number,
        other => panic!("{name}: {other:?}"),
    }
}

fn new_epoch() {
    let mib = tree::complete(b"epoch").expect("a key");
    Entry::find(mib.as_slice()).expect("a key").write(Value::U64(1)).expect("a write");
}

/// Calls with a buffer for the answer, and a value to write.
fn call<T>(name: &str, answer: &mut T, new: Option<&[u8]>) -> Result<(), Error> {
    let mib = tree::complete(name.as_bytes())?;
    let mut length = size_of::<T>();
    let buffers = Buffers {
        oldp: std::ptr::from_mut(answer).cast(),
        oldlenp: &raw mut length,
        newp: new.map_or(std::ptr::null(), |new| new.as_ptr().cast()),
        newlen: new.map_or(0, <[u8]>::len),
    };
    // SAFETY: the buffers have these lengths.
    unsafe { access(mib.as_slice(), buffers) }
}

fn trigger(name: &str) -> Result<(), Error> {
    let mib = tree::complete(name.as_bytes())?;
    let none = Buffers {
        oldp: std::ptr::null_mut(),
        oldlenp: std::ptr::null_mut(),
        newp: std::ptr::null(),
        newlen: 0,
    };
    // SAFETY: there are no buffers.
    unsafe { access(mib.as_slice(), none) }
}

fn name(key: &str) -> String {
    let mut text = [0u8; 32];
    let mut place = text.as_mut_ptr();
    call(key, &mut place, None).expect("a name");
    CStr::from_bytes_until_nul(&text).expect("its end").to_str().expect("text").to_owned()
}

/// Region 0 has these numbers.
fn has_numbers(stat: Stat) {
    let expected = [
        ("n_busy", 2),
        ("s_busy", stat.busy_bytes),
        ("m_busy", stat.busy_largest),
        ("n_free", stat.free),
        ("s_free", stat.free_bytes),
        ("m_free", stat.free_largest),
        ("n_seg", stat.segments),
        ("extent", stat.extent),
    ];
    for (leaf, value) in expected {
        assert_eq!(number(&format!("vm.region.0.{leaf}")), value, "{leaf}");
    }
}

/// This is one test, because there is one list.
#[test]
fn regions_are_read_named_checked_and_compacted() {
    assert_eq!((number("vm.regions"), number("vm.nregions")), (0, 0));
    assert_eq!(read("vm.region.0.extent"), Err(Error::NoEntry));
    assert_eq!(read("vm.region.1.extent"), Err(Error::NoEntry));

    let best: Region<Best, Heap> = Region::open(Heap).expect("memory");
    let best = best.publish("documents").expect("memory");
    let pool: Region<Pool, Heap> = Region::open(Heap).expect("memory");
    let pool = pool.publish("").expect("memory");
    let (block, large) = (best.alloc(100), best.alloc(1 << 20).expect("memory"));
    pool.alloc(24).expect("memory");
    new_epoch();
    let stat = best.stat();
    has_numbers(stat);
    assert_eq!(number("vm.region.1.s_busy"), 24);
    assert_eq!((number("vm.regions"), number("vm.nregions")), (2, 2));
    assert_eq!(read("vm.region.0.method"), Ok(Value::Str(c"best")));
    assert_eq!(read("vm.region.1.discipline"), Ok(Value::Str(c"heap")));
    assert_eq!(read("vm.region.1.flags"), Ok(Value::Unsigned(0o200)));
    assert_eq!(read("vm.region.0.holder"), Ok(Value::Unsigned(0)));
    assert_eq!(read("vm.region.0.holder_alive"), Ok(Value::Bool(true)));

    assert_eq!(name("vm.region.0.name"), "documents");
    assert_eq!(name("vm.region.1.name"), "region_1");
    let new = c"nodes".as_ptr().expose_provenance().to_ne_bytes();
    let mut before = [0u8; 32];
    let mut place = before.as_mut_ptr();
    assert_eq!(call("vm.region.1.name", &mut place, Some(&new)), Ok(()));
    assert_eq!((&before[..9], name("vm.region.1.name").as_str()), (&b"region_1\0"[..], "nodes"));
    let mut null = std::ptr::null_mut::<u8>();
    assert_eq!(call("vm.region.1.name", &mut null, None), Err(Error::Invalid));
    assert_eq!(call("vm.region.1.file", &mut place, None), Err(Error::NoEntry));

    let mut checked = 77u32;
    assert_eq!((call("vm.region.0.check", &mut checked, None), checked), (Ok(()), 0));
    assert_eq!(call("vm.region.1.check", &mut checked, None), Err(Error::NoEntry));
    let address = number("vm.region.1.address").to_ne_bytes();
    assert_eq!((call("vm.lookup", &mut checked, Some(&address)), checked), (Ok(()), 1));
    assert_eq!(call("vm.lookup", &mut checked, Some(&[1; 8])), Err(Error::Invalid));

    // SAFETY: the block is used no more.
    unsafe { best.free(large) }.expect("a block");
    assert_eq!(trigger("vm.region.0.compact"), Ok(()));
    assert_eq!(number("vm.region.0.n_busy"), 2, "of this epoch");
    new_epoch();
    assert_eq!(number("vm.region.0.n_busy"), 1);
    assert!(number("vm.region.0.extent") < stat.extent);
    best.for_each_block(|at, _| {
        assert_eq!(Some(at), block);
        new_epoch();
        assert_eq!(number("vm.region.0.n_busy"), 1, "as it was last seen");
        assert_eq!(trigger("vm.region.0.compact"), Err(Error::Busy));
    });

    drop(best);
    assert_eq!((number("vm.regions"), number("vm.nregions")), (1, 2));
    for leaf in ["extent", "n_busy", "flags", "holder"] {
        assert_eq!(read(&format!("vm.region.0.{leaf}")), Err(Error::NoEntry), "{leaf}");
    }
    assert_eq!(trigger("vm.region.0.compact"), Err(Error::NoEntry));
    assert_eq!(call("vm.region.0.check", &mut checked, None), Err(Error::NoEntry));
    assert_eq!(call("vm.region.0.name", &mut place, None), Err(Error::NoEntry));
    let last: Region<Last, Heap> = Region::open(Heap).expect("memory");
    let last = last.publish("a parse").expect("memory");
    assert_eq!((last.number(), name("vm.region.0.name")), (0, "a parse".to_owned()));
}
