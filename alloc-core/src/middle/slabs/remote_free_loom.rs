//! Models of the protocol: every interleaving of a few steps, by loom.
//!
//! The slab of the models has two blocks and one word. The *guard* is a loom mutex around the free
//! bits, as the cache lock is. Most models have one mutex for all guards. At the end nothing may be
//! lost: every freed block is among the free bits, or still among the remote bits with the slab on
//! a stack.

use super::*;
use crate::ground::sync::seam::model;
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Mutex};
use loom::thread;

const CACHE: u32 = 1;
const OTHER: u32 = 2;

// SAFETY: loom reports every access to the cells that is not ordered with the others.
unsafe impl Sync for World {}

// SAFETY: loom reports every access to the cells that is not ordered with the others.
unsafe impl Send for World {}

struct World {
    slab: &'static Remote,
    /// The free words of the slab, with the lock of its guard (one lock stands for all guards).
    mine: Mutex<u64>,
    /// The memory of the two blocks: written by the freer, read by the drainer that takes them in.
    blocks: [UnsafeCell<u64>; 2],
    stack: PendingStack,
    other: PendingStack,
    bin: PendingStack,
}

fn stack() -> PendingStack {
    PendingStack { head: AtomicPtr::new(core::ptr::null_mut()) }
}

fn slab() -> &'static Remote {
    let words = Box::leak(Box::new([AtomicU64::new(0)]));
    let slab = Box::leak(Box::new(Remote {
        state: AtomicU64::new(FREE),
        next: AtomicPtr::new(core::ptr::null_mut()),
        words,
    }));
    slab.birth(Guard::Owner(CACHE));
    slab
}

fn world(allocated: u64) -> Arc<World> {
    Arc::new(World {
        slab: slab(),
        mine: Mutex::new(!allocated & 0b11),
        blocks: [UnsafeCell::new(0), UnsafeCell::new(0)],
        stack: stack(),
        other: stack(),
        bin: stack(),
    })
}

impl World {
    fn stack_of(&self, guard: Guard) -> Option<*const PendingStack> {
        Some(match guard {
            Guard::Owner(CACHE) => &raw const self.stack,
            Guard::Owner(_) => &raw const self.other,
            Guard::Bin => &raw const self.bin,
        })
    }

    fn free(&self, mask: u64) {
        for (index, block) in self.blocks.iter().enumerate() {
            if mask >> index & 1 == 1 {
                // SAFETY: the block is the freer's until it is freed.
                block.with_mut(|word| unsafe { *word = mask });
            }
        }
        // SAFETY: each model frees each block once; the world outlives its threads.
        unsafe { self.slab.free(0, mask, |guard| self.stack_of(guard)) }.unwrap();
    }

    fn drain(&self, stack: &PendingStack, me: Guard, free: &mut u64) {
        let take = |slab: *const Remote| {
            // SAFETY: records live for ever.
            let bits = unsafe { &*slab }.take_word(0);
            assert_eq!(*free & bits, 0, "freed twice");
            *free |= bits;
            for (index, block) in self.blocks.iter().enumerate() {
                if bits >> index & 1 == 1 {
                    // SAFETY: the block is taken in, so it is the drainer's.
                    let seen = block.with(|word| unsafe { *word });
                    assert_ne!(seen & 1 << index, 0, "the freer's last write is lost");
                }
            }
        };
        // SAFETY: records and stacks outlive the model's threads.
        unsafe { stack.drain(me, take, |_, guard| self.stack_of(guard)) };
    }

    /// Drains every stack as its guard would, until nothing is pending.
    fn settle(&self) -> u64 {
        let mut free = *self.mine.lock().unwrap();
        for _ in 0..3 {
            self.drain(&self.stack, Guard::Owner(CACHE), &mut free);
            self.drain(&self.other, Guard::Owner(OTHER), &mut free);
            self.drain(&self.bin, Guard::Bin, &mut free);
        }
        free
    }
}

/// Frees each of the two blocks on a thread of its own.
fn two_freers(world: &Arc<World>) -> [thread::JoinHandle<()>; 2] {
    [0b01, 0b10].map(|mask| {
        let world = Arc::clone(world);
        thread::spawn(move || world.free(mask))
    })
}

#[test]
fn loom_two_freers_and_a_draining_owner_lose_nothing() {
    model(|| {
        let world = world(0b11);
        let freers = two_freers(&world);
        {
            let mut free = world.mine.lock().unwrap();
            world.drain(&world.stack, Guard::Owner(CACHE), &mut free);
        }
        freers.into_iter().for_each(|freer| freer.join().unwrap());
        assert_eq!(world.settle(), 0b11);
    });
}

#[test]
fn loom_an_exiting_owner_hands_its_slab_on() {
    model(|| {
        let world = world(0b11);
        let freers = two_freers(&world);
        {
            let mut free = world.mine.lock().unwrap();
            world.drain(&world.stack, Guard::Owner(CACHE), &mut free);
            world.slab.transfer(Guard::Bin);
            world.drain(&world.bin, Guard::Bin, &mut free);
            world.slab.transfer(Guard::Owner(OTHER));
        }
        freers.into_iter().for_each(|freer| freer.join().unwrap());
        assert_eq!(world.settle(), 0b11);
    });
}

#[test]
fn loom_release_and_rebirth_never_meet_a_late_push() {
    model(|| {
        let world = world(0b11);
        let freers = two_freers(&world);
        let reborn = {
            let mut free = world.mine.lock().unwrap();
            world.drain(&world.stack, Guard::Owner(CACHE), &mut free);
            // The second freer's bit may have been taken while its push is still under way.
            if *free == 0b11 && world.slab.release() {
                // The record starts a new life under another owner, both blocks allocated.
                *free = 0;
                world.slab.birth(Guard::Owner(OTHER));
                true
            } else {
                false
            }
        };
        freers.into_iter().for_each(|freer| freer.join().unwrap());
        if reborn {
            assert!(world.stack.is_empty() && world.other.is_empty() && world.bin.is_empty());
            assert_eq!(world.settle(), 0, "nothing of the new life was freed");
        } else {
            assert_eq!(world.settle(), 0b11);
        }
    });
}

