//! An exporter that is stopped while an answer is made.
#![allow(unsafe_code, reason = "the trait has it so")]
mod client;

use client::{any, get};
use lumalloc_ctl::{Buffers, Error};
use lumalloc_exporter::Exporter;
use lumalloc_exporter::namespace::{Linked, Namespace};
use lumalloc_namespace::MAX_DEPTH;
use lumalloc_namespace::heap_map::Part;
use std::ffi::CStr;
use std::net::TcpListener;
use std::sync::{Condvar, Mutex};

#[global_allocator]
static ALLOCATOR: lumalloc::Lumalloc = lumalloc::Lumalloc;

/// How many prints wait, and whether they may go on.
static PRINTS: (Mutex<(usize, bool)>, Condvar) = (Mutex::new((0, false)), Condvar::new());

/// The allocator of this program, which prints when it is told to.
struct Slow;

impl Namespace for Slow {
    fn mib(&self, name: &str, mib: &mut [usize; MAX_DEPTH]) -> Result<usize, Error> {
        Linked.mib(name, mib)
    }

    unsafe fn call(&self, mib: &[usize], buffers: Buffers) -> Result<(), Error> {
        // SAFETY: the caller keeps the contract of this method.
        unsafe { Linked.call(mib, buffers) }
    }

    fn print(&self, letters: &CStr) -> Result<Vec<u8>, Error> {
        let mut state = PRINTS.0.lock().unwrap();
        state.0 += 1;
        drop(PRINTS.1.wait_while(state, |state| !state.1).unwrap());
        Linked.print(letters)
    }

    fn map(&self, part: Part) -> Result<Vec<u8>, Error> {
        Linked.map(part)
    }

    fn map_at(&self, address: usize) -> Result<Vec<u8>, Error> {
        Linked.map_at(address)
    }
}

/// The stop gives up waiting for the answer, but is done when the answer is.
#[test]
fn a_stop_during_a_long_answer_is_not_lost() {
    let exporter = Exporter::of(&Slow).listen(any()).start().unwrap();
    let address = exporter.address().unwrap();
    let asked = std::thread::spawn(move || get(address, "/stats"));
    client::wait_until("it prints", || PRINTS.0.lock().unwrap().0 == 1);
    drop(exporter);
    assert!(TcpListener::bind(address).is_err(), "the server waits for the answer");
    PRINTS.0.lock().unwrap().1 = true;
    PRINTS.1.notify_all();
    client::wait_until("the port is free", || TcpListener::bind(address).is_ok());
    drop(asked.join());
}
