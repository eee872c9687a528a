//! Arenas with recording hooks, and hooks that stop in the middle.

use super::common::block::Block;
use super::recording::{Op, Recording};
use lumalloc::control::arenas::{self, ExtentHooks};
use lumalloc::raw::{self, Flags};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};

pub(crate) fn create(recording: &'static Recording) -> u32 {
    let table: *const ExtentHooks = recording.hooks();
    // SAFETY: the tables stay valid, and their hooks do what the manual says.
    unsafe { arenas::create_with(table.cast_mut()) }.expect("an arena")
}

pub(crate) fn destroy(arena: u32) {
    // SAFETY: the tests no longer use a block of the arena.
    assert!(unsafe { arenas::destroy(arena) });
}

pub(crate) fn block_in(arena: u32, size: usize) -> Block {
    let flags = Flags::NONE.arena(arena).uncached();
    Block::filled(raw::allocate(size, flags), size, size as u64).expect("a block")
}

pub(crate) fn free(block: &Block) {
    block.check(block.length);
    // SAFETY: a block of this allocator, freed once.
    unsafe { raw::deallocate(block.ptr(), Flags::NONE.uncached()) };
}

/// A door at which threads wait until it is opened.
#[derive(Default)]
pub(crate) struct Door {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Door {
    pub(crate) fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    pub(crate) fn pass(&self) {
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
    }
}

/// Makes the first call of a hook of kind `stop` send a message and wait at a door.
pub(crate) fn stop_at(recording: &'static Recording, stop: Op) -> (Arc<Door>, Receiver<()>) {
    let (door, first) = (Arc::new(Door::default()), AtomicBool::new(true));
    let (sender, receiver) = channel();
    let (sender, at): (Mutex<Sender<()>>, _) = (Mutex::new(sender), door.clone());
    recording.inside(move |op| {
        if op == stop && first.swap(false, Relaxed) {
            sender.lock().unwrap().send(()).unwrap();
            at.pass();
        }
    });
    (door, receiver)
}

/// Gives the first arena hooks, runs `test`, and gives the first arena its default hooks back.
pub(crate) fn with_a_hooked_first_arena(test: impl FnOnce(&'static Recording)) {
    let default = arenas::extent_hooks(0).expect("the first arena");
    let recording = Recording::of_hooks(default);
    let table: *const ExtentHooks = recording.hooks();
    // SAFETY: the table stays valid, and its hooks do what the manual says.
    assert_eq!(unsafe { arenas::set_extent_hooks(0, table.cast_mut()) }, Some(default));
    test(recording);
    // SAFETY: the default table stays valid.
    assert_eq!(unsafe { arenas::set_extent_hooks(0, default) }, Some(table.cast_mut()));
}
