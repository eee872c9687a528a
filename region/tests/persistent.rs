//! Persistent regions: what is in a file when it is opened again, by this process and by others.
#![allow(unsafe_code, reason = "types that lie in files, forks, and blocks that are freed")]

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lumalloc_region::{AtomicLink, Link, OpenError, Persist, Persistent, SharedRegion};

/// Held by tests that fork: the child of another one would have this one's file open, and locked.
static FORKS: Mutex<()> = Mutex::new(());

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

/// A root that is larger than the least room.
#[repr(C)]
struct Large([u64; 1 << 16]);

// SAFETY: the fields keep the promises.
unsafe impl Persist for Large {}

#[test]
fn a_file_that_was_made_for_nothing_is_removed() {
    let file = File::new("for-nothing");
    let path = CString::new(file.0.as_os_str().as_encoded_bytes()).unwrap();
    let too_large = || SharedRegion::open_or_make(&path, usize::MAX).map(|_| ());
    let no_root = || Persistent::open(&path, 1, Large([0; 1 << 16])).map(|_| ());
    assert_eq!((too_large(), file.0.exists()), (Err(libc::ENOMEM), false));
    assert_eq!((no_root(), file.0.exists()), (Err(OpenError::NoRoom), false));
    // One that was there stays.
    fs::write(&file.0, "").unwrap();
    assert_eq!((too_large(), file.0.exists()), (Err(libc::ENOMEM), true));
    assert_eq!((no_root(), file.0.exists()), (Err(OpenError::NoRoom), true));
    fs::remove_file(&file.0).unwrap();
    drop(file.open(List::default()).expect("a region"));
    assert!(file.0.exists());
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

/// Otherwise safe code could change an integer while it has a reference to it.
#[test]
fn a_link_does_not_lead_to_a_block_of_another_type() {
    let (file, other) = (File::new("kinds"), File::new("kinds-other"));
    let (region, other) = (file.open(0u64).unwrap(), other.open(0u64).unwrap());
    let atomic = other.alloc(AtomicU64::new(1)).unwrap();
    let plain = region.alloc(1u64).unwrap();
    assert_eq!(format!("{atomic:?}"), format!("{plain:?}"), "they lie at one distance");
    assert!(other.get(atomic).is_some());
    assert!(region.get(atomic).is_none(), "it is a plain integer there");
    // SAFETY: there is no such block.
    assert!(!unsafe { region.free(atomic) });
    assert_eq!(region.get(plain), Some(&1));
    drop(region);
    assert_eq!(file.open(AtomicU64::new(0)).err(), Some(OpenError::OtherRoot));
    let aligned = other.alloc([7u8; 100]).unwrap();
    assert_eq!(other.get(aligned), Some(&[7; 100]));
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
    let _forks = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
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

/// On some file systems a process that closes its descriptors has the file locked no longer. Here
/// it unlocks the file.
#[test]
fn a_process_in_a_region_keeps_others_out_without_the_lock_of_the_file() {
    let _forks = FORKS.lock().unwrap_or_else(PoisonError::into_inner);
    let file = File::new("unlocked");
    drop(file.open(0u64).unwrap());
    let path = CString::new(file.0.as_os_str().as_encoded_bytes()).unwrap();
    // The numbers of file descriptors: what is read, and what is written.
    let mut pipe = [0; 2];
    // SAFETY: there is room for two numbers.
    assert_eq!(unsafe { libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    let mut byte = 0u8;
    let byte = (&raw mut byte).cast();
    // SAFETY: the child calls little but the region and the system.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        let region = SharedRegion::open(&path).unwrap();
        let mut steps = 0;
        region.for_each_block(&mut |_, _| {
            steps += 1;
            if steps == 1 {
                unlock(&file.0);
                // SAFETY: the byte is readable.
                unsafe { libc::write(pipe[1], byte, 1) };
                // Time for the other process to make its mistake.
                std::thread::sleep(Duration::from_millis(100));
                // SAFETY: the byte is readable.
                unsafe { libc::write(pipe[1], byte, 1) };
            }
        });
        // SAFETY: the child ends.
        unsafe { libc::_exit(i32::from(steps == 0)) };
    }
    // SAFETY: the byte is writable.
    assert_eq!(unsafe { libc::read(pipe[0], byte, 1) }, 1);
    let region = SharedRegion::open(&path).unwrap();
    assert_eq!(region.holder().map(|holder| holder.process), Some(child.cast_unsigned()));
    let mut waiting = 0;
    // SAFETY: the number is writable.
    assert_eq!(unsafe { libc::ioctl(pipe[0], libc::FIONREAD, &raw mut waiting) }, 0);
    assert_eq!(waiting, 1, "the child is still in the region");
    let mut status = 0;
    // SAFETY: the status is writable.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn opening_what_is_no_region_makes_none() {
    let file = File::new("none");
    let path = CString::new(file.0.as_os_str().as_encoded_bytes()).unwrap();
    let error = || SharedRegion::open(&path).err();
    assert_eq!(error(), Some(libc::ENOENT));
    assert!(!file.0.exists());
    fs::write(&file.0, "").unwrap();
    assert_eq!(error(), Some(libc::EINVAL));
    assert_eq!(fs::metadata(&file.0).unwrap().len(), 0);
    drop(file.open(0u64).unwrap());
    assert_eq!(error(), None);
}

#[test]
fn a_file_that_is_refused_is_as_it_was() {
    let file = File::new("refused");
    drop(file.open(0u64).unwrap());
    let mut bytes = fs::read(&file.0).unwrap();
    // Core data begins behind the first page with the lock, a key, and a sealed word.
    bytes[4096 + 32] ^= 1;
    fs::write(&file.0, &bytes).unwrap();
    let path = CString::new(file.0.as_os_str().as_encoded_bytes()).unwrap();
    let opened = SharedRegion::open_or_make(&path, 1 << 24);
    assert_eq!(opened.err(), Some(libc::EINVAL));
    assert!(fs::read(&file.0).unwrap() == bytes);
}

#[test]
fn a_file_that_another_program_has_locked_is_not_waited_for_for_ever() {
    let file = File::new("locked");
    let error = || {
        let path = CString::new(file.0.as_os_str().as_encoded_bytes()).unwrap();
        SharedRegion::open_or_make(&path, 0).err()
    };
    for is_made in [false, true] {
        if is_made {
            drop(file.open(0u64).unwrap());
        }
        let options = fs::OpenOptions::new().write(true).create(true).truncate(false).clone();
        let other = options.open(&file.0).unwrap();
        other.lock().unwrap();
        assert_eq!(error(), Some(libc::EBUSY));
        other.unlock().unwrap();
        if !is_made {
            other.lock_shared().unwrap();
            assert_eq!(error(), Some(libc::EBUSY));
        }
        drop(other);
        assert_eq!(error(), None);
    }
}

/// Unlocks a file that this process has open.
fn unlock(path: &Path) {
    let is_it = |descriptor: &i32| {
        fs::read_link(format!("/proc/self/fd/{descriptor}")).is_ok_and(|link| link == path)
    };
    for descriptor in (3..1000).filter(is_it) {
        // SAFETY: the call takes no memory.
        assert_eq!(unsafe { libc::flock(descriptor, libc::LOCK_UN) }, 0);
    }
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