/// A push publishes the link too, so the slab below must not be lost.
#[test]
fn loom_slabs_on_one_stack_are_all_found() {
    model(|| {
        let slabs = [slab(), slab()];
        let stack = Arc::new(stack());
        let freers = slabs.map(|slab| {
            let stack = Arc::clone(&stack);
            thread::spawn(move || {
                let only = |_| Some(Arc::as_ptr(&stack));
                // SAFETY: each block is freed once; records live for ever, the stack until the end.
                unsafe { slab.free(0, 0b01, only) }.unwrap();
            })
        });
        let mut found = 0;
        let mut drain = || {
            // SAFETY: records live for ever.
            let take = |slab: *const Remote| found += unsafe { &*slab }.take_word(0);
            // SAFETY: records live for ever, the stack until the end of the model.
            unsafe { stack.drain(Guard::Owner(CACHE), take, |_, _| Some(Arc::as_ptr(&stack))) };
        };
        drain();
        freers.into_iter().for_each(|freer| freer.join().unwrap());
        drain();
        assert_eq!(found, 2);
    });
}

#[test]
fn loom_a_double_free_is_seen() {
    model(|| {
        let world = world(0b11);
        world.free(0b01);
        let stack_of = |guard| world.stack_of(guard);
        // SAFETY: a deliberate bug of the program; nothing is drained in between.
        let again = unsafe { world.slab.free(0, 0b01, stack_of) };
        assert_eq!(again, Err(DoubleFree(0b01)));
    });
}

/// Frees a block of a slab that a bin guards, as a give-back does: under the bin's lock if that is
/// free and the bin still guards the slab, otherwise as a remote free.
fn give_back(world: &World, mask: u64) {
    if let Ok(mut free) = world.mine.try_lock()
        && world.slab.guard() == Some(Guard::Bin)
    {
        assert_eq!(*free & mask, 0, "freed twice");
        *free |= mask;
        return;
    }
    world.free(mask);
}

#[test]
fn loom_a_block_given_back_under_a_bin_s_lock_is_not_lost_when_a_cache_adopts_the_slab() {
    model(|| {
        let world = world(0b11);
        world.slab.transfer(Guard::Bin);
        let freers = [0b01, 0b10].map(|mask| {
            let world = Arc::clone(&world);
            thread::spawn(move || give_back(&world, mask))
        });
        {
            let mut free = world.mine.lock().unwrap();
            world.drain(&world.bin, Guard::Bin, &mut free);
            world.slab.transfer(Guard::Owner(CACHE));
        }
        freers.into_iter().for_each(|freer| freer.join().unwrap());
        assert_eq!(world.settle(), 0b11);
    });
}

/// The free bits of a slab with a lock for each of three guards. Only the holder of its present
/// guard's lock touches the bits.
struct Guarded {
    world: Arc<World>,
    bits: UnsafeCell<u64>,
    /// The locks of the cache, of the bin and of the other cache, taken in this order.
    locks: [Mutex<()>; 3],
}

// SAFETY: loom reports every access to the cells that is not ordered with the others.
unsafe impl Sync for Guarded {}

// SAFETY: loom reports every access to the cells that is not ordered with the others.
unsafe impl Send for Guarded {}

impl Guarded {
    /// Drains the stack of a guard, whose lock the caller holds.
    fn drain(&self, me: Guard) {
        let world = &self.world;
        let take = |slab: *const Remote| {
            // SAFETY: records live for ever.
            let taken = unsafe { &*slab }.take_word(0);
            // SAFETY: the slab's guard drains, under its lock.
            self.bits.with_mut(|bits| unsafe { *bits |= taken });
        };
        let stack = world.stack_of(me).unwrap();
        // SAFETY: records and stacks outlive the model's threads.
        unsafe { (*stack).drain(me, take, |_, guard| world.stack_of(guard)) };
    }
}

/// A cache's old stack is drained, so its slab is forwarded to the bin, while another cache adopts
/// the slab from the bin and a block of it is freed.
#[test]
fn loom_a_slab_that_is_forwarded_while_a_cache_adopts_it_is_not_lost() {
    model(|| {
        let locks = [(); 3].map(|()| Mutex::new(()));
        let all = Arc::new(Guarded { world: world(0b11), bits: UnsafeCell::new(0), locks });
        all.world.free(0b01);
        all.world.slab.transfer(Guard::Bin);
        let freer = {
            let all = Arc::clone(&all);
            thread::spawn(move || all.world.free(0b10))
        };
        let adopter = {
            let all = Arc::clone(&all);
            thread::spawn(move || {
                let (_bin, _other) = (all.locks[1].lock().unwrap(), all.locks[2].lock().unwrap());
                all.drain(Guard::Bin);
                all.world.slab.transfer(Guard::Owner(OTHER));
            })
        };
        {
            let _cache = all.locks[0].lock().unwrap();
            all.drain(Guard::Owner(CACHE));
        }
        {
            let _other = all.locks[2].lock().unwrap();
            all.drain(Guard::Owner(OTHER));
        }
        freer.join().unwrap();
        adopter.join().unwrap();
        for guard in [Guard::Owner(CACHE), Guard::Bin, Guard::Owner(OTHER)] {
            all.drain(guard);
        }
        // SAFETY: the other threads have ended.
        assert_eq!(all.bits.with(|bits| unsafe { *bits }), 0b11);
    });
}
