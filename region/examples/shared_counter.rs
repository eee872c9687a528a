//! A counter that processes share, and that is there at the next start:
//! `cargo run -p lumalloc-region --example shared_counter`.

use std::env::{args_os, current_exe, temp_dir};
use std::error::Error;
use std::ffi::CString;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use lumalloc_region::Persistent;

const PROCESSES: usize = 4;
const ADDITIONS: u64 = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let path = temp_dir().join("shared_counter.region");
    let path = CString::new(path.into_os_string().into_encoded_bytes())?;
    let counter: Persistent<AtomicU64> = Persistent::open(&path, 0, AtomicU64::new(0))?;
    if args_os().len() > 1 {
        for _ in 0..ADDITIONS {
            counter.root().fetch_add(1, Ordering::Relaxed);
        }
        return Ok(());
    }
    let before = counter.root().load(Ordering::Relaxed);
    let start = || Command::new(current_exe()?).arg("add").spawn();
    let children = (0..PROCESSES).map(|_| start()).collect::<Result<Vec<_>, _>>()?;
    for mut child in children {
        assert!(child.wait()?.success());
    }
    let after = counter.root().load(Ordering::Relaxed);
    assert_eq!(after - before, PROCESSES as u64 * ADDITIONS);
    println!("{after}, {before} of them from earlier runs");
    Ok(())
}
