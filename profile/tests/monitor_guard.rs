//! The heap monitor's guard in a Rust program whose global allocator is lumalloc.

use lumalloc_profile::monitor::{self, Monitor, Refusal};
use std::ffi::{CStr, CString};
use std::hint::black_box;
use std::os::unix::ffi::OsStringExt;

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

fn allocate_and_free(count: usize) {
    (0..count).for_each(|_| drop(black_box(vec![1u8; 1000])));
}

/// Whether the file of a recording is whole: its magic, and a chunk that says so at its end.
fn is_whole(name: &CStr) -> bool {
    let bytes = std::fs::read(name.to_str().expect("text")).expect("a recording");
    let mut rest = bytes.strip_prefix(b"LUMAEVT\x01").expect("a recording of events");
    let mut last = 0;
    while let [tag, length @ ..] = rest {
        let (length, payload) = length.split_first_chunk().expect("a length");
        rest = payload.get(u32::from_le_bytes(*length) as usize..).expect("a whole chunk");
        last = *tag;
    }
    last == b'Z'
}

// One test, because a process has one monitor.
#[test]
fn a_recording_ends_with_its_guard() {
    let directory = std::env::temp_dir().join(format!("lumalloc-guard-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let file = |name: &str| {
        CString::new(directory.join(name).into_os_string().into_vec()).expect("a name")
    };
    let (dropped, stopped, other) = (file("dropped"), file("stopped"), file("other"));

    let guard = Monitor::start(&dropped).expect("a recording");
    assert!(monitor::is_running());
    assert_eq!(Monitor::start(&other).err(), Some(Refusal::Running));
    allocate_and_free(100);
    drop(guard);
    assert!(!monitor::is_running() && is_whole(&dropped));
    assert!(monitor::counts().taken >= 200, "the counts are kept");
    assert_eq!(monitor::stop(), Err(Refusal::Stopped));

    let guard = Monitor::start(&stopped).expect("a recording after one that has ended");
    allocate_and_free(300);
    let counts = guard.stop().expect("its end");
    assert!(counts.taken >= 600 && counts.dropped == 0, "{counts:?}");
    assert!(is_whole(&stopped));

    let guard = Monitor::start(&other).expect("a recording");
    monitor::stop().expect("its end, past the guard");
    assert_eq!(guard.stop(), Err(Refusal::Stopped));

    for drops in [true, false] {
        let guard = Monitor::start(&dropped).expect("a recording");
        monitor::stop().expect("its end, past the guard");
        let later = Monitor::start(&other).expect("a later recording");
        if drops {
            drop(guard);
        } else {
            assert_eq!(guard.stop(), Err(Refusal::Stopped));
        }
        assert!(monitor::is_running(), "the later recording goes on");
        later.stop().expect("its end");
    }

    // One that another thread is about to begin is ended.
    for _ in 0..20 {
        let begun = std::thread::scope(|scope| {
            let begin = scope.spawn(|| monitor::start(Some(&other)));
            while !monitor::is_running() {
                std::hint::spin_loop();
            }
            assert!(monitor::stop().is_ok());
            begin.join().expect("no panic")
        });
        assert_eq!(begun, Ok(()));
        assert!(!monitor::is_running() && is_whole(&other));
    }

    std::fs::remove_dir_all(&directory).expect("removed");
}
