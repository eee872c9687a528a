//! Threads against each other. Each allocates, and sends blocks to any other to be checked and
//! freed.

use super::super::common::block::Block;
use super::super::common::random::Random;
use super::super::common::rest;
use super::map::Map;
use lumalloc::control;
use lumalloc::raw::{self, Flags};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

type Shared = Arc<Mutex<Map>>;

/// Runs `threads` threads of `steps` steps each.
pub(crate) fn run(seed: u64, threads: usize, steps: u64) {
    let baseline = rest();
    let map = Shared::default();
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(64)).unzip();
    let workers: Vec<_> = receivers
        .into_iter()
        .zip(0..)
        .map(|(receiver, n)| {
            let (senders, map) = (senders.clone(), Arc::clone(&map));
            std::thread::spawn(move || worker(seed * 100 + n, steps, &senders, receiver, &map))
        })
        .collect();
    drop(senders);
    // All workers end before the channels are emptied, as any may send to any until then.
    let joined: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
    for (live, receiver) in joined.into_iter().map(|left| left.expect("a worker")) {
        live.into_iter().chain(receiver.try_iter()).for_each(|block| free(block, &map, 0));
    }
    assert_eq!(map.lock().expect("no panic").bytes(), 0);
    assert_eq!(rest(), baseline);
}

fn worker(
    seed: u64,
    steps: u64,
    others: &[SyncSender<Block>],
    mine: Receiver<Block>,
    map: &Shared,
) -> (Vec<Block>, Receiver<Block>) {
    let mut random = Random::new(seed);
    let mut live: Vec<Block> = Vec::new();
    for step in 0..steps {
        live.extend(allocate(&mut random, seed << 32 | step, map));
        if let Ok(block) = mine.try_recv() {
            free(block, map, random.below(4));
        }
        if live.len() > 100 {
            let block = live.swap_remove(random.below(live.len()));
            if random.below(2) == 0 {
                free(block, map, random.below(4));
            } else if let Err(refused) = others[random.below(others.len())].try_send(block) {
                use std::sync::mpsc::TrySendError::{Disconnected, Full};
                let (Full(block) | Disconnected(block)) = refused;
                live.push(block);
            }
        }
        match random.below(2000) {
            0 => drop(control::flush_thread_cache()),
            1 => drop(control::purge(control::ARENAS_ALL)),
            2 => drop(lumalloc::observe::totals()),
            _ => {}
        }
    }
    (live, mine)
}

/// Allocates a block of any kind, and adds it to the map while no other thread knows it.
fn allocate(random: &mut Random, id: u64, map: &Shared) -> Option<Block> {
    let size = random.size();
    let ptr = match random.below(8) {
        0 => raw::allocate(size, Flags::NONE.uncached()),
        1 => raw::allocate(size, Flags::NONE.arena(0)),
        2 => raw::malloc_zeroed(size.max(1)),
        _ => raw::malloc(size.max(1)),
    };
    assert!(!ptr.is_null());
    // SAFETY: a live block.
    let usable = unsafe { raw::usable_size(ptr) };
    map.lock().expect("no panic").insert(ptr.expose_provenance(), usable);
    Block::filled(ptr, usable, id)
}

fn free(block: Block, map: &Shared, kind: usize) {
    block.check(block.length);
    map.lock().expect("no panic").remove(block.address);
    let (ptr, size) = (block.ptr(), block.length);
    match kind {
        // SAFETY: a live block, not used afterwards.
        0 => unsafe { raw::free(ptr) },
        // SAFETY: a live block of this size, not used afterwards.
        1 => unsafe { raw::free_sized(ptr, size) },
        // SAFETY: a live block, not used afterwards.
        2 => unsafe { raw::deallocate(ptr, Flags::NONE.uncached()) },
        // SAFETY: a live block of this size, not used afterwards.
        _ => unsafe { raw::deallocate_sized(ptr, size, Flags::NONE) },
    }
}
