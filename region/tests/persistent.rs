//! Persistent regions: what is in a file when it is opened again, by this process and by others.
#![allow(unsafe_code, reason = "types that lie in files, forks, and blocks that are freed")]

use std::ffi::CString;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use lumalloc_region::{AtomicLink, Link, OpenError, Persist, Persistent};

/// A file of a test, which is removed at its end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("persistent-{name}"));
        let _ = fs::remove_file(&path);
        File(path)
    }

    fn open<T: Persist>(&self, root: T) -> Result<Persistent<T>, OpenError> {
        let path = CString::new(self.0.as_os_str().as_encoded_bytes()).unwrap();
        Persistent::open(&path, 1 << 20, root)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[repr(C)]
struct Node {
    next: AtomicLink<Node>,
    number: AtomicU64,
}

// SAFETY: the fields keep the promises.
unsafe impl Persist for Node {}

#[derive(Default)]
#[repr(C)]
struct List {
    first: AtomicLink<Node>,
    length: AtomicU32,
}

// SAFETY: the fields keep the promises.
unsafe impl Persist for List {}

fn push(list: &Persistent<List>, number: u64) {
    let first = list.root().first.load(Ordering::Relaxed);
    let next = AtomicLink::default();
    next.store(first, Ordering::Relaxed);
    let node = list.alloc(Node { next, number: AtomicU64::new(number) }).expect("room");
    list.root().first.store(node, Ordering::Release);
    list.root().length.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_list_is_there_again() {
    let file = File::new("list");
    let list = file.open(List::default()).unwrap();
    (0..1000).for_each(|number| push(&list, number));
    drop(list);
    let list = file.open(List::default()).unwrap();
    assert_eq!(list.root().length.load(Ordering::Relaxed), 1000);
    let mut link = list.root().first.load(Ordering::Acquire);
    for number in (0..1000).rev() {
        let node = list.get(link).unwrap();
        assert_eq!(node.number.load(Ordering::Relaxed), number);
        link = node.next.load(Ordering::Acquire);
    }
    assert!(link.is_nowhere());
    assert_eq!(list.stat().busy, 1003);
    list.remove();
    assert!(!file.0.exists());
}

#[test]
fn a_link_to_no_block_is_noticed() {
    let file = File::new("links");
    let region = file.open(0u64).unwrap();
    let link = region.alloc(7u32).unwrap();
    assert_eq!(region.get(link), Some(&7));
    assert_eq!(region.get(Link::<u32>::NOWHERE), None);
    // SAFETY: the link leads to a block of this test, which is not used after.
    assert!(unsafe { region.free(link) });
    assert_eq!(region.get(link), None);
    // SAFETY: there is no block.
    assert!(!unsafe { region.free(link) });
    // Another region has no block there.
    let other = File::new("other");
    let other = other.open(0u64).unwrap();
    let far: Vec<Link<[u64; 100]>> = (0..10).map(|_| region.alloc([1; 100]).unwrap()).collect();
    assert_eq!(other.get(far[9]), None);
    assert_eq!(region.get(far[9]), Some(&[1; 100]));
}

#[test]
fn a_full_region_has_no_room() {
    let file = File::new("full");
    let region = file.open(0u64).unwrap();
    let blocks = std::iter::from_fn(|| region.alloc([0u64; 1000])).count();
    assert!((100..=131).contains(&blocks), "{blocks}");
    assert!(region.alloc(1u64).is_some());
}

/// A counter of another version.
#[repr(transparent)]
struct Second(AtomicU64);

// SAFETY: the field keeps the promises.
unsafe impl Persist for Second {
    const VERSION: u16 = 2;
}

#[test]
fn what_is_no_such_region_is_refused_with_a_message() {
    let file = File::new("types");
    drop(file.open(AtomicU64::new(1)).unwrap());
    assert_eq!(file.open(AtomicU32::new(1)).err(), Some(OpenError::OtherRoot));
    assert_eq!(file.open(Second(AtomicU64::new(1))).err(), Some(OpenError::OtherRoot));
    assert_eq!(file.open(AtomicU64::new(2)).unwrap().root().load(Ordering::Relaxed), 1);
    let text = File::new("text");
    fs::write(&text.0, "hello").unwrap();
    assert_eq!(text.open(0u64).err(), Some(OpenError::NoRegion));
    assert_eq!(fs::read(&text.0).unwrap(), b"hello");
    let said = [
        (OpenError::NoRegion, "the file holds no region, or is cut off"),
        (OpenError::OtherRoot, "the region's root has another type"),
        (OpenError::AddressInUse, "something else lies at the region's addresses"),
        (OpenError::NoRoom, "there is no room for the region"),
        (OpenError::System(13), "the system's error 13"),
    ];
    for (error, text) in said {
        assert_eq!(error.to_string(), text);
    }
    let nowhere = Persistent::open(c"/no/such/file", 0, 0u64);
    assert_eq!(nowhere.err(), Some(OpenError::System(libc::ENOENT)));
    // A process has a region once.
    let first = file.open(AtomicU64::new(1)).unwrap();
    assert_eq!(file.open(AtomicU64::new(1)).err(), Some(OpenError::AddressInUse));
    drop(first);
}

#[test]
fn processes_share_a_region() {
    const PROCESSES: usize = 4;
    const ROUNDS: u32 = 10_000;
    let file = File::new("processes");
    let region = file.open(AtomicU64::new(0)).unwrap();
    let children: Vec<libc::pid_t> = (0..PROCESSES)
        .map(|_| {
            // SAFETY: the child calls nothing but the region.
            let child = unsafe { libc::fork() };
            assert!(child >= 0);
            if child == 0 {
                for round in 0..ROUNDS {
                    let link = region.alloc(u64::from(round));
                    let is_right =
                        link.and_then(|link| region.get(link)) == Some(&u64::from(round));
                    // SAFETY: the link leads to a block of this process, which is not used after.
                    let is_freed = link.is_some_and(|link| unsafe { region.free(link) });
                    region.root().fetch_add(u64::from(is_right && is_freed), Ordering::Relaxed);
                }
                // SAFETY: the child ends.
                unsafe { libc::_exit(0) };
            }
            child
        })
        .collect();
    for child in children {
        let mut status = 0;
        // SAFETY: the status is writable.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    }
    assert_eq!(region.root().load(Ordering::Relaxed), PROCESSES as u64 * u64::from(ROUNDS));
    assert_eq!(region.stat().busy, 3);
}

#[test]
fn others_see_a_region_in_a_file_by_its_name() {
    use lumalloc::observe::regions;
    let file = File::new("published");
    let list = file.open(List::default()).unwrap();
    push(&list, 1);
    let busy = list.stat().busy;
    let published = list.publish("a list").ok().expect("memory");
    let number = published.number();
    let about = regions::about(number).unwrap();
    assert_eq!((about.method, about.discipline, about.holder), (c"best", c"file", None));
    let mut path = [0; 300];
    let length = regions::file(number, &mut path).unwrap();
    assert_eq!(&path[..length], file.0.as_os_str().as_encoded_bytes());
    assert_eq!(regions::counts(number, 1).map(|counts| counts.busy), Ok(busy));
    push(&published, 2);
    assert_eq!(regions::counts(number, 2).map(|counts| counts.busy), Ok(busy + 1));
    assert_eq!((regions::check(number), regions::compact(number)), (Ok(0), Ok(())));
    let list = published.withdraw();
    assert_eq!(regions::about(number), None);
    assert_eq!(list.root().length.load(Ordering::Relaxed), 2);
    let number = list.publish("again").ok().expect("memory").number();
    assert_eq!(regions::about(number), None, "the value is gone");
}
